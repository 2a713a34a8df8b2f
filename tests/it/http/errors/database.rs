//! An unreachable database: 503, never a false success, and top lists that state their age.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use centile::dev::local::{LocalPostgres, PostgresOptions};
use futures::future::join_all;
use reqwest::{
    Method,
    header::{AGE, ETAG, IF_NONE_MATCH, RETRY_AFTER},
};
use serde_json::{Value, json};

use super::{SCORES, refused};
use crate::{
    http::api::site::{Answer, Site},
    support::{
        Serve, TestDb, audit,
        load::key,
        own_postgres, spawn_serve,
        wait::{until, until_some},
    },
};

/// Fails unless the answer is a 503 that does not reveal the server's address.
#[track_caller]
fn unavailable(answer: &Answer, what: &str) {
    refused(answer, 503, "", what);
    let seconds: u64 = answer.headers[RETRY_AFTER].to_str().unwrap().parse().unwrap();
    assert!(seconds >= 1 && answer.body["retry_after"] == json!(seconds), "{what}: {answer:?}");
    assert!(!answer.text.contains("postgres://") && !answer.text.contains("127.0.0.1"), "{what}: {answer:?}");
}

/// Paths that read the database.
const READS: [&str; 14] = [
    "/readyz",
    "/v1/boards",
    "/v1/users/ada",
    "/v1/scores",
    "/v1/scores/ada",
    "/v1/boards/main/scores?from=2",
    "/v1/boards/main/scores/query?user_id=ada",
    "/v1/boards/main/scores/ada",
    "/v1/boards/main/scores?period=day:2024-01-15",
    "/v1/boards/main/scores/ada/history",
    "/v1/boards/main/rank?score=1",
    "/v1/boards/main/distribution",
    "/v1/boards/main/tiers",
    "/v1/boards/main/periods",
];

/// Calls that write, apart from scores.
const ACTS: [(Method, &str); 5] = [
    (Method::POST, "/v1/boards"),
    (Method::PUT, "/v1/users/ada"),
    (Method::POST, "/v1/users/ada/ban"),
    (Method::POST, "/v1/boards/main/scores/ada/reset"),
    (Method::POST, "/v1/boards/main/transactions/1/void"),
];

/// Starts a service without Redis, and a PostgreSQL of its own.
async fn site() -> (Site, LocalPostgres) {
    let postgres = own_postgres(PostgresOptions::ephemeral()).await;
    let url = postgres.url("postgres");
    let at = url.clone();
    let serve = tokio::task::spawn_blocking(move || Serve::spawn(&at, None, "gone:", &[])).await.unwrap();
    (Site::of(serve, &url), postgres)
}

