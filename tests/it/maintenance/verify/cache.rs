//! `verify` of the bucket counts in Redis.

use centile::{
    cache::{Cache, CacheKind},
    tested::Background,
};
use serde_json::{Value, json};

use super::*;
use crate::{
    cache::keys::counts_of_all_time,
    support::{centile, redis_url},
};

#[tokio::test]
async fn counts_in_the_cache_are_compared_at_their_version() {
    let db = with_past().await;
    let (redis, prefix) = (redis_url().await, db.redis_prefix());
    let right = counts_of_all_time(&db).await;
    let cache = Cache::redis(&redis, None, &prefix, &Background::default()).unwrap();
    cache.connected().await;
    let ask = async |members: Value| {
        let mut value = right.clone();
        value.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        cache.put(&CacheKind::Counts.of("arena", "all_time"), &value).await;
        let mut command = centile();
        command.args(["verify", "--board", "arena", "--period", "all_time"]);
        command.env("DATABASE_URL", db.url()).env("REDIS_URL", &redis).env("REDIS_PREFIX", &prefix);
        Ran::of(&mut command)
    };
    ask(json!({})).await.well();
    let mut wrong: Vec<i64> = serde_json::from_value(right["counts"].clone()).unwrap();
    wrong[50] += 3;
    let found = ask(json!({"counts": wrong})).await;
    assert_eq!((found.code, kinds(&found)), (Some(1), BTreeSet::from(["cached count"])), "{found:?}");
    let words = format!("place 51: should be {}, is {}", wrong[50] - 3, wrong[50]);
    assert!(found.out.contains(&words), "{found:?}");
    // Counts of another version or ranking are ignored, and so is what is not counts.
    for members in [
        json!({"epoch": "other"}),
        json!({"layout": -1}),
        json!({"revisions": [1]}),
        json!({"ranking": 0}),
        json!({"counts": [1, 2]}),
        json!({"counts": "garbage"}),
    ] {
        let mut value = json!({"counts": wrong});
        value.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        ask(value).await.well();
    }
}
