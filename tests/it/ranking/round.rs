//! `centile_store.read_round` and the log of batches that it reads.

use std::collections::BTreeMap;

use sqlx::{PgConnection, PgPool};

use crate::support::TestDb;

/// The result of a round.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
struct Round {
    epoch: String,
    batches: Vec<i64>,
    revision: i64,
    ranking_ids: Option<Vec<i64>>,
    period_ids: Option<Vec<i64>>,
    has_all_changes: bool,
    changed_rankings: Option<Vec<i64>>,
    changed_users: Option<Vec<i64>>,
    rank_keys: Option<Vec<Option<i64>>>,
    tie_keys: Option<Vec<Option<i64>>>,
    has_all_profiles: bool,
    profile_ids: Option<Vec<i64>>,
    external_ids: Option<Vec<String>>,
    names: Option<Vec<String>>,
    avatars: Option<Vec<Option<String>>>,
}

/// A board with two lanes and an open period besides `all_time`, and its rankings in the order of
/// their ids.
struct Board {
    db: TestDb,
    pool: PgPool,
    rankings: Vec<i64>,
}

impl Board {
    async fn new() -> Self {
        let db = TestDb::new().await;
        db.execute(
            "SELECT centile.create_board('main', '{\"lanes\": 2, \"periods\": [\"all_time\"]}');
             SELECT centile.create_season('main', 'spring', now() - interval '1 day', now() + interval '9 days');
             SELECT testing.submit_score('main', 'ann', 1)",
        )
        .await;
        let pool = db.pool().await;
        let rankings: Vec<i64> = sqlx::query_scalar("SELECT ranking_id FROM centile_store.periods ORDER BY ranking_id")
            .fetch_all(&pool)
            .await
            .unwrap();
        assert_eq!(rankings.len(), 2);
        Self { db, pool, rankings }
    }

    async fn read(&self, rankings: &[i64], batches: Option<&[i64]>, revision: Option<i64>, limit: i32) -> Round {
        let statement = sqlx::query_as("SELECT * FROM centile_store.read_round(1, $1, $2, $3, $4)");
        statement.bind(rankings).bind(batches).bind(revision).bind(limit).fetch_one(&self.pool).await.unwrap()
    }

    /// Returns the changes of both rankings since `batches`.
    async fn since(&self, batches: &[i64]) -> Round {
        self.read(&self.rankings, Some(batches), None, 20_000).await
    }

    async fn batches(&self) -> Vec<i64> {
        self.read(&[], None, None, 20_000).await.batches
    }

    async fn score(&self, user: &str, points: i64) {
        self.db.execute(&format!("SELECT testing.submit_score('main', '{user}', {points})")).await;
    }

    /// Returns the keys of every entry of a ranking, by user id.
    async fn entries(&self, ranking: i64) -> BTreeMap<i64, (i64, i64)> {
        let statement = "SELECT user_id, rank_key, tie_key FROM centile_store.leaderboard WHERE ranking_id = $1";
        let rows: Vec<(i64, i64, i64)> = sqlx::query_as(statement).bind(ranking).fetch_all(&self.pool).await.unwrap();
        rows.into_iter().map(|(user, rank_key, tie_key)| (user, (rank_key, tie_key))).collect()
    }

    async fn id(&self, user: &str) -> i64 {
        let statement = "SELECT id FROM centile_store.users WHERE external_id = $1";
        sqlx::query_scalar(statement).bind(user).fetch_one(&self.pool).await.unwrap()
    }

    async fn number(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(&self.pool).await.unwrap()
    }
}

/// Returns the last keys that a round lists of each changed entry, by ranking and user id.
fn keys(round: &Round) -> BTreeMap<(i64, i64), Option<(i64, i64)>> {
    let rankings = round.changed_rankings.iter().flatten();
    let entries = rankings.zip(round.changed_users.iter().flatten()).map(|(ranking, user)| (*ranking, *user));
    let keys = round.rank_keys.iter().flatten().zip(round.tie_keys.iter().flatten());
    entries.zip(keys.map(|(rank_key, tie_key)| rank_key.zip(*tie_key))).collect()
}

