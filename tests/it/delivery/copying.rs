//! `centile stream` and `centile consume`, killed again and again, between real servers.

use std::{collections::BTreeMap, process::Child};

use centile::dev::local::signal;
use deadpool_redis::redis::{self, AsyncCommands as _, aio::MultiplexedConnection, cmd};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use sqlx::PgPool;

use crate::support::{
    Ran, TestDb, amount, audit,
    random::seed,
    redis_connection, redis_url, run, spawn,
    wait::{until, until_some},
};

/// The fields of an entry.
pub type Fields = BTreeMap<String, String>;

/// Queues of the name `in` for events and `out` for transactions.
pub trait Queues {
    /// Whether the queue keeps the order of a lane, or only that of a player.
    const KEEPS_LANES: bool;

    /// Returns the URL of a queue.
    fn url(&self, name: &str) -> String;

    /// Appends events to `in`, in this order.
    async fn send(&mut self, events: &[Vec<(&str, String)>]);

    /// Whether all events are acknowledged.
    async fn are_consumed(&mut self) -> bool;

    /// Returns the number of transactions in `out`.
    async fn copied(&mut self) -> usize;

    /// Returns the transactions in `out`.
    async fn transactions(&mut self) -> Vec<Fields>;

    /// Returns the number of dead letters.
    async fn dead(&mut self) -> usize;
}

/// Streams in Redis, with names of their own.
pub struct Streams {
    server: String,
    prefix: String,
    pub redis: MultiplexedConnection,
}

impl Streams {
    pub async fn new(db: &TestDb) -> Self {
        let server = redis_url().await;
        Self { redis: redis_connection(&server).await, server, prefix: db.redis_prefix() }
    }

    /// Returns the name of a stream.
    pub fn name(&self, stream: &str) -> String {
        format!("{}{stream}", self.prefix)
    }

    /// Returns all entries of a stream.
    pub async fn entries(&mut self, stream: &str) -> Vec<(String, Fields)> {
        let mut command = cmd("XRANGE");
        command.arg(self.name(stream)).arg("-").arg("+");
        command.query_async(&mut self.redis).await.expect("the entries")
    }

    pub async fn length(&mut self, stream: &str) -> usize {
        let mut command = cmd("XLEN");
        command.arg(self.name(stream));
        command.query_async(&mut self.redis).await.expect("a length")
    }

    /// Returns how many entries the group has not acknowledged, and how many it has not received.
    pub async fn open(&mut self, stream: &str) -> (i64, i64) {
        let mut command = cmd("XINFO");
        command.arg("GROUPS").arg(self.name(stream));
        let groups: Vec<BTreeMap<String, redis::Value>> =
            command.query_async(&mut self.redis).await.unwrap_or_default();
        let Some(group) = groups.into_iter().next() else { return (-1, -1) };
        let number = |name: &str| redis::from_redis_value(group[name].clone()).unwrap_or(-1);
        (number("pending"), number("lag"))
    }

    /// Adds entries in one round trip.
    pub async fn add(&mut self, stream: &str, entries: &[Vec<(&str, String)>]) {
        let name = self.name(stream);
        let mut pipe = redis::pipe();
        for fields in entries {
            pipe.cmd("XADD").arg(&name).arg("*").arg(fields).ignore();
        }
        pipe.query_async::<()>(&mut self.redis).await.expect("added entries");
    }
}

impl Queues for Streams {
    const KEEPS_LANES: bool = true;

    fn url(&self, stream: &str) -> String {
        format!("{}/{}", self.server.trim_end_matches('/'), self.name(stream))
    }

    async fn send(&mut self, events: &[Vec<(&str, String)>]) {
        self.add("in", events).await;
    }

    async fn are_consumed(&mut self) -> bool {
        self.open("in").await == (0, 0)
    }

    async fn copied(&mut self) -> usize {
        self.length("out").await
    }

    async fn transactions(&mut self) -> Vec<Fields> {
        self.entries("out").await.into_iter().map(|(_, fields)| fields).collect()
    }

    async fn dead(&mut self) -> usize {
        self.length("in:dead").await
    }
}

/// A command that runs until it is stopped. A test that fails kills it.
pub struct Running(Option<Child>);

impl Running {
    pub fn start(db: &TestDb, arguments: &[&str]) -> Self {
        Self(Some(spawn(db.url(), arguments)))
    }

    /// Kills it like a crash.
    pub fn kill(mut self) {
        let mut child = self.0.take().expect("a process");
        child.kill().expect("a kill");
        child.wait().expect("its end");
    }

