//! Keys and values in Redis: their names, their identity, and what removes them.

use std::{collections::BTreeMap, time::Duration};

use centile::{
    cache::{Cache, CacheKind},
    tested::Background,
};
use deadpool_redis::redis::{aio::MultiplexedConnection, cmd};
use serde_json::{Value, json};

use crate::{
    http::api::site::Site,
    periods::closed::period::Past,
    support::{
        Ran, Serve, TestDb, centile, redis_connection, redis_url, spawn_serve,
        wait::{until, until_some},
    },
};

/// Flags of instances that read everything by SQL.
const SQL_ONLY: [&str; 3] = ["--index-memory", "0", "--no-maintenance"];

/// Starts an instance without indexes that is connected to Redis.
async fn fresh(db: &TestDb) -> Serve {
    let serve = spawn_serve(db, Some(&redis_url().await), &SQL_ONLY).await;
    until("Redis is connected", async || get(&serve, "/readyz").await["cache"] == "reachable").await;
    serve
}

async fn get(serve: &Serve, path: &str) -> Value {
    let answer = serve.client.get(serve.at(path)).send().await.unwrap();
    let text = answer.text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"))
}

/// Returns the number of reads of counts in Redis with this result.
async fn reads(serve: &Serve, result: &str) -> u32 {
    let text = serve.client.get(serve.at("/metrics")).send().await.unwrap().text().await.unwrap();
    let name = format!("centile_shared_cache_reads_total{{kind=\"counts\",result=\"{result}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().unwrap())
}

/// Returns the counts of the only ranking of all time, as instances store them.
pub async fn counts_of_all_time(db: &TestDb) -> Value {
    sqlx::query_scalar(
        "SELECT jsonb_build_object('ranking', g.id, 'epoch', centile.epoch(), 'layout', g.layout,
                    'revisions', centile_store.count_revisions(g.id, g.lanes), 'counts', centile_store.bucket_totals(g.id))
         FROM centile_store.periods p JOIN centile_store.rankings g ON g.id = p.ranking_id WHERE p.kind = 'all_time'",
    )
    .fetch_one(&db.pool().await)
    .await
    .unwrap()
}

/// Returns the keys of a test with their lifetimes and values.
async fn stored(redis: &mut MultiplexedConnection, db: &TestDb) -> BTreeMap<String, (i64, Value)> {
    let prefix = format!("{}:", db.redis_prefix());
    let keys: Vec<String> = cmd("KEYS").arg(format!("{prefix}*")).query_async(redis).await.unwrap();
    let mut found = BTreeMap::new();
    for key in keys {
        let seconds: i64 = cmd("TTL").arg(&key).query_async(redis).await.unwrap();
        let value: Vec<u8> = cmd("GET").arg(&key).query_async(redis).await.unwrap();
        found.insert(key.replace(&prefix, ""), (seconds, serde_json::from_slice(&value).unwrap()));
    }
    found
}

#[tokio::test]
async fn keys_name_board_and_period_and_values_are_json() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &SQL_ONLY).await;
    let past = Past::new(&db, "arena", json!({"segments": ["country"]}), &site).await;
    let profile = json!({"attributes": {"country": "DE"}});
    site.admin(reqwest::Method::PUT, "/v1/users/p1", profile).await.is(201);
    past.play(1, 20, 60, "2024-01-15");
    past.close("month:2024-01").await;
    let wanted = [
        "arena:closed_top:month:2024-01",
        "arena:counts:all_time",
        "arena:counts:all_time@country:DE",
        "arena:top:2:all_time",
    ];
    let mut redis = redis_connection(&redis_url().await).await;
    // An instance on a busy machine may miss the 50 ms to store a value.
    let (found, [rank, in_country, top, closed]) = until_some("all values in Redis", async || {
        let serve = fresh(&db).await;
        let board = "/v1/boards/arena/scores";
        let paths = ["/p1", "/p1?segment=country:DE", "?limit=2", "?period=month:2024-01&limit=3"];
        let mut answers = Vec::new();
        for path in paths {
            answers.push(get(&serve, &format!("{board}{path}")).await);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let found = stored(&mut redis, &db).await;
        let answers: [Value; 4] = answers.try_into().unwrap();
        found.keys().eq(&wanted).then_some((found, answers))
    })
    .await;
    let counts = |key: &str| -> i64 {
        let counts: Vec<i64> = serde_json::from_value(found[key].1["counts"].clone()).unwrap();
        assert_eq!(counts.len(), 100, "{key}");
        counts.iter().sum()
    };
    assert_eq!((counts(wanted[1]), counts(wanted[2])), (20, 1));
    assert_eq!((&rank["players"], &in_country["players"]), (&json!(20), &json!(1)));
    assert_eq!(found[wanted[3]].1["page"]["rows"][1]["user_id"], top["data"][1]["user_id"]);
    let closed_top = &found[wanted[0]].1;
    assert_eq!(closed_top["version"], closed["version"]);
    assert_eq!(closed_top["closed_top"]["players"], closed["players"]);
    assert_eq!(closed_top["closed_top"]["rows"][2]["user_id"], closed["data"][2]["user_id"]);
    for (key, (seconds, _)) in &found {
        assert!(if key == wanted[0] { *seconds == -1 } else { (1..=60).contains(seconds) }, "{key}: {seconds} s");
    }
}

