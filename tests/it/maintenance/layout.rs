//! The layout of a ranking: every step on random rankings, invalid steps, concurrent rebalancing,
//! and the layout of a new period. src/maintenance/rebalance/balance.rs
//! chooses the steps and has its own tests.
//!
//! A failure names its seed: `CENTILE_TEST_SEED` repeats it, with `CENTILE_TEST_CASES=1`. More
//! cases make a longer run.

mod expected;
mod first;
mod random_board;
mod sorted;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use sqlx::{Connection as _, PgConnection};
use tokio_util::sync::CancellationToken;

use self::random_board::{Arena, KINDS, Scores};
use crate::{
    store::property::{Reproducible, layout::check_ranking, seeds},
    support::{
        TestDb, amount, audit,
        layout::{self, Step},
        wait::until,
    },
};

#[tokio::test]
async fn every_step_keeps_every_rule() {
    let db = TestDb::new().await;
    for seed in seeds(u64::try_from(KINDS.len()).unwrap() * amount(1, 4)) {
        let _named = Reproducible(seed);
        run(&db, seed).await;
    }
    audit::rankings_are_sound(&db.pool().await).await;
}

async fn run(db: &TestDb, seed: u64) {
    let mut arena = Arena::random(db, seed).await;
    let scores = *Scores::ALL.choose(&mut arena.rng).unwrap();
    let players = arena.rng.random_range(amount(25..50, 100..300));
    for round in 0..amount(1, 4) {
        // At first many new players at once, later fewer, while the others continue to score.
        let newcomers = if round == 0 { players } else { players / 4 };
        for part in [newcomers / 2, newcomers - newcomers / 2] {
            arena.play(scores, part).await;
        }
        match arena.rng.random_range(0..5) {
            0 => drop(arena.gather(1).await),
            1 => drop(arena.gather(100).await),
            2 | 3 => arena.scatter().await,
            _ => {}
        }
        arena.step_and_check(amount(8, 40)).await;
    }
    // Nearly all players leave.
    arena.leave(8).await;
    arena.step_and_check(amount(4, 20)).await;
}

#[tokio::test]
async fn a_rebuilt_ranking_is_laid_out_evenly() {
    let db = TestDb::new().await;
    for scores in [Scores::Uniform, Scores::Growing, Scores::Equal] {
        let mut arena = Arena::random(&db, 0).await;
        arena.play(scores, 2_500).await;
        arena.scatter().await;
        arena.rebuild().await;
        let players = layout::occupied(&mut arena.connection, arena.ranking_id).await.1;
        // An earlier player may have scored as well.
        let all: i64 = players.iter().sum();
        assert!((2_500..=2_501).contains(&all), "{all} players");
        assert_eq!(players, [&[1_000, 1_000, all - 2_000][..], &[0; 97]].concat(), "{scores:?}");
        let keys = arena.sorted().await.keys();
        let bounds = arena.places().await.bounds;
        for (bound, keys) in bounds[1..].iter().zip([&keys[999..=1_000], &keys[1_999..=2_000]]) {
            assert_eq!(*bound, expected::bound_between(keys[0], keys[1]), "{scores:?}");
        }
        check_ranking(&mut arena.connection, arena.ranking_id, "rebuilt").await;
    }
}

/// Steps that rebalancing requests only if it misreads the layout.
#[tokio::test]
async fn an_invalid_step_changes_nothing() {
    let db = TestDb::new().await;
    let mut arena = Arena::random(&db, 2).await;
    arena.play(Scores::Uniform, 150).await;
    arena.scatter().await;
    let (number, players) = layout::occupied(&mut arena.connection, arena.ranking_id).await;
    let places = |has_players: bool| -> Vec<i32> {
        (1..=100).filter(|place| (players[usize::try_from(place - 1).unwrap()] > 0) == has_players).collect()
    };
    let (full, empty) = (places(true), places(false));
    assert!(full.len() > 5 && empty.len() > 5, "{players:?}");
    let mut steps = Vec::new();
    for &from in full.iter().chain(&empty) {
        for to in [-99, 0, from - 2, from, from + 2, 101, 201] {
            steps.push(Step::Move { from, to, rows: 1 });
        }
        for to in [from - 1, from + 1] {
            steps.extend([0, -1, i32::MIN].map(|rows| Step::Move { from, to, rows }));
        }
    }
    let ends = [(0, 1), (1, 0), (100, 101), (101, 100), (-1, 0), (0, -1), (101, 102)].map(|(from, to)| Step::Move {
        from,
        to,
        rows: 1,
    });
    for is_above in [false, true] {
        let mut reposition = |place, beside| steps.push(Step::Reposition { place, beside, is_above });
        for outside in [i32::MIN, -1, 0, 101, i32::MAX] {
            full.iter().chain(&empty).for_each(|&place| reposition(place, outside));
            full.iter().chain(&empty).for_each(|&beside| reposition(outside, beside));
            reposition(outside, outside);
        }
        for &place in &full {
            // The bucket is not empty.
            full.iter().chain(&empty).for_each(|&beside| reposition(place, beside));
        }
        for &place in &empty {
            // Beside an empty bucket it has no use.
            for &beside in &empty {
                reposition(place, beside);
            }
        }
    }
    let before = arena.dump().await;
    // The quick run tries the steps at both ends and 1,000 of the 8,000 others.
    let tried = amount(1_000, steps.len());
    for &step in ends.iter().chain(steps.sample(&mut arena.rng, tried)) {
        let done = layout::take(&mut arena.connection, arena.ranking_id, number, step).await.unwrap();
        assert_eq!(done, None, "{step:?} of {players:?}");
    }
    assert_eq!(arena.dump().await, before);
}

