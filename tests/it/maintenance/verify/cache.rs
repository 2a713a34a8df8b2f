//! `verify` of the bucket counts in Redis.

use centile::{
    cache::{Cache, CacheKey},
    tested::Background,
};

use super::*;
use crate::support::{centile, redis_url};

#[tokio::test]
async fn counts_in_the_cache_are_compared_at_their_version() {
    let db = with_past().await;
    let pool = db.pool().await;
    let (redis, prefix) = (redis_url().await, db.redis_prefix());
    let (ranking, version): (i64, String) = sqlx::query_as(
        "SELECT g.id, concat_ws('.', centile.epoch(), g.layout, left(encode(sha256(convert_to(r.text, 'UTF8')), 'hex'), 16))
         FROM centile.periods p JOIN centile_store.rankings g ON g.id = p.ranking_id
         CROSS JOIN LATERAL (SELECT string_agg(c.revision::text, '-' ORDER BY c.lane) AS text
                             FROM centile_store.bucket_counts c WHERE c.ranking_id = g.id) r
         WHERE p.kind = 'all_time'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    let mut counts: Vec<i64> =
        sqlx::query_scalar("SELECT centile_store.bucket_totals($1)").bind(ranking).fetch_one(&pool).await.unwrap();
    let cache = Cache::redis(&redis, None, &prefix, &Background::default()).unwrap();
    cache.connected().await;
    let ask = || {
        let mut command = centile();
        command.args(["verify", "--board", "arena", "--period", "all_time"]);
        command.env("DATABASE_URL", db.url()).env("REDIS_URL", &redis).env("REDIS_PREFIX", &prefix);
        Ran::of(&mut command)
    };
    let key = |version: &str| CacheKey::Counts { ranking, version: version.to_owned() };
    cache.put(&key(&version), &serde_json::to_vec(&counts).unwrap()).await;
    ask().well();
    counts[50] += 3;
    // Counts of another version are ignored.
    cache.put(&key("other"), &serde_json::to_vec(&counts).unwrap()).await;
    ask().well();
    cache.put(&key(&version), &serde_json::to_vec(&counts).unwrap()).await;
    let found = ask();
    assert_eq!((found.code, kinds(&found)), (Some(1), BTreeSet::from(["cached count"])), "{found:?}");
    let words = format!("place 51 at version {version}: should be {}, is {}", counts[50] - 3, counts[50]);
    assert!(found.out.contains(&words), "{found:?}");
    cache.put(&key(&version), b"garbage").await;
    ask().well();
}
