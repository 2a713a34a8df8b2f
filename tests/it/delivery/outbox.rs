//! The outbox: messages about closed periods, and their delivery.

pub mod receiver;
mod tiers;
mod webhook;

use std::{
    process::Stdio,
    sync::{Arc, Barrier},
    thread,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, PgPool, error::DatabaseError, query_as, query_scalar, raw_sql};

use self::receiver::{Answer, Receiver, Request};
use crate::support::{Ran, TestDb, centile, run, wait::within};

/// Creates a board with scores on some days of January 2024.
pub async fn board(db: &TestDb, slug: &str) {
    db.execute(&format!(
        "SELECT centile.create_board('{slug}', '{{\"periods\": [\"day\"], \"lanes\": 1}}');
         SELECT centile.ensure_users('{{ann,bob}}', '{{Ann,Zoë}}');
         SELECT centile.ensure_ledger_months('2024-01-15', '2024-01-20');
         SELECT centile_store.open_periods(b.board_id, ARRAY(SELECT generate_series(timestamptz '2024-01-15 12:00Z', '2024-01-19 12:00Z', '1 day')))
         FROM centile.boards b WHERE b.slug = '{slug}';
         SELECT r FROM centile.boards b
         CROSS JOIN LATERAL (
            SELECT array_agg(u ORDER BY t, u) AS users, array_agg(length(u)::bigint + 40 ORDER BY t, u) AS points, array_agg(t + length(u) * interval '1 second' ORDER BY t, u) AS times
            FROM generate_series(timestamptz '2024-01-15 12:00Z', '2024-01-19 12:00Z', '1 day') t, unnest('{{ann,bob}}'::text[]) u) e
         CROSS JOIN LATERAL testing.record_scores(b.board_id, 0::smallint, e.users, e.points, '{{}}', '{{}}', '{{}}', e.times) r
         WHERE b.slug = '{slug}'"
    ))
    .await;
}

/// Closes the board's first `days` open days; returns the ids of the messages, the oldest first.
pub async fn close_days(pool: &PgPool, slug: &str, days: i64) -> Vec<i64> {
    let periods: Vec<i64> = query_scalar(
        "SELECT period_id FROM centile.periods WHERE board = $1 AND state = 'due' ORDER BY starts_at LIMIT $2",
    )
    .bind(slug)
    .bind(days)
    .fetch_all(pool)
    .await
    .unwrap();
    assert_eq!(i64::try_from(periods.len()), Ok(days));
    let mut messages = Vec::new();
    for period in periods {
        let closing = format!(
            "SELECT centile_store.cut_off_period({period});
             SELECT centile_store.build_archive({period});
             SELECT centile_store.compare_archive({period});
             SELECT centile_store.finish_close(p.id, p.cut_off_at) FROM centile_store.periods p WHERE p.id = {period}"
        );
        for step in closing.split(';') {
            raw_sql(AssertSqlSafe(step.to_owned())).execute(pool).await.unwrap();
        }
        let message = query_scalar("SELECT id FROM centile_store.outbox WHERE period_id = $1");
        messages.push(message.bind(period).fetch_one(pool).await.unwrap());
    }
    messages
}

/// Sets a webhook; returns the text of its secret.
fn set_webhook(db: &TestDb, slug: &str, url: &str) -> String {
    let secret = run(db, &["webhook", "set", "--board", slug, url]).well();
    secret.trim().to_owned()
}

/// Makes a message due that waits for its next attempt or for the end of a lease.
async fn make_due(pool: &PgPool, message: i64) {
    let due = "UPDATE centile_store.outbox SET next_attempt_at = clock_timestamp() WHERE id = $1";
    assert_eq!(sqlx::query(due).bind(message).execute(pool).await.unwrap().rows_affected(), 1);
}

/// Returns the time of the database.
async fn now(pool: &PgPool) -> DateTime<Utc> {
    query_scalar("SELECT clock_timestamp()").fetch_one(pool).await.unwrap()
}