/// Right counts with wrong values would change the answer, so the other answers show that values of
/// another state are not used.
#[tokio::test]
async fn ranks_take_counts_of_their_state_from_redis() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &SQL_ONLY).await;
    site.board(json!({"periods": ["all_time"]}), &[("ann", 5), ("bob", 5), ("fay", 7)]).await;
    let path = "/v1/boards/main/scores/bob";
    let right = site.get(path).await.is(200);
    let counts = counts_of_all_time(&db).await;
    let cache = Cache::redis(&redis_url().await, None, db.redis_prefix(), &Background::default()).unwrap();
    cache.connected().await;
    // Reads with these members changed, and one more player in the first bucket.
    let read = async |changed: Value, result: &str| {
        let mut value = counts.clone();
        value.as_object_mut().unwrap().extend(changed.as_object().unwrap().clone());
        value["counts"][0] = json!(value["counts"][0].as_i64().unwrap() + 1);
        until_some("the counts are read", async || {
            cache.put(&CacheKind::Counts.of("main", "all_time"), &value).await;
            let serve = fresh(&db).await;
            let answer = get(&serve, path).await;
            (reads(&serve, result).await == 1).then_some(answer)
        })
        .await
    };
    let used = read(json!({}), "hit").await;
    assert_eq!((&used["players"], &right["players"]), (&json!(4), &json!(3)), "the counts are used");
    for changed in [
        json!({"epoch": "another database"}),
        json!({"layout": 1_000}),
        json!({"revisions": [7, 7, 7, 7]}),
        json!({"revisions": []}),
    ] {
        let answer = read(changed.clone(), "hit").await;
        assert_eq!((&answer["players"], &answer["rank"]), (&right["players"], &right["rank"]), "{changed}");
    }
    let answer = read(json!({"ranking": counts["ranking"].as_i64().unwrap() + 1}), "miss").await;
    assert_eq!((&answer["players"], &answer["rank"]), (&right["players"], &right["rank"]), "another ranking");
}

#[tokio::test]
async fn maintenance_removes_tops_of_erased_players_and_dropped_archives() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board(b, '{\"periods\": [\"week\"]}') FROM unnest('{erased,dropped,unchanged}'::text[]) AS b;
         SELECT centile.ensure_users('{ann,bob,cyd}');
         SELECT centile.ensure_ledger_months('2024-01-01', '2024-02-01');
         SELECT centile.correct_score(b, u, 20, '2024-01-16 12:00Z', 'first', 'dora')
         FROM (VALUES ('erased', 'ann'), ('dropped', 'bob'), ('unchanged', 'cyd')) AS s (b, u)",
    )
    .await;
    db.execute(
        "SELECT centile_store.build_archive(c.id), centile_store.compare_archive(c.id), centile_store.finish_close(c.id, c.at)
         FROM (SELECT id, centile_store.cut_off_period(id) AS at FROM centile_store.periods WHERE state = 'open' ORDER BY id) c",
    )
    .await;
    let (url, prefix) = (redis_url().await, db.redis_prefix());
    let cache = Cache::redis(&url, None, &prefix, &Background::default()).unwrap();
    let mut redis = redis_connection(&url).await;
    let key = |board: &str| CacheKind::ClosedTop.of(board, "week:2024-01-15");
    let keys =
        async |redis: &mut MultiplexedConnection| -> Vec<String> { stored(redis, &db).await.into_keys().collect() };
    until("three tops in Redis", async || {
        for board in ["erased", "dropped", "unchanged"] {
            cache.put(&key(board), &json!({"version": "1"})).await;
        }
        keys(&mut redis).await.len() == 3
    })
    .await;
    let maintain = || {
        let mut command = centile();
        command.arg("maintain").env("DATABASE_URL", db.url()).env("REDIS_URL", &url).env("REDIS_PREFIX", &prefix);
        Ran::of(&mut command).well();
    };
    maintain();
    assert_eq!(keys(&mut redis).await.len(), 3);
    // Without the service, nobody tells Redis.
    db.execute(
        "SELECT centile.erase_user('ann');
         SELECT centile_store.drop_archive(p.id, false)
         FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id WHERE b.slug = 'dropped'",
    )
    .await;
    until("two tops are removed", async || {
        maintain();
        keys(&mut redis).await == [key("unchanged").to_string()]
    })
    .await;
    // Not for ever: readers may put them back.
    db.execute(
        "UPDATE centile_store.erasures SET done_at = done_at - interval '73 hours';
         UPDATE centile_store.periods SET archive_dropped_at = archive_dropped_at - interval '73 hours'",
    )
    .await;
    cache.put(&key("erased"), &json!({"version": "2"})).await;
    cache.put(&key("dropped"), &json!({"version": "2"})).await;
    let before = keys(&mut redis).await;
    maintain();
    assert_eq!(keys(&mut redis).await, before);
}
