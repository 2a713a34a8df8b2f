//! The service behind `PgBouncer`: in session mode all works, transaction mode is refused.

use serde_json::json;
use sqlx::query_scalar;

use crate::{
    http::api::site::Site,
    support::{Files, Ran, Serve, TestDb, audit, centile, folder, pooler::Pooler, wait::until_some},
};

/// Runs a command with the database at `url`.
fn run(command: &[&str], url: &str) -> Ran {
    Ran::of(centile().args(command).env("DATABASE_URL", url))
}

/// Starts an instance on `db` that reaches it at `url`.
async fn serve(db: &TestDb, url: &str, flags: [&str; 2]) -> Serve {
    let (url, prefix, flags) = (url.to_owned(), db.redis_prefix(), flags.map(str::to_owned));
    tokio::task::spawn_blocking(move || Serve::spawn(&url, None, &prefix, &flags)).await.unwrap()
}

#[tokio::test]
async fn in_session_mode_all_works() {
    let db = TestDb::new().await;
    let pooler = Pooler::start(folder("pooler"), db.url(), "session");
    let url = pooler.instead(db.url());
    let site = Site::of(serve(&db, &url, ["--maintenance-every", "1"]).await, db.url());
    site.board(json!({"periods": ["week"]}), &[("ann", 5)]).await;
    let standing = site.get("/v1/boards/main/scores/ann?period=week").await.is(200);
    assert_eq!((&standing["rank"], &standing["score"]), (&json!(1), &json!(5)));
    let files = Files::new();
    let lines = "user_id,points,occurred_at\nann,3,2024-01-15T10:00:00Z\nbob,4,2024-01-16T10:00:00Z\n";
    let file = files.write("scores.csv", lines);
    run(&["import", file.to_str().unwrap(), "--board", "main"], &url).well();
    let answer = until_some("the week is closed", async || {
        let answer = site.get("/v1/boards/main/scores?period=week:2024-01-15").await.is(200);
        (answer["period"]["state"] == "closed").then_some(answer)
    })
    .await;
    let rows: Vec<_> = answer["data"].as_array().unwrap().iter().map(|row| (&row["user_id"], &row["rank"])).collect();
    assert_eq!(rows, [(&json!("bob"), &json!(1)), (&json!("ann"), &json!(2))]);
    for command in [&["verify"][..], &["maintain"], &["migrate"], &["rebuild", "--board", "main", "--period", "week"]] {
        run(command, &url).well();
    }
    let pool = db.pool().await;
    assert!(audit::rankings_are_sound(&pool).await > 0);
}

/// Without the session's setting, an instance would abandon the statement two seconds after the
/// timeout, and the statement would keep waiting on the server.
#[tokio::test]
async fn session_settings_reach_the_server() {
    let db = TestDb::new().await;
    let pooler = Pooler::start(folder("pooler"), db.url(), "session");
    let site = Site::of(serve(&db, &pooler.instead(db.url()), ["--statement-timeout", "3"]).await, db.url());
    site.get("/v1/boards").await.is(200);
    let _held = db.hold("LOCK TABLE centile_store.boards").await;
    site.get("/v1/boards").await.is(503);
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    assert_eq!(query_scalar::<_, i64>(waiting).fetch_one(&db.pool().await).await.unwrap(), 0);
}

#[tokio::test]
async fn transaction_mode_is_refused() {
    let db = TestDb::new().await;
    let pooler = Pooler::start(folder("pooler"), db.url(), "transaction");
    for command in [&["migrate"][..], &["close", "--due"], &["verify"], &["serve", "--listen", "127.0.0.1:0"]] {
        run(command, &pooler.instead(db.url())).refused(1, &["pool_mode = session"]);
    }
}
