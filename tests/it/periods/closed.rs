//! Closed periods over HTTP: reads give the same before and after the close, whatever happens to
//! players and caches.

pub mod period;
mod race;

use std::time::Duration;

use chrono::{Days, Utc, Weekday};
use deadpool_redis::redis::{aio::MultiplexedConnection, cmd};
use reqwest::{
    Method, StatusCode,
    header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH},
};
use serde_json::{Value, json};
use sqlx::query_scalar;
use tokio::time::sleep;

use self::period::{Past, STEP, reads, seen};
use crate::{
    http::api::site::{Answer, Site},
    support::{
        TestDb, amount,
        boundary::until_no_hour_ends,
        centile, ranking_reads, redis_connection, redis_url, spawn_serve,
        wait::{until, until_some},
    },
};

/// Longer than a top list may lag, so that an instance reads it again.
const LAG: Duration = Duration::from_millis(300);

/// Name, mode, ties and order of boards that cover everything an archive depends on.
const BOARDS: [(&str, &str, &str, &str); 9] = [
    ("shared", "sum", "shared", "desc"),
    ("shared-asc", "best", "shared", "asc"),
    ("first", "sum", "first", "asc"),
    ("first-latest", "latest", "first", "desc"),
    ("tiebreak", "best", "tiebreak", "desc"),
    ("tiebreak-asc", "latest", "tiebreak", "asc"),
    ("second-sum", "sum", "second", "desc"),
    ("second-best", "best", "second", "asc"),
    ("second-latest", "latest", "second", "desc"),
];
const PERIODS: [&str; 2] = ["month:2024-01", "season:winter"];

#[tokio::test]
async fn every_read_is_the_same_after_the_close() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    for (number, (board, mode, ties, order)) in BOARDS.into_iter().enumerate() {
        let past = Past::new(&db, board, json!({"mode": mode, "ties": ties, "order": order}), &site).await;
        past.season("winter", "2024-01-10", "2024-01-20").await;
        let (players, events) = amount((22, 66), (40, 120));
        past.play(1, players, events, "2024-01-15");
        // In the quick run, one kind of period for each board; otherwise both.
        let periods = amount(&PERIODS[number % 2..=number % 2], &PERIODS[..]);
        // Cursors from before the last events. Some of their players have moved since.
        let mut cursors = Vec::new();
        for period in periods {
            cursors.push(past.cursors(&site, period).await);
        }
        past.play(2, 12, 30, "2024-01-17");
        for (&period, cursors) in periods.iter().zip(cursors) {
            let paths = [reads(&site, board, period).await, cursors].concat();
            let mut before = Vec::new();
            for path in &paths {
                before.push(seen(&site.get(path).await.is(200)));
            }
            let walked = past.walk(&site, period).await;
            past.close(period).await;
            past.is_shown_closed(&site, period).await;
            for (path, before) in paths.iter().zip(before) {
                let after = site.get(path).await.is(200);
                assert_eq!(after["period"]["state"], "closed", "{path}");
                assert_eq!(seen(&after), before, "{path}");
            }
            assert_eq!(past.walk(&site, period).await, walked, "{board} {period}");
            past.walk_by_sql(period, &walked).await;
        }
        // Later events belong to other periods.
        past.play(3, 40, 20, "2024-02-01");
    }
}

#[tokio::test]
async fn cursors_outlive_a_correction() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let period = "month:2024-01";
    let mut tried = 0;
    for (board, mode, ties, order) in BOARDS {
        let past = Past::new(&db, board, json!({"mode": mode, "ties": ties, "order": order}), &site).await;
        past.play(1, 40, 120, "2024-01-15");
        past.close(period).await;
        past.is_shown_closed(&site, period).await;
        let rows = past.walk(&site, period).await;
        let users: Vec<&str> = rows.iter().map(|row| row["user_id"].as_str().unwrap()).collect();
        let cursors =
            past.cursors(&site, period).await.into_iter().enumerate().map(|(page, path)| (STEP * (page + 1), path));
        let among_equals = cursors.filter(|(next, _)| rows[next - 1]["score"] == rows[*next]["score"]);
        for (next, path) in among_equals.take(amount(1, usize::MAX)) {
            // Bans and unbans the last player of the page before, whose rank continues on this
            // page.
            for is_gone in [true, false] {
                past.ban(users[next - 1], is_gone).await;
                past.refresh(period).await;
                let rest = site.get(&path).await.is(200);
                let found: Vec<&str> =
                    rest["data"].as_array().unwrap().iter().map(|row| row["user_id"].as_str().unwrap()).collect();
                assert_eq!(found, users[next..(next + STEP).min(users.len())], "{path} {is_gone}");
                assert_eq!(rest["data"][0]["position"], json!(next + usize::from(!is_gone)), "{path} {is_gone}");
            }
            tried += 1;
        }
    }
    assert!(tried >= amount(5, 11), "{tried} cursors lay within a shared rank");
}

