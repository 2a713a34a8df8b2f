//! Erasures that are repeated or interrupted, erasures that must skip tops without the player, and
//! concurrent changes of the same rows.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{query_as, query_scalar, raw_sql};

use super::erase::{NAME, OLD_ID, WEEK, found, played};
use crate::{
    http::api::site::Site,
    http::errors::refused,
    support::{
        Serve, TestDb,
        proxy::{Proxy, Way},
        run,
    },
};

/// A board with closed weeks whose tops all have the player in first place.
const WEEKS: &str = "
    SELECT centile.create_board('main', '{\"periods\": [\"week\"]}');
    SELECT centile.put_user('ada-lovelace-1815', 'Ada King');
    SELECT centile.ensure_users('{bob}');
    SELECT centile.ensure_ledger_months('2024-01-01', '2024-03-01');
    SELECT centile.correct_score('main', u, 20, '2024-01-01 12:00Z'::timestamptz + w * interval '7 days', 'first', 'dora')
    FROM generate_series(0, 4) AS w, unnest('{ada-lovelace-1815,bob}'::text[]) AS u";

/// Closes a week of [`WEEKS`] and all earlier ones.
const CLOSE: &str = "
    SELECT centile_store.build_archive(c.id), centile_store.compare_archive(c.id), centile_store.finish_close(c.id, c.at)
    FROM (SELECT id, centile_store.cut_off_period(id) AS at FROM centile_store.periods WHERE state = 'open' ORDER BY id) c";

/// Counts the tops without the old name, and all tops.
const RENAMED: &str = "
    SELECT count(*) FILTER (WHERE convert_from(frozen_top, 'UTF8') NOT LIKE '%Ada King%'), count(*)
    FROM centile_store.periods WHERE frozen_top IS NOT NULL";

async fn weeks(db: &TestDb) {
    db.execute(WEEKS).await;
    db.execute(CLOSE).await;
}

#[tokio::test]
async fn an_erasure_skips_tops_without_the_player() {
    let db = TestDb::new().await;
    weeks(&db).await;
    db.execute("SELECT centile.ensure_users('{cyd}'); SELECT centile.put_user('eve', 'Eve')").await;
    // Reading a top now fails.
    db.execute("UPDATE centile_store.periods SET frozen_top = 'no JSON'").await;
    db.execute("SELECT centile.erase_user('eve')").await;
    let error = sqlx::query("SELECT centile.erase_user('bob')").execute(&db.pool().await).await.unwrap_err();
    assert!(error.to_string().contains("json"), "erasing a player of these tops reads them: {error}");
}