/// Fails unless the last known top list is served with its age. Returns the age.
async fn is_stale(site: &Site, path: &str, known: &Answer) -> u64 {
    let tag = known.headers[ETAG].to_str().unwrap();
    // A list may lag by 250 ms before it counts as stale.
    let stale = until_some("the top is stale", async || {
        let stale = site.send(Method::GET, path, &[(IF_NONE_MATCH.as_str(), tag)], String::new()).await;
        (stale.status != 304).then_some(stale)
    })
    .await;
    assert_eq!((stale.status, stale.headers.get(ETAG)), (200, None), "{stale:?}");
    let age: u64 = stale.headers[AGE].to_str().unwrap().parse().unwrap();
    let stale = stale.is(200);
    assert!(stale["stale"] == true && stale["stale_for_seconds"] == json!(age), "{stale}");
    assert_eq!((&stale["data"], &stale["version"]), (&known.body["data"], &known.body["version"]));
    age
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_database_is_503_and_its_return_is_noticed() {
    const SIDE: &str = "/v1/boards/side/scores";
    let (site, mut postgres) = site().await;
    for slug in ["main", "side"] {
        site.board(json!({"slug": slug}), &[("ada", 40), ("bob", 30)]).await;
    }
    let known = site.get(SIDE).await;
    assert_eq!(known.status, 200);

    // Killed while scores arrive: afterwards every accepted score is present, and no score that was
    // not sent.
    let (mut sent, accepted) = (0, AtomicI64::new(0));
    let writing = async {
        loop {
            sent += 1;
            let answer = site.post(SCORES, json!({"user_id": "cyd", "points": 1})).await;
            if answer.status != 200 {
                break unavailable(&answer, "a score during the crash");
            }
            accepted.fetch_add(1, Ordering::SeqCst);
        }
    };
    let killing = async {
        until("scores are accepted", async || accepted.load(Ordering::SeqCst) > 5).await;
        tokio::task::block_in_place(|| postgres.kill_hard()).unwrap();
    };
    tokio::join!(writing, killing);
    let accepted = accepted.into_inner();

    // Before and after the cached boards and keys expire.
    let mut age = is_stale(&site, SIDE, &known).await;
    for is_forgotten in [false, true] {
        if is_forgotten {
            // The service reads a body only for a key that is known to work.
            until("the cached key expires", async || {
                let status = site.post(SCORES, "no JSON").await.status;
                assert!([400, 503].contains(&status), "{status}");
                status == 503
            })
            .await;
            // A board is looked up again after a second.
            let since = age;
            until("the age grows", async || {
                age = is_stale(&site, SIDE, &known).await;
                age >= since + 2
            })
            .await;
        }
        assert!(is_stale(&site, SIDE, &known).await >= age, "the age must not decrease");
        unavailable(&site.get("/v1/boards/side/scores?limit=7").await, "a top list that is not cached");
        let site = &site;
        let reads = READS.map(|path| async move {
            let answer = site.get(path).await;
            unavailable(&answer, path);
            assert!(!answer.text.contains("committed"), "{path}: {answer:?}");
        });
        let event = json!({"user_id": "ada", "points": 1000});
        let list = json!([event, event]);
        let scores = [(SCORES, &event), (SCORES, &list), ("/v1/scores", &event)];
        let scores = scores.map(|(path, body)| async move { unavailable(&site.post(path, body).await, path) });
        let acts = ACTS.map(|(method, path)| async move {
            let body = match (&method, path) {
                (&Method::DELETE, _) => Value::Null,
                (_, "/v1/boards") => json!({"slug": "new", "mode": "sum"}),
                _ => json!({}),
            };
            unavailable(&site.admin(method, path, body).await, path);
        });
        tokio::join!(join_all(reads), join_all(scores), join_all(acts));
        assert_eq!(site.get("/healthz").await.status, 200, "/healthz must answer");
    }

    tokio::task::block_in_place(|| postgres.start_again()).unwrap();
    until("the service is ready again", async || site.get("/readyz").await.status == 200).await;
    // Broken connections are replaced at their next use.
    let answer = until_some("scores can be written again", async || {
        let answer = site.post(SCORES, json!({"user_id": "dan", "points": 1, "id": "once"})).await;
        (answer.status != 503).then_some(answer)
    })
    .await;
    answer.is(200);
    until("the top is not stale", async || site.get(SIDE).await.is(200)["stale"] != true).await;
    // This list was never read before, so there is no cached one.
    until("the other top list is read", async || {
        let top = site.get(SCORES).await;
        assert!(top.status == 200 || top.status == 503, "{top:?}");
        top.status == 200
    })
    .await;
    let top = site.get(SCORES).await.is(200);
    let score = |user: &str| {
        let row = top["data"].as_array().unwrap().iter().find(|row| row["user_id"] == user);
        row.and_then(|row| row["score"].as_i64()).unwrap_or_default()
    };
    assert_eq!((score("ada"), score("bob"), score("dan"), &top["stale"]), (40, 30, 1, &Value::Null));
    assert!((accepted..=sent).contains(&score("cyd")), "{accepted} of {sent} were accepted, {top}");
    let user = site.admin(Method::GET, "/v1/users/ada", Value::Null).await.is(200);
    assert_eq!(user["banned"], false);
}

/// A session ends while its statement waits for a lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_write_may_have_been_committed_when_its_session_ends() {
    const USER: &str = "/v1/users/ada";
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({}), &[("ada", 40)]).await;
    let pool = db.pool().await;
    let _locked = db.hold("LOCK TABLE centile_store.users IN ACCESS EXCLUSIVE MODE").await;
    for (method, body, is_write) in [(Method::GET, Value::Null, false), (Method::PUT, json!({"name": "Ada"}), true)] {
        let end = async {
            let waiting = "SELECT count(pg_terminate_backend(l.pid)) FROM pg_locks l
                           WHERE l.relation = 'centile_store.users'::regclass AND NOT l.granted
                             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";
            loop {
                sqlx::query_scalar::<_, i64>(waiting).fetch_one(&pool).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let answer = tokio::select! {
            answer = site.admin(method, USER, body) => answer,
            _ = end => unreachable!("it ends sessions until there is an answer"),
        };
        unavailable(&answer, USER);
        assert_eq!(answer.body["code"], "database_unavailable", "{answer:?}");
        assert_eq!(answer.text.contains("may or may not have been committed"), is_write, "{answer:?}");
    }
}

/// While an index cannot load, at most four reads of a board run by SQL. A request that arrives
/// while all four hang gets 503.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_look_ups_are_503_while_all_others_hang() {
    const BOARDS: &str = "centile_store.boards";
    const USERS: &str = "centile_store.users";
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({}), &[("ada", 40), ("bob", 30), ("cyd", 30)]).await;
    let pool = db.pool().await;
    let waiting = async |table: &str| -> i64 {
        let waiting = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                       WHERE l.relation = $1::regclass AND NOT l.granted AND a.query NOT LIKE '%apply_board%'";
        sqlx::query_scalar(waiting).bind(table).fetch_one(&pool).await.unwrap()
    };
    let hang = async |table: &str, statements: i64| {
        until("the statements wait for the table", async || waiting(table).await >= statements).await;
    };

    // Requests for a board that is not cached, or has expired, share a look-up.
    db.execute("SELECT centile.create_board('side'); SELECT centile.create_board('last')").await;
    let blocked = db.hold(&format!("LOCK TABLE {BOARDS} IN ACCESS EXCLUSIVE MODE")).await;
    let many = join_all((0..64).map(|_| site.get("/v1/boards/side")));
    let release = async {
        hang(BOARDS, 1).await;
        // This request is sent after the others, and waits for a look-up of its own.
        let last = async {
            hang(BOARDS, 2).await;
            assert_eq!(waiting(BOARDS).await, 2, "64 requests share a look-up");
            drop(blocked);
        };
        tokio::join!(site.get("/v1/boards/last"), last).0.is(200);
    };
    let (many, ()) = tokio::join!(many, release);
    assert!(many.iter().all(|answer| answer.status == 200), "{many:?}");

    // An index of three players reads their names when it loads.
    audit::apply(&pool).await;
    let blocked = db.hold(&format!("LOCK TABLE {USERS} IN ACCESS EXCLUSIVE MODE")).await;
    let get = |user: &str| {
        let path = format!("/v1/boards/main/scores/{user}?around=1");
        let site = &site;
        async move { site.get(&path).await }
    };
    let release = async {
        // The index's load waits as well.
        hang(USERS, 5).await;
        let others = join_all(["ada", "bob", "nobody"].map(get)).await;
        for answer in &others {
            unavailable(answer, "a read beyond those that run");
        }
        drop(blocked);
    };
    let (four, ()) = tokio::join!(join_all(["ada", "bob", "cyd", "ada"].map(get)), release);
    let ranks = four.into_iter().map(|answer| answer.is(200)["rank"].clone());
    assert_eq!(ranks.collect::<Vec<_>>(), [1, 2, 2, 1]);
    // No cancelled request is left in the queue.
    let players = ["ada", "bob", "cyd", "nobody"].repeat(30);
    for (user, answer) in players.iter().zip(join_all(players.iter().map(|user| get(user))).await) {
        let rank = [("ada", 1), ("bob", 2), ("cyd", 2)].iter().find(|(name, _)| name == user);
        match rank {
            Some((_, rank)) => {
                let body = answer.is(200);
                assert_eq!((&body["user_id"], &body["rank"]), (&json!(user), &json!(rank)));
            }
            None => assert_eq!(answer.status, 404, "{answer:?}"),
        }
    }
}

