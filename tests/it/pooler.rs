//! The service behind `PgBouncer` in transaction mode: sessions are few, and lent for one transaction.

use std::{str::FromStr as _, sync::Arc, time::Duration};

use serde_json::json;
use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions, query_scalar, raw_sql};

use crate::{
    http_api::site::Site,
    support::{
        Files, PATIENT, Ran, Serve, TestDb, amount, audit, centile, folder,
        load::{Load, key, stop_after},
        pooler::Pooler,
        redis_url, verdict,
        wait::{until, until_some, within},
    },
};

/// Sessions for a database: far fewer than an instance has connections.
const SESSIONS: u32 = 5;

/// An instance on `db` that reaches it through `pooler`.
pub async fn serve(db: &TestDb, pooler: &Pooler, redis: Option<&str>, flags: &[&str]) -> Serve {
    let (url, redis, prefix) = (pooler.instead(db.url()), redis.map(ToOwned::to_owned), db.redis_prefix());
    let mut all = vec!["--database-direct-url".to_owned(), db.url().to_owned()];
    all.extend(flags.iter().map(|&flag| flag.to_owned()));
    tokio::task::spawn_blocking(move || Serve::spawn(&url, redis.as_deref(), &prefix, &all)).await.unwrap()
}

/// What a command says of these addresses.
fn run(command: &[&str], url: &str, direct: Option<&str>) -> Ran {
    let mut process = centile();
    process.args(command).env("DATABASE_URL", url);
    if let Some(direct) = direct {
        process.env("DATABASE_DIRECT_URL", direct);
    }
    Ran::of(&mut process)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_exact_for_its_version() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', p_periods => '{all_time,week}', p_lanes => 4::smallint,
             p_layout_bounds => '{-10,0,3,10,30,50}');
         SELECT centile.create_board('first', p_mode => 'latest', p_order => 'asc', p_ties => 'first',
             p_periods => '{all_time,week}', p_lanes => 4::smallint)",
    )
    .await;
    let (pooler, redis) = (Pooler::start(folder("pooler"), db.url(), SESSIONS, ""), redis_url().await);
    // Fourteen callers share five sessions: on a busy machine somebody waits for long.
    let instances =
        [serve(&db, &pooler, Some(&redis), &PATIENT).await, serve(&db, &pooler, Some(&redis), &PATIENT).await];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let load = Arc::new(Load::new(urls, &["shared", "first"], key(db.url(), "admin")));
    let pool = db.pool().await;
    let mut record = load.begin().await;
    within("enough of every kind of answer", async {
        loop {
            record.join(load.run(&stop_after(amount(Duration::from_secs(3), Duration::from_secs(10)))).await);
            let verdict = verdict::of(&pool, &load, &record).await;
            verdict.expect_right("two instances behind a pooler");
            assert_eq!(audit::rankings_are_sound(&pool).await, 4);
            let has_all = verdict.answers.len() == 9 && verdict.answers.values().all(|count| *count >= 10);
            if has_all && verdict.versions > amount(50, 100) {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn periods_are_closed_and_commands_run_past_the_pooler() {
    let db = TestDb::new().await;
    let pooler = Pooler::start(folder("pooler"), db.url(), SESSIONS, "");
    let site = Site::of(serve(&db, &pooler, None, &["--maintenance-every", "1"]).await, db.url());
    site.board(json!({"periods": ["week"]}), &[("ann", 5)]).await;
    let files = Files::new();
    let lines = "user_id,points,occurred_at\nann,3,2024-01-15T10:00:00Z\nbob,4,2024-01-16T10:00:00Z\n";
    let file = files.write("scores.csv", lines);
    let command = ["import", file.to_str().unwrap(), "--board", "main"];
    run(&command, &pooler.instead(db.url()), Some(db.url())).well();
    let answer = until_some("the week is closed", async || {
        let answer = site.get("/v1/boards/main/scores?period=week:2024-01-15").await.is(200);
        (answer["period"]["state"] == "closed").then_some(answer)
    })
    .await;
    let rows: Vec<_> = answer["scores"].as_array().unwrap().iter().map(|row| (&row["user_id"], &row["rank"])).collect();
    assert_eq!(rows, [(&json!("bob"), &json!(1)), (&json!("ann"), &json!(2))]);
    for command in [&["verify"][..], &["maintain"], &["migrate"], &["rebuild", "--board", "main", "--period", "week"]] {
        run(command, &pooler.instead(db.url()), Some(db.url())).well();
    }
}

#[tokio::test]
async fn a_pooler_in_the_place_of_the_database_is_refused() {
    let (db, other) = (TestDb::new().await, TestDb::new().await);
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    for settings in [
        "",
        "ignore_startup_parameters = extra_float_digits",
        "ignore_startup_parameters = extra_float_digits, options",
    ] {
        let pooler = Pooler::start(folder("pooler"), db.url(), SESSIONS, settings);
        for command in [&["migrate"][..], &["close", "--due"], &["verify"], &serve] {
            run(command, &pooler.instead(db.url()), None).refused(1, &["DATABASE_DIRECT_URL", "pooler"]);
        }
    }
    let pooler = Pooler::start(folder("pooler"), db.url(), SESSIONS, "");
    run(&serve, &pooler.instead(db.url()), Some(other.url())).refused(1, &["different databases"]);
}

/// A transaction that is given up while it waits for a session would begin once there is one, and keep it for nobody.
#[tokio::test]
async fn a_transaction_that_was_given_up_keeps_no_session() {
    let db = TestDb::new().await;
    let pooler = Pooler::start(folder("pooler"), db.url(), 1, "");
    db.execute(
        "SELECT centile.create_board('main', p_lanes => 1::smallint); SELECT testing.submit_score('main', 'ann', 5)",
    )
    .await;
    let site = Site::of(serve(&db, &pooler, None, &["--pool-wait", "500"]).await, db.url());
    // What is read from here on is in no cache.
    let path = "/v1/boards/main/scores/ann/history";
    let until_answered = async || {
        // On a busy machine a connection takes longer than half a second now and then.
        until("an answer", async || {
            let status = site.get(path).await.status;
            assert!([200, 503].contains(&status), "{status}");
            status == 200
        })
        .await;
    };
    until_answered().await;
    let through = |url: String| async move {
        let options = PgConnectOptions::from_str(&url).unwrap().extra_float_digits(None).statement_cache_capacity(0);
        PgConnection::connect_with(&options).await.unwrap()
    };
    let mut holder = through(pooler.instead(db.url())).await;
    raw_sql("BEGIN").execute(&mut holder).await.unwrap();
    raw_sql("SELECT 1").execute(&mut holder).await.unwrap();
    site.get(path).await.is(503);
    // The service tries for two seconds whether the connection is well.
    raw_sql("COMMIT").execute(&mut holder).await.unwrap();
    let idle = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    let pool = db.pool().await;
    for _ in 0..5 {
        within("a session that is free", raw_sql("SELECT 1").execute(&mut holder)).await.unwrap();
        // The next request uses the session that a transaction of the one before would keep.
        until_answered().await;
        assert_eq!(query_scalar::<_, i64>(idle).fetch_one(&pool).await.unwrap(), 0);
    }
}
