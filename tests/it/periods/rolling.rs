//! Rolling windows, compared with the ledger.

use std::{collections::BTreeSet, fmt::Write as _, sync::Arc};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{PgPool, query_as, query_scalar};
use tokio_util::sync::CancellationToken;

use crate::{
    http::api::{column, pairs, site::Site},
    support::{
        Files, Serve, TestDb, amount, audit,
        boundary::{SHORT_WINDOWS, until_no_hour_ends, until_over},
        import,
        load::{Load, key},
        redis_url, run, spawn_serve, verdict,
        wait::until,
    },
};

/// Lets windows of a few seconds be filled in time.
const PROMPT: &[&str] = &["--maintenance-every", "1", "--pool-wait", "60000", "--statement-timeout", "60"];

const SCORES: &str = "/v1/boards/arena/scores";

/// Position, player, score and time.
type Row = (i64, String, i64, DateTime<Utc>);

/// Returns the ranking of the events between two times. `score` and `reached_at` are aggregates over
/// events `t`.
async fn ranked(
    pool: &PgPool,
    board: &str,
    (starts_at, ends_at): (&str, &str),
    score: &str,
    reached_at: &str,
) -> Vec<Row> {
    let statement = format!(
        "SELECT row_number() OVER (ORDER BY x.score DESC, x.reached_at, x.id), x.external_id, x.score, x.reached_at
         FROM (SELECT u.id, u.external_id, {score} AS score, {reached_at} AS reached_at
               FROM centile_store.score_transactions t JOIN centile_store.users u ON u.id = t.user_id
               JOIN centile_store.boards b ON b.id = t.board_id
               WHERE b.slug = $3 AND t.kind = 'score' AND t.occurred_at >= $1::text::timestamptz AND t.occurred_at < $2::text::timestamptz
               GROUP BY u.id, u.external_id) x
         ORDER BY 1"
    );
    query_as(sqlx::AssertSqlSafe(statement)).bind(starts_at).bind(ends_at).bind(board).fetch_all(pool).await.unwrap()
}

async fn page(site: &Site, board: &str, period: &str) -> (Value, Vec<Row>) {
    let page = site.get(&format!("/v1/boards/{board}/scores?period={period}&limit=1000")).await.is(200);
    let row = |row: &Value| {
        (
            row["position"].as_i64().unwrap(),
            row["user_id"].as_str().unwrap().to_owned(),
            row["score"].as_i64().unwrap(),
            row["reached_at"].as_str().unwrap().parse().unwrap(),
        )
    };
    let rows = page["data"].as_array().unwrap().iter().map(row).collect();
    (page["period"].clone(), rows)
}

