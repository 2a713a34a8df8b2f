//! Instances whose clocks are an hour ahead of and behind the database's clock.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, Utc};

use crate::{
    report::Trial,
    support::{
        Serve, TestDb, audit, boundary,
        load::{Load, key, stop_after},
        redis_url, verdict,
    },
};

/// Duration of the load while boundaries pass.
const CROSSING: Duration = Duration::from_secs(45);
/// The library that changes a process's clock, from Debian's package `libfaketime`.
const LIBRARIES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

/// Starts an instance with another wall clock; its monotonic clock is the machine's.
async fn spawn(db: &TestDb, redis: &str, library: &str, offset: &str) -> Serve {
    let mut command = Serve::command(db.url(), Some(redis), &db.redis_prefix(), &[]);
    command.env("LD_PRELOAD", library).env("FAKETIME", offset).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    tokio::task::spawn_blocking(move || Serve::start(&mut command)).await.expect("a service")
}

/// Returns the seconds by which an instance's clock is ahead, by its `Date` header.
async fn ahead(serve: &Serve) -> i64 {
    let answer = serve.client.get(serve.at("/healthz")).send().await.expect("an answer");
    let date = answer.headers()["date"].to_str().expect("a date");
    let output = DateTime::parse_from_rfc2822(date).expect("a date");
    (output.to_utc() - DateTime::<Utc>::from(SystemTime::now())).num_seconds()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_instance_clocks_change_no_answer() {
    let mut trial =
        Trial::begin("clock", "clocks of the service an hour ahead and behind", "no event in a wrong period");
    let Some(library) = LIBRARIES.into_iter().find(|library| Path::new(library).exists()) else {
        return trial.skip("libfaketime is not installed (apt-get install libfaketime)");
    };
    let db = TestDb::new().await;
    db.execute(boundary::SHORT_DAYS).await;
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 4}')").await;
    let redis = redis_url().await;
    let instances = [
        spawn(&db, &redis, library, "+1h").await,
        spawn(&db, &redis, library, "-1h").await,
        spawn(&db, &redis, library, "+0").await,
    ];
    let mut clocks = Vec::new();
    for instance in &instances {
        clocks.push(ahead(instance).await);
    }
    let is_about = |found: i64, wanted: i64| (found - wanted).abs() < 60;
    let is_set = is_about(clocks[0], 3_600) && is_about(clocks[1], -3_600) && is_about(clocks[2], 0);
    trial.expect(is_set, format!("clocks {clocks:?} s ahead"));

    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let mut load = Load::new(urls, &["arena"], key(db.url(), "admin"));
    load.idle = Duration::ZERO;
    load.periods = vec!["day", "week", "month"];
    load.cursors = false;
    let load = Arc::new(load);
    let pool = db.pool().await;
    let began: DateTime<Utc> = sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(&pool).await.expect("the time");
    let mut record = load.begin().await;
    record.join(load.run(&stop_after(CROSSING)).await);

    // Compares each answer with the ledger: the period that it names, and the ranks in it.
    let verdict = verdict::of(&pool, &load, &record).await;
    let answers: usize = verdict.answers.values().sum();
    trial.expect(verdict.wrong.is_empty(), format!("{} of {answers} answers wrong", verdict.wrong.len()));
    let events =
        boundary::events_lie_in_one_each(&pool, &[("day", 30), ("week", 10), ("month", 5), ("all_time", 1)]).await;
    let wrong_times: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM centile_store.score_transactions WHERE kind = 'score' AND occurred_at NOT BETWEEN $1 AND clock_timestamp()",
    )
    .bind(began)
    .fetch_one(&pool)
    .await
    .expect("the ledger");
    trial.expect(wrong_times == 0, format!("{wrong_times} of {events} events at another time than the database's"));
    audit::rankings_are_sound(&pool).await;
    verdict.expect_right("clocks are off");
    trial.end();
}
