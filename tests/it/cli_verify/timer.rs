//! The light form: counts, on the command line and on the service's timer.

use super::*;
use crate::support::{Serve, spawn_serve, wait::until};

/// The value of a metric; none while it was never set.
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
    let told = verify(&db, &["--counts"]).well();
    assert!(told.lines().count() >= 3 && told.lines().all(|line| line.ends_with("ok")), "{told}");
    for (statement, wanted, words) in [
        (
            "UPDATE stripe_counts SET counts[1] = counts[1] + 1 WHERE ranking_id = $r AND bucket = 50 AND lane = 1",
            &["bucket count", "stripe count"][..],
            "bucket 50, stripe 1",
        ),
        (
            "UPDATE bucket_counts SET counts[51] = counts[51] - 2 WHERE ranking_id = $r AND lane = 1",
            &["bucket count"],
            "bucket 50",
        ),
        (
            "DELETE FROM leaderboard_bucket WHERE ranking_id = $r AND bucket = 50 AND user_key % 2 = 0",
            &["stripe count"],
            "bucket 50, stripe 1",
        ),
        (
            "INSERT INTO leaderboard_bucket VALUES (33, $r, 1, 1, -1)",
            &["stripe count"],
            "bucket 33, stripe 0: should be 1, is 0",
        ),
    ] {
        damage(&db, &pool, statement).await;
        let found = verify(&db, &["--counts", "--period", "all_time"]);
        assert_eq!((found.code, kinds(&found)), (Some(1), wanted.iter().copied().collect()), "{statement}: {found:?}");
        assert!(found.out.contains(words), "{statement}: {found:?}");
        run(&db, &["rebuild", "--board", "arena", "--period", "all_time", "--by", "dora"]).well();
        verify(&db, &["--counts"]).well();
        // As it was when it was new: five stripes, of which one is in bucket 50.
        db.execute(
            "UPDATE centile_store.periods SET ranking_id = centile_store.create_ranking(1, id) WHERE kind = 'all_time';
             SELECT centile_store.recompute_entries(0::smallint, ARRAY[ranking_id], ARRAY(SELECT id FROM centile_store.users))
             FROM centile_store.periods WHERE kind = 'all_time'",
        )
        .await;
    }
}

#[tokio::test]
async fn the_timer_finds_wrong_counts_and_tells_once() {
    let db = with_past().await;
    let pool = db.pool().await;
    // Sums that do not agree, and rows that do not: the latter in the first bucket, which is looked at first.
    damage(&db, &pool, "INSERT INTO leaderboard_bucket VALUES (0, $r, 1, 1, -1)").await;
    let serve = spawn_serve(&db, None, &["--maintenance-every", "1"]).await;
    becomes(&serve, "centile_count_differences", 1.0).await;
    damage(&db, &pool, "UPDATE bucket_counts SET counts[51] = counts[51] - 2 WHERE ranking_id = $r AND lane = 1").await;
    becomes(&serve, "centile_count_differences", 2.0).await;
    // The next look, which meets the former one too.
    damage(&db, &pool, "UPDATE bucket_counts SET counts[71] = counts[71] + 1 WHERE ranking_id = $r AND lane = 1").await;
    becomes(&serve, "centile_count_differences", 3.0).await;
    damage(&db, &pool, "UPDATE bucket_counts SET counts[51] = counts[51] + 2, counts[71] = counts[71] - 1 WHERE ranking_id = $r AND lane = 1").await;
    // What was found of another bucket stays known until that is looked at again.
    becomes(&serve, "centile_count_differences", 1.0).await;
    let words = "counts of players are wrong";
    let told = serve.told(words, 3).await;
    assert_eq!(told.matches(words).count(), 3, "{told}");
    assert_eq!(metric(&serve, "centile_count_differences_total").await, Some(3.0));
    // The ranking goes, and with it what was wrong of it.
    run(&db, &["rebuild", "--board", "arena", "--period", "all_time", "--by", "dora"]).well();
    becomes(&serve, "centile_count_differences", 0.0).await;
}
