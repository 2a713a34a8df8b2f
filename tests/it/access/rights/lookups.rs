//! Look-ups of keys: one for many requests, and never a result from before a revocation.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool, query_scalar};
use tokio::time::{Duration, Instant, timeout};

use crate::{
    http::api::site::Site,
    support::{
        TestDb, make_key,
        wait::{DEADLINE, until},
    },
};

/// Returns the number of this database's sessions that wait for a lock of this kind.
async fn waiting(pool: &PgPool, which: &str) -> i64 {
    let count = format!(
        "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
         WHERE d.datname = current_database() AND NOT granted AND {which}"
    );
    query_scalar(AssertSqlSafe(count)).fetch_one(pool).await.unwrap()
}

#[tokio::test]
async fn a_hundred_concurrent_requests_look_up_their_key_once() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--pool-wait", "60000", "--statement-timeout", "60"]).await;
    site.board(json!({"reading": "key"}), &[("ada", 1)]).await;
    let (pool, key) = (db.pool().await, make_key(db.url(), "reader", &[]));
    let mut lock = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE centile_store.api_keys IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let asks = join_all((0..100).map(|_| site.json(Method::GET, "/v1/boards/main", &key, String::new())));
    let watch = async {
        let end = Instant::now() + DEADLINE;
        let mut most = 0;
        let mut are_all_here = false;
        while most == 0 || !are_all_here {
            assert!(
                Instant::now() < end,
                "{most} sessions look up the key; all requests are in progress: {are_all_here}"
            );
            for _ in 0..20 {
                most = most.max(waiting(&pool, "relation = 'centile_store.api_keys'::regclass").await);
            }
            assert!(most <= 1, "{most} sessions look up the key at the same time");
            // The metrics request needs a connection as well.
            let Ok(numbers) = timeout(Duration::from_secs(1), site.get("/metrics")).await else { continue };
            let mut lines = numbers.text.lines();
            let under_way = lines.find_map(|line| line.strip_prefix("centile_http_requests_in_progress ")).unwrap();
            // The count includes the metrics request itself.
            are_all_here = under_way.parse::<f64>().unwrap() > 100.0;
        }
        lock.rollback().await.unwrap();
    };
    let (answers, ()) = tokio::join!(asks, watch);
    for answer in answers {
        answer.is(200);
    }
}

#[tokio::test]
async fn a_revoked_key_is_not_cached_again_by_an_earlier_look_up() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"reading": "key"}), &[("ada", 1)]).await;
    let (pool, key) = (db.pool().await, make_key(db.url(), "reader", &[]));
    let id = key.split('_').nth(1).unwrap();
    // A look-up of this key has taken its snapshot, and gets no row while the lock is held.
    db.execute(&format!(
        "ALTER TABLE centile_store.api_keys RENAME TO kept_keys;
         CREATE FUNCTION centile_store.gate(p_id text) RETURNS boolean LANGUAGE plpgsql AS $$
         BEGIN
             IF p_id = '{id}' AND current_query() LIKE '%last_used_at, secret_sha256%' THEN
                 PERFORM pg_advisory_xact_lock_shared(6);
             END IF;
             RETURN true;
         END $$;
         CREATE VIEW centile_store.api_keys AS SELECT * FROM centile_store.kept_keys WHERE centile_store.gate(id)"
    ))
    .await;
    let mut lock = pool.begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock(6)").execute(&mut *lock).await.unwrap();
    let ask = || site.json(Method::GET, "/v1/boards/main/scores", &key, String::new());
    let revoke = async {
        until("a look-up of the key waits", async || waiting(&pool, "locktype = 'advisory'").await > 0).await;
        site.admin(Method::DELETE, &format!("/v1/keys/{id}"), Value::Null).await.is(204);
        lock.rollback().await.unwrap();
    };
    let (before, ()) = tokio::join!(ask(), revoke);
    // The key was valid when that request was made.
    before.is(200);
    for _ in 0..3 {
        ask().await.is(401);
    }
}
