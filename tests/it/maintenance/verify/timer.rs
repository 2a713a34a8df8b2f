//! The quick form of `verify`: counts only, on the command line and on the service's timer.

use std::{
    io,
    sync::{Arc, Mutex},
};

use centile::tested::CountChecks;

use super::*;
use crate::support::{Serve, spawn_serve, wait::until};

/// Log message about a wrong count.
const WRONG: &str = "a count of players is wrong";

/// Returns the value of a metric; `None` until it is first set.
async fn metric(serve: &Serve, name: &str) -> Option<f64> {
    let text = serve.client.get(serve.at("/metrics")).send().await.unwrap().text().await.unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
    line.map(|value| value.parse().unwrap())
}

/// Waits until a metric has a value.
async fn becomes(serve: &Serve, name: &str, wanted: f64) {
    until(&format!("{name} is {wanted}"), async || metric(serve, name).await == Some(wanted)).await;
}

#[tokio::test]
async fn counts_alone_are_compared_quickly() {
    let db = with_past().await;
    let pool = db.pool().await;
    let output = verify(&db, &["--counts"]).well();
    assert!(output.lines().count() >= 3 && output.lines().all(|line| line.ends_with("ok")), "{output}");
    for (statement, words) in [
        (
            "UPDATE bucket_counts SET counts[51] = counts[51] + 1 WHERE ranking_id = $r AND lane = 1",
            "  bucket count: bucket 50: should be ",
        ),
        (
            "UPDATE bucket_counts SET counts[51] = counts[51] - 2 WHERE ranking_id = $r AND lane = 0",
            "  bucket count: bucket 50: should be ",
        ),
        (
            "UPDATE bucket_counts SET counts[100] = 4 WHERE ranking_id = $r AND lane = 1",
            "  bucket count: bucket 99: should be 0, is 4\n",
        ),
        (
            "DELETE FROM leaderboard_bucket WHERE ranking_id = $r AND bucket = 50 AND user_key % 2 = 0",
            "  bucket count: bucket 50: should be ",
        ),
        (
            "INSERT INTO leaderboard_bucket VALUES (33, 0, $r, 1, 1, -1)",
            "  bucket count: bucket 33: should be 1, is 0\n",
        ),
    ] {
        lay_out(&db).await;
        verify(&db, &["--counts"]).well();
        damage(&db, &pool, statement).await;
        let found = verify(&db, &["--counts", "--period", "all_time"]);
        assert_eq!((found.code, kinds(&found)), (Some(1), BTreeSet::from(["bucket count"])), "{statement}: {found:?}");
        assert_eq!(found.out.matches("  bucket count: ").count(), 1, "{statement}: {found:?}");
        assert!(found.out.contains(words), "{statement}: {found:?}");
        run(&db, &["rebuild", "--board", "arena", "--period", "all_time", "--by", "dora"]).well();
        verify(&db, &["--counts"]).well();
    }
}

#[tokio::test]
async fn the_timer_finds_wrong_counts_and_logs_each_once() {
    let db = with_past().await;
    let pool = db.pool().await;
    // The timer checks bucket 0 first and then another one each second.
    damage(&db, &pool, "INSERT INTO leaderboard_bucket VALUES (0, 0, $r, 1, 1, -1)").await;
    let serve = spawn_serve(&db, None, &["--maintenance-every", "1"]).await;
    becomes(&serve, "centile_count_differences", 1.0).await;
    damage(
        &db,
        &pool,
        "UPDATE bucket_counts SET counts[4] = counts[4] - 2, counts[10] = counts[10] + 1 WHERE ranking_id = $r AND lane = 1",
    )
    .await;
    // The earlier difference is still counted.
    becomes(&serve, "centile_count_differences", 3.0).await;
    let output = serve.logged(WRONG, 3).await;
    assert_eq!(output.matches(WRONG).count(), 3, "{output}");
    // Counted a moment after the log.
    becomes(&serve, "centile_count_differences_total", 3.0).await;
    // A replaced ranking takes its differences along.
    run(&db, &["rebuild", "--board", "arena", "--period", "all_time", "--by", "dora"]).well();
    becomes(&serve, "centile_count_differences", 0.0).await;
}

/// Log output of this process.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Checks every bucket once; returns the number of wrong counts after each check.
async fn look_at_all(checks: &CountChecks) -> Vec<usize> {
    let mut wrong = Vec::new();
    for _ in 0..100 {
        wrong.push(checks.run().await.unwrap());
    }
    wrong
}

/// The timer's check, a hundred times as often.
#[tokio::test]
async fn every_bucket_is_checked_in_turn_and_a_difference_is_logged_once() {
    let db = with_past().await;
    let pool = db.pool().await;
    lay_out(&db).await;
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let logged = || String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let checks = CountChecks::new(db.url()).unwrap();
    assert_eq!(look_at_all(&checks).await, [0; 100]);
    damage(&db, &pool, "UPDATE bucket_counts SET counts[51] = counts[51] - 2, counts[71] = counts[71] + 1 WHERE ranking_id = $r AND lane = 1").await;
    damage(&db, &pool, "INSERT INTO leaderboard_bucket VALUES (99, 0, $r, 1, 1, -1)").await;
    let wrong = |from: &[(usize, usize)]| -> Vec<usize> {
        (0..100).map(|bucket| from.iter().rfind(|(first, _)| *first <= bucket).map_or(0, |(_, count)| *count)).collect()
    };
    assert_eq!(look_at_all(&checks).await, wrong(&[(50, 1), (70, 2), (99, 3)]));
    assert_eq!(look_at_all(&checks).await, [3; 100]);
    let output = logged();
    assert_eq!(output.matches(WRONG).count(), 3, "{output}");
    for bucket in [50, 70, 99] {
        assert!(output.contains(&format!(" bucket={bucket} ")), "{output}");
    }
    damage(&db, &pool, "UPDATE bucket_counts SET counts[51] = counts[51] + 2, counts[71] = counts[71] - 1 WHERE ranking_id = $r AND lane = 1").await;
    // A difference stays known until its bucket is checked again.
    assert_eq!(look_at_all(&checks).await, wrong(&[(0, 3), (50, 2), (70, 1)]));
    assert_eq!(logged().matches(WRONG).count(), 3);
    // A returning difference is logged again.
    damage(&db, &pool, "UPDATE bucket_counts SET counts[51] = counts[51] + 1 WHERE ranking_id = $r AND lane = 0").await;
    assert_eq!(look_at_all(&checks).await, wrong(&[(0, 1), (50, 2)]));
    assert_eq!(logged().matches(WRONG).count(), 4);
}
