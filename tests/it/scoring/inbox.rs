//! Scores that SQL callers submit in their own transactions.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use centile::dev::local::PostgresOptions;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool, query, query_as, query_scalar, raw_sql};

use crate::{
    http::api::site::Site,
    support::{PATIENT, Serve, TestDb, amount, audit, own_postgres, wait::until},
};

/// A row of `centile.wait_for`: state, transaction, id in quarantine, code and reason.
type Outcome = (String, Option<i64>, Option<i64>, Option<String>, Option<String>);

async fn submit(connection: &mut PgConnection, user: &str, points: i64) -> sqlx::Result<String> {
    let submit = query_scalar("SELECT centile.submit('main', $1, $2)").bind(user).bind(points);
    submit.fetch_one(connection).await
}

async fn wait_for(connection: &mut PgConnection, ticket: &str) -> sqlx::Result<Outcome> {
    query_as("SELECT state, transaction_id, quarantine_id, code, reason FROM centile.wait_for($1)")
        .bind(ticket)
        .fetch_one(connection)
        .await
}

/// Returns the SQLSTATE and the detail of an error.
fn refusal<T: std::fmt::Debug>(result: sqlx::Result<T>) -> (String, String) {
    let error = result.expect_err("a refusal").into_database_error().expect("an error of PostgreSQL");
    let postgres = error.downcast_ref::<sqlx::postgres::PgDatabaseError>();
    (postgres.code().to_owned(), postgres.detail().unwrap_or_default().to_owned())
}

async fn score(site: &Site, user: &str) -> Value {
    site.get(&format!("/v1/boards/main/scores/{user}")).await.body["score"].clone()
}

#[tokio::test]
async fn a_score_counts_once_its_transaction_has_committed() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ann", 40)]).await;
    // A login that may submit, and nothing else.
    let (_, url) = db.login("IN ROLE centile_writer").await;
    let mut caller = PgConnection::connect(&url).await.unwrap();
    let mut transaction = caller.begin().await.unwrap();
    let ticket = submit(&mut transaction, "ann", 5).await.unwrap();
    // Its own transaction would wait for ever.
    assert_eq!(refusal(wait_for(&mut transaction, &ticket).await).0, "CB409");
    transaction.rollback().await.unwrap();
    assert_eq!(refusal(wait_for(&mut caller, &ticket).await).0, "CB404");

    let mut transaction = caller.begin().await.unwrap();
    let ticket = submit(&mut transaction, "ann", 7).await.unwrap();
    assert_eq!(score(&site, "ann").await, 40);
    let state: String = query_scalar("SELECT state FROM centile.wait_for($1, '0')")
        .bind(&ticket)
        .fetch_one(&mut PgConnection::connect(&url).await.unwrap())
        .await
        .unwrap();
    assert_eq!(state, "waiting");
    transaction.commit().await.unwrap();
    let (state, transaction_id, ..) = wait_for(&mut caller, &ticket).await.unwrap();
    assert_eq!(state, "accepted");
    let history = site.get("/v1/boards/main/scores/ann/history?limit=1").await.is(200)["data"][0].clone();
    assert_eq!((&history["transaction_id"], &history["points"]), (&json!(transaction_id), &json!(7)));
    assert_eq!(score(&site, "ann").await, 47);
    // The result stays, and the inbox is empty.
    assert_eq!(wait_for(&mut caller, &ticket).await.unwrap().1, transaction_id);
    let waiting: i64 = query_scalar("SELECT count(*) FROM centile.submissions").fetch_one(&mut caller).await.unwrap();
    assert_eq!(waiting, 0);

    // Every member of an event, and a repeated id.
    let all =
        "SELECT centile.submit('main', 'bob', 9, id => 'match-1', reason => 'won', metadata => '{\"b\": 1, \"a\": 2}')";
    for _ in 0..2 {
        let ticket: String = query_scalar(all).fetch_one(&mut caller).await.unwrap();
        assert_eq!(wait_for(&mut caller, &ticket).await.unwrap().0, "accepted");
    }
    let history = site.admin(Method::GET, "/v1/boards/main/scores/bob/history", Value::Null).await.is(200);
    let rows = history["data"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{history}");
    let shown = (&rows[0]["points"], &rows[0]["reason"], &rows[0]["metadata"]);
    assert_eq!(shown, (&json!(9), &json!("won"), &json!({"a": 2, "b": 1})));
    let rights: Vec<String> = query_scalar(
        "SELECT p.oid::regproc::text AS name FROM pg_proc p, aclexplode(p.proacl) a WHERE a.grantee = 'centile_writer'::regrole
         UNION ALL SELECT c.oid::regclass::text FROM pg_class c, aclexplode(c.relacl) a WHERE a.grantee = 'centile_writer'::regrole
         UNION ALL SELECT n.nspname FROM pg_namespace n, aclexplode(n.nspacl) a WHERE a.grantee = 'centile_writer'::regrole
         ORDER BY name",
    )
    .fetch_all(&mut caller)
    .await
    .unwrap();
    let wanted = ["centile", "centile.submissions", "centile.submit", "centile.submit_many", "centile.wait_for"];
    assert_eq!(rights, wanted);
    let refused = query("SELECT FROM centile_store.inbox").execute(&mut caller).await;
    assert_eq!(refusal(refused).0, "42501");
}