/// A year of events up to now, several a day, with the last ones minutes ago.
async fn events(pool: &PgPool) -> String {
    let lines: Vec<String> = query_scalar(
        "SELECT format('p%s,%s,%s', n * 7 % 40, n * 31 % 200 - 20,
                    to_char((now() - n * interval '7 hours 11 minutes' - interval '1 minute') AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'))
         FROM generate_series(0, 1300) n",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    format!("user_id,points,occurred_at\n{}\n", lines.join("\n"))
}

#[tokio::test]
async fn a_window_ranks_the_events_of_its_days() {
    let (db, files) = (TestDb::new().await, Files::new());
    let pool = db.pool().await;
    until_no_hour_ends(&pool).await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let file = files.write("events.csv", events(&pool).await);
    let modes = [
        ("sum", "sum(t.points)::bigint", "max(t.occurred_at) FILTER (WHERE t.points <> 0)"),
        ("best", "max(t.points)", "(array_agg(t.occurred_at ORDER BY t.points DESC, t.occurred_at))[1]"),
        (
            "latest",
            "(array_agg(t.points ORDER BY t.occurred_at DESC, t.id DESC))[1]",
            "(array_agg(t.occurred_at ORDER BY t.occurred_at DESC, t.id DESC))[1]",
        ),
    ];
    for (mode, ..) in modes {
        let buckets = if mode == "best" { "all" } else { "all_time" };
        let rules = ["--mode", mode, "--ties", "first", "--periods", "all_time", "--buckets", buckets];
        let rules = [&rules[..], &["--time-zone", "America/St_Johns"]].concat();
        run(&db, &[&["board", "create", mode][..], &rules[..]].concat()).well();
        import(&db, &file, mode, &[]).well(1301, 0);
        run(&db, &["board", "change", mode, "--rolling", "2d,30d,366d,24h"]).well();
        // Asked for, and not filled yet.
        let refused = site.get(&format!("/v1/boards/{mode}/scores?period=rolling:30d")).await;
        assert!(refused.headers.contains_key("retry-after"));
        assert_eq!(refused.is(503)["code"], "period_preparing");
    }
    let prepared = run(&db, &["close", "--due"]).well();
    assert!(prepared.lines().filter(|line| line.starts_with("prepared")).count() >= 12, "{prepared}");
    for (mode, score, reached_at) in modes {
        let mut sizes = BTreeSet::new();
        for (length, steps) in [("2d", "1 day"), ("30d", "29 days"), ("366d", "365 days"), ("24h", "")] {
            // The boundaries by PostgreSQL's calendar; the test of calendars has the odd ones.
            let bounds: (String, String) = query_as(if steps.is_empty() {
                "SELECT (h - interval '23 hours')::text, (h + interval '1 hour')::text
                 FROM (SELECT date_trunc('hour', now() AT TIME ZONE 'America/St_Johns') AT TIME ZONE 'America/St_Johns' AS h) x
                 WHERE $1 = ''"
            } else {
                "SELECT ((d - $1::interval) AT TIME ZONE 'America/St_Johns')::text, ((d + interval '1 day') AT TIME ZONE 'America/St_Johns')::text
                 FROM (SELECT date_trunc('day', now() AT TIME ZONE 'America/St_Johns') AS d) x"
            })
            .bind(steps)
            .fetch_one(&pool)
            .await
            .unwrap();
            let (period, rows) = page(&site, mode, &format!("rolling:{length}")).await;
            let wanted = ranked(&pool, mode, (&bounds.0, &bounds.1), score, reached_at).await;
            assert_eq!(rows, wanted, "{mode} {period}");
            assert_eq!(period["state"], "open");
            sizes.insert(rows.iter().map(|row| row.2).sum::<i64>());
            // By its name as well.
            assert_eq!(page(&site, mode, period["name"].as_str().unwrap()).await.1, rows);
        }
        // A player's last score is within 12 days, and early in a day it may be in both short windows.
        let different = if mode == "latest" { 2 } else { 3 };
        assert!(sizes.len() >= different, "the windows of {mode} are alike: {sizes:?}");
    }
    // A score, a correction, a void, a reset and a ban change the windows that hold them.
    let submitted = site.post("/v1/boards/sum/scores", json!({"user_id": "p1", "points": 500})).await.is(200);
    let windows = submitted["periods"].as_object().unwrap().keys().filter(|name| name.starts_with("rolling:")).count();
    assert!(windows >= 4, "{submitted}");
    let correction = "correct p2 77 --board sum --reason late --by dora --at";
    let at: String = query_scalar("SELECT to_char(now() - interval '20 days', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")
        .fetch_one(&pool)
        .await
        .unwrap();
    let mut words: Vec<&str> = correction.split(' ').collect();
    words.push(&at);
    run(&db, &words).well();
    let voided: i64 = query_scalar("SELECT max(t.id) FROM centile_store.score_transactions t JOIN centile_store.boards b ON b.id = t.board_id WHERE b.slug = 'sum' AND t.occurred_at < now() - interval '1 day' AND t.kind = 'score' AND t.points > 0")
        .fetch_one(&pool)
        .await
        .unwrap();
    run(&db, &["score", "void", &voided.to_string(), "--board", "sum", "--by", "dora"]).well();
    run(&db, &["score", "reset", "p3", "--board", "sum", "--by", "dora"]).well();
    run(&db, &["user", "ban", "p4", "--by", "dora"]).well();
    run(&db, &["verify"]).well();
    let list = page(&site, "sum", "rolling:30d").await.1;
    assert!(!list.iter().any(|row| row.1 == "p4" || row.1 == "p3"), "{list:?}");
}

/// Waits until every board has this many windows of each length that are over.
async fn until_windows_are_over(pool: &PgPool, boards: usize, count: i64) {
    until_over(pool, &[("rolling", count * 2 * i64::try_from(boards).unwrap())]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a load of half a minute: make torture"]
async fn windows_follow_each_other_under_load() {
    let db = TestDb::new().await;
    db.execute(SHORT_WINDOWS).await;
    let boards = ["sum", "best", "latest"];
    for mode in boards {
        run(
            &db,
            &["board", "create", mode, "--mode", mode, "--periods", "all_time", "--lanes", "2", "--rolling", "2d,24h"],
        )
        .well();
    }
    let redis = redis_url().await;
    let instances: [Serve; 2] =
        [spawn_serve(&db, Some(&redis), PROMPT).await, spawn_serve(&db, Some(&redis), PROMPT).await];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let mut load = Load::new(urls, &boards, key(db.url(), "admin"));
    load.periods = vec!["rolling:2d", "rolling:24h"];
    load.cursors = false;
    // On a busy machine, a window of seconds may not be ready in time: 503.
    load.may_fail = true;
    let load = Arc::new(load);
    let pool = db.pool().await;
    until("all windows and the next ones are filled", async || {
        query_scalar::<_, bool>("SELECT NOT EXISTS (SELECT FROM centile_store.wanted_windows())")
            .fetch_one(&pool)
            .await
            .unwrap()
    })
    .await;
    let mut record = load.begin().await;
    let stop = CancellationToken::new();
    let crossing = async {
        // One by one: the wait for all would exceed the deadline.
        for count in 1..=amount(4, 50) {
            until_windows_are_over(&pool, boards.len(), count).await;
        }
        stop.cancel();
    };
    let (more, ()) = tokio::join!(load.run(&stop), crossing);
    record.join(more);
    verdict::of(&pool, &load, &record).await.expect_right("windows");

    // No event is missing from a window, whether it was there before the window or after.
    audit::rankings_are_sound(&pool).await;
    run(&db, &["verify"]).well();
    let names: BTreeSet<String> = record
        .answers
        .iter()
        .filter_map(|answer| serde_json::from_str::<Value>(answer.body.as_deref()?).ok())
        .map(|body| body["period"]["name"].as_str().unwrap().to_owned())
        .collect();
    for length in ["rolling:2d", "rolling:24h"] {
        let seen = names.iter().filter(|name| name.starts_with(length)).count();
        assert!(seen > amount(1, 20), "only {names:?}");
    }
    // Those that have been over for five minutes are gone, with their rows.
    db.execute(
        "UPDATE centile_store.periods SET starts_at = starts_at - interval '10 minutes', ends_at = ends_at - interval '10 minutes'
         WHERE kind = 'rolling' AND ends_at < now()",
    )
    .await;
    run(&db, &["close", "--due"]).well();
    let left: i64 = query_scalar(
        "SELECT count(*) FROM centile_store.periods
         WHERE kind = 'rolling' AND ends_at < now() - interval '9 minutes' AND (state <> 'closed' OR archive_name IS NOT NULL)",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(left, 0);
    // They never had an archive, so none is missing.
    let without =
        "SELECT count(*) FROM centile.periods WHERE kind = 'rolling' AND state = 'closed' AND archive IS NULL";
    assert!(query_scalar::<_, i64>(without).fetch_one(&pool).await.unwrap() > 0);
    let wrong = "SELECT count(*) FROM centile.periods WHERE agrees IS FALSE";
    assert_eq!(query_scalar::<_, i64>(wrong).fetch_one(&pool).await.unwrap(), 0);
}

/// The sum of a week may leave 64 bits although the sum of all time does not.
#[tokio::test]
async fn a_sum_beyond_64_bits_stops_at_the_limit_and_no_window_waits_for_it() {
    const MOST: i64 = i64::MAX;
    let (db, files) = (TestDb::new().await, Files::new());
    let pool = db.pool().await;
    until_no_hour_ends(&pool).await;
    let bounds = json!({"periods": ["all_time"], "points_min": -MOST, "points_max": MOST});
    let site = Site::start(&db, &["--maintenance-every", "1"]).await;
    site.board(bounds, &[]).await;
    let mut content = String::from("id,user_id,points,occurred_at\n");
    for (user, events) in [
        ("ann", vec![(30, -MOST), (3, MOST), (2, 9)]),
        ("bob", vec![(30, MOST), (3, -MOST), (2, -1)]),
        ("cyd", vec![(3, MOST - 7)]),
        ("dan", vec![(3, -MOST)]),
    ] {
        for (days, points) in events {
            let at = (Utc::now() - TimeDelta::days(days)).to_rfc3339_opts(SecondsFormat::Secs, true);
            writeln!(content, "{user}{days},{user},{points},{at}").unwrap();
        }
    }
    import(&db, &files.write("sums.csv", content), "main", &[]).well(8, 0);
    site.admin(Method::PATCH, "/v1/boards/main", json!({"rolling": ["7d"]})).await.is(200);
    let window = "/v1/boards/main/scores?period=rolling:7d";
    until("the window is filled", async || site.get(window).await.status == 200).await;
    let list = async |path: &str| column(&site.get(path).await.is(200)["data"], "score");
    assert_eq!(list(window).await, pairs([("ann", MOST), ("cyd", MOST - 7), ("dan", -MOST), ("bob", -MOST)]));
    let all = pairs([("cyd", MOST - 7), ("ann", 9), ("bob", -1), ("dan", -MOST)]);
    assert_eq!(list("/v1/boards/main/scores").await, all);
    // Late in a day, the next window counts them too.
    let counts_none = async || site.get("/metrics").await.text.contains("\ncentile_sums_limited_total 0\n");
    until("the alert's metric counts them", async || !counts_none().await).await;
    assert!(site.serve.output().contains("sums lie beyond 64 bits"), "the log names the window");
    run(&db, &["verify"]).well();

    // The stored limit does not say how far beyond it the sum is, so these players' events are refused.
    let score = async |user: &str, points: i64| {
        site.post("/v1/boards/main/scores", json!({"user_id": user, "points": points})).await
    };
    for (user, points) in [("ann", 1), ("ann", -1), ("bob", 1), ("bob", 0)] {
        assert_eq!(score(user, points).await.is(422)["code"], "score_out_of_range", "{user} {points}");
    }
    // Before the score, so that the correction is the earlier event.
    let at = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    score("cyd", 7).await.is(200);
    // Acts compute the sum from the ledger, and may bring it closer to the range.
    let correct = ["correct", "ann", "-8", "--board", "main", "--reason", "x", "--by", "dora", "--at", &at];
    run(&db, &correct).well();
    assert_eq!(list(window).await[0], ("ann".to_owned(), MOST));
    score("ann", 1).await.is(422);
    run(&db, &correct).well();
    let exact = pairs([("cyd", MOST), ("ann", MOST - 7)]);
    until("the window has the exact sum", async || list(window).await[..2] == exact).await;
    score("ann", 1).await.is(200);
    score("cyd", -7).await.is(200);
    let large = "SELECT t.id FROM centile_store.score_transactions t JOIN centile_store.users u ON u.id = t.user_id
        WHERE u.external_id = 'bob' AND t.points = -9223372036854775807";
    let large: i64 = query_scalar(large).fetch_one(&pool).await.unwrap();
    for act in ["ban", "unban"] {
        site.admin(Method::POST, &format!("/v1/users/bob/{act}"), Value::Null).await.is(200);
    }
    assert_eq!(list(window).await[3], ("bob".to_owned(), -MOST));
    site.admin(Method::POST, &format!("/v1/boards/main/transactions/{large}/void"), Value::Null).await.is(204);
    assert_eq!(list(window).await[2], ("bob".to_owned(), -1));
    run(&db, &["verify"]).well();
    // Windows that are filled later are complete again.
    run(&db, &["board", "change", "main", "--rolling", "7d,8d"]).well();
    let longer = "/v1/boards/main/scores?period=rolling:8d";
    until("the longer window is filled", async || site.get(longer).await.status == 200).await;
    assert_eq!(list(longer).await, list(window).await);
}

#[tokio::test]
async fn a_window_is_archived_only_if_the_board_keeps_it() {
    let db = TestDb::new().await;
    db.execute(SHORT_WINDOWS).await;
    let pool = db.pool().await;
    let site = Site::start(&db, PROMPT).await;
    run(&db, &["board", "create", "arena", "--periods", "all_time", "--rolling", "24h", "--keep", "rolling=3"]).well();
    site.post(SCORES, json!({"user_id": "ada", "points": 5})).await.is(200);
    let archived = || async {
        query_scalar::<_, i64>("SELECT count(*) FROM centile.periods WHERE kind = 'rolling' AND archive IS NOT NULL")
            .fetch_one(&pool)
            .await
            .unwrap()
    };
    until_over(&pool, &[("rolling", 7)]).await;
    until("three windows are archived", async || archived().await == 3).await;
    run(&db, &["verify"]).well();
    // The first windows held the score, and their archives are gone.
    let (first, last): (String, String) = query_as(
        "SELECT min(label), max(label) FILTER (WHERE archive IS NOT NULL) FROM centile.periods WHERE kind = 'rolling'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    site.get(&format!("{SCORES}?period=rolling:{first}")).await.is(404);
    let archive = site.get(&format!("{SCORES}?period=rolling:{last}")).await.is(200);
    assert_eq!(archive["period"]["state"], "closed");

    // Without retention they go, and so do windows of a length that is no longer kept.
    site.admin(Method::PATCH, "/v1/boards/arena", json!({"kept_archives": {"rolling": null}, "rolling": []}))
        .await
        .is(200);
    until("nothing is archived", async || archived().await == 0).await;
    site.get(&format!("{SCORES}?period=rolling:24h")).await.is(404);
    let open = "SELECT count(*) FROM centile.periods WHERE kind = 'rolling' AND state <> 'closed'";
    until("no window is open", async || query_scalar::<_, i64>(open).fetch_one(&pool).await.unwrap() == 0).await;
    let refused = site.admin(Method::PATCH, "/v1/boards/arena", json!({"rolling": ["1d"]})).await.is(422);
    assert_eq!(refused["field"], "rolling[0]");
    // And come back.
    run(&db, &["board", "change", "arena", "--rolling", "24h,3d"]).well();
    until("the window is filled", async || site.get(&format!("{SCORES}?period=rolling:3d")).await.status == 200).await;
    assert_eq!(run(&db, &["board", "show", "arena", "--json"]).json()["rolling"], json!(["24h", "3d"]));
}