/// Adds an hour to the pause or lease of every attempted message, so that none ends before a slow
/// machine checks it.
async fn postpone(pool: &PgPool) {
    let later =
        "UPDATE centile_store.outbox SET next_attempt_at = next_attempt_at + interval '1 hour' WHERE attempts > 0";
    sqlx::query(later).execute(pool).await.unwrap();
}

/// Returns the HMAC-SHA256 as RFC 2104 defines it, computed from the hash alone.
fn hmac(key: &[u8], text: &[u8]) -> String {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::digest([block.map(|byte| byte ^ 0x36).as_slice(), text].concat());
    let outer = Sha256::digest([block.map(|byte| byte ^ 0x5c).as_slice(), inner.as_slice()].concat());
    outer.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Fails unless the request has a current signature with `secret`.
#[track_caller]
pub fn signed(request: &Request, secret: &str) {
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    assert_eq!(key.len(), 32);
    let (time, signature) = request.headers["centile-signature"].split_once(",v1=").unwrap();
    let time = time.strip_prefix("t=").unwrap();
    assert_eq!(signature, hmac(&key, &[time.as_bytes(), b".", &request.body].concat()));
    let age = Utc::now().timestamp() - time.parse::<i64>().unwrap();
    assert!((0..600).contains(&age), "signed {age} s ago");
}

fn message_id(request: &Request) -> i64 {
    request.headers["centile-message-id"].parse().unwrap()
}

#[track_caller]
fn delivers(db: &TestDb, delivered: u32) {
    assert_eq!(run(db, &["outbox", "deliver"]).well(), format!("{delivered} delivered, 0 failed\n"));
}

/// Timeout in seconds that suffices on a busy machine.
const LONG_TIMEOUT_SECONDS: u32 = 30;

/// Runs one delivery that fails, with this timeout in seconds.
#[track_caller]
fn fails(db: &TestDb, timeout: u32) {
    let ran = run(db, &["outbox", "deliver", "--timeout", &timeout.to_string()]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), "0 delivered, 1 failed\n"), "{ran:?}");
    assert!(ran.err.contains("outbox list --waiting"), "{ran:?}");
}

/// Returns a message as the command line shows it.
#[track_caller]
fn shown(db: &TestDb, message: i64) -> Value {
    run(db, &["outbox", "show", &message.to_string(), "--json"]).json()
}

#[test]
fn the_hmac_of_the_tests_is_right() {
    // RFC 4231, section 4.3 (test case 2).
    let wanted = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(hmac(b"Jefe", b"what do ya want for nothing?"), wanted);
}