#[tokio::test]
async fn bad_scores_are_refused_at_once() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main'), centile.create_board('ladder', '{\"mode\": \"best\", \"ties\": \"tiebreak\"}')")
        .await;
    db.execute("SELECT centile.create_board('sprints', '{\"ties\": \"second\"}')").await;
    db.execute("SELECT centile.create_board('overall', '{\"mode\": \"combined\", \"combination\": {\"sources\": [{\"board\": \"main\", \"period\": \"week\"}]}}')").await;
    let mut caller = PgConnection::connect(db.url()).await.unwrap();
    let long = |count: usize| "x".repeat(count);
    let cases = [
        ("'none', 'ann', 1".to_owned(), "CB404", "board"),
        ("NULL, 'ann', 1".to_owned(), "CB404", "board"),
        ("'overall', 'ann', 1".to_owned(), "CB409", "board_combined"),
        ("'main', '', 1".to_owned(), "CB422", "user_id"),
        ("'main', NULL, 1".to_owned(), "CB422", "user_id"),
        ("'main', '..', 1".to_owned(), "CB422", "user_id"),
        (format!("'main', '{}', 1", long(129)), "CB422", "user_id"),
        ("'main', E'a\\u0085', 1".to_owned(), "CB422", "user_id"),
        ("'main', 'ann', NULL".to_owned(), "CB422", "points"),
        ("'main', 'ann', (-9223372036854775808)".to_owned(), "CB422", "points"),
        ("'main', 'ann', 1, id => ''".to_owned(), "CB422", "id"),
        (format!("'main', 'ann', 1, id => '{}'", long(129)), "CB422", "id"),
        (format!("'main', 'ann', 1, reason => '{}'", long(257)), "CB422", "reason"),
        ("'main', 'ann', 1, reason => E'a\\nb'".to_owned(), "CB422", "reason"),
        ("'main', 'ann', 1, tiebreak => 1".to_owned(), "CB422", "tiebreak"),
        ("'ladder', 'ann', 1, tiebreak => 2048".to_owned(), "CB422", "tiebreak"),
        ("'sprints', 'ann', 1, tiebreak => -9223372036854775808".to_owned(), "CB422", "tiebreak"),
        ("'main', 'ann', 1, metadata => '[1]'".to_owned(), "CB422", "metadata"),
        (r#"'main', 'ann', 1, metadata => '{"a": "\u0000"}'"#.to_owned(), "CB422", "metadata"),
        (r#"'main', 'ann', 1, metadata => '{"a": "\ud800"}'"#.to_owned(), "CB422", "metadata"),
        (format!("'main', 'ann', 1, metadata => '{{\"a\": \"{}\"}}'", long(1_024)), "CB422", "metadata"),
    ];
    for (arguments, code, detail) in cases {
        let result = raw_sql(AssertSqlSafe(format!("SELECT centile.submit({arguments})"))).execute(&mut caller).await;
        assert_eq!(refusal(result), (code.to_owned(), detail.to_owned()), "{arguments}");
    }
    for ticket in ["", "17", "[1]", "[\"a\",\"main\",\"ann\",\"b\",\"3\"]", "[1,\"main\",\"ann\",\"b\",\"9000000000\"]"]
    {
        assert_eq!(refusal(wait_for(&mut caller, ticket).await), ("CB422".to_owned(), "ticket".to_owned()), "{ticket}");
    }
    // Under a fixed snapshot, the result would never be seen.
    let mut fixed = caller.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    assert_eq!(refusal(wait_for(&mut fixed, "[1, \"main\", \"ann\", \"b\", \"3\"]").await).0, "CB409");
}

#[tokio::test]
async fn many_scores_are_submitted_together_or_not_at_all() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    site.board(json!({"slug": "laps", "mode": "latest"}), &[]).await;
    site.board(json!({"slug": "sprints", "ties": "second"}), &[]).await;
    let mut caller = PgConnection::connect(db.url()).await.unwrap();
    let events = json!([
        {"board": "main", "user_id": 7, "points": 5, "metadata": {"b": 1}},
        {"board": "laps", "user_id": "ann", "points": -3, "id": "m", "tiebreak": null},
        {"board": "main", "user_id": "ann", "points": 2, "reason": "won"},
        {"board": "sprints", "user_id": "ann", "points": 2, "tiebreak": 9_000_000_000_000_000_000_i64},
    ]);
    let submit_many = "SELECT centile.submit_many($1)";
    let tickets: Vec<String> = query_scalar(submit_many).bind(&events).fetch_one(&mut caller).await.unwrap();
    assert_eq!(tickets.len(), 4);
    for ticket in &tickets {
        assert_eq!(wait_for(&mut caller, ticket).await.unwrap().0, "accepted", "{ticket}");
    }
    assert_eq!((score(&site, "7").await, score(&site, "ann").await), (json!(5), json!(2)));
    assert_eq!(site.get("/v1/boards/laps/scores/ann").await.is(200)["score"], -3);
    assert_eq!(site.get("/v1/boards/sprints/scores/ann").await.is(200)["tiebreak"], 9_000_000_000_000_000_000_i64);

    let good = json!({"board": "main", "user_id": "bob", "points": 1});
    let cases = [
        (json!({}), "CB422", "events"),
        (json!([]), "CB422", "events"),
        (json!([good, 1]), "CB422", "events"),
        (json!([good, {"board": "none", "user_id": "bob", "points": 1}]), "CB404", "board"),
        (json!([good, {"board": "main", "points": 1}]), "CB422", "user_id"),
        (json!([good, {"board": "main", "user_id": true, "points": 1}]), "CB422", "user_id"),
        (json!([good, {"board": "main", "user_id": "bob", "points": 1.5}]), "CB422", "points"),
        (json!([good, {"board": "main", "user_id": "bob", "points": 1, "tiebreak": 1.5}]), "CB422", "tiebreak"),
        (
            json!([good, {"board": "main", "user_id": "bob", "points": 9_223_372_036_854_775_808_u64}]),
            "CB422",
            "points",
        ),
        (json!([good, {"board": "main", "user_id": "bob", "points": 1, "score": 1}]), "CB422", "score"),
        (json!(vec![&good; 1_001]), "CB422", "events"),
    ];
    for (events, code, detail) in cases {
        let result = query(submit_many).bind(&events).execute(&mut caller).await;
        if events.as_array().is_some_and(|events| events.len() == 2) {
            let message = result.as_ref().unwrap_err().to_string();
            assert!(message.contains("events[1]: "), "{message}");
        }
        assert_eq!(refusal(result), (code.to_owned(), detail.to_owned()), "{events}");
    }
    assert_eq!(
        query_scalar::<_, i64>("SELECT count(*) FROM centile_store.users WHERE external_id = 'bob'")
            .fetch_one(&mut caller)
            .await
            .unwrap(),
        0
    );
}