#[tokio::test]
async fn a_repeated_request_id_gets_the_same_answer() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    played(&db, &site).await;
    let erase = async |user: &str, id: &str| {
        let authorization = format!("Bearer {}", site.admin_key);
        let headers = [("authorization", &*authorization), ("idempotency-key", id)];
        site.send(Method::DELETE, &format!("/v1/users/{user}"), &headers, String::new()).await
    };
    let first = erase(OLD_ID, "request-0000000001").await.is(200);
    // The client lost the first answer and repeats the request.
    assert_eq!(erase(OLD_ID, "request-0000000001").await.is(200), first);
    assert_eq!(run(&db, &["user", "erase", OLD_ID, "--id", "request-0000000001"]).well().trim(), first["new_user_id"]);
    assert_eq!(found(&db, &[OLD_ID, NAME]), Vec::<String>::new());
    site.admin(Method::DELETE, &format!("/v1/users/{OLD_ID}"), Value::Null).await.is(404);

    // A new player with the old id is not affected.
    site.admin(Method::PUT, &format!("/v1/users/{OLD_ID}"), json!({"name": "Another"})).await.is(201);
    assert_eq!(erase(OLD_ID, "request-0000000001").await.is(200), first);
    assert_eq!(site.get(&format!("/v1/users/{OLD_ID}")).await.is(200)["name"], "Another");
    // The request's id does not work for a player who existed before.
    refused(&erase("bob", "request-0000000001").await, 409, "", "another player's request");
    assert_eq!(site.get("/v1/users/bob").await.is(200)["user_id"], "bob");
    // Nor for a player who came later.
    site.admin(Method::PUT, "/v1/users/newcomer", json!({"name": "New"})).await.is(201);
    refused(&erase("newcomer", "request-0000000001").await, 409, "", "another player's request");
    assert_eq!(site.get("/v1/users/newcomer").await.is(200)["name"], "New");
    let second = erase(OLD_ID, "request-0000000002").await.is(200);
    assert_ne!(second, first);
    refused(&erase("bob", "too short").await, 422, "Idempotency-Key", "a short key");
    refused(&erase("bob", &"x".repeat(129)).await, 422, "Idempotency-Key", "a long key");
    // A call that would ignore the header refuses it.
    let authorization = format!("Bearer {}", site.server_key);
    let headers = [
        ("authorization", &*authorization),
        ("content-type", "application/json"),
        ("idempotency-key", "request-0000000003"),
    ];
    let event = json!({"user_id": "late", "points": 1}).to_string();
    let answer = site.send(Method::POST, "/v1/boards/main/scores", &headers, event).await;
    refused(&answer, 422, "Idempotency-Key", "a score");
    site.get("/v1/users/late").await.is(404);

    let log: i64 = query_scalar("SELECT count(*) FROM centile.audit_log WHERE action = 'erase'")
        .fetch_one(&db.pool().await)
        .await
        .unwrap();
    assert_eq!(log, 2, "one audit entry for each erasure");
    // The service keeps request ids for seven days.
    db.execute("UPDATE centile_store.erasures SET done_at = done_at - interval '8 days'").await;
    run(&db, &["maintain"]).well();
    assert_eq!(erase(OLD_ID, "request-0000000001").await.status, 404);
}

