//! `centile consume`: bad messages, other consumers, bursts and outages.

use std::collections::BTreeMap;

use centile::dev::local::PostgresOptions;
use deadpool_redis::redis::{self, cmd};
use sqlx::PgPool;

use crate::{
    delivery::copying::{Queues as _, Running, Streams},
    support::{TestDb, amount, own_postgres, own_redis, redis_connection, run, spawn, wait::until},
};

fn fields<'a>(pairs: &[(&'a str, &str)]) -> Vec<(&'a str, String)> {
    pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

/// Fields of a message, the code of its error, and words of the error.
type BadMessage = (&'static [(&'static str, &'static str)], &'static str, &'static str);

/// Returns points by player on a board.
async fn scores(db: &TestDb, board: &str) -> BTreeMap<String, i64> {
    let rows: Vec<(String, i64)> =
        sqlx::query_as("SELECT user_id, score FROM centile.standings WHERE board = $1 AND kind = 'all_time'")
            .bind(board)
            .fetch_all(&db.pool().await)
            .await
            .unwrap();
    rows.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_cannot_be_written_become_dead_letters() {
    let db = TestDb::new().await;
    run(&db, &["board", "create", "arena", "--points-max", "100"]).well();
    run(&db, &["board", "create", "strict", "--points-max", "100", "--on-violation", "quarantine"]).well();
    db.execute("SELECT testing.submit_score('arena', 'cheat', 1); SELECT centile.ban_user('arena', 'cheat', true)")
        .await;
    let mut streams = Streams::new(&db).await;
    let bad: [BadMessage; 10] = [
        (&[("points", "5")], "invalid_value", "user_id: is missing"),
        (&[("user_id", "ann")], "invalid_value", "points: is missing"),
        (&[("user_id", "ann"), ("points", "1.5")], "invalid_value", "points: must be a whole number"),
        (&[("user_id", "ann"), ("points", "101")], "points_out_of_bounds", "points: board arena allows"),
        (&[("user_id", "ann"), ("points", "5"), ("board", "nowhere")], "board_not_found", "no board \"nowhere\""),
        (&[("user_id", "ann"), ("points", "5"), ("tiebreak", "1")], "invalid_value", "tiebreak"),
        (
            &[("user_id", "ann"), ("points", "5"), ("metadata", "[]")],
            "invalid_value",
            "metadata: must be a JSON object",
        ),
        (&[("user_id", "ann"), ("points", "5"), ("reason", "a"), ("colour", "red")], "invalid_value", "colour: is not"),
        (&[("user_id", "cheat"), ("points", "5")], "user_banned", "banned"),
        (&[("user_id", "ann"), ("points", "6"), ("event_id", "e1")], "id_conflict", "other content"),
    ];
    streams.add("in", &[fields(&[("user_id", "ann"), ("points", "5"), ("event_id", "e1")])]).await;
    streams.add("in", &bad.map(|(pairs, ..)| fields(pairs))).await;
    streams
        .add(
            "in",
            &[
                // The same event again, and one for quarantine.
                fields(&[("user_id", "ann"), ("points", "5"), ("event_id", "e1")]),
                fields(&[("user_id", "ann"), ("points", "500"), ("board", "strict")]),
                fields(&[("user_id", "bob"), ("points", "7")]),
            ],
        )
        .await;
    let url = streams.url("in");
    // The message with the id of another event must come after that event.
    let consumer = Running::start(&db, &["consume", &url, "--board", "arena", "--batch-size", "1"]);
    until("all messages are consumed", async || streams.open("in").await == (0, 0)).await;
    assert_eq!(consumer.stop().well(), "2 events accepted, 1 repeated, 1 quarantined, 10 dead letters\n");
    let (entries, dead) = (streams.entries("in").await, streams.entries("in:dead").await);
    assert_eq!(dead.len(), bad.len());
    for ((pairs, code, words), (_, letter)) in bad.iter().zip(&dead) {
        assert_eq!(letter["error_code"], *code, "{letter:?}");
        assert!(letter["error"].contains(words), "{letter:?}");
        let (_, original) = entries.iter().find(|(id, _)| *id == letter["entry_id"]).unwrap();
        assert_eq!(original.len(), pairs.len());
        for (name, value) in *pairs {
            assert_eq!((&original[*name], &letter[*name]), (&(*value).to_owned(), &(*value).to_owned()), "{letter:?}");
        }
    }
    assert_eq!(scores(&db, "arena").await, BTreeMap::from([("ann".to_owned(), 5), ("bob".to_owned(), 7)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_a_consumer_that_ended_are_taken_over() {
    let db = TestDb::new().await;
    run(&db, &["board", "create", "arena"]).well();
    let mut streams = Streams::new(&db).await;
    let messages: Vec<_> =
        (0..50).map(|number| fields(&[("user_id", "ann"), ("points", &number.to_string())])).collect();
    streams.add("in", &messages).await;
    // Another consumer receives some messages, and never acknowledges them.
    let (name, url) = (streams.name("in"), streams.url("in"));
    let mut create = cmd("XGROUP");
    create.arg("CREATE").arg(&name).arg("centile").arg(0);
    create.query_async::<()>(&mut streams.redis).await.unwrap();
    let mut read = cmd("XREADGROUP");
    read.arg("GROUP").arg("centile").arg("gone").arg("COUNT").arg(30).arg("STREAMS").arg(&name).arg(">");
    read.query_async::<redis::Value>(&mut streams.redis).await.unwrap();
    assert_eq!(streams.open("in").await, (30, 20));
    // One of them is trimmed before it is consumed.
    let (first, _) = streams.entries("in").await.swap_remove(0);
    let mut delete = cmd("XDEL");
    delete.arg(&name).arg(&first);
    delete.query_async::<()>(&mut streams.redis).await.unwrap();
    let flags = ["consume", &url, "--board", "arena", "--consumer", "here", "--claim-after", "1", "--batch-size", "7"];
    let consumer = Running::start(&db, &flags);
    until("all messages are consumed", async || streams.open("in").await == (0, 0)).await;
    assert_eq!(consumer.stop().well(), "49 events accepted, 0 repeated, 0 quarantined, 0 dead letters\n");
    assert_eq!(scores(&db, "arena").await, BTreeMap::from([("ann".to_owned(), (1..50).sum())]));
}

/// A burst stays in Redis while the writer is held up, whatever its size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_waits_in_redis() {
    let burst = amount(5_000, 50_000);
    let db = TestDb::new().await;
    run(&db, &["board", "create", "arena", "--lanes", "2"]).well();
    let mut streams = Streams::new(&db).await;
    let url = streams.url("in");
    let consumer = Running::start(&db, &["consume", &url, "--board", "arena", "--batch-size", "200"]);
    until("the group exists", async || streams.open("in").await == (0, 0)).await;
    let held = db.hold("SELECT FROM centile_store.board_lanes ORDER BY lane FOR UPDATE").await;
    let messages: Vec<_> = (0..burst)
        .map(|number| {
            fields(&[("user_id", &format!("p{}", number % 100)), ("points", "1"), ("event_id", &format!("e{number}"))])
        })
        .collect();
    for part in messages.chunks(1_000) {
        streams.add("in", part).await;
    }
    db.until_waiting(1, || false).await;
    let (pending, lag) = streams.open("in").await;
    assert!((1..=200).contains(&pending) && pending + lag == i64::from(burst), "{pending} pending, {lag} not received");
    drop(held);
    until("the burst is written", async || streams.open("in").await == (0, 0)).await;
    let text = consumer.stop().well();
    assert!(text.ends_with(" 0 quarantined, 0 dead letters\n"), "{text}");
    let wanted = (0..100).map(|player| (format!("p{player}"), i64::from(burst) / 100)).collect();
    assert_eq!(scores(&db, "arena").await, wanted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_commands_wait_while_servers_are_down() {
    let mut postgres = own_postgres(PostgresOptions::ephemeral()).await;
    let mut redis = own_redis();
    let (database, server) = (postgres.url("postgres"), redis.url());
    let pool = PgPool::connect(&database).await.unwrap();
    sqlx::raw_sql("SELECT centile.create_board('arena')").execute(&pool).await.unwrap();
    let (events, copy) = (format!("{server}/events"), format!("{server}/copy"));
    let mut consumer = spawn(&database, &["consume", &events, "--board", "arena", "--consumer", "one"]);
    let mut copier = spawn(&database, &["stream", "--board", "arena", "--to", &copy]);
    let add = async |number: u32| {
        let mut add = cmd("XADD");
        add.arg("events")
            .arg("*")
            .arg("event_id")
            .arg(format!("e{number}"))
            .arg("user_id")
            .arg("ann")
            .arg("points")
            .arg(1);
        add.query_async::<()>(&mut redis_connection(&server).await).await.unwrap();
    };
    let found = async || {
        let length = cmd("XLEN").arg("copy").query_async::<usize>(&mut redis_connection(&server).await).await;
        length.unwrap_or_default()
    };
    add(1).await;
    until("the first event is copied", async || found().await == 1).await;
    postgres.kill_hard().unwrap();
    add(2).await;
    postgres.start_again().unwrap();
    until("the second event is copied", async || found().await == 2).await;
    // Redis loses everything, also group and cursor: the copy begins again. An event that comes again
    // counts once.
    redis.kill_hard().unwrap();
    redis.start_again().unwrap();
    add(2).await;
    add(3).await;
    until("the third event is copied", async || found().await == 3).await;
    for child in [&mut consumer, &mut copier] {
        assert_eq!(child.try_wait().unwrap(), None, "a command has ended");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let pool = PgPool::connect(&database).await.unwrap();
    let score: i64 =
        sqlx::query_scalar("SELECT score FROM centile.standings WHERE board = 'arena' AND kind = 'all_time'")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(score, 3);
}