#[tokio::test]
async fn failures_are_shown_with_their_reason_for_seven_days() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"points_min": 0, "points_max": 100}), &[]).await;
    let mut caller = PgConnection::connect(db.url()).await.unwrap();
    let refused = submit(&mut caller, "ann", 101).await.unwrap();
    let (state, transaction_id, quarantine_id, code, reason) = wait_for(&mut caller, &refused).await.unwrap();
    assert_eq!((state.as_str(), transaction_id, quarantine_id), ("refused", None, None));
    let message = "points: board main allows 0 to 100 points per event";
    assert_eq!((code.as_deref(), reason.as_deref()), (Some("points_out_of_bounds"), Some(message)));
    site.admin(Method::PATCH, "/v1/boards/main", json!({"on_violation": "quarantine"})).await.is(200);
    // An instance may know the former rule for a second.
    until("an event is quarantined", async || {
        let ticket = submit(&mut PgConnection::connect(db.url()).await.unwrap(), "bob", 102).await.unwrap();
        wait_for(&mut PgConnection::connect(db.url()).await.unwrap(), &ticket).await.unwrap().0 == "quarantined"
    })
    .await;
    let shown: Vec<(String, i64, String, String, bool)> = query_as(
        "SELECT user_id, points, state, reason, decided_at >= submitted_at FROM centile.submissions ORDER BY number",
    )
    .fetch_all(&mut caller)
    .await
    .unwrap();
    let last = shown.last().unwrap();
    assert_eq!((shown[0].0.as_str(), shown[0].1, shown[0].2.as_str()), ("ann", 101, "refused"));
    assert_eq!((last.0.as_str(), last.1, last.2.as_str(), last.3.as_str()), ("bob", 102, "quarantined", message));
    assert!(shown.iter().all(|row| row.4), "{shown:?}");
    let waiting: i64 = query_scalar("SELECT count(*) FROM centile.quarantine WHERE user_id = 'bob'")
        .fetch_one(&mut caller)
        .await
        .unwrap();
    assert_eq!(waiting, 1);

    // An erased player has no failures, and old ones are forgotten.
    db.execute("SELECT centile.erase_user('bob')").await;
    let count = "SELECT count(*) FROM centile.submissions WHERE user_id = 'bob'";
    assert_eq!(query_scalar::<_, i64>(count).fetch_one(&mut caller).await.unwrap(), 0);
    db.execute("UPDATE centile_store.inbox_failures SET decided_at = now() - interval '7 days 1 minute'").await;
    db.execute("SELECT centile_store.forget_expired_ids()").await;
    let left: i64 = query_scalar("SELECT count(*) FROM centile.submissions").fetch_one(&mut caller).await.unwrap();
    assert_eq!(left, 0);
}