/// Simulates an upgrade next to an instance of the previous release: its prepared statements would
/// return other columns.
#[tokio::test]
async fn an_instance_survives_a_migration_that_changes_columns() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main', '{\"lanes\": 1}')").await;
    let serve = spawn_serve(&db, None, &[]).await;
    let key = key(db.url(), "admin");
    let send = async || {
        let request =
            serve.client.post(serve.at(SCORES)).bearer_auth(&key).json(&json!({ "user_id": "ada", "points": 1 }));
        request.send().await.unwrap()
    };
    let post = async || send().await.status().as_u16();
    // One or both of the connections that writes prefer have prepared the statement.
    for _ in 0..20 {
        assert_eq!(post().await, 200);
    }
    db.execute(
        "DO $$
         DECLARE
             v_old text := pg_get_functiondef('centile_store.commit_batch'::regproc);
         BEGIN
             DROP FUNCTION centile_store.commit_batch;
             EXECUTE replace(v_old, 'OUT quarantine_ids bigint[]', 'OUT quarantine_ids integer[]');
         END
         $$",
    )
    .await;
    let mut answers = Vec::new();
    for _ in 0..20 {
        answers.push(post().await);
    }
    // One failure for each connection that prepared it: usually two, at most eight where a slow
    // machine used more.
    assert!((1..=8).contains(&answers.iter().filter(|status| **status == 503).count()), "{answers:?}");
    assert!(answers.iter().all(|status| [200, 503].contains(status)), "{answers:?}");

    // A server that lacks memory, or exceeds a configured limit, has answered.
    for state in ["53200", "53400"] {
        db.execute(&format!(
            "DO $$
             BEGIN
                 EXECUTE regexp_replace(pg_get_functiondef('centile_store.commit_batch'::regproc), '\\$function\\$.*',
                     '$function$ BEGIN RAISE EXCEPTION USING ERRCODE = ''{state}''; END $function$');
             END
             $$"
        ))
        .await;
        let answer: Value = send().await.json().await.unwrap();
        assert_eq!((&answer["status"], &answer["code"]), (&json!(503), &json!("database_busy")), "{answer}");
    }
}

