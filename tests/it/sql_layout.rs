//! The layout that keeps itself: every step on random rankings, steps that must not be taken, several keepers at once, and how a
//! period begins.
//!
//! A failure names its seed: `CENTILE_TEST_SEED` repeats it, with `CENTILE_TEST_CASES=1`; many cases make a longer run.

mod arena;
mod first;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use rand::{RngExt as _, seq::IndexedRandom as _};
use sqlx::{Connection as _, PgConnection};
use tokio_util::sync::CancellationToken;

use self::arena::{Arena, Scores};
use crate::{
    sql_property::{Reproducible, layout::check_ranking, seeds},
    support::{
        TestDb, amount, audit,
        layout::{self, Step},
        wait::until,
    },
};

#[tokio::test]
async fn every_step_keeps_every_rule_and_all_of_them_end_in_shape() {
    let db = TestDb::new().await;
    for seed in seeds(amount(2, 3)) {
        let _named = Reproducible(seed);
        run(&db, seed).await;
    }
}

async fn run(db: &TestDb, seed: u64) {
    let mut arena = Arena::random(db, seed).await;
    let scores = Scores::ALL[usize::try_from(seed).unwrap() % Scores::ALL.len()];
    let players = arena.rng.random_range(amount(50..120, 100..300));
    for round in 0..amount(2, 3) {
        // Many come at once, then fewer; who is there already plays on.
        let newcomers = if round == 0 { players } else { players / 4 };
        for part in [newcomers / 2, newcomers - newcomers / 2] {
            arena.play(scores, part).await;
        }
        arena.keep_and_check().await;
        let target = *[2, 4, 7, 10].choose(&mut arena.rng).unwrap();
        arena.aim(target, 50).await;
        arena.keep_and_check().await;
    }
    // Nearly all leave.
    arena.leave(8).await;
    arena.keep_and_check().await;
    assert_eq!(audit::rankings_are_sound(&db.pool().await).await, usize::try_from(arena.number).unwrap());
}

#[tokio::test]
async fn stripes_whose_players_leave_are_merged() {
    let db = TestDb::new().await;
    for seed in seeds(amount(1, 2)) {
        let _named = Reproducible(seed);
        let mut arena = Arena::random(&db, seed).await;
        // Too few to be spread over buckets: where many stripes share one.
        arena.aim(4, 1_000_000).await;
        arena.play(Scores::Uniform, 600).await;
        arena.keep().await;
        let before = arena.layout("before they leave").await.stripes().len();
        assert!(before > 100, "{before} stripes");
        // Some nineteen stay. Neighbours in a bucket may be as small as one player each, of whom an eighth would be 75: as many
        // stripes, and one more for each of 21 buckets, would be no fault.
        arena.leave(32).await;
        arena.keep_and_check().await;
        let after = arena.layout("after they left").await.stripes().len();
        assert!(after * 2 < before, "{after} stripes of {before} are left");
    }
}

#[tokio::test]
async fn stripes_that_are_large_beside_their_buckets_come_to_rest() {
    let db = TestDb::new().await;
    for seed in seeds(amount(1, 2)) {
        let _named = Reproducible(seed);
        let mut arena = Arena::random(&db, seed).await;
        // A bucket's share is less than a stripe: no layout is even, and none may be sought for ever.
        for players in amount([40, 60, 80], [60, 130, 240]) {
            arena.aim(40, 0).await;
            arena.play(Scores::Uniform, players).await;
            arena.keep_and_check().await;
        }
    }
}

#[tokio::test]
async fn a_rank_among_equals_reads_no_more_than_another() {
    let db = TestDb::new().await;
    for seed in seeds(amount(1, 2)) {
        let _named = Reproducible(seed);
        let mut read = Vec::new();
        for scores in [Scores::Uniform, Scores::Equal] {
            let mut arena = Arena::random(&db, seed).await;
            // In the buckets that they come to: equals in a single one.
            arena.aim(40, 1_000_000).await;
            arena.play(scores, 8_000).await;
            arena.tidy().await;
            read.push(arena.pages_read().await);
        }
        assert!(read[1] <= 2 * read[0], "ranks of a hundred equals touch {} pages, of others {}", read[1], read[0]);
    }
}