/// Otherwise an event that was written, and whose removal from the inbox failed, would count twice.
#[tokio::test]
async fn ids_outlive_old_submissions() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main'), centile.submit('main', 'ann', 5, id => 'a')").await;
    db.execute("SELECT testing.submit_score('main', 'ann', 5)").await;
    db.execute(
        "INSERT INTO centile_store.transaction_ids (board_id, user_id, lane, external_id, transaction_id, occurred_at, expires_at)
         SELECT t.board_id, t.user_id, t.lane, 'a', t.id, t.occurred_at, now() - interval '1 day' FROM centile_store.score_transactions t",
    )
    .await;
    let forget = async || {
        db.execute("SELECT centile_store.forget_expired_ids()").await;
        let left = query_scalar::<_, i64>("SELECT count(*) FROM centile_store.transaction_ids WHERE external_id = 'a'");
        left.fetch_one(&db.pool().await).await.unwrap()
    };
    db.execute("UPDATE centile_store.inbox SET submitted_at = now() - interval '8 days'").await;
    assert_eq!(forget().await, 1);
    db.execute("DELETE FROM centile_store.inbox").await;
    assert_eq!(forget().await, 0);
}

/// Otherwise the score would create the player again.
#[tokio::test]
async fn an_erasure_waits_for_submitted_scores() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('main'), centile.ensure_users('{ann}'); SELECT centile.submit('main', 'ann', 5)",
    )
    .await;
    let mut caller = PgConnection::connect(db.url()).await.unwrap();
    assert_eq!(refusal(query("SELECT centile.erase_user('ann')").execute(&mut caller).await).0, "CB001");
    db.execute("DELETE FROM centile_store.inbox; SELECT centile.erase_user('ann')").await;
}