    /// Sends SIGTERM, and returns its result.
    pub fn stop(mut self) -> Ran {
        let child = self.0.take().expect("a process");
        signal(child.id(), "TERM").expect("a signal");
        child.wait_with_output().expect("its end").into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Id, lane, player, kind, points and reason of a transaction.
type Copied = (i64, i16, String, String, Option<i64>, Option<String>);

/// Compares a copy with the ledger of board `arena`: each transaction once, in the order of each
/// lane, or else of each player.
async fn expect_copy<Q: Queues>(pool: &PgPool, queues: &mut Q) {
    let mut ledger: Vec<Copied> = sqlx::query_as(
        "SELECT transaction_id, lane, user_id, kind, points, reason FROM centile.score_history WHERE board = 'arena'
         ORDER BY batch, transaction_id",
    )
    .fetch_all(pool)
    .await
    .expect("the ledger");
    let entries = queues.transactions().await;
    let mut copied: Vec<Copied> = entries
        .iter()
        .map(|fields| {
            assert_eq!(fields["board"], "arena");
            let number = |name: &str| fields.get(name).map(|value| value.parse::<i64>().expect("a number"));
            (
                number("transaction_id").expect("an id"),
                i16::try_from(number("lane").expect("a lane")).expect("a lane"),
                fields["user_id"].clone(),
                fields["kind"].clone(),
                number("points"),
                fields.get("reason").cloned(),
            )
        })
        .collect();
    // Stable, so that the order within a lane or of a player is that of the queue.
    for rows in [&mut ledger, &mut copied] {
        rows.sort_by_key(|row| (row.1, if Q::KEEPS_LANES { String::new() } else { row.2.clone() }));
    }
    let first = copied.iter().zip(&ledger).position(|(one, other)| one != other);
    assert_eq!(copied.len(), ledger.len(), "transactions; first difference at {first:?}");
    assert!(copied == ledger, "at {first:?}: {:?}", first.map(|at| (&copied[at], &ledger[at])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_consumers_and_copies_lose_and_repeat_nothing() {
    let db = TestDb::new().await;
    let mut streams = Streams::new(&db).await;
    kill_consumers_and_copies(&db, &mut streams, &["--consumer", "one"]).await;
}

/// Both commands in a row: messages become scores of a board, whose transactions are copied. Kills
/// them again and again, and compares the results with a model.
pub async fn kill_consumers_and_copies(db: &TestDb, queues: &mut impl Queues, consumer_flags: &[&str]) {
    let (events, kills) = (amount(4_000, 100_000), amount(6, 20));
    run(db, &["board", "create", "arena", "--lanes", "4", "--points-min", "-50", "--points-max", "50"]).well();
    let seed = seed();
    let mut random = StdRng::seed_from_u64(seed);
    let mut model: BTreeMap<String, i64> = BTreeMap::new();
    let mut per_player: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut messages = Vec::new();
    for number in 0..events {
        let (user, points) = (format!("p{}", random.random_range(0..300)), random.random_range(-5..=9));
        *model.entry(user.clone()).or_default() += points;
        per_player.entry(user.clone()).or_default().push(format!("event {number}"));
        let mut fields = vec![("user_id", user), ("points", points.to_string()), ("reason", format!("event {number}"))];
        // Others get the id of their entry.
        if number % 3 > 0 {
            fields.push(("event_id", format!("e{number}")));
        }
        messages.push(fields);
    }
    let (source, copy) = (queues.url("in"), queues.url("out"));
    let consume = [&["consume", &source, "--board", "arena", "--batch-size", "100"], consumer_flags].concat();
    let copy = ["stream", "--board", "arena", "--to", &copy];
    let (mut consumer, mut copier) = (Running::start(db, &consume), Running::start(db, &copy));
    let pool = db.pool().await;
    let written = async || -> usize {
        let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM centile_store.score_transactions")
            .fetch_one(&pool)
            .await
            .expect("a count");
        usize::try_from(rows).expect("a count")
    };
    let step = events / (kills + 1);
    for (kill, part) in messages.chunks(step).enumerate() {
        queues.send(part).await;
        if kill >= kills {
            continue;
        }
        // In the middle of a part, of which each has consumed and copied a random share.
        let wanted = kill * step + random.random_range(0..step / 2);
        until("events are written", async || written().await > wanted).await;
        let wanted = random.random_range(0..=written().await);
        consumer.kill();
        until("transactions are copied", async || queues.copied().await >= wanted.min(kill * step)).await;
        copier.kill();
        (consumer, copier) = (Running::start(db, &consume), Running::start(db, &copy));
    }
    until("all messages are consumed", async || queues.are_consumed().await).await;
    let total = written().await;
    until("all transactions are copied", async || queues.copied().await >= total).await;
    assert!(consumer.stop().well().contains("events accepted"));
    assert!(copier.stop().well().ends_with("transactions copied\n"));
    assert_eq!(queues.dead().await, 0);

    // Each event once, and those of a player in the order of the messages.
    let rows: Vec<(String, String)> = sqlx::query_as(
        "SELECT user_id, reason FROM centile.score_history WHERE board = 'arena' ORDER BY batch, transaction_id",
    )
    .fetch_all(&pool)
    .await
    .expect("the ledger");
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (user, reason) in rows {
        found.entry(user).or_default().push(reason);
    }
    assert!(found == per_player, "events of the players");
    let standings: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT user_id, score, rank FROM centile.page('arena', 'all_time', 1, 1000) ORDER BY user_id COLLATE \"C\"",
    )
    .fetch_all(&pool)
    .await
    .expect("the standings");
    let above = |score: i64| model.values().map(|other| i64::from(*other > score)).sum::<i64>();
    let wanted: Vec<_> = model.iter().map(|(user, score)| (user.clone(), *score, 1 + above(*score))).collect();
    assert_eq!(standings, wanted);
    assert!(audit::rankings_are_sound(&pool).await >= 4);
    expect_copy(&pool, queues).await;
    eprintln!("{kills} kills, {events} events, {total} transactions");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_copies_at_once_repeat_nothing() {
    let db = TestDb::new().await;
    run(&db, &["board", "create", "arena", "--lanes", "3"]).well();
    let mut streams = Streams::new(&db).await;
    let copy = streams.url("out");
    let copy = ["stream", "--board", "arena", "--to", &copy];
    let copies = [Running::start(&db, &copy), Running::start(&db, &copy), Running::start(&db, &copy)];
    let rounds = amount(20, 200);
    for round in 0..rounds {
        let players = (0..20).map(|player| format!("testing.submit_score('arena', 'p{player}', {round})"));
        db.execute(&format!("SELECT {}", players.collect::<Vec<_>>().join(", "))).await;
    }
    until("all transactions are copied", async || streams.length("out").await >= rounds * 20).await;
    for copy in copies {
        copy.stop().well();
    }
    expect_copy(&db.pool().await, &mut streams).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_begins_now_and_continues_there() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena'), testing.submit_score('arena', 'ann', 1, p_reason => 'before')")
        .await;
    let mut streams = Streams::new(&db).await;
    let (copy, key) = (streams.url("out"), format!("{}:cursor:arena", streams.name("out")));
    let command = ["stream", "--board", "arena", "--to", &copy, "--from", "now", "--max-length", "100000"];
    let running = Running::start(&db, &command);
    until_some("the cursor is stored", async || streams.redis.get::<_, Option<String>>(&key).await.expect("a value"))
        .await;
    running.kill();
    db.execute("SELECT testing.submit_score('arena', 'ann', 2, p_reason => 'between')").await;
    let running = Running::start(&db, &command);
    until("the transaction is copied", async || streams.length("out").await > 0).await;
    assert_eq!(running.stop().well(), "1 transactions copied\n");
    let entries = streams.entries("out").await;
    assert_eq!((entries.len(), &entries[0].1["reason"]), (1, &"between".to_owned()));
    assert!(!entries[0].1.contains_key("tiebreak"), "{entries:?}");

    // The cursor of another database is refused, and the stream stays as it is.
    let other = TestDb::new().await;
    other.execute("SELECT centile.create_board('arena')").await;
    run(&other, &command).refused(1, &[&key, "has a cursor from before", "and run the command again"]);
    streams.redis.set::<_, _, ()>(&key, "nonsense").await.expect("a value");
    run(&db, &command).refused(1, &[&key, "not of this board"]);
    assert_eq!(streams.length("out").await, 1);
}

#[tokio::test]
async fn wrong_streams_are_refused() {
    let db = TestDb::new().await;
    run(&db, &["board", "create", "arena"]).well();
    let mut streams = Streams::new(&db).await;
    let server = redis_url().await;
    let plain = streams.name("plain");
    streams.redis.set::<_, _, ()>(&plain, "text").await.expect("a value");
    let plain = streams.url("plain");
    run(&db, &["stream", "--board", "arena", "--to", &server]).refused(1, &["--to: ", "redis://host:6379/events"]);
    run(&db, &["consume", &server, "--board", "arena"]).refused(1, &["URL: ", "redis://host:6379/events"]);
    run(&db, &["consume", "redis://:sesame@127.0.0.1:1/events", "--board", "arena"])
        .refused(1, &["Redis cannot be used"]);
    run(&db, &["consume", &plain, "--board", "arena"]).refused(1, &["WRONGTYPE"]);
    run(&db, &["consume", &streams.url("in"), "--board", "nowhere"]).refused(1, &["no board", "nowhere"]);
    run(&db, &["stream", "--board", "nowhere", "--to", &plain]).refused(1, &["no board", "nowhere"]);
    db.execute("SELECT testing.submit_score('arena', 'ann', 1)").await;
    run(&db, &["stream", "--board", "arena", "--to", &plain]).refused(1, &["WRONGTYPE"]);
}