/// Deletes the frozen tops from Redis, and returns their values.
async fn forget_closed(redis: &mut MultiplexedConnection, db: &TestDb) -> Vec<Vec<u8>> {
    let pattern = format!("{}:*:closed_top:*", db.redis_prefix());
    let keys: Vec<String> = cmd("KEYS").arg(pattern).query_async(redis).await.unwrap();
    let mut values = Vec::new();
    for key in keys {
        values.push(cmd("GETDEL").arg(key).query_async(redis).await.unwrap());
    }
    values
}

/// Starts a new instance for reads.
async fn fresh(db: &TestDb) -> Site {
    let serve = spawn_serve(db, Some(&redis_url().await), &[]).await;
    Site { serve, server_key: String::new(), admin_key: String::new() }
}

/// Reads from new instances until one has stored the frozen top in Redis. On a busy machine, not
/// every instance manages that within 50 ms. Returns the key.
async fn kept_in_redis(db: &TestDb, redis: &mut MultiplexedConnection, ask: impl AsyncFn(&Site)) -> String {
    let pattern = format!("{}:*:closed_top:*", db.redis_prefix());
    until_some("the closed top in Redis", async || {
        ask(&fresh(db).await).await;
        let keys: Vec<String> = cmd("KEYS").arg(&pattern).query_async(redis).await.unwrap();
        assert!(keys.len() < 2, "{keys:?}");
        keys.into_iter().next()
    })
    .await
}

async fn redis() -> MultiplexedConnection {
    redis_connection(&redis_url().await).await
}

