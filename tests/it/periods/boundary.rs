//! Period boundaries and new ledger months must not make writers wait or fail.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::json;
use sqlx::{Connection as _, PgConnection, PgPool};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::support::{
    Serve, TestDb, amount, audit, boundary, client,
    load::{Load, PATIENT, key},
    redis_url, spawn_serve, verdict,
    wait::{until, within},
};

async fn count(pool: &PgPool, statement: &'static str) -> i64 {
    sqlx::query_scalar(statement).fetch_one(pool).await.expect(statement)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_lanes_cross_boundaries_under_load() {
    let db = TestDb::new().await;
    db.execute(boundary::SHORT_DAYS).await;
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 4}')").await;
    let redis = redis_url().await;
    let instances: [Serve; 2] =
        [spawn_serve(&db, Some(&redis), PATIENT).await, spawn_serve(&db, Some(&redis), PATIENT).await];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let mut load = Load::new(urls, &["arena"], key(db.url(), "admin"));
    load.periods = vec!["day", "week", "month"];
    load.cursors = false;
    let load = Arc::new(load);
    let mut record = load.begin().await;
    let pool = db.pool().await;
    let wanted = amount([("day", 4), ("week", 2), ("month", 1)], [("day", 10), ("week", 3), ("month", 2)]);
    let stop = CancellationToken::new();
    let crossing = async {
        boundary::until_over(&pool, &wanted).await;
        stop.cancel();
    };
    let (more, ()) = tokio::join!(load.run(&stop), crossing);
    record.join(more);

    verdict::of(&pool, &load, &record).await.expect_right("boundaries");
    boundary::events_lie_in_one_each(&pool, &[&wanted[..], &[("all_time", 1)]].concat()).await;
    // Every event of a period counts there, and no other.
    audit::rankings_are_sound(&pool).await;
    // The service would have retried a deadlocked transaction.
    let deadlocks = count(&pool, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").await;
    assert_eq!(deadlocks, 0);
}

/// Four callers that write until `stop`.
struct Writers {
    stop: Arc<AtomicBool>,
    /// Number of acknowledged writes.
    written: watch::Receiver<usize>,
    callers: JoinSet<()>,
}

impl Writers {
    fn begin(serve: &Serve, key: &str) -> Self {
        let (stop, (counter, written)) = (Arc::new(AtomicBool::new(false)), watch::channel(0));
        let mut callers = JoinSet::new();
        for caller in 0..4 {
            let (address, key) = (serve.at("/v1/boards/arena/scores"), key.to_owned());
            let (stop, counter) = (Arc::clone(&stop), counter.clone());
            callers.spawn(async move {
                let client = client();
                for turn in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let event = json!({"user_id": format!("{caller}-{}", turn % 100), "points": 1});
                    let answer = client.post(&address).bearer_auth(&key).json(&event).send().await.expect("an answer");
                    let (status, text) = (answer.status(), answer.text().await.expect("a body"));
                    assert_eq!(status, 200, "{text}");
                    counter.send_modify(|written| *written += 1);
                }
            });
        }
        Self { stop, written, callers }
    }

    /// Waits for this many more writes. Fails the test if another session holds a lock that writers
    /// need.
    async fn wait_for_writes(&mut self, more: usize) {
        let wanted = *self.written.borrow() + more;
        let done = self.written.wait_for(|written| *written >= wanted);
        within("writers continue", done).await.expect("writers");
    }

    /// Stops the writers; returns the number of writes.
    async fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.callers.join_all().await;
        *self.written.borrow()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_month_is_created_during_a_dump_and_writes() {
    /// Enough for several batches in each lane.
    const WRITES: usize = 100;
    const EVENTS: &str = "SELECT count(*) FROM centile_store.score_transactions";
    let db = TestDb::new().await;
    // The first score opens the periods, which stops writers for a moment.
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 4}')").await;
    db.execute("SELECT centile.ensure_ledger_months()").await;
    db.execute("SELECT testing.submit_score('arena', 'first', 1)").await;
    let serve = spawn_serve(&db, None, PATIENT).await;
    let mut writers = Writers::begin(&serve, &key(db.url(), "server"));
    writers.wait_for_writes(WRITES).await;

    // Like pg_dump: one snapshot, and a lock on every table until the end.
    let mut dump = PgConnection::connect(db.url()).await.expect("a connection");
    let mut snapshot = dump.begin().await.expect("a transaction");
    sqlx::raw_sql(
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
         DO $$
         DECLARE
             v_table text;
         BEGIN
             FOR v_table IN SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                            WHERE n.nspname LIKE 'centile%' AND c.relkind IN ('r', 'p') LOOP
                 EXECUTE format('LOCK TABLE %s IN ACCESS SHARE MODE', v_table);
             END LOOP;
         END
         $$",
    )
    .execute(&mut *snapshot)
    .await
    .expect("a dump's locks");
    let dumped: i64 = sqlx::query_scalar(EVENTS).fetch_one(&mut *snapshot).await.expect("a dump's view");

    let mut maintenance = PgConnection::connect(db.url()).await.expect("a connection");
    let mut making = maintenance.begin().await.expect("a transaction");
    // A statement that waits for one of the dump's locks fails.
    let made: i32 = sqlx::query_scalar(
        "SELECT centile.ensure_ledger_months(now() + interval '40 months', now() + interval '42 months')
         FROM set_config('lock_timeout', '2min', true)",
    )
    .fetch_one(&mut *making)
    .await
    .expect("months are created during a dump");
    assert_eq!(made, 3);
    // The open transaction still holds every lock that the new months need.
    writers.wait_for_writes(WRITES).await;
    making.commit().await.expect("the months");
    writers.wait_for_writes(WRITES).await;
    let still: i64 = sqlx::query_scalar(EVENTS).fetch_one(&mut *snapshot).await.expect("a dump's view");
    assert_eq!(dumped, still, "the dump must see one state");
    snapshot.rollback().await.expect("the dump's end");

    let written = writers.end().await;
    let events = count(&db.pool().await, EVENTS).await;
    assert_eq!(usize::try_from(events), Ok(written + 1));
}