#[tokio::test]
async fn a_round_returns_the_changed_entries_of_each_ranking() {
    let board = Board::new().await;
    for user in ["bob", "cyd", "dan"] {
        board.score(user, 5).await;
    }
    let known = board.batches().await;
    let nothing = board.since(&known).await;
    assert!(nothing.has_all_changes && nothing.changed_users.is_none() && nothing.rank_keys.is_none(), "{nothing:?}");
    assert_eq!(nothing.ranking_ids.as_ref(), Some(&board.rankings));
    // A player who scores twice, a new player, and a removed one.
    board.score("bob", 3).await;
    board.score("bob", 4).await;
    board.score("eve", 2).await;
    board.db.execute("SELECT centile.ban_user('main', 'cyd', true)").await;
    board.score("ann", 1).await;
    for rankings in [board.rankings.clone(), board.rankings.iter().rev().copied().collect()] {
        let round = board.read(&rankings, Some(&known), None, 20_000).await;
        assert!(round.has_all_changes, "{round:?}");
        assert_eq!(round.ranking_ids.as_ref(), Some(&rankings));
        let mut changed = Vec::new();
        for user in ["ann", "bob", "cyd", "eve"] {
            changed.push(board.id(user).await);
        }
        let keys = keys(&round);
        for ranking in &rankings {
            let entries = board.entries(*ranking).await;
            for user in &changed {
                let key = keys[&(*ranking, *user)];
                assert_eq!(key, entries.get(user).copied(), "user {user} of ranking {ranking}: {round:?}");
            }
        }
        assert_eq!(keys.len(), rankings.len() * changed.len());
        assert_eq!(keys[&(rankings[0], board.id("cyd").await)], None, "a banned player must have no entry");
        assert_eq!(round.batches.iter().sum::<i64>(), known.iter().sum::<i64>() + 5);
    }
}

#[tokio::test]
async fn a_round_returns_current_rankings_only() {
    let board = Board::new().await;
    let known = board.batches().await;
    board.score("ann", 1).await;
    let [first, second] = board.rankings[..] else { panic!() };
    let round = board.read(&[second, 77, first], Some(&known), None, 20_000).await;
    assert_eq!(round.ranking_ids, Some(vec![second, first]), "in the requested order");
    let periods = "SELECT id FROM centile_store.periods WHERE ranking_id = $1";
    let mut expected = Vec::new();
    for ranking in [second, first] {
        expected.push(sqlx::query_scalar::<_, i64>(periods).bind(ranking).fetch_one(&board.pool).await.unwrap());
    }
    assert_eq!(round.period_ids, Some(expected));
    assert_eq!(keys(&round).len(), 2);
    // A period without a ranking.
    board
        .db
        .execute(&format!(
            "UPDATE centile_store.periods SET ranking_id = NULL, state = 'closed' WHERE ranking_id = {second}"
        ))
        .await;
    let round = board.since(&known).await;
    assert_eq!(round.ranking_ids, Some(vec![first]));
    assert_eq!(keys(&round).len(), 1);
    let none = board.read(&[second], Some(&known), None, 20_000).await;
    assert!(none.has_all_changes && none.ranking_ids.is_none() && none.rank_keys.is_none(), "{none:?}");
    // Another board's ranking.
    let none: Option<Vec<i64>> =
        sqlx::query_scalar("SELECT ranking_ids FROM centile_store.read_round(2, $1, NULL, NULL)")
            .bind(&board.rankings)
            .fetch_one(&board.pool)
            .await
            .unwrap();
    assert_eq!(none, None);
}