#[tokio::test]
async fn a_step_planned_on_another_layout_does_nothing() {
    let db = TestDb::new().await;
    let mut arena = Arena::random(&db, 1).await;
    arena.play(Scores::Uniform, 150).await;
    let mut planned = Vec::new();
    for _ in 0..100 {
        let (number, players) = layout::occupied(&mut arena.connection, arena.ranking_id).await;
        let step = layout::random_step(&mut arena.rng, &players).unwrap();
        // Another task changes the layout first.
        assert!(layout::take(&mut arena.connection, arena.ranking_id, number, step).await.unwrap().is_some());
        planned.push((number, step));
    }
    let now = layout::occupied(&mut arena.connection, arena.ranking_id).await.0;
    let later = planned.iter().map(|(number, step)| (number + 101, *step)).collect::<Vec<_>>();
    let before = arena.dump().await;
    for (number, step) in planned.into_iter().chain(later) {
        assert_ne!(number, now);
        let done = layout::take(&mut arena.connection, arena.ranking_id, number, step).await.unwrap();
        assert_eq!(done, None, "{step:?} on layout {number}");
    }
    assert_eq!(arena.dump().await, before);
}

#[tokio::test]
async fn a_released_ranking_is_not_changed() {
    let db = TestDb::new().await;
    let mut arena = Arena::random(&db, 4).await;
    arena.play(Scores::Uniform, 150).await;
    arena.scatter().await;
    let released = arena.ranking_id;
    let (number, players) = layout::occupied(&mut arena.connection, released).await;
    arena.rebuild().await;
    assert_ne!(arena.ranking_id, released);
    let before = arena.dump_of(released).await;
    for _ in 0..50 {
        let step = layout::random_step(&mut arena.rng, &players).unwrap();
        assert_eq!(layout::take(&mut arena.connection, released, number, step).await.unwrap(), None, "{step:?}");
        // A ranking id that does not exist.
        assert_eq!(layout::take(&mut arena.connection, 1_000_000, number, step).await.unwrap(), None, "{step:?}");
    }
    assert_eq!(arena.dump_of(released).await, before);
    arena.step_and_check(2).await;
}