#[tokio::test]
async fn a_closed_period_is_delivered_once_signed_and_shown() {
    let (db, receiver) = (TestDb::new().await, Receiver::start(&[]));
    let pool = db.pool().await;
    board(&db, "main").await;
    let ran = run(&db, &["webhook", "set", "--board", "main", &receiver.url]);
    assert!(ran.err.contains("not shown again") && ran.err.contains(&receiver.url), "{ran:?}");
    let secret = ran.well().trim().to_owned();
    delivers(&db, 0);

    let messages = close_days(&pool, "main", 2).await;
    let listed = run(&db, &["outbox", "list"]).well();
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("ID  BOARD  PERIOD          KIND           CREATED"), "{listed}");
    assert!(lines[1].contains("day:2024-01-16  period_closed") && lines[1].contains("waiting  0"), "{listed}");
    assert_eq!(lines.len(), 3, "{listed}");
    delivers(&db, 2);

    let requests = receiver.all();
    assert_eq!(requests.iter().map(message_id).collect::<Vec<_>>(), messages, "the oldest first");
    for request in &requests {
        signed(request, &secret);
        assert_eq!(request.line, "POST /hook HTTP/1.1");
        assert_eq!(request.headers["content-type"], "application/json");
        assert_eq!(request.headers["user-agent"], concat!("centile/", env!("CARGO_PKG_VERSION")));
        let text: String = query_scalar("SELECT payload::text FROM centile.outbox WHERE message_id = $1")
            .bind(message_id(request))
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(text.as_bytes(), request.body);
    }
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    for (pointer, value) in [
        ("/type", json!("period_closed")),
        ("/board", json!("main")),
        ("/period/name", json!("day:2024-01-15")),
        ("/period/state", json!("closed")),
        ("/players", json!(2)),
        ("/top/1/user_id", json!("bob")),
        ("/top/1/name", json!("Zoë")),
        ("/top/1/score", json!(43)),
    ] {
        assert_eq!(body.pointer(pointer), Some(&value), "{pointer} of {body}");
    }

    delivers(&db, 0);
    let message = shown(&db, messages[0]);
    assert_eq!((&message["attempts"], &message["last_status"]), (&json!(1), &json!(200)), "{message}");
    assert_eq!((&message["next_attempt_at"], &message["last_error"]), (&Value::Null, &Value::Null), "{message}");
    assert!(message["delivered_at"].is_string() && message["payload"] == body, "{message}");
    assert!(run(&db, &["outbox", "show", &messages[0].to_string()]).well().contains("state         delivered\n"));
    assert_eq!(run(&db, &["outbox", "list", "--waiting", "--json"]).json(), json!([]));
    assert_eq!(run(&db, &["outbox", "list", "--limit", "1", "--json"]).json().as_array().map(Vec::len), Some(1));

    // No command shows the secret, and only the service can read it.
    for command in
        [["webhook", "show", "--board", "main"].as_slice(), &["webhook", "show", "--board", "main", "--json"]]
    {
        let shown = run(&db, command).well();
        assert!(shown.contains(&receiver.url) && !shown.contains("whsec_"), "{shown}");
    }
    let read = "SET ROLE centile_reader; SELECT * FROM centile.outbox; SELECT * FROM centile.webhooks; SELECT secret FROM centile_store.webhooks";
    let refused = raw_sql(read).execute(&pool).await.unwrap_err();
    assert_eq!(refused.as_database_error().and_then(DatabaseError::code).as_deref(), Some("42501"), "{refused}");
}