#[tokio::test]
async fn a_round_reports_an_incomplete_log() {
    let board = Board::new().await;
    let known = board.batches().await;
    for n in 0..6 {
        board.score(&format!("p{n}"), n).await;
    }
    let now = board.batches().await;
    let is_whole = async |batches: &[i64], limit: i32| {
        let round = board.read(&board.rankings, Some(batches), None, limit).await;
        assert!(round.has_all_changes || round.rank_keys.is_none(), "{round:?}");
        assert_eq!(round.batches, now);
        round.has_all_changes
    };
    assert!(is_whole(&known, 20_000).await && is_whole(&known, 6).await, "six batches of six");
    assert!(!is_whole(&known, 5).await, "more than the limit");
    // Batches of another epoch, in one lane only.
    for lane in 0..2 {
        let mut ahead = known.clone();
        ahead[lane] = now[lane] + 1;
        assert!(!is_whole(&ahead, 20_000).await, "lane {lane} goes backwards");
        ahead[1 - lane] = now[1 - lane] + 1;
        assert!(!is_whole(&ahead, 20_000).await, "both lanes go backwards");
    }
    assert!(!is_whole(&known[..1], 20_000).await, "a lane is missing");
    assert!(!is_whole(&[known.as_slice(), &[0]].concat(), 20_000).await, "a lane too many");
    assert!(!is_whole(&[], 20_000).await, "no lanes");
    // One batch is missing, in the middle of a lane or at its end.
    let lane = usize::from(now[1] - known[1] > now[0] - known[0]);
    for batch in known[lane] + 1..=now[lane] {
        let gone = format!("DELETE FROM centile_store.batch_log WHERE lane = {lane} AND batch = {batch}");
        let statement = "SELECT has_all_changes FROM centile_store.read_round(1, '{1,2}', $1, NULL)";
        let mut transaction = board.pool.begin().await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(gone)).execute(&mut *transaction).await.unwrap();
        let has_all: bool = sqlx::query_scalar(statement).bind(&known).fetch_one(&mut *transaction).await.unwrap();
        assert!(!has_all, "batch {batch} of lane {lane} is gone");
        // An index at that batch no longer needs it.
        let mut later = known.clone();
        later[lane] = batch;
        let has_all: bool = sqlx::query_scalar(statement).bind(&later).fetch_one(&mut *transaction).await.unwrap();
        assert!(has_all, "batch {batch} of lane {lane} was known");
        transaction.rollback().await.unwrap();
    }
    // Without batches, the round reads no changes.
    let state = board.read(&board.rankings, None, None, 20_000).await;
    assert!(state.has_all_changes && state.changed_users.is_none(), "{state:?}");
}

#[tokio::test]
async fn every_write_is_logged() {
    let board = Board::new().await;
    let acts = [
        ("a score", "SELECT testing.submit_score('main', 'bob', 5)"),
        ("another", "SELECT testing.submit_score('main', 'bob', 5)"),
        (
            "a void",
            "SELECT centile.void_score('main', max(transaction_id)) FROM centile.score_history WHERE board = 'main' AND kind = 'score'",
        ),
        ("a ban", "SELECT centile.ban_user('main', 'bob', true)"),
        ("an unban", "SELECT centile.ban_user('main', 'bob', false)"),
        ("a reset", "SELECT centile.reset_player('main', 'bob')"),
        ("a score after it", "SELECT testing.submit_score('main', 'bob', 1)"),
    ];
    for (what, statement) in acts {
        let known = board.batches().await;
        board.db.execute(statement).await;
        let round = board.since(&known).await;
        assert!(round.has_all_changes, "{what}: {round:?}");
        let (keys, bob) = (keys(&round), board.id("bob").await);
        assert_eq!(keys.len(), board.rankings.len(), "{what}: {round:?}");
        for ranking in &board.rankings {
            assert_eq!(keys[&(*ranking, bob)], board.entries(*ranking).await.get(&bob).copied(), "{what}: {round:?}");
        }
    }
    // A refused event changes nothing, and no subscriber gets an event.
    let known = board.batches().await;
    board.db.execute("SELECT centile.ban_user('main', 'bob', true)").await;
    board.db.execute("SELECT testing.submit_score('main', 'bob', 5)").await;
    let round = board.since(&known).await;
    let bob = board.id("bob").await;
    assert!(round.has_all_changes && keys(&round).keys().all(|(_, user)| *user == bob), "{round:?}");
    let lanes = "SELECT sum(batch)::bigint FROM centile_store.board_lanes";
    let logged = "SELECT count(*) FROM centile_store.batch_log";
    assert_eq!(board.number(lanes).await, board.number(logged).await, "a row for each batch");
}

