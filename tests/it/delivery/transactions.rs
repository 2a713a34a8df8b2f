//! The transactions of a board over HTTP, compared with the ledger in SQL.

mod cost;
mod cursors;

use std::{collections::BTreeMap, sync::Arc};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::support::{
    PATIENT, TestDb, amount, client,
    load::key,
    own_postgres,
    random::seed,
    run,
    sender::Sender,
    spawn_serve,
    wait::{until, within},
};

/// A client that follows a board, page by page.
#[derive(Debug)]
pub struct Follower {
    client: Client,
    /// The address of the transactions.
    address: String,
    key: String,
    pub cursor: Option<String>,
    pub rows: Vec<Value>,
    pub pages: usize,
}

impl Follower {
    pub fn new(instance: &str, board: &str, key: &str) -> Self {
        let address = format!("{instance}/v1/boards/{board}/transactions");
        Self { client: client(), address, key: key.to_owned(), cursor: None, rows: Vec::new(), pages: 0 }
    }

    /// Reads a page, and returns the number of its transactions.
    pub async fn read(&mut self, limit: u32, wait: u32) -> usize {
        let after = self.cursor.as_ref().map(|cursor| format!("&after={cursor}")).unwrap_or_default();
        let address = format!("{}?limit={limit}&wait={wait}{after}", self.address);
        let response = self.client.get(&address).bearer_auth(&self.key).send().await.expect("an answer");
        assert_eq!(response.status(), StatusCode::OK, "{address}");
        assert_eq!(response.headers()["content-type"], "application/x-ndjson");
        let text = response.text().await.expect("a whole body");
        let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        let last = lines.pop().expect("a last line");
        assert_eq!(last.as_object().map(serde_json::Map::len), Some(1), "{last}");
        self.cursor = Some(last["cursor"].as_str().expect("a cursor").to_owned());
        assert!(lines.len() <= limit as usize, "{} of {limit}", lines.len());
        let count = lines.len();
        self.rows.extend(lines);
        self.pages += 1;
        count
    }

    /// Reads pages of random sizes until `stop`, then to the end.
    async fn follow(mut self, seed: u64, stop: CancellationToken) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        loop {
            let is_last = stop.is_cancelled();
            let limit =
                if random.random_ratio(1, 4) { random.random_range(1..=3) } else { random.random_range(4..=400) };
            let wait = if is_last { 0 } else { random.random_range(0..=2) };
            if self.read(limit, wait).await == 0 && is_last {
                return self;
            }
        }
    }

    fn by_lane(&self) -> BTreeMap<i64, Vec<&Value>> {
        let mut lanes: BTreeMap<i64, Vec<&Value>> = BTreeMap::new();
        for row in &self.rows {
            lanes.entry(row["lane"].as_i64().expect("a lane")).or_default().push(row);
        }
        lanes
    }
}

/// Returns the ledger of a board by lane, in the order of batches, as the service writes it.
async fn ledger(pool: &PgPool, board: &str) -> BTreeMap<i64, Vec<Value>> {
    let rows: Vec<(i16, Value)> = sqlx::query_as(
        "SELECT h.lane, jsonb_strip_nulls(jsonb_build_object('metadata', h.metadata)) || jsonb_build_object(
             'transaction_id', h.transaction_id, 'user_id', h.user_id, 'kind', h.kind, 'points', h.points, 'tiebreak', h.tiebreak,
             'reason', h.reason, 'voids', h.voids_id, 'lane', h.lane, 'batch', h.batch,
             'event_id', (SELECT i.external_id FROM centile_store.transaction_ids i WHERE i.transaction_id = h.transaction_id),
             'occurred_at', extract(epoch FROM h.occurred_at)::text)
         FROM centile.score_history h WHERE h.board = $1 ORDER BY h.lane, h.batch, h.transaction_id",
    )
    .bind(board)
    .fetch_all(pool)
    .await
    .expect("the ledger");
    let mut lanes: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
    for (lane, row) in rows {
        lanes.entry(lane.into()).or_default().push(row);
    }
    lanes
}

/// Returns a row as the service writes it, with its time as PostgreSQL writes seconds.
fn with_seconds(row: &Value) -> Value {
    let mut row = row.clone();
    let time = row["occurred_at"].as_str().expect("a time").parse::<chrono::DateTime<chrono::Utc>>().expect("a time");
    row["occurred_at"] = json!(format!("{}.{:06}", time.timestamp(), time.timestamp_subsec_micros()));
    row
}