#[tokio::test]
async fn failed_deliveries_are_retried_with_growing_pauses() {
    let failures = [Answer::Status(500), Answer::Close, Answer::Status(307), Answer::Hang];
    let (db, receiver) = (TestDb::new().await, Receiver::start(&failures));
    let pool = db.pool().await;
    board(&db, "main").await;
    let secret = set_webhook(&db, "main", &receiver.url);
    let message = close_days(&pool, "main", 1).await[0];
    let output = [(Some(500), ""), (None, "connection"), (Some(307), ""), (None, "no answer within 1 s")];
    for (attempt, (status, error)) in (1..).zip(output) {
        let before = now(&pool).await;
        fails(&db, if error.starts_with("no answer") { 1 } else { LONG_TIMEOUT_SECONDS });
        let after = now(&pool).await;
        let shown = shown(&db, message);
        assert_eq!((&shown["attempts"], &shown["last_status"]), (&json!(attempt), &json!(status)), "{shown}");
        assert!(shown["last_error"].as_str().unwrap_or_default().contains(error), "{shown}");
        assert_eq!(
            (&shown["delivered_at"], shown["last_error"].is_null()),
            (&Value::Null, status.is_some()),
            "{shown}"
        );
        let least = 10.0 * f64::from(1 << (attempt - 1));
        // The pause begins between these two instants.
        let pauses: (f64, f64) = query_as(
            "SELECT extract(epoch FROM next_attempt_at - $2)::float8, extract(epoch FROM next_attempt_at - $3)::float8
             FROM centile.outbox WHERE message_id = $1",
        )
        .bind(message)
        .bind(before)
        .bind(after)
        .fetch_one(&pool)
        .await
        .unwrap();
        assert!(least <= pauses.0 && pauses.1 <= least * 1.25, "attempt {attempt} is followed after {pauses:?} s");
        assert_eq!(message_id(&receiver.next()), message);
        // The message is not due.
        postpone(&pool).await;
        delivers(&db, 0);
        make_due(&pool, message).await;
    }
    let waiting = run(&db, &["outbox", "list", "--board", "main", "--waiting"]).well();
    assert!(waiting.contains("waiting  4         no answer within 1 s"), "{waiting}");
    delivers(&db, 1);
    let request = receiver.next();
    signed(&request, &secret);
    assert_eq!(message_id(&request), message);
    let shown = shown(&db, message);
    assert_eq!(
        (&shown["attempts"], &shown["last_status"], &shown["last_error"]),
        (&json!(5), &json!(200), &Value::Null)
    );
    assert!(receiver.all().is_empty());

    // Nothing listens any more, and a late report of a failure does not change a delivered message.
    sqlx::query("SELECT centile_store.note_delivery($1, 500, NULL)").bind(message).execute(&pool).await.unwrap();
    assert!(self::shown(&db, message)["delivered_at"].is_string());
    set_webhook(&db, "main", "http://127.0.0.1:1/");
    close_days(&pool, "main", 1).await;
    fails(&db, LONG_TIMEOUT_SECONDS);
    let waiting = run(&db, &["outbox", "list", "--waiting"]).well();
    assert!(waiting.contains("Connection refused"), "{waiting}");

    // A late report does not give a waiting message to a new webhook.
    run(&db, &["webhook", "remove", "--board", "main"]).well();
    set_webhook(&db, "main", &receiver.url);
    let late =
        "SELECT centile_store.note_delivery(id, NULL, 'late') FROM centile_store.outbox WHERE delivered_at IS NULL";
    assert_eq!(sqlx::query(late).execute(&pool).await.unwrap().rows_affected(), 1);
    let attempts = "SELECT next_attempt_at = 'infinity' FROM centile_store.outbox WHERE delivered_at IS NULL";
    assert!(query_scalar::<_, bool>(attempts).fetch_one(&pool).await.unwrap());
}

#[tokio::test]
async fn the_pauses_double_from_ten_seconds_to_an_hour() {
    let db = TestDb::new().await;
    let pauses: Vec<(f64, f64)> = query_as(
        "SELECT extract(epoch FROM centile_store.retry_delay(n, 0))::float8, extract(epoch FROM centile_store.retry_delay(n, 1))::float8
         FROM generate_series(0, 12) n UNION ALL
         SELECT extract(epoch FROM centile_store.retry_delay(2147483647, 0))::float8, extract(epoch FROM centile_store.retry_delay(2147483647, 1))::float8",
    )
    .fetch_all(&db.pool().await)
    .await
    .unwrap();
    let least = [10., 10., 20., 40., 80., 160., 320., 640., 1280., 2560., 2880., 2880., 2880., 2880.];
    assert_eq!(pauses, least.map(|seconds| (seconds, seconds * 1.25)));
}

#[tokio::test]
async fn two_concurrent_deliveries_share_the_work() {
    // Each process sends one message of each board at a time, so eight concurrent requests need two
    // of them.
    let barrier = Arc::new(Barrier::new(8));
    let (db, receiver) = (TestDb::new().await, Receiver::start(&vec![Answer::Together(barrier); 8]));
    let pool = db.pool().await;
    let mut messages = Vec::new();
    for slug in ["a", "b", "c", "d"] {
        board(&db, slug).await;
        set_webhook(&db, slug, &receiver.url);
        messages.extend(close_days(&pool, slug, 5).await);
    }
    let totals: Vec<u32> = thread::scope(|scope| {
        let deliverers: Vec<_> = (0..2).map(|_| scope.spawn(|| run(&db, &["outbox", "deliver"]).well())).collect();
        let words = deliverers.into_iter().map(|deliverer| deliverer.join().unwrap());
        words.map(|words| words.split(' ').next().unwrap().parse().unwrap()).collect()
    });
    assert_eq!(totals.iter().sum::<u32>(), 20, "{totals:?}");
    let mut output: Vec<i64> = receiver.all().iter().map(message_id).collect();
    output.sort_unstable();
    assert_eq!(output, messages);
    assert_eq!(run(&db, &["outbox", "list", "--waiting", "--json"]).json(), json!([]));
}