fn etag(answer: &Answer) -> String {
    answer.headers[ETAG].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_frozen_top_keeps_its_bytes() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let past = Past::new(&db, "main", json!({}), &site).await;
    db.execute("UPDATE centile_store.boards SET frozen_top_size = 5").await;
    past.play(1, 20, 60, "2024-01-15");
    past.close("month:2024-01").await;
    let top = "/v1/boards/main/scores?period=month:2024-01&limit=5";
    let frozen = site.get(top).await;
    assert_eq!(frozen.body["data"].as_array().map(Vec::len), Some(5), "{frozen:?}");
    let (first, second) = (frozen.body["data"][0].clone(), frozen.body["data"][1].clone());
    let page = "/v1/boards/main/scores?period=month:2024-01&limit=6";
    assert_eq!(site.get(page).await.is(200)["data"][0], first);

    let rename = format!("/v1/users/{}", first["user_id"].as_str().unwrap());
    site.admin(Method::PUT, &rename, json!({"name": "Somebody else"})).await.is(200);
    let ban = format!("/v1/users/{}/ban", second["user_id"].as_str().unwrap());
    site.admin(Method::POST, &ban, json!({"reason": "cheating"})).await;
    let renamed = async || site.get(page).await.is(200)["data"][0]["name"] == "Somebody else";
    until("a list longer than the frozen top shows current names", renamed).await;
    let same = async |site: &Site, what: &str| {
        let answer = site.get(top).await;
        assert_eq!((&answer.text, etag(&answer)), (&frozen.text, etag(&frozen)), "{what}");
    };
    same(&site, "renamed and banned").await;
    let named = site.get(page).await.is(200);
    assert_eq!(named["data"][1], second, "a ban must not change a closed period");

    // From Redis, and from PostgreSQL once Redis has lost the value or holds garbage.
    let mut redis = redis().await;
    kept_in_redis(&db, &mut redis, async |site| same(site, "another instance").await).await;
    let kept = forget_closed(&mut redis, &db).await;
    let stored: Vec<u8> = query_scalar("SELECT frozen_top FROM centile_store.periods WHERE frozen_top IS NOT NULL")
        .fetch_one(&past.pool)
        .await
        .unwrap();
    let members = [br#""closed_top":"#, &stored[..], b"}"].concat();
    assert!(kept.len() == 1 && kept[0].ends_with(&members), "Redis holds the frozen bytes");
    same(&site, "Redis is empty").await;
    let key = kept_in_redis(&db, &mut redis, async |site| same(site, "Redis and the process are empty").await).await;
    cmd("SET").arg(&key).arg("garbage").exec_async(&mut redis).await.unwrap();
    same(&fresh(&db).await, "garbage in Redis").await;

    assert_eq!(past.refresh("month:2024-01").await, 2);
    until("the tag changes", async || etag(&site.get(top).await) != etag(&frozen)).await;
    let refreshed = site.get(top).await;
    assert_eq!(refreshed.status, 200);
    assert_eq!(refreshed.body["data"][0]["name"], "Somebody else", "a refresh freezes the current names");
    assert_ne!(refreshed.body["data"][1]["user_id"], second["user_id"], "a refresh drops banned players");
    assert_eq!(refreshed.body["players"].as_u64(), frozen.body["players"].as_u64().map(|players| players - 1));
    assert_ne!(refreshed.body["version"], frozen.body["version"]);
}

#[tokio::test]
async fn a_cached_top_reads_neither_archive_nor_frozen_bytes() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let past = Past::new(&db, "main", json!({}), &site).await;
    past.play(1, 20, 60, "2024-01-15");
    past.close("month:2024-01").await;
    let top = "/v1/boards/main/scores?period=month:2024-01&limit=10";
    let frozen = site.get(top).await;
    assert_eq!(frozen.status, 200);
    let mut redis = redis().await;
    let ask = async |site: &Site| assert_eq!(site.get(top).await.text, frozen.text);
    kept_in_redis(&db, &mut redis, ask).await;
    // Reading the stored bytes or the archive now fails.
    db.execute(
        "UPDATE centile_store.periods SET frozen_top = 'no JSON' WHERE state = 'closed';
         DROP MATERIALIZED VIEW centile_archive.main_month_2024_01",
    )
    .await;
    sleep(LAG).await;
    let other = fresh(&db).await;
    // Connecting to Redis and reading from it has a limit of 50 ms, which a busy machine may miss.
    until("the top from Redis", async || {
        let status = other.get(top).await.status;
        assert!([200, 500].contains(&status), "neither the frozen top nor a failed read: {status}");
        status == 200
    })
    .await;
    for _ in 0..2 {
        for (site, what) in [(&site, "known to the process"), (&other, "known to Redis")] {
            for limit in [10, 3, 1000] {
                let answer = site.get(&format!("/v1/boards/main/scores?period=month:2024-01&limit={limit}")).await;
                assert_eq!(answer.status, 200, "{what}: {answer:?}");
                assert!(limit != 10 || answer.text == frozen.text, "{what}");
            }
        }
        sleep(LAG).await;
    }
    forget_closed(&mut redis, &db).await;
    assert_eq!(fresh(&db).await.get(top).await.status, 500, "reading the stored bytes fails");
    assert_eq!(
        site.get("/v1/boards/main/scores?period=month:2024-01&from=2").await.status,
        503,
        "reading the archive fails"
    );
}