/// The lane stays locked beyond the statement timeout, so the first batch fails.
#[tokio::test]
async fn scores_of_a_player_keep_their_order_after_a_failure() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--statement-timeout", "1"]).await;
    site.board(json!({"mode": "latest"}), &[("ann", 1)]).await;
    let held = db
        .hold("SELECT centile_store.hold_lane(b.id, l::smallint) FROM centile_store.boards b, generate_series(0, 3) l")
        .await;
    let mut caller = PgConnection::connect(db.url()).await.unwrap();
    let mut tickets = Vec::new();
    for points in 2..=20 {
        tickets.push(submit(&mut caller, "ann", points).await.unwrap());
    }
    site.serve.logged("submitted scores wait", 1).await;
    drop(held);
    for ticket in &tickets {
        assert_eq!(wait_for(&mut caller, ticket).await.unwrap().0, "accepted");
    }
    let points: Vec<i64> = query_scalar("SELECT points FROM centile.score_history ORDER BY transaction_id")
        .fetch_all(&mut caller)
        .await
        .unwrap();
    assert_eq!(points, (1..=20).collect::<Vec<i64>>());
}

#[tokio::test]
async fn scores_of_a_caller_keep_their_order_and_a_blocked_board_delays_no_other() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"mode": "latest"}), &[]).await;
    site.board(json!({"slug": "blocked"}), &[("ann", 1)]).await;
    let held = db.hold("SELECT centile_store.hold_lane(b.id, l::smallint) FROM centile_store.boards b, generate_series(0, 3) l WHERE b.slug = 'blocked'").await;
    let mut caller = PgConnection::connect(db.url()).await.unwrap();
    let blocked: String =
        query_scalar("SELECT centile.submit('blocked', 'ann', 2)").fetch_one(&mut caller).await.unwrap();
    let mut last = String::new();
    for points in 1..=300 {
        last = submit(&mut caller, "ann", points).await.unwrap();
    }
    assert_eq!(wait_for(&mut caller, &last).await.unwrap().0, "accepted");
    let points: Vec<i64> =
        query_scalar("SELECT points FROM centile.score_history WHERE board = 'main' ORDER BY transaction_id")
            .fetch_all(&mut caller)
            .await
            .unwrap();
    assert_eq!(points, (1..=300).collect::<Vec<i64>>());
    assert_eq!(score(&site, "ann").await, 300);
    let state: String = query_scalar("SELECT state FROM centile.wait_for($1, '0')")
        .bind(&blocked)
        .fetch_one(&mut caller)
        .await
        .unwrap();
    assert_eq!(state, "waiting");
    drop(held);
    assert_eq!(wait_for(&mut caller, &blocked).await.unwrap().0, "accepted");
}

/// Points by player that the callers of a test have committed.
#[derive(Debug, Default)]
struct Committed(Mutex<BTreeMap<String, i64>>);