/// A claim keeps other processes only from the claimed messages, one of each board. No board waits
/// for another.
#[tokio::test]
async fn a_claimed_message_is_not_claimed_again() {
    let db = TestDb::new().await;
    let pool = db.pool().await;
    for slug in ["a", "b", "c"] {
        board(&db, slug).await;
        set_webhook(&db, slug, "http://127.0.0.1:1/");
        close_days(&pool, slug, 2).await;
    }
    let claim = "SELECT board, message_id FROM centile_store.claim_deliveries($1) ORDER BY board";
    let mut first = pool.begin().await.unwrap();
    let taken: Vec<(String, i64)> = query_as(claim).bind(2).fetch_all(&mut *first).await.unwrap();
    assert_eq!(taken.len(), 2);
    // The second claim does not wait for the first transaction, and takes each board's next
    // message.
    let others = query_as(claim).bind(16).fetch_all(&pool);
    let others: Vec<(String, i64)> = within("the second claim", others).await.unwrap();
    assert_eq!(others.iter().map(|(board, _)| board.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(others.iter().all(|message| !taken.contains(message)), "{taken:?} {others:?}");
    first.rollback().await.unwrap();
    postpone(&pool).await;
    let again: Vec<(String, i64)> = query_as(claim).bind(16).fetch_all(&pool).await.unwrap();
    assert_eq!(again.len(), 3);
    postpone(&pool).await;
    assert!(taken.iter().all(|message| again.contains(message)), "{taken:?} {again:?}");
    let none: Vec<(String, i64)> = query_as(claim).bind(16).fetch_all(&pool).await.unwrap();
    assert_eq!(none, []);
}

#[tokio::test]
async fn a_crash_after_sending_repeats_and_loses_no_message() {
    let (db, receiver) = (TestDb::new().await, Receiver::start(&[Answer::Hang]));
    let pool = db.pool().await;
    board(&db, "main").await;
    let secret = set_webhook(&db, "main", &receiver.url);
    let message = close_days(&pool, "main", 1).await[0];
    let before = now(&pool).await;
    let mut deliverer = centile()
        .args(["outbox", "deliver"])
        .env("DATABASE_URL", db.url())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let sent = receiver.next();
    let after = now(&pool).await;
    deliverer.kill().unwrap();
    deliverer.wait().unwrap();

    let (attempts, is_leased): (i32, bool) = query_as(
        "SELECT attempts, next_attempt_at BETWEEN $2 + interval '1 minute' AND $3 + interval '1 minute'
         FROM centile.outbox WHERE message_id = $1 AND delivered_at IS NULL AND last_status IS NULL",
    )
    .bind(message)
    .bind(before)
    .bind(after)
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!((attempts, is_leased), (1, true));
    postpone(&pool).await;
    delivers(&db, 0);
    make_due(&pool, message).await;
    delivers(&db, 1);
    let repeat = receiver.next();
    signed(&repeat, &secret);
    assert_eq!((message_id(&repeat), &repeat.body), (message_id(&sent), &sent.body));
    assert_eq!(shown(&db, message)["attempts"], json!(2));
}

/// A hanging receiver costs a run one attempt and delays no other board.
#[tokio::test]
async fn a_hanging_receiver_delays_its_own_board_only() {
    let seen = Arc::new(Barrier::new(2));
    let hanging = [Answer::Held(Arc::clone(&seen)), Answer::Hang, Answer::Hang, Answer::Hang];
    let (db, dead, well) = (TestDb::new().await, Receiver::start(&hanging), Receiver::start(&[]));
    let pool = db.pool().await;
    board(&db, "dead").await;
    set_webhook(&db, "dead", &dead.url);
    board(&db, "well").await;
    set_webhook(&db, "well", &well.url);
    let (stuck, output) = (close_days(&pool, "dead", 3).await, close_days(&pool, "well", 3).await);
    let ran = thread::scope(|scope| {
        let deliverer =
            scope.spawn(|| run(&db, &["outbox", "deliver", "--timeout", &LONG_TIMEOUT_SECONDS.to_string()]));
        // Every message of the other board arrives while the first request still hangs.
        assert_eq!([well.next(), well.next(), well.next()].map(|request| message_id(&request)), output[..]);
        assert_eq!(message_id(&dead.next()), stuck[0]);
        assert_eq!(shown(&db, stuck[0])["last_error"], Value::Null);
        seen.wait();
        deliverer.join().unwrap()
    });
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), "3 delivered, 1 failed\n"), "{ran:?}");
    assert!(dead.all().is_empty());
    let attempts: Vec<i32> =
        query_scalar("SELECT attempts FROM centile.outbox WHERE board = 'dead' ORDER BY message_id")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(attempts, [1, 0, 0]);

    // The next run tries the next message of that board, again with one attempt.
    fails(&db, 1);
    assert_eq!(message_id(&dead.next()), stuck[1]);
    // Boards that hung before come after all others, even if more receivers hang than there are
    // slots.
    let message = close_days(&pool, "well", 1).await[0];
    for _ in 0..10 {
        let mut only = pool.begin().await.unwrap();
        let claim = "SELECT message_id FROM centile_store.claim_deliveries(1)";
        let claimed: Vec<i64> = query_scalar(claim).fetch_all(&mut *only).await.unwrap();
        assert_eq!(claimed, [message]);
        only.rollback().await.unwrap();
    }
}