/// Counts without rows, and rows without counts. A step never spreads the damage, and its error
/// names the place.
#[tokio::test]
async fn a_step_on_damage_fails_and_changes_nothing() {
    let db = TestDb::new().await;
    let mut arena = Arena::random(&db, 3).await;
    arena.play(Scores::Uniform, 120).await;
    let (place, all) = (50, arena.gather(50).await);
    let (number, players) = layout::occupied(&mut arena.connection, arena.ranking_id).await;
    assert_eq!((players[49], arena.places().await.buckets[49..51].to_vec()), (i64::from(all), vec![50, 51]));
    let (full, empty) = (50, 51);
    let ranking = arena.ranking_id;
    let count = |lane: &str, bucket: i32, change: &str| {
        format!(
            "UPDATE centile_store.bucket_counts SET counts[{bucket} + 1] = counts[{bucket} + 1] {change}
             WHERE ranking_id = {ranking} AND {lane}"
        )
    };
    let row = "SELECT {to}, lane, ranking_id, rank_key, tie_key, user_key FROM centile_store.leaderboard_bucket
               WHERE ranking_id = {ranking} ORDER BY rank_key LIMIT 1";
    let row = row.replace("{to}", &empty.to_string()).replace("{ranking}", &ranking.to_string());
    let copy = format!("INSERT INTO centile_store.leaderboard_bucket {row}");
    let lose = format!(
        "DELETE FROM centile_store.leaderboard_bucket WHERE ranking_id = {ranking} AND user_key =
             (SELECT user_key FROM centile_store.leaderboard_bucket WHERE ranking_id = {ranking} LIMIT 1)"
    );
    let vanish = format!("DELETE FROM centile_store.leaderboard_bucket WHERE ranking_id = {ranking}");
    let lane = format!("DELETE FROM centile_store.bucket_counts WHERE ranking_id = {ranking} AND lane = 0");
    let up = Step::Move { from: place, to: place + 1, rows: all + 5 };
    let down = Step::Move { from: place, to: place - 1, rows: all + 5 };
    let few = Step::Move { from: place, to: place - 1, rows: 3 };
    // The place has rows that no count includes.
    let from_empty = Step::Move { from: place + 1, to: place + 2, rows: 3 };
    let beside = |is_above| Step::Reposition { place: place + 1, beside: place, is_above };
    let cases = [
        (count("lane = 0", full, "+ 1"), vec![up, down]),
        (count("lane = 0", full, "- 1"), vec![up, down]),
        (count("true", full, "- 1000"), vec![up, down, few]),
        (count("lane = 0", full, &format!("- {}", all - 2)), vec![up, down, few]),
        (count("lane = 0", empty, "- 1"), vec![from_empty, beside(true), beside(false)]),
        (lose, vec![up, down]),
        (vanish, vec![up, down, few, beside(true), beside(false)]),
        (copy, vec![from_empty, beside(true), beside(false)]),
        (lane, vec![up, down, few, beside(true), beside(false)]),
    ];
    let sound = arena.dump().await;
    for (damage, steps) in cases {
        for step in steps {
            let mut damaged = db.hold(&damage).await;
            let error = layout::take(&mut damaged, ranking, number, step).await;
            let error = error.expect_err(&format!("{step:?} after {damage}"));
            let error = error.as_database_error().unwrap();
            assert_eq!(error.code().as_deref(), Some("CB900"), "{step:?} after {damage}: {error}");
            assert!(error.message().contains("bucket"), "{error}");
        }
    }
    assert_eq!(arena.dump().await, sound);
    arena.step_and_check(2).await;
}

/// Steps and appliers exclude each other, and neither waits for writers.
#[tokio::test]
async fn a_step_waits_for_the_order_lock_and_not_for_writers() {
    let db = TestDb::new().await;
    let mut arena = Arena::random(&db, 0).await;
    arena.play(Scores::Uniform, 20).await;
    arena.gather(50).await;
    for step in [Step::Move { from: 50, to: 51, rows: 7 }, Step::Reposition { place: 1, beside: 51, is_above: true }] {
        let (number, _) = layout::occupied(&mut arena.connection, arena.ranking_id).await;
        let _writer = db.hold(&format!("SELECT centile_store.lock_structure({}, false)", arena.number)).await;
        let mut applier = db.hold(&format!("SELECT centile_store.lock_buckets({})", arena.number)).await;
        let (url, ranking) = (db.url().to_owned(), arena.ranking_id);
        let taking = tokio::spawn(async move {
            let mut connection = PgConnection::connect(&url).await.unwrap();
            layout::take(&mut connection, ranking, number, step).await.unwrap()
        });
        db.until_waiting(1, || taking.is_finished()).await;
        assert!(!taking.is_finished(), "{step:?} beside an applier");
        sqlx::query("ROLLBACK").execute(&mut applier).await.unwrap();
        assert!(taking.await.unwrap().is_some(), "{step:?}");
    }
}