/// Submits until `stop`, in transactions of some scores, of which every fourth is rolled back. A transaction
/// counts if its commit was confirmed; after an error its scores' row in a table of the caller tells.
async fn submit_until(url: String, caller: usize, stop: Arc<AtomicBool>, committed: Arc<Committed>) {
    let mut connection = None;
    let mut number = 0_i64;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let mut at = match connection.take() {
            Some(connection) => connection,
            None => match PgConnection::connect(&url).await {
                Ok(connection) => connection,
                Err(_) => continue,
            },
        };
        let name = format!("c{caller}-{number}");
        let scores: Vec<(String, i64)> =
            (0..=number % 5).map(|n| (format!("p{}", (number * 7 + n) % 50), number % 90 + n + 1)).collect();
        let written = async {
            let mut transaction = at.begin().await?;
            for (user, points) in &scores {
                query("SELECT centile.submit('arena', $1, $2)")
                    .bind(user)
                    .bind(points)
                    .execute(&mut *transaction)
                    .await?;
            }
            query("INSERT INTO public.orders VALUES ($1)").bind(&name).execute(&mut *transaction).await?;
            if number % 4 == 0 { transaction.rollback().await } else { transaction.commit().await }
        };
        let is_certain = written.await.is_ok();
        if is_certain {
            connection = Some(at);
        }
        // After an error, the caller's own row tells whether the transaction has committed.
        let is_committed = if is_certain {
            number % 4 != 0
        } else {
            loop {
                let Ok(mut again) = PgConnection::connect(&url).await else { continue };
                let found = query_scalar("SELECT EXISTS (SELECT FROM public.orders WHERE name = $1)").bind(&name);
                if let Ok(found) = found.fetch_one(&mut again).await {
                    break found;
                }
            }
        };
        if is_committed {
            let mut committed = committed.0.lock().unwrap();
            for (user, points) in scores {
                *committed.entry(user).or_default() += points;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_committed_score_counts_once_whatever_is_killed() {
    let options = PostgresOptions { fsync: amount(false, true), ..PostgresOptions::ephemeral() };
    let mut postgres = own_postgres(options).await;
    let url = postgres.url("postgres");
    let pool = PgPool::connect(&url).await.unwrap();
    raw_sql(
        "SELECT centile.create_board('arena', '{\"lanes\": 4}'); CREATE TABLE public.orders (name text PRIMARY KEY)",
    )
    .execute(&pool)
    .await
    .unwrap();
    let (stop, committed) = (Arc::new(AtomicBool::new(false)), Arc::new(Committed::default()));
    let callers: Vec<_> = (0..3)
        .map(|caller| tokio::spawn(submit_until(url.clone(), caller, Arc::clone(&stop), Arc::clone(&committed))))
        .collect();
    let serve = async || {
        let url = url.clone();
        tokio::task::spawn_blocking(move || Serve::spawn(&url, None, "inbox", &PATIENT.map(str::to_owned)))
            .await
            .unwrap()
    };
    let rows =
        async || query_scalar::<_, i64>("SELECT count(*) FROM centile_store.score_transactions").fetch_one(&pool).await;
    let kills = amount(6, 100);
    let mut instances = [serve().await, serve().await];
    for kill in 0..kills {
        let before = rows().await.unwrap_or(0);
        until("more scores are written", async || rows().await.is_ok_and(|now| now > before + [1, 60, 400][kill % 3]))
            .await;
        if kill % 3 == 2 {
            postgres.kill_hard().unwrap();
            postgres.start_again().unwrap();
        } else {
            let place = kill % 2;
            instances[place].kill();
            instances[place] = serve().await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    until("the inbox is empty", async || {
        query_scalar("SELECT NOT EXISTS (SELECT FROM centile_store.inbox)")
            .fetch_one(&pool)
            .await
            .is_ok_and(|empty| empty)
    })
    .await;
    let stored: Vec<(String, i64)> = query_as(
        "SELECT u.external_id, sum(t.points)::bigint FROM centile_store.score_transactions t JOIN centile_store.users u ON u.id = t.user_id GROUP BY 1 ORDER BY 1",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    let committed = committed.0.lock().unwrap().clone();
    eprintln!("{kills} kills, {} points committed", committed.values().sum::<i64>());
    assert_eq!(stored, committed.into_iter().collect::<Vec<_>>());
    assert!(audit::rankings_are_sound(&pool).await >= 4);
}