/// While somebody holds a snapshot every version of a count stays: a score is not to read them all.
#[tokio::test]
async fn beside_a_held_snapshot_the_thousandth_score_reads_as_many_counts_as_the_first() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('held', p_periods => '{all_time}', p_lanes => 1::smallint)").await;
    let pool = db.pool().await;
    let mut holder = pool.begin().await.unwrap();
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").execute(&mut *holder).await.unwrap();
    sqlx::query("SELECT FROM centile.boards").execute(&mut *holder).await.unwrap();
    let mut writer = pool.acquire().await.unwrap();
    // As on the connections of the service.
    sqlx::query("SET enable_bitmapscan = off").execute(&mut *writer).await.unwrap();
    let mut read = Vec::new();
    for part in 0..10 {
        if part == 5 {
            // As autovacuum does: plans are made anew, and of all versions only the newest is known of.
            sqlx::query("ANALYZE").execute(&mut *writer).await.unwrap();
        }
        for player in 100 * part..100 * (part + 1) {
            let score = sqlx::query("SELECT testing.submit_score('held', $1, $2)");
            score.bind(format!("player-{player}")).bind(i64::from(player)).execute(&mut *writer).await.unwrap();
        }
        sqlx::query("SELECT pg_stat_force_next_flush()").execute(&mut *writer).await.unwrap();
        let counted: i64 = sqlx::query_scalar(
            "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname IN ('stripe_counts', 'bucket_counts')",
        )
        .fetch_one(&mut *writer)
        .await
        .unwrap();
        read.push(counted - read.iter().sum::<i64>());
    }
    assert!(read[0] > 100 && read[9] <= 2 * read[0], "index rows of counts read for each hundred scores: {read:?}");
}

/// Many arrive in many places: the largest stripes are seen to first, and several buckets in one step.
#[tokio::test]
async fn the_largest_stripes_are_split_first() {
    let db = TestDb::new().await;
    let mut arena = Arena::random(&db, 6).await;
    arena.aim(20, 50).await;
    arena.play(Scores::Uniform, 600).await;
    arena.keep().await;
    // Evenly large until now.
    arena.play(Scores::Uniform, 200).await;
    arena.aim(3, 1_000_000).await;
    for step in 0.. {
        let before = arena.largest_stripes().await;
        let crowded = before.iter().filter(|(_, players)| **players > 6).count();
        assert!(step > 0 || crowded > 10, "only {crowded} buckets are crowded");
        let buckets: Vec<i16> = sqlx::query_scalar("SELECT * FROM centile_store.buckets_to_tidy($1)")
            .bind(arena.ranking_id)
            .fetch_all(&mut arena.connection)
            .await
            .unwrap();
        let sizes: Vec<i64> = buckets.iter().map(|bucket| before[bucket]).collect();
        assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
        assert_eq!(sizes.iter().take_while(|size| **size > 6).count(), crowded);
        if buckets.is_empty() {
            break;
        }
        let (changes, done): (i32, i32) = sqlx::query_as("SELECT * FROM centile_store.tidy_buckets($1, $2)")
            .bind(arena.ranking_id)
            .bind(&buckets)
            .fetch_one(&mut arena.connection)
            .await
            .unwrap();
        let (seen, left) = buckets.split_at(usize::try_from(done).unwrap());
        assert!(changes > 0 && !seen.is_empty(), "{changes} changes in {seen:?}");
        let after = arena.largest_stripes().await;
        assert!(seen.iter().all(|bucket| after[bucket] <= 6), "{seen:?}: {after:?}");
        assert!(left.iter().all(|bucket| after[bucket] == before[bucket]), "{left:?}: {after:?}");
    }
}