#[tokio::test]
async fn closed_periods_have_etags_and_cache_lifetimes() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    until_no_hour_ends(&db.pool().await).await;
    let past = Past::new(&db, "main", json!({}), &site).await;
    db.execute("UPDATE centile_store.boards SET frozen_top_size = 5").await;
    let monday = Utc::now().date_naive().week(Weekday::Mon).first_day() - Days::new(7);
    past.play(1, 20, 60, &monday.to_string());
    site.post("/v1/boards/main/scores", json!({"user_id": "p1", "points": 3})).await.is(200);
    let named = format!("week:{monday}");
    let ask = async |period: &str, rest: &str, known: &str| {
        let path = format!("/v1/boards/main/{rest}period={period}");
        site.send(Method::GET, &path, &[(IF_NONE_MATCH.as_str(), known)], String::new()).await
    };
    let rests = ranking_reads("p1");
    for rest in &rests {
        for period in [&*named, "week:previous", "week", "all_time"] {
            let open = ask(period, rest, "\"x\"").await;
            assert_eq!(
                (open.status, &open.headers[CACHE_CONTROL]),
                (200, &"no-cache".parse().unwrap()),
                "{period} {rest}"
            );
            let is_top = ["scores?", "scores?limit=5&"].contains(&rest.as_str());
            assert_eq!(open.headers.contains_key(ETAG), is_top, "{period} {rest}");
        }
    }
    past.close(&named).await;
    for period in [&*named, "week:previous"] {
        past.is_shown_closed(&site, period).await;
    }
    let mut tags = Vec::new();
    for rest in &rests {
        for (period, lifetime) in [(&*named, "max-age=60, must-revalidate"), ("week:previous", "no-cache")] {
            let whole = ask(period, rest, "\"x\"").await;
            assert_eq!((whole.status, &*whole.body["period"]["state"].to_string()), (200, "\"closed\""), "{whole:?}");
            let same = ask(period, rest, &etag(&whole)).await;
            assert_eq!((same.status, same.text.as_str(), etag(&same)), (304, "", etag(&whole)), "{period} {rest}");
            assert!([&whole, &same].iter().all(|answer| answer.headers[CACHE_CONTROL] == lifetime), "{period} {rest}");
            tags.push((period, rest, etag(&whole)));
        }
    }
    // A rename changes every tag except that of the frozen top.
    site.admin(Method::PUT, "/v1/users/p1", json!({"name": "Petra"})).await.is(200);
    for (period, rest, tag) in &tags {
        if *rest == "scores?" {
            until("the tag changes", async || ask(period, rest, tag).await.status == 200).await;
        }
        assert_eq!(ask(period, rest, tag).await.status == 304, *rest == "scores?limit=5&", "{period} {rest}");
    }
    assert_eq!(ask(&named, "scores?limit=5&", "*").await.status, 304);
    let body = json!({"user_ids": ["p1"], "period": named}).to_string();
    let asked =
        site.send(Method::POST, "/v1/boards/main/scores/query", &[("content-type", "application/json")], body).await;
    assert_eq!(
        (asked.status, &asked.headers[CACHE_CONTROL], asked.headers.contains_key(ETAG)),
        (200, &"no-cache".parse().unwrap(), false)
    );
    let head =
        site.send(Method::HEAD, &format!("/v1/boards/main/distribution?period={named}"), &[], String::new()).await;
    assert_eq!((StatusCode::from_u16(head.status).unwrap(), head.headers.contains_key(ETAG)), (StatusCode::OK, true));
    site.get(&format!("/v1/boards/main/scores/nobody?period={named}")).await.is(404);
}

#[tokio::test]
async fn a_released_archive_is_not_found() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let past = Past::new(&db, "main", json!({}), &site).await;
    past.play(1, 20, 60, "2024-01-15");
    let paths = reads(&site, "main", "month:2024-01").await;
    let paths_of_tops = &paths[1..3];
    past.close("month:2024-01").await;
    for path in &paths {
        site.get(path).await.is(200);
    }
    for last in [false, true] {
        db.execute(&format!(
            "SELECT centile_store.drop_archive(id, {last}) FROM centile_store.periods WHERE state = 'closed'"
        ))
        .await;
        for path in &paths {
            if paths_of_tops.contains(path) {
                until("the top is gone", async || site.get(path).await.status == 404).await;
            }
            let gone = site.get(path).await.is(404);
            let detail = gone["detail"].as_str().unwrap();
            assert!(detail.contains("month:2024-01") && detail.contains("archive is no longer kept"), "{path}: {gone}");
        }
    }
    let error =
        sqlx::query("SELECT * FROM centile.page('main', 'month:2024-01')").fetch_all(&past.pool).await.unwrap_err();
    assert_eq!(
        error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref(),
        Some("CB404"),
        "{error}"
    );
    assert_eq!(site.get("/v1/boards/main/scores?period=all_time").await.is(200)["players"], 20);
}