/// The connections of the rank index's rounds are closed, and PostgreSQL refuses new ones.
#[tokio::test]
async fn a_round_without_a_connection_falls_back_to_sql() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main'); SELECT testing.submit_score('main', 'ada', 1)").await;
    let (login, url) = db.login("IN ROLE centile_service").await;
    let flags = ["--read-connections", "4"].map(ToOwned::to_owned);
    let serve = tokio::task::spawn_blocking(move || Serve::spawn(&url, None, "full:", &flags)).await.unwrap();
    let get = async |path: &str| serve.client.get(serve.at(path)).send().await.unwrap();
    let source = async || get("/v1/boards/main/scores/ada").await.headers()["centile-source"].clone();
    until("the index answers", async || source().await == "index").await;
    assert_eq!(get("/v1/boards/main/periods").await.status(), 200, "a read connection exists");
    db.execute(&format!(
        "DO $$
         DECLARE
             v_others bigint := (SELECT count(*) FROM pg_stat_activity WHERE usename = '{login}' AND query NOT LIKE '%read_round%');
         BEGIN
             EXECUTE format('ALTER ROLE {login} CONNECTION LIMIT %s', v_others);
             ASSERT (SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
                     WHERE usename = '{login}' AND query LIKE '%read_round%') >= 1;
         END
         $$"
    ))
    .await;
    for _ in 0..3 {
        let answer = get("/v1/boards/main/scores/ada").await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["centile-source"], "sql");
    }
}