#[tokio::test]
async fn a_round_returns_the_changed_profiles() {
    let board = Board::new().await;
    let profiles = async |revision: i64| board.read(&[], None, Some(revision), 20_000).await;
    let nothing = profiles(0).await;
    assert!(nothing.has_all_profiles && nothing.profile_ids.is_none() && nothing.revision == 0, "{nothing:?}");
    board.db.execute("SELECT centile.put_user('ann', 'Ann', 'https://example.com/a.png', true)").await;
    board.db.execute("SELECT centile.put_user('bob', 'Bob')").await;
    let round = profiles(0).await;
    assert_eq!((round.revision, round.has_all_profiles), (2, true));
    assert_eq!(round.external_ids, Some(vec!["ann".to_owned(), "bob".to_owned()]));
    assert_eq!(round.names, Some(vec!["Ann".to_owned(), "Bob".to_owned()]));
    assert_eq!(round.avatars, Some(vec![Some("https://example.com/a.png".to_owned()), None]));
    assert_eq!(round.profile_ids, Some(vec![board.id("ann").await, board.id("bob").await]));
    assert_eq!(profiles(1).await.external_ids, Some(vec!["bob".to_owned()]));
    assert_eq!(profiles(2).await.external_ids, None);
    // A revision beyond the current one is of another epoch.
    assert!(!profiles(3).await.has_all_profiles);
    // Without a revision, the round reads no profiles.
    let unasked = board.read(&[], None, None, 20_000).await;
    assert!(unasked.has_all_profiles && unasked.profile_ids.is_none(), "{unasked:?}");
    board.db.execute("SELECT centile.erase_user('ann')").await;
    let erased = profiles(2).await;
    assert_eq!(erased.names, Some(vec!["(erased)".to_owned()]));
    assert!(erased.external_ids.unwrap()[0].starts_with("erased-"));
    // As many as a round can carry, and one more.
    let known = profiles(0).await.revision;
    board.db.execute("SELECT centile.put_user('q' || n, 'Q') FROM generate_series(1, 1000) AS n").await;
    let most = profiles(known).await;
    assert_eq!((most.has_all_profiles, most.profile_ids.map(|ids| ids.len())), (true, Some(1_000)));
    board.db.execute("SELECT centile.put_user('one more')").await;
    let more = profiles(known).await;
    assert!(!more.has_all_profiles && more.revision == known + 1_001, "{}", more.revision);
    assert!(profiles(known + 1).await.has_all_profiles);
}