#[tokio::test]
async fn seasons_are_selected_by_name() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let past = Past::new(&db, "main", json!({"periods": ["all_time"]}), &site).await;
    past.season("winter-2024", "2024-01-10", "2024-01-20").await;
    past.season("0", "2030-01-10", "2030-01-20").await;
    past.play(1, 20, 60, "2024-01-15");
    let winter = site.get("/v1/boards/main/scores?period=season:winter-2024").await.is(200);
    assert_eq!(
        (&winter["period"]["kind"], &winter["period"]["label"], &winter["period"]["state"]),
        (&json!("season"), &json!("winter-2024"), &json!("due"))
    );
    assert_eq!(winter["period"]["name"], "season:winter-2024");
    let later = site.get("/v1/boards/main/scores?period=season:0").await.is(200);
    assert_eq!((&later["players"], &later["period"]["state"]), (&json!(0), &json!("upcoming")));
    let listed = site.get("/v1/boards/main/periods").await.is(200);
    let names: Vec<&str> =
        listed["data"].as_array().unwrap().iter().map(|period| period["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["season:0", "season:winter-2024", "all_time"]);
    past.close("season:winter-2024").await;
    past.is_shown_closed(&site, "season:winter-2024").await;
    assert_eq!(seen(&site.get("/v1/boards/main/scores?period=season:winter-2024").await.is(200)), seen(&winter));

    let unknown = site.get("/v1/boards/main/scores?period=season:summer").await.is(404);
    assert!(unknown["detail"].as_str().unwrap().contains("lists its periods"), "{unknown}");
    let long = format!("season:{}", "x".repeat(41));
    for bad in [
        "season",
        "season:previous",
        "season:",
        "season:-a",
        "season:_a",
        "season:Winter",
        "season:a%20b",
        "season:%C3%A9",
        &long,
    ] {
        let refused = site.get(&format!("/v1/boards/main/scores?period={bad}")).await.is(422);
        assert_eq!(refused["field"], "period", "{bad}: {refused}");
        assert!(refused["detail"].as_str().unwrap().contains("season"), "{bad}: {refused}");
    }
    let board = json!({"slug": "other", "mode": "sum", "periods": ["all_time", "season"]});
    assert_eq!(site.admin(Method::POST, "/v1/boards", board).await.is(422)["field"], "periods");
    let made = centile()
        .args(["board", "create", "other", "--periods", "season"])
        .env("DATABASE_URL", db.url())
        .output()
        .unwrap();
    assert_eq!(made.status.code(), Some(2), "{made:?}");
    site.get("/v1/boards/other").await.is(404);
}

#[tokio::test]
async fn states_of_another_boards_periods_are_empty() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let past = Past::new(&db, "main", json!({}), &site).await;
    past.play(1, 5, 20, "2024-01-15");
    past.close("month:2024-01").await;
    let proved: Vec<Value> = query_scalar(
        "SELECT jsonb_build_array(p.state,
             (SELECT count(*) FROM centile_store.ranking_state(b, p.id, p.ranking_id, NULL, NULL)),
             (SELECT count(*) FROM centile_store.archive_state(b, p.id, p.archive_revision, NULL, NULL)),
             (SELECT count(*) FROM centile_store.archive_state(b, p.id, p.archive_revision + 1, NULL, NULL)))
         FROM centile_store.periods p CROSS JOIN LATERAL unnest(ARRAY[p.board_id, p.board_id + 1]) AS b
         WHERE p.kind IN ('all_time', 'month') ORDER BY p.kind, b",
    )
    .fetch_all(&past.pool)
    .await
    .unwrap();
    assert_eq!(json!(proved), json!([["open", 1, 0, 0], ["open", 0, 0, 0], ["closed", 0, 1, 0], ["closed", 0, 0, 0]]));
}