#[tokio::test]
async fn a_step_planned_on_another_layout_does_nothing() {
    let db = TestDb::new().await;
    let mut arena = Arena::random(&db, 1).await;
    arena.aim(4, 50).await;
    arena.play(Scores::Uniform, 300).await;
    arena.tidy().await;
    let planned = layout::moves(&mut arena.connection, arena.ranking_id).await;
    assert!(planned.len() > 20, "{planned:?}");
    // Another keeper was quicker.
    for step in &planned {
        assert!(layout::take(&mut arena.connection, arena.ranking_id, *step).await.unwrap().is_some());
    }
    let before = arena.dump().await;
    for step in &planned {
        assert_eq!(layout::take(&mut arena.connection, arena.ranking_id, *step).await.unwrap(), None, "{step:?}");
    }
    for bucket in 0..100 {
        let step = Step::Tidy(bucket);
        assert_eq!(layout::take(&mut arena.connection, arena.ranking_id, step).await.unwrap(), Some(0));
    }
    let nowhere = Step::Move { bound: [123_456_789, 1, 1], to_bucket: 3 };
    assert_eq!(layout::take(&mut arena.connection, arena.ranking_id, nowhere).await.unwrap(), None);
    assert_eq!(arena.dump().await, before);
}

#[tokio::test]
async fn a_move_that_would_break_the_order_is_refused() {
    let db = TestDb::new().await;
    let mut arena = Arena::random(&db, 2).await;
    arena.aim(4, 50).await;
    arena.play(Scores::Uniform, 300).await;
    arena.keep().await;
    let layout = arena.layout("kept").await;
    let stripes: Vec<_> = layout.bounds().into_iter().zip(layout.stripes()).collect();
    let before = arena.dump().await;
    let mut tried = 0;
    for (n, (bound, (bucket, _))) in stripes.iter().enumerate() {
        let below = if n == 0 { 0 } else { stripes[n - 1].1.0 };
        let above = stripes.get(n + 1).map_or(99, |next| next.1.0);
        for to_bucket in [below - 1, above + 1, *bucket, -1, 100] {
            if to_bucket == *bucket || !(below..=above).contains(&to_bucket) || !(0..100).contains(&to_bucket) {
                let step = Step::Move { bound: *bound, to_bucket };
                let done = layout::take(&mut arena.connection, arena.ranking_id, step).await.unwrap();
                assert_eq!(done, None, "{step:?} from {bucket}, between {below} and {above}");
                tried += 1;
            }
        }
    }
    assert!(tried > 100);
    assert_eq!(arena.dump().await, before);
}

#[tokio::test]
async fn damaged_counts_are_named_and_nothing_is_changed() {
    let db = TestDb::new().await;
    let mut arena = Arena::random(&db, 3).await;
    arena.aim(5, 0).await;
    arena.play(Scores::Uniform, 200).await;
    arena.tidy().await;
    let planned = layout::moves(&mut arena.connection, arena.ranking_id).await;
    let Some(Step::Move { bound, .. }) = planned.first() else { panic!("nothing to move") };
    let bucket = arena.bucket_of(*bound).await;
    for (damage, step) in [("+ 1", planned[0]), ("- 1", planned[0]), ("+ 40", Step::Tidy(bucket))] {
        let statement = |sign: &str| {
            let undo = if sign.starts_with('+') { sign.replace('+', "-") } else { sign.replace('-', "+") };
            let set = |by: &str| {
                format!(
                    "UPDATE centile_store.stripe_counts SET counts = ARRAY(SELECT c {by} FROM unnest(counts) WITH ORDINALITY AS u (c, n) ORDER BY n)
                     WHERE ranking_id = {} AND lane = 0 AND bucket = {bucket}",
                    arena.ranking_id
                )
            };
            (set(sign), set(&undo))
        };
        let (spoil, mend) = statement(damage);
        db.execute(&spoil).await;
        let before = arena.dump().await;
        let error = layout::take(&mut arena.connection, arena.ranking_id, step).await.unwrap_err();
        let error = error.as_database_error().unwrap();
        assert_eq!(error.code().as_deref(), Some("CB900"), "{damage} before {step:?}: {error}");
        assert!(error.message().contains(&format!("bucket {bucket} counts")), "{error}");
        assert_eq!(arena.dump().await, before);
        db.execute(&mend).await;
    }
    arena.keep_and_check().await;
}