#[tokio::test]
async fn maintenance_completes_an_interrupted_erasure() {
    let db = TestDb::new().await;
    weeks(&db).await;
    let pool = db.pool().await;
    // One top was frozen by functions that list no players, another one was refreshed by them.
    db.execute("DELETE FROM centile_store.named_players WHERE period_id = 2").await;
    db.execute("UPDATE centile_store.named_players SET user_ids = '{}', cut_off_at = cut_off_at - interval '1 hour' WHERE period_id = 3").await;
    let erased: String = query_scalar("SELECT user_id FROM centile.erase_user($1, p_in_steps => true)")
        .bind(OLD_ID)
        .fetch_one(&pool)
        .await
        .unwrap();
    let step: (Vec<i64>, bool) = query_as("SELECT period_ids, is_done FROM centile_store.erase_from_tops($1, 2)")
        .bind(&erased)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(step, (vec![1, 2], false));
    let counts: (i64, i64) = query_as(RENAMED).fetch_one(&pool).await.unwrap();
    assert_eq!(counts, (2, 5));
    // The instance is killed here.
    run(&db, &["maintain"]).well();
    let counts: (i64, i64) = query_as(RENAMED).fetch_one(&pool).await.unwrap();
    assert_eq!(counts, (5, 5));
    assert_eq!(found(&db, &[OLD_ID, NAME]), Vec::<String>::new());
    let revisions: Vec<i32> =
        query_scalar("SELECT archive_revision FROM centile_store.periods ORDER BY id").fetch_all(&pool).await.unwrap();
    assert_eq!(revisions, [2; 5], "each is changed once");
    // A repetition over the same periods changes nothing.
    let before = db.data_dump();
    let again: Vec<i64> =
        query_scalar("SELECT period_ids FROM centile.erase_user($1)").bind(&erased).fetch_one(&pool).await.unwrap();
    assert_eq!(again, [1, 2, 3, 4, 5]);
    let tops = |dump: &str| dump.lines().filter(|line| line.contains("\\\\x7b")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(tops(&db.data_dump()), tops(&before));
    run(&db, &["verify"]).well();
}

#[tokio::test]
async fn a_failing_erasure_does_not_block_others() {
    let db = TestDb::new().await;
    weeks(&db).await;
    let pool = db.pool().await;
    for user in [OLD_ID, "bob"] {
        let erase = "SELECT centile.erase_user($1, p_in_steps => true)";
        sqlx::query(erase).bind(user).execute(&pool).await.unwrap();
    }
    // The top of the first week names only the player who was erased first. It is unreadable now.
    db.execute(
        "CREATE TABLE public.kept AS SELECT frozen_top FROM centile_store.periods WHERE id = 1;
         UPDATE centile_store.periods SET frozen_top = 'no JSON' WHERE id = 1;
         UPDATE centile_store.named_players SET user_ids = ARRAY[(SELECT min(user_id) FROM centile_store.erasures)] WHERE period_id = 1",
    )
    .await;
    let unfinished = async || -> i64 {
        let count = "SELECT count(*) FROM centile_store.erasures WHERE done_at IS NULL";
        query_scalar(count).fetch_one(&pool).await.unwrap()
    };
    assert_eq!(unfinished().await, 2);
    let ran = run(&db, &["maintain"]);
    assert!(ran.code == Some(1) && ran.err.contains("json"), "{ran:?}");
    assert_eq!(unfinished().await, 1);

    db.execute("UPDATE centile_store.periods p SET frozen_top = k.frozen_top FROM public.kept k WHERE p.id = 1").await;
    run(&db, &["maintain"]).well();
    assert_eq!(unfinished().await, 0);
}

#[tokio::test]
async fn a_new_player_with_the_old_id_keeps_it() {
    let db = TestDb::new().await;
    weeks(&db).await;
    let pool = db.pool().await;
    let score = "SELECT centile.correct_score('main', 'ada-lovelace-1815', 20, '2024-02-05 12:00Z', 'late', 'dora')";
    db.execute(score).await;
    db.execute("SELECT centile.erase_user('ada-lovelace-1815', p_in_steps => true)").await;
    // Both are in the week that closes before the erasure continues.
    db.execute("SELECT centile.put_user('ada-lovelace-1815', 'Another')").await;
    db.execute(score).await;
    db.execute(CLOSE).await;
    run(&db, &["maintain"]).well();
    let named = "SELECT r ->> 'name' FROM centile_store.outbox o, jsonb_array_elements(o.payload -> 'top') r
        WHERE r ->> 'user_id' = 'ada-lovelace-1815'";
    assert_eq!(query_scalar::<_, String>(named).fetch_all(&pool).await.unwrap(), ["Another"]);
    assert_eq!(found(&db, &["Ada King"]), Vec::<String>::new());
}

#[tokio::test]
async fn a_message_without_its_top_loses_the_name_as_well() {
    let db = TestDb::new().await;
    weeks(&db).await;
    // Frozen by functions that list no players, and released since.
    db.execute(
        "DELETE FROM centile_store.named_players WHERE period_id = 2;
         SELECT centile_store.drop_archive(2, false)",
    )
    .await;
    db.execute(&format!("SELECT centile.erase_user('{OLD_ID}')")).await;
    assert_eq!(found(&db, &[OLD_ID, NAME, "Ada King"]), Vec::<String>::new());
}

#[tokio::test]
async fn naming_a_player_during_its_erasure_creates_a_new_one() {
    let db = TestDb::new().await;
    weeks(&db).await;
    let mut erasing = db.hold(&format!("SELECT centile.erase_user('{OLD_ID}')")).await;
    let naming = db.spawn(&format!("SELECT centile.put_user('{OLD_ID}', 'Another')"));
    db.until_waiting(1, || naming.is_finished()).await;
    raw_sql("COMMIT").execute(&mut erasing).await.unwrap();
    naming.await.unwrap().unwrap();
    let name: String = query_scalar("SELECT name FROM centile_store.users WHERE external_id = $1")
        .bind(OLD_ID)
        .fetch_one(&db.pool().await)
        .await
        .unwrap();
    assert_eq!(name, "Another");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_shows_no_list_from_before_an_erasure_during_an_outage() {
    let db = TestDb::new().await;
    let proxy = Proxy::to(db.port()).await;
    let (url, prefix) = (proxy.instead(db.url()), db.redis_prefix());
    let serve = tokio::task::spawn_blocking(move || Serve::spawn(&url, None, &prefix, &[])).await.unwrap();
    let site = Site::of(serve, db.url());
    played(&db, &site).await;
    let lists = [format!("/v1/boards/main/scores?period={WEEK}"), "/v1/boards/main/scores".to_owned()];
    for list in &lists {
        assert!(site.get(list).await.text.contains(NAME), "{list}");
    }
    site.admin(Method::DELETE, &format!("/v1/users/{OLD_ID}"), Value::Null).await.is(200);
    proxy.set(Way::Reset);
    for list in &lists {
        let answer = site.get(list).await;
        assert!(answer.status == 503 && !answer.text.contains(NAME), "{answer:?}");
    }
}

/// A correction brings the player into the top, by a refresh that has not committed.
#[tokio::test]
async fn a_refresh_in_progress_restores_no_erased_name() {
    let db = TestDb::new().await;
    weeks(&db).await;
    db.execute(
        "SELECT centile.put_user('cyd-1', 'Cyd King');
         SELECT centile.correct_score('main', 'cyd-1', 90, '2024-01-02 12:00Z', 'late', 'dora')",
    )
    .await;
    let mut refreshing = db.hold("SELECT centile_store.refresh_archive(1, 'dora', 'late')").await;
    let erasing = db.spawn("SELECT centile.erase_user('cyd-1')");
    db.until_waiting(1, || erasing.is_finished()).await;
    raw_sql("COMMIT").execute(&mut refreshing).await.unwrap();
    erasing.await.unwrap().unwrap();
    let first: String = query_scalar(
        "SELECT convert_from(frozen_top, 'UTF8')::jsonb #>> '{rows,0,user_name}' FROM centile_store.periods WHERE id = 1",
    )
    .fetch_one(&db.pool().await)
    .await
    .unwrap();
    assert_eq!(first, "(erased)");
    assert_eq!(found(&db, &["cyd-1", "Cyd King"]), Vec::<String>::new());
}

/// Updated rows lie behind the others, so that a scan in physical bucket locks the first one last.
#[tokio::test]
async fn a_correction_of_several_weeks_and_an_erasure_lock_in_one_order() {
    let db = TestDb::new().await;
    weeks(&db).await;
    db.execute("UPDATE centile_store.periods SET corrected_at = now() WHERE id = 1").await;
    let mut last = db.hold("SELECT FROM centile_store.periods WHERE id = 5 FOR UPDATE").await;
    let erasing = db.spawn(&format!("SELECT centile.erase_user('{OLD_ID}')"));
    db.until_waiting(1, || erasing.is_finished()).await;
    let correcting = db.spawn("SELECT centile_store.mark_corrected('{2,1}')");
    db.until_waiting(2, || correcting.is_finished()).await;
    raw_sql("COMMIT").execute(&mut last).await.unwrap();
    erasing.await.unwrap().unwrap();
    correcting.await.unwrap().unwrap();
    assert_eq!(found(&db, &[OLD_ID, NAME]), Vec::<String>::new());
}

#[tokio::test]
async fn a_first_webhook_and_an_erasure_lock_in_one_order() {
    let db = TestDb::new().await;
    weeks(&db).await;
    db.execute(
        "UPDATE centile_store.outbox SET attempts = 1, next_attempt_at = now() + interval '1 hour' WHERE id = 1",
    )
    .await;
    let mut last = db.hold("SELECT FROM centile_store.outbox WHERE id = 5 FOR UPDATE").await;
    let setting =
        db.spawn("SELECT centile.set_webhook('main', 'http://127.0.0.1:9/', decode(repeat('5a', 32), 'hex'))");
    db.until_waiting(1, || setting.is_finished()).await;
    let erasing = db.spawn(&format!("SELECT centile.erase_user('{OLD_ID}')"));
    db.until_waiting(2, || erasing.is_finished()).await;
    raw_sql("COMMIT").execute(&mut last).await.unwrap();
    setting.await.unwrap().unwrap();
    erasing.await.unwrap().unwrap();
    assert_eq!(found(&db, &[OLD_ID, NAME]), Vec::<String>::new());
}