/// Two tasks change a layout while two others write. Only the locks of the database order them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_steps_and_writes_leave_a_sound_ranking() {
    let db = TestDb::new().await;
    for seed in seeds(amount(1, 4)) {
        let _named = Reproducible(seed);
        let mut arena = Arena::random(&db, seed).await;
        arena.play(Scores::Uniform, 100).await;
        let (met, written) = (CancellationToken::new(), CancellationToken::new());
        let done = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
        let mut keepers = Vec::new();
        for done in &done {
            let (url, ranking_id, written, done) =
                (db.url().to_owned(), arena.ranking_id, written.clone(), Arc::clone(done));
            let mut rng = StdRng::seed_from_u64(arena.rng.random());
            keepers.push(tokio::spawn(async move {
                let mut connection = PgConnection::connect(&url).await.unwrap();
                while !written.is_cancelled() {
                    let (number, players) = layout::occupied(&mut connection, ranking_id).await;
                    let step = layout::random_step(&mut rng, &players).unwrap();
                    if layout::take(&mut connection, ranking_id, number, step).await.unwrap().is_some() {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }));
        }
        let writers = arena.writers(2, amount(30, 100), &met);
        let wanted = amount(50, 200);
        until("each task takes steps beside the writers", async || {
            let has_failed = keepers.iter().chain(&writers).any(tokio::task::JoinHandle::is_finished);
            has_failed || done.iter().all(|done| done.load(Ordering::Relaxed) >= wanted)
        })
        .await;
        met.cancel();
        for writer in writers {
            writer.await.unwrap();
        }
        written.cancel();
        for keeper in keepers {
            keeper.await.unwrap();
        }
        let sorted = arena.sorted().await;
        arena.check(&sorted, "after keepers and writers").await;
    }
    audit::rankings_are_sound(&db.pool().await).await;
}

/// While a session holds a snapshot, every version of a count stays. A score must not read all of
/// them.
#[tokio::test]
async fn a_held_snapshot_does_not_make_scores_read_more_counts() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('held', '{\"periods\": [\"all_time\"], \"lanes\": 1}')").await;
    let pool = db.pool().await;
    let mut holder = pool.begin().await.unwrap();
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").execute(&mut *holder).await.unwrap();
    sqlx::query("SELECT FROM centile.boards").execute(&mut *holder).await.unwrap();
    let mut writer = pool.acquire().await.unwrap();
    // The settings of the service's connections.
    sqlx::query("SET enable_bitmapscan = off").execute(&mut *writer).await.unwrap();
    let mut read = Vec::new();
    for part in 0..10 {
        if part == 5 {
            // Like autovacuum: plans are made again, and the statistics know only the newest
            // version.
            sqlx::query("ANALYZE").execute(&mut *writer).await.unwrap();
        }
        for player in 100 * part..100 * (part + 1) {
            let score = sqlx::query("SELECT testing.submit_score('held', $1, $2)");
            score.bind(format!("player-{player}")).bind(i64::from(player)).execute(&mut *writer).await.unwrap();
        }
        let counted = counts_read(&mut writer).await;
        read.push(counted - read.iter().sum::<i64>());
    }
    assert!(read[0] >= 100 && read[9] <= 2 * read[0], "index rows of counts read for each hundred scores: {read:?}");
}

/// Rows moved to another bucket stay in the old table as long as a session holds a snapshot. Later
/// steps must not scan them again.
#[tokio::test]
async fn a_held_snapshot_does_not_make_steps_read_more_rows() {
    let db = TestDb::new().await;
    let mut arena = Arena::random(&db, 0).await;
    arena.play(Scores::Growing, 2_000).await;
    arena.gather(1).await;
    sqlx::query("ANALYZE").execute(&mut arena.connection).await.unwrap();
    let mut holder = db.hold("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT FROM centile.boards").await;
    for (from, to) in [(1, 2), (2, 1)] {
        let (mut rows, mut counts) = (Vec::new(), Vec::new());
        for _ in 0..15 {
            let number = layout::occupied(&mut arena.connection, arena.ranking_id).await.0;
            let before = [rows_read(&mut arena.connection).await, counts_read(&mut arena.connection).await];
            let step = Step::Move { from, to, rows: 100 };
            assert_eq!(layout::take(&mut arena.connection, arena.ranking_id, number, step).await.unwrap(), Some(100));
            rows.push(rows_read(&mut arena.connection).await - before[0]);
            counts.push(counts_read(&mut arena.connection).await - before[1]);
        }
        for (read, least) in [(rows, 100), (counts, 1)] {
            assert!(read[0] >= least && read.iter().all(|more| *more <= 2 * read[0]), "from {from} to {to}: {read:?}");
        }
    }
    sqlx::query("ROLLBACK").execute(&mut holder).await.unwrap();
}

/// Returns the index rows of counts that all sessions have read so far.
async fn counts_read(connection: &mut PgConnection) -> i64 {
    sqlx::query("SELECT pg_stat_force_next_flush()").execute(&mut *connection).await.unwrap();
    let read = "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'bucket_counts'";
    sqlx::query_scalar(read).fetch_one(connection).await.unwrap()
}

/// Returns the rows of bucket tables that all sessions have read so far.
pub async fn rows_read(connection: &mut PgConnection) -> i64 {
    rows_read_of(connection, "^leaderboard_bucket").await
}

/// Like [`rows_read`], of the tables whose names match a pattern.
pub async fn rows_read_of(connection: &mut PgConnection, tables: &str) -> i64 {
    sqlx::query("SELECT pg_stat_force_next_flush()").execute(&mut *connection).await.unwrap();
    sqlx::query_scalar(
        "SELECT (SELECT sum(i.idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relname ~ $1)::bigint
              + (SELECT sum(t.seq_tup_read) FROM pg_stat_user_tables t WHERE t.relname ~ $1)::bigint",
    )
    .bind(tables)
    .fetch_one(connection)
    .await
    .unwrap()
}