/// Compares everything that a follower received, from the oldest transaction on, with the ledger.
async fn expect_whole_ledger(pool: &PgPool, board: &str, follower: &Follower) {
    let (ledger, received) = (ledger(pool, board).await, follower.by_lane());
    let total: usize = ledger.values().map(Vec::len).sum();
    assert_eq!(follower.rows.len(), total, "transactions");
    for (lane, rows) in ledger {
        let received: Vec<Value> = received[&lane].iter().map(|row| with_seconds(row)).collect();
        let first = received.iter().zip(&rows).position(|(one, other)| one != other);
        assert!(received == rows, "lane {lane} at {first:?}: {:?}", first.map(|at| (&received[at], &rows[at])));
    }
}

/// Acts that are no score events: voids, resets, bans and corrections.
async fn act(pool: &PgPool, seed: u64, acts: usize) {
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..acts {
        let player = format!("p{}", random.random_range(0..200));
        let statement = match random.random_range(0..5) {
            0 => "SELECT centile.void_score('arena', t.id) FROM centile_store.score_transactions t
                  JOIN centile_store.users u ON u.id = t.user_id WHERE u.external_id = $1 AND t.kind = 'score' AND t.board_id = 1 LIMIT 1",
            1 => "SELECT centile.reset_player('arena', $1, 'asked') FROM centile_store.users WHERE external_id = $1",
            2 => "SELECT centile.ban_user('arena', $1, false) FROM centile_store.users WHERE external_id = $1",
            3 => "SELECT (centile.correct_score('arena', $1, 3, now() - interval '40 days', 'late', 'dora')).transaction_id
                  FROM centile_store.users WHERE external_id = $1",
            _ => "SELECT centile.reset_player('arena', $1) FROM centile_store.users WHERE external_id = $1",
        };
        // An act fails while a batch changes the board.
        let result = sqlx::query(statement).bind(&player).execute(pool).await;
        if let Err(error) = result {
            assert!(
                error.as_database_error().is_some_and(|error| error.code().is_some_and(|code| code.starts_with("CB"))),
                "{error}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_get_every_transaction_once_and_in_order() {
    let db = TestDb::new().await;
    // With so many lanes, some are idle for long.
    db.execute(
        "SELECT centile.create_board('arena', '{\"lanes\": 64}'), centile.create_board('other', '{\"lanes\": 2}')",
    )
    .await;
    let (pool, seed) = (db.pool().await, seed());
    let one = spawn_serve(&db, None, &PATIENT).await;
    let two = spawn_serve(&db, None, &PATIENT).await;
    let key = key(db.url(), "server");
    let (sender, stop, done) = (Arc::new(Sender::new(key.clone())), CancellationToken::new(), CancellationToken::new());
    let mut writers = JoinSet::new();
    for (serve, callers) in [(&one, 3), (&two, 2)] {
        let mut spawned = sender.spawn(callers, &serve.at("/v1/boards/arena/scores"), &stop);
        writers.spawn(async move { while spawned.join_next().await.is_some() {} });
    }
    // The other board's ids lie between those of the followed one.
    let other = Arc::new(Sender::new(key.clone()));
    let mut spawned = other.spawn(1, &one.at("/v1/boards/other/scores"), &stop);
    writers.spawn(async move { while spawned.join_next().await.is_some() {} });
    let mut followers = JoinSet::new();
    for (number, serve) in [&one, &two, &one].into_iter().enumerate() {
        let follower = Follower::new(&serve.url, "arena", &key);
        followers.spawn(follower.follow(seed + number as u64, done.clone()));
    }
    sender.wait_for_more(200).await;
    act(&pool, seed, amount(30, 600)).await;
    sender.wait_for_more(amount(2_000, 60_000)).await;
    act(&pool, seed + 1, amount(30, 600)).await;
    stop.cancel();
    while writers.join_next().await.is_some() {}
    sender.finish(&one.at("/v1/boards/arena/scores")).await;
    done.cancel();
    let followers = followers.join_all().await;
    for follower in &followers {
        assert!(follower.pages > 20, "{} pages", follower.pages);
        expect_whole_ledger(&pool, "arena", follower).await;
    }
    // A follower that comes later gets the same, and leaves no lane behind.
    let mut late = Follower::new(&two.url, "arena", &key);
    while late.read(10_000, 0).await > 0 {}
    expect_whole_ledger(&pool, "arena", &late).await;
    let kinds: std::collections::BTreeSet<&str> = late.rows.iter().filter_map(|row| row["kind"].as_str()).collect();
    assert!(["score", "void", "reset"].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    // Two of them have read from this instance.
    let streamed = one.metric("centile_streamed_transactions_total").await;
    assert_eq!(streamed.to_string(), (2 * late.rows.len()).to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_begins_now_misses_nothing_that_is_committed_later() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 4}')").await;
    let pool = db.pool().await;
    let serve = spawn_serve(&db, None, &PATIENT).await;
    let key = key(db.url(), "server");
    let (sender, stop) = (Arc::new(Sender::new(key.clone())), CancellationToken::new());
    let callers = sender.spawn(4, &serve.at("/v1/boards/arena/scores"), &stop);
    let visible = async || -> Vec<i64> {
        let ids =
            sqlx::query_scalar("SELECT transaction_id FROM centile.score_history WHERE board = 'arena' ORDER BY 1");
        ids.fetch_all(&pool).await.expect("the ledger")
    };
    let mut followers = Vec::new();
    for _ in 0..amount(10, 100) {
        sender.wait_for_more(20).await;
        let mut follower = Follower::new(&serve.url, "arena", &key);
        follower.cursor = Some("now".to_owned());
        let before = visible().await;
        follower.read(10_000, 0).await;
        followers.push((before, follower, visible().await));
    }
    stop.cancel();
    callers.join_all().await;
    sender.finish(&serve.at("/v1/boards/arena/scores")).await;
    let all = visible().await;
    for (before, mut follower, after) in followers {
        while follower.read(10_000, 0).await > 0 {}
        let mut received: Vec<i64> = follower.rows.iter().filter_map(|row| row["transaction_id"].as_i64()).collect();
        received.sort_unstable();
        assert!(received.windows(2).all(|pair| pair[0] < pair[1]), "a transaction came twice");
        let early = received.iter().find(|id| before.binary_search(id).is_ok());
        assert_eq!(early, None, "a transaction from before the start");
        let lost = all.iter().find(|id| after.binary_search(id).is_err() && received.binary_search(id).is_err());
        assert_eq!(lost, None, "a transaction from after the start");
    }
}

/// A transaction that was slow to commit has lower ids than those of other lanes that were read
/// before it.
#[tokio::test]
async fn a_late_commit_of_another_lane_is_not_left_out() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 2}'), testing.submit_score('arena', 'ann', 1)").await;
    let pool = db.pool().await;
    let lane = |user: &str| format!("SELECT (centile.lane_hash('{user}') % 2)::integer");
    let mut other = None;
    let ann: i32 = sqlx::query_scalar(sqlx::AssertSqlSafe(lane("ann"))).fetch_one(&pool).await.expect("a lane");
    for number in 0..50 {
        let user = format!("p{number}");
        let found: i32 = sqlx::query_scalar(sqlx::AssertSqlSafe(lane(&user))).fetch_one(&pool).await.expect("a lane");
        if found != ann {
            other = Some(user);
            break;
        }
    }
    let other = other.expect("a player of the other lane");
    db.execute(&format!("SELECT testing.submit_score('arena', '{other}', 1)")).await;
    let serve = spawn_serve(&db, None, &[]).await;
    let mut follower = Follower::new(&serve.url, "arena", &key(db.url(), "server"));
    assert_eq!(follower.read(100, 0).await, 2);
    // Its id is drawn, and it is not committed.
    let slow = db.hold(&format!("SELECT centile.reset_player('arena', '{other}', 'slow')")).await;
    // Far more ids than a lane may be behind.
    for _ in 0..3 {
        db.execute("SELECT setval(pg_get_serial_sequence('centile_store.score_transactions', 'id'), 3000 + (SELECT max(id) FROM centile_store.score_transactions))").await;
        db.execute("SELECT centile.reset_player('arena', 'ann', 'fast')").await;
        assert_eq!(follower.read(100, 0).await, 1);
        assert_eq!(follower.read(100, 0).await, 0);
    }
    let mut slow = slow;
    sqlx::raw_sql("COMMIT").execute(&mut slow).await.expect("a commit");
    assert_eq!(follower.read(100, 0).await, 1);
    assert_eq!(follower.rows.last().map(|row| row["reason"].clone()), Some(json!("slow")));
    expect_whole_ledger(&pool, "arena", &follower).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn imported_and_accepted_events_come_too() {
    let db = TestDb::new().await;
    run(&db, &["board", "create", "arena", "--lanes", "3", "--points-max", "100", "--on-violation", "quarantine"])
        .well();
    let files = crate::support::Files::new();
    let lines = (0..500).map(|n| {
        let (year, month) = (2020 + n % 4, 1 + n % 12);
        json!({"user_id": format!("p{}", n % 40), "points": n % 90, "occurred_at": format!("{year}-{month:02}-03T10:00:00Z"),
               "id": format!("e{n}"), "reason": "old", "metadata": {"n": n}})
        .to_string()
    });
    let file = files.write("events.ndjson", lines.collect::<Vec<_>>().join("\n"));
    run(&db, &["import", file.to_str().expect("a path"), "--board", "arena"]).well();
    let quarantined = run(&db, &["score", "submit", "p1", "1000", "--board", "arena"]).well();
    let id = quarantined.split_whitespace().nth(1).expect("an id");
    run(&db, &["quarantine", "accept", id, "--board", "arena"]).well();
    let serve = spawn_serve(&db, None, &[]).await;
    let mut follower = Follower::new(&serve.url, "arena", &key(db.url(), "server"));
    while follower.read(70, 0).await > 0 {}
    assert_eq!(follower.rows.len(), 501);
    expect_whole_ledger(&db.pool().await, "arena", &follower).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_waits_for_a_transaction() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena'), testing.submit_score('arena', 'ann', 1)").await;
    let mut serve = spawn_serve(&db, None, &[]).await;
    let mut follower = Follower::new(&serve.url, "arena", &key(db.url(), "server"));
    assert_eq!(follower.read(10, 30).await, 1);
    let waiting = tokio::spawn(async move {
        let read = follower.read(10, 30).await;
        (follower, read)
    });
    // The request is in progress; only its head has been answered.
    until("the request waits", async || serve.metric("centile_http_connections").await >= 2.0).await;
    db.execute("SELECT testing.submit_score('arena', 'bob', 2)").await;
    let (mut follower, read) = within("the transaction arrives", waiting).await.expect("a page");
    assert_eq!((read, &follower.rows[1]["user_id"]), (1, &json!("bob")));
    // An instance that stops ends the wait with a whole page.
    let waiting = tokio::spawn(async move { follower.read(10, 30).await });
    until("the request waits", async || serve.metric("centile_http_connections").await >= 2.0).await;
    assert!(serve.stop().await.success());
    assert_eq!(within("the response ends", waiting).await.expect("a page"), 0);
}

#[tokio::test]
async fn an_erased_player_has_the_new_id() {
    let db = TestDb::new().await;
    run(&db, &["board", "create", "arena"]).well();
    run(&db, &["score", "submit", "ann", "5", "--board", "arena", "--id", "e1", "--metadata", r#"{"a":1}"#]).well();
    let serve = spawn_serve(&db, None, &[]).await;
    let key = key(db.url(), "server");
    let mut before = Follower::new(&serve.url, "arena", &key);
    before.read(10, 0).await;
    let row = |follower: &Follower| follower.rows[0].clone();
    assert_eq!((&row(&before)["event_id"], &row(&before)["metadata"]), (&json!("e1"), &json!({"a": 1})));
    db.execute("SELECT centile.erase_user('ann')").await;
    let mut after = Follower::new(&serve.url, "arena", &key);
    after.read(10, 0).await;
    assert!(row(&after)["user_id"].as_str().is_some_and(|id| id.starts_with("erased-")), "{:?}", after.rows);
    assert_eq!((&row(&after)["event_id"], row(&after).get("metadata")), (&Value::Null, None));
}

/// After a crash, ids in flight are gone, and cursors stay valid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_survives_a_crash_of_postgresql() {
    let mut postgres = own_postgres(centile::dev::local::PostgresOptions::ephemeral()).await;
    let url = postgres.url("postgres");
    let pool = PgPool::connect(&url).await.expect("a connection");
    sqlx::raw_sql("SELECT centile.create_board('arena', '{\"lanes\": 2}'), testing.submit_score('arena', 'ann', 1)")
        .execute(&pool)
        .await
        .expect("a score");
    let database = url.clone();
    let serve = tokio::task::spawn_blocking(move || crate::support::Serve::spawn(&database, None, "crash", &[]))
        .await
        .expect("a service");
    let mut follower = Follower::new(&serve.url, "arena", &key(&url, "server"));
    assert_eq!(follower.read(10, 0).await, 1);
    postgres.kill_hard().expect("a dead PostgreSQL");
    postgres.start_again().expect("PostgreSQL is back");
    let pool = PgPool::connect(&url).await.expect("a connection");
    sqlx::raw_sql("SELECT testing.submit_score('arena', 'bob', 2)").execute(&pool).await.expect("a score");
    until("the service answers", async || {
        client().get(serve.at("/readyz")).send().await.expect("an answer").status() == StatusCode::OK
    })
    .await;
    assert_eq!(follower.read(10, 0).await, 1);
    expect_whole_ledger(&pool, "arena", &follower).await;
}