#[tokio::test]
async fn old_batches_leave_the_log_in_bounded_steps() {
    let board = Board::new().await;
    for n in 0..30 {
        board.score(&format!("p{n}"), n).await;
    }
    let count = async || board.number("SELECT count(*) FROM centile_store.batch_log").await;
    let forget = async |arguments: &str| -> i64 {
        let statement = sqlx::AssertSqlSafe(format!("SELECT centile_store.forget_batches({arguments})"));
        sqlx::query_scalar(statement).fetch_one(&board.pool).await.unwrap()
    };
    assert_eq!((forget("").await, count().await), (0, 31), "all of it is younger than 20 minutes");
    // All batches but the last five of each lane are old.
    board
        .db
        .execute(
            "UPDATE centile_store.batch_log c SET written_at = now() - interval '21 minutes'
             WHERE c.batch <= (SELECT batch - 5 FROM centile_store.board_lanes l WHERE l.board_id = c.board_id AND l.lane = c.lane)",
        )
        .await;
    let old = count().await - 10;
    assert_eq!(forget("p_kept => '30 minutes'").await, 0);
    assert_eq!((forget("p_limit => 4").await, count().await), (4, old + 6), "a step is limited");
    let oldest_are_gone = "SELECT count(*) FROM (SELECT lane, min(batch) AS first, max(batch) AS last, count(*) AS rows
        FROM centile_store.batch_log GROUP BY lane) l WHERE rows = last - first + 1";
    assert_eq!(board.number(oldest_are_gone).await, 2, "no lane has a gap");
    let mut steps = 0;
    while forget("p_limit => 4").await > 0 {
        steps += 1;
        assert_eq!(board.number(oldest_are_gone).await, 2, "no lane has a gap");
    }
    assert!(steps >= (old - 4) / 4, "{steps} steps for {old}");
    assert_eq!((forget("").await, forget("").await, count().await), (0, 0, 10), "a repetition deletes nothing");
    // The remaining batches serve indexes that are slightly behind.
    let now = board.batches().await;
    let near: Vec<i64> = now.iter().map(|batch| batch - 5).collect();
    let far: Vec<i64> = now.iter().map(|batch| batch - 6).collect();
    assert!(board.since(&near).await.has_all_changes);
    assert!(!board.since(&far).await.has_all_changes);
}

type Short = (String, Option<Vec<i64>>);

/// Returns the snapshot of a round that gets `snapshot`, and its batches unless the round returns
/// early.
async fn read_since(session: &mut PgConnection, snapshot: Option<&str>) -> Short {
    let statement = "SELECT snapshot, batches FROM centile_store.read_round(1, '{1,2}', $1, NULL, p_snapshot => $2)";
    sqlx::query_as(statement).bind(None::<Vec<i64>>).bind(snapshot).fetch_one(session).await.unwrap()
}

/// Returns a snapshot at which a round returns early. Background processes of PostgreSQL also
/// commit.
async fn stable_snapshot(session: &mut PgConnection) -> String {
    let mut snapshot = read_since(session, None).await.0;
    for _ in 0..1_000 {
        match read_since(session, Some(&snapshot)).await {
            (same, None) => {
                assert_eq!(same, snapshot);
                return same;
            }
            (newer, Some(_)) => snapshot = newer,
        }
    }
    panic!("each of 1,000 rounds saw another snapshot");
}

#[tokio::test]
async fn a_round_returns_early_while_its_snapshot_is_current() {
    let board = Board::new().await;
    let (mut session, mut other) = (board.pool.acquire().await.unwrap(), board.pool.acquire().await.unwrap());
    let write = async |user: &str| {
        let mut transaction = board.pool.begin().await.unwrap();
        sqlx::query("SELECT centile.put_user($1, 'a name')").bind(user).execute(&mut *transaction).await.unwrap();
        transaction
    };
    let first = stable_snapshot(&mut session).await;
    let early = write("bob").await;
    board.score("cyd", 1).await;
    let (second, batches) = read_since(&mut session, Some(&first)).await;
    assert!(batches.is_some() && second != first, "a commit ends the shortcut");
    let second = stable_snapshot(&mut session).await;
    early.commit().await.unwrap();
    let (third, batches) = read_since(&mut session, Some(&second)).await;
    assert!(
        batches.is_some() && third != second,
        "the commit of a transaction that was in progress at the snapshot ends the shortcut"
    );
    let third = stable_snapshot(&mut session).await;
    write("dan").await.commit().await.unwrap();
    let (_, batches) = read_since(&mut session, Some(&third)).await;
    assert!(batches.is_some(), "the commit of a transaction that began after the snapshot ends the shortcut");
    // A crash ends all sessions; afterwards transaction ids may be used again.
    let fourth = stable_snapshot(&mut session).await;
    assert!(read_since(&mut other, Some(&fourth)).await.1.is_some(), "a snapshot of another session is not current");
    assert!(!stable_snapshot(&mut other).await.is_empty());
}