/// A run also delivers messages that are written while it runs.
#[tokio::test]
async fn a_message_written_during_a_run_is_delivered_by_it() {
    let barrier = Arc::new(Barrier::new(2));
    let (db, receiver) = (TestDb::new().await, Receiver::start(&[Answer::Together(Arc::clone(&barrier))]));
    let pool = db.pool().await;
    board(&db, "main").await;
    set_webhook(&db, "main", &receiver.url);
    close_days(&pool, "main", 1).await;
    let deliverer = thread::spawn({
        let url = db.url().to_owned();
        move || Ran::of(centile().args(["outbox", "deliver", "--timeout", "30"]).env("DATABASE_URL", url))
    });
    receiver.next();
    let message = close_days(&pool, "main", 1).await[0];
    barrier.wait();
    assert_eq!(deliverer.join().unwrap().well(), "2 delivered, 0 failed\n");
    assert_eq!(message_id(&receiver.next()), message);
}

#[tokio::test]
async fn https_delivery_needs_a_trusted_certificate() {
    let (db, receiver) = (TestDb::new().await, Receiver::start_tls());
    let pool = db.pool().await;
    board(&db, "main").await;
    let secret = set_webhook(&db, "main", &receiver.url);
    let message = close_days(&pool, "main", 1).await[0];
    fails(&db, LONG_TIMEOUT_SECONDS);
    let refused = shown(&db, message)["last_error"].as_str().unwrap().to_lowercase();
    assert!(refused.contains("certificate"), "{refused}");
    assert!(receiver.all().is_empty());
    make_due(&pool, message).await;
    let certificate = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/delivery/outbox/receiver.pem");
    let mut command = centile();
    command.args(["outbox", "deliver"]).env("DATABASE_URL", db.url()).env("SSL_CERT_FILE", certificate);
    assert_eq!(Ran::of(&mut command).well(), "1 delivered, 0 failed\n");
    signed(&receiver.next(), &secret);
}