#[tokio::test]
async fn a_ranking_that_was_let_go_is_left_alone() {
    let db = TestDb::new().await;
    let mut arena = Arena::random(&db, 4).await;
    arena.play(Scores::Uniform, 300).await;
    let before = arena.dump().await;
    let released = arena.ranking_id;
    let tidy = layout::steps(&mut arena.connection, released).await;
    assert!(!tidy.is_empty());
    arena.rebuild().await;
    assert_ne!(arena.ranking_id, released);
    arena.aim(4, 0).await;
    for step in tidy.into_iter().chain(layout::moves(&mut arena.connection, released).await) {
        let done = layout::take(&mut arena.connection, released, step).await.unwrap();
        assert!(matches!(done, Some(0) | None), "{step:?} did {done:?}");
    }
    assert_eq!(arena.dump_of(released).await, before);
    arena.keep_and_check().await;
}

/// Two tasks keep a layout in shape while two others write. Only the locks of the database order them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keepers_and_writers_at_once_leave_a_sound_ranking() {
    let db = TestDb::new().await;
    for seed in seeds(amount(1, 2)) {
        let _named = Reproducible(seed);
        let mut arena = Arena::random(&db, seed).await;
        arena.aim(5, 50).await;
        arena.play(Scores::Uniform, 100).await;
        let (met, written) = (CancellationToken::new(), CancellationToken::new());
        let done = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
        let mut keepers = Vec::new();
        for done in &done {
            let (url, ranking_id, written, done) =
                (db.url().to_owned(), arena.ranking_id, written.clone(), Arc::clone(done));
            keepers.push(tokio::spawn(async move {
                let mut connection = PgConnection::connect(&url).await.unwrap();
                while !written.is_cancelled() {
                    for step in layout::steps(&mut connection, ranking_id).await {
                        if layout::take(&mut connection, ranking_id, step).await.unwrap().is_some() {
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            }));
        }
        let writers = arena.writers(2, amount(20, 100), &met);
        let wanted = amount(20, 100);
        until("each keeper takes steps beside the writers", async || {
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
        arena.keep_and_check().await;
        check_ranking(&mut arena.connection, arena.ranking_id, "after keepers and writers").await;
    }
    audit::rankings_are_sound(&db.pool().await).await;
}

/// A function that is not inlined is planned at each call, and finds everything that nobody asked for.
#[tokio::test]
async fn a_look_up_of_players_is_one_plan_without_calls_of_functions_that_find_them() {
    let db = TestDb::new().await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    for (query, around) in [
        (include_str!("../../sql/queries/standings.sql"), ""),
        (include_str!("../../sql/queries/standings_around.sql"), ", 4"),
    ] {
        let prepared = format!("PREPARE look_up AS {query}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(prepared)).execute(&mut connection).await.unwrap();
        let explain = format!("EXPLAIN EXECUTE look_up(1, 1, 1, NULL, NULL, '{{ann}}', NULL, NULL{around})");
        let plan: Vec<String> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(explain)).fetch_all(&mut connection).await.unwrap();
        assert!(plan.iter().any(|line| line.contains(" on leaderboard l")), "{plan:#?}");
        for function in ["bucket_standings", "above_in_bucket", "stripes_beside", "neighbours"] {
            let scan = format!("Function Scan on {function}");
            assert!(!plan.iter().any(|line| line.contains(&scan)), "{scan}: {plan:#?}");
        }
        sqlx::raw_sql("DEALLOCATE look_up").execute(&mut connection).await.unwrap();
    }
}

/// Makes a board of groups of equal scores, the best first, which begin and end in different buckets. Returns the ranks of its
/// players by position.
async fn groups_of_equals(db: &TestDb, connection: &mut PgConnection, sizes: &[i64]) -> Vec<i64> {
    db.execute("SELECT centile.create_board('main', p_periods => '{all_time}', p_layout_bounds => '{997,999}')").await;
    let (mut ranks, mut users, mut scores) = (Vec::new(), Vec::new(), Vec::new());
    for (score, equals) in (0..1_000_i64).rev().zip(sizes) {
        let rank = i64::try_from(ranks.len()).unwrap() + 1;
        for n in 0..*equals {
            ranks.push(rank);
            users.push(format!("{score}-{n}"));
            scores.push(score);
        }
    }
    sqlx::query("SELECT testing.submit_score('main', u, s) FROM unnest($1::text[], $2::bigint[]) AS x (u, s)")
        .bind(users)
        .bind(scores)
        .execute(connection)
        .await
        .unwrap();
    ranks
}

/// Few equals above the first of a page are counted one by one, many are not.
#[tokio::test]
async fn a_page_may_begin_among_any_number_of_equals() {
    let db = TestDb::new().await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    let ranks = groups_of_equals(&db, &mut connection, &[1, 2, 19, 20, 21, 25]).await;
    for from in 1..=ranks.len() {
        let page: Vec<i64> =
            sqlx::query_scalar("SELECT rank FROM centile.page('main', 'all_time', $1, 30) ORDER BY position")
                .bind(i64::try_from(from).unwrap())
                .fetch_all(&mut connection)
                .await
                .unwrap();
        assert_eq!(page, ranks[from - 1..].iter().copied().take(30).collect::<Vec<_>>(), "the page from {from}");
    }
}

#[tokio::test]
async fn neighbours_may_be_among_any_number_of_equals() {
    const AROUND: usize = 3;
    let db = TestDb::new().await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    // Those above the ones that are shown are read up to two dozen, which may end a group, or not, or end in another bucket.
    let ranks = groups_of_equals(&db, &mut connection, &[1, 2, 4, 22, 23, 24, 25, 26, 27, 28, 29, 30, 60, 3, 1]).await;
    let ids: Vec<String> =
        sqlx::query_scalar("SELECT user_id FROM centile.page('main', 'all_time', 1, 1000) ORDER BY position")
            .fetch_all(&mut connection)
            .await
            .unwrap();
    assert_eq!(ids.len(), ranks.len());
    let found: Vec<(i64, String, i64)> = sqlx::query_as(
        "SELECT x.n, a.user_id, a.rank FROM unnest($1::text[]) WITH ORDINALITY AS x (id, n)
         CROSS JOIN LATERAL centile.players_around('main', x.id, 'all_time', $2) a ORDER BY x.n, a.position",
    )
    .bind(&ids)
    .bind(i32::try_from(AROUND).unwrap())
    .fetch_all(&mut connection)
    .await
    .unwrap();
    for (index, id) in ids.iter().enumerate() {
        let of_this = found.iter().filter(|row| usize::try_from(row.0) == Ok(index + 1));
        let around: Vec<(String, i64)> = of_this.map(|(_, user, rank)| (user.clone(), *rank)).collect();
        let shown = index.saturating_sub(AROUND)..(index + AROUND + 1).min(ids.len());
        let wanted: Vec<(String, i64)> = shown.map(|at| (ids[at].clone(), ranks[at])).collect();
        assert_eq!(around, wanted, "around {id}, at {}", index + 1);
    }
}