#[tokio::test]
async fn the_first_score_without_a_month_creates_the_months() {
    const AHEAD: &str = "SELECT count(*) FROM centile.ledger_months WHERE month > now()";
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena')").await;
    // As after two months without maintenance.
    db.execute(
        "DO $$
         DECLARE
             v_month regclass;
         BEGIN
             FOR v_month IN SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = 'centile_store.score_transactions'::regclass LOOP
                 EXECUTE format('DROP TABLE %s', v_month);
             END LOOP;
         END
         $$",
    )
    .await;
    let pool = db.pool().await;
    assert_eq!(count(&pool, "SELECT count(*) FROM centile.ledger_months").await, 0);
    let serve = spawn_serve(&db, None, &["--no-maintenance"]).await;
    let call = client().post(serve.at("/v1/boards/arena/scores")).bearer_auth(key(db.url(), "server"));
    let answer = call.json(&json!({"user_id": "ann", "points": 1})).send().await.expect("an answer");
    assert_eq!(answer.status(), 200, "{}", answer.text().await.expect("a body"));
    assert_eq!(count(&pool, AHEAD).await, 2);
    assert_eq!(count(&pool, "SELECT count(*) FROM centile_store.score_transactions").await, 1);
}

#[tokio::test]
async fn two_concurrent_sessions_create_each_month_once() {
    const MAKE: &str = "SELECT centile.ensure_ledger_months('2031-01-01', '2031-03-31')";
    const WAITING: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let db = TestDb::new().await;
    let pool = db.pool().await;
    let mut first = pool.begin().await.expect("a transaction");
    let made: i32 = sqlx::query_scalar(MAKE).fetch_one(&mut *first).await.expect("the months");
    assert_eq!(made, 3);
    // The second session has found no months and waits.
    let second = tokio::spawn({
        let pool = pool.clone();
        async move { sqlx::query_scalar::<_, i32>(MAKE).fetch_one(&pool).await }
    });
    until("the second waits", async || count(&pool, WAITING).await > 0).await;
    first.commit().await.expect("a commit");
    assert_eq!(second.await.expect("the second").expect("nothing is left to create"), 0);
}
