//! Closing, refreshing and dropping the archives of segments, compared with a rank over the ledger.

use std::fmt::Write as _;

use serde_json::json;
use sqlx::{AssertSqlSafe, PgPool, query_as, query_scalar};

use crate::{
    http::{
        api::site::Site,
        segments::{page, set},
    },
    support::{Files, TestDb, audit, import, run, wait::until},
};

const WEEKS: [(&str, &str, &str); 3] = [
    ("week:2024-01-01", "2024-01-01Z", "2024-01-08Z"),
    ("week:2024-01-08", "2024-01-08Z", "2024-01-15Z"),
    ("week:2024-01-15", "2024-01-15Z", "2024-01-22Z"),
];

/// A board with 120 imported events of 12 players: four in each of three countries, and every second
/// one a mage.
async fn board(db: &TestDb) -> (Site, Files) {
    let files = Files::new();
    let site = Site::start(db, &["--no-maintenance", "--pool-wait", "60000"]).await;
    run(
        db,
        &[
            "board",
            "create",
            "main",
            "--periods",
            "all_time,week",
            "--lanes",
            "2",
            "--segment",
            "country",
            "--segment",
            "class",
            "--buckets",
            "all_time",
        ],
    )
    .well();
    for n in 0..12 {
        let mut attributes = json!({"country": (["DE", "FR", "US"][n % 3])});
        if n % 2 == 0 {
            attributes["class"] = json!("mage");
        }
        set(&site, &format!("p{n}"), attributes).await.is(201);
    }
    let mut lines = "id,user_id,points,occurred_at\n".to_owned();
    for n in 0..120 {
        writeln!(lines, "e{n},p{},{},2024-01-{:02}T{:02}:00:00Z", n * 5 % 12, (n * 7) % 30 + 1, n % 21 + 1, n % 24)
            .unwrap();
    }
    import(db, &files.write("events.csv", lines), "main", &[]).well(120, 0);
    (site, files)
}

/// Returns position, rank, player and score by sums over the ledger, of players whose number has a
/// remainder.
async fn ranked(
    pool: &PgPool,
    from: &str,
    until: &str,
    (divisor, remainder): (i64, i64),
) -> Vec<(u64, u64, String, i64)> {
    let rows: Vec<(i64, i64, String, i64)> = query_as(
        "SELECT row_number() OVER (ORDER BY sum(t.points) DESC, max(t.occurred_at), u.id), rank() OVER (ORDER BY sum(t.points) DESC),
                u.external_id, sum(t.points)::bigint
         FROM centile_store.score_transactions t JOIN centile_store.users u ON u.id = t.user_id
         WHERE t.kind = 'score' AND t.occurred_at >= $1::text::timestamptz AND t.occurred_at < $2::text::timestamptz
           AND substr(u.external_id, 2)::bigint % $3 = $4
           AND t.id NOT IN (SELECT v.voids_id FROM centile_store.score_transactions v WHERE v.kind = 'void')
         GROUP BY u.id ORDER BY 1",
    )
    .bind(from)
    .bind(until)
    .bind(divisor)
    .bind(remainder)
    .fetch_all(pool)
    .await
    .unwrap();
    rows.into_iter()
        .map(|(position, rank, user, score)| (position.unsigned_abs(), rank.unsigned_abs(), user, score))
        .collect()
}

const SEGMENTS: [(&str, (i64, i64)); 5] = [
    ("", (1, 0)),
    ("&segment=country:DE", (3, 0)),
    ("&segment=country:FR", (3, 1)),
    ("&segment=country:US", (3, 2)),
    ("&segment=class:mage", (2, 0)),
];

async fn compare(site: &Site, pool: &PgPool) {
    for (period, from, end) in WEEKS {
        for (segment, of) in SEGMENTS {
            let (query, wanted) = (format!("period={period}{segment}"), ranked(pool, from, end, of).await);
            assert!(!wanted.is_empty());
            // A top list may lag by 250 ms.
            until(&query, async || page(site, "main", &query).await == wanted).await;
        }
    }
}

#[tokio::test]
async fn segments_are_closed_refreshed_and_dropped_with_their_period() {
    let db = TestDb::new().await;
    let (site, _files) = board(&db).await;
    let pool = db.pool().await;
    compare(&site, &pool).await;
    audit::rankings_are_sound(&pool).await;

    // One period by name closes its segments, too.
    run(&db, &["close", "--board", "main", "--period", "week:2024-01-08@country:DE"])
        .refused(1, &["closed together with week:2024-01-08"]);
    run(&db, &["close", "--board", "main", "--period", "week:2024-01-08"]).well();
    let open = "SELECT count(*) FROM centile.periods WHERE label = '2024-01-08' AND state <> 'closed'";
    assert_eq!(query_scalar::<_, i64>(open).fetch_one(&pool).await.ok(), Some(0));
    let closed = run(&db, &["close", "--due"]).well();
    assert_eq!(closed.lines().count(), 10, "{closed}");
    assert!(closed.contains("week:2024-01-15@class:mage"), "{closed}");
    let counts = "SELECT (SELECT count(*) FROM centile.outbox), (SELECT count(*) FROM centile.archive_index WHERE differences = 0),
                         (SELECT count(DISTINCT archive) FROM centile.archive_index), (SELECT count(*) FROM centile.archive_differences)";
    let counts: (i64, i64, i64, i64) = query_as(counts).fetch_one(&pool).await.unwrap();
    assert_eq!(counts, (3, 15, 15, 0), "messages, archives, names, differences");
    compare(&site, &pool).await;
    run(&db, &["verify"]).well();

    // A later change of attributes leaves closed periods as they are.
    set(&site, "p0", json!({"country": "FR", "class": null})).await.is(200);
    compare(&site, &pool).await;
    let open = page(&site, "main", "segment=country:FR").await;
    assert!(open.iter().any(|row| row.2 == "p0"), "{open:?}");
    run(&db, &["verify"]).well();

    // A correction marks the whole period and the segments of the player. One refresh updates all.
    let correct =
        ["correct", "p0", "500", "--board", "main", "--at", "2024-01-09T12:00:00Z", "--reason", "x", "--by", "dora"];
    let output = run(&db, &correct).well();
    assert!(output.ends_with("centile refresh --board main --period week:2024-01-08\n"), "{output}");
    let marked = "SELECT array_agg(segment ORDER BY segment) FROM centile.periods WHERE needs_refresh";
    let marked: Vec<String> = query_scalar(marked).fetch_one(&pool).await.unwrap();
    assert_eq!(marked, ["", "class:mage", "country:DE"]);
    run(&db, &["refresh", "--board", "main", "--period", "week:2024-01-08", "--by", "dora", "--reason", "x"]).well();
    compare(&site, &pool).await;
    assert_eq!(page(&site, "main", "period=week:2024-01-08&segment=country:DE").await[0].2, "p0");
    run(&db, &correct).well();
    db.execute("CALL centile.refresh_due()").await;
    let marked = "SELECT count(*) FROM centile.archive_index WHERE needs_refresh";
    assert_eq!(query_scalar::<_, i64>(marked).fetch_one(&pool).await.ok(), Some(0));
    compare(&site, &pool).await;
    run(&db, &["verify"]).well();

    // Retention drops the archives of segments with that of their period.
    run(&db, &["board", "change", "main", "--keep", "week=1"]).well();
    let dropped = run(&db, &["maintain"]).well();
    assert!(dropped.contains("archives    10 dropped"), "{dropped}");
    let left = "SELECT count(*) FROM pg_matviews WHERE schemaname = 'centile_archive'";
    assert_eq!(query_scalar::<_, i64>(left).fetch_one(&pool).await.ok(), Some(5));
    for segment in ["country:DE", "country:nobody"] {
        let answer = site.get(&format!("/v1/boards/main/scores?period=week:2024-01-01&segment={segment}")).await;
        assert_eq!((answer.status, answer.text.contains("no longer kept")), (404, true), "{answer:?}");
    }
    assert_eq!(page(&site, "main", "period=week:2024-01-15&segment=country:nobody").await, []);
    run(&db, &["verify"]).well();
}

/// A ban marks no closed period: the refresh of the whole period finds the segments that must follow.
#[tokio::test]
async fn no_segment_is_left_out_of_an_interrupted_or_failed_refresh() {
    const WEEK: &str = "week:2024-01-08";
    let db = TestDb::new().await;
    let (site, _files) = board(&db).await;
    let pool = db.pool().await;
    run(&db, &["close", "--due"]).well();
    let shown = async || {
        let mut shown = Vec::new();
        for segment in ["", "&segment=class:mage", "&segment=country:DE"] {
            let rows = page(&site, "main", &format!("period={WEEK}{segment}")).await;
            shown.push(rows.iter().any(|row| row.2 == "p0"));
        }
        shown
    };
    let lacking = async || -> Vec<String> {
        let lacking = "SELECT segment FROM centile.periods WHERE needs_refresh ORDER BY segment";
        query_scalar(lacking).fetch_all(&pool).await.unwrap()
    };
    let due = "CALL centile.refresh_due()";
    let ban = async |is_banned: bool| db.execute(&format!("SELECT centile.ban_user('main', 'p0', {is_banned})")).await;

    // A kill after the first of the three archives.
    ban(true).await;
    db.execute("SELECT centile_store.refresh_archive(period_id, 'dora', 'x') FROM centile.periods WHERE label = '2024-01-08' AND segment = ''").await;
    assert_eq!(lacking().await, ["class:mage", "country:DE"]);
    db.execute(due).await;
    assert!(lacking().await.is_empty());
    until("no archive shows the player", async || shown().await == [false; 3]).await;

    // The first segment cannot be refreshed.
    let first: (String, String) = query_as(
        "SELECT segment, archive FROM centile.periods WHERE label = '2024-01-08' AND segment IN ('class:mage', 'country:DE') ORDER BY period_id",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    let rename = |from: &str, to: &str| format!("ALTER MATERIALIZED VIEW {from} RENAME TO {to}");
    let name = first.1.strip_prefix("centile_archive.").unwrap();
    for is_banned in [false, true] {
        db.execute(&rename(&first.1, "away")).await;
        ban(is_banned).await;
        if is_banned {
            let refresh = format!("CALL centile.refresh('main', '{WEEK}')");
            let failed = sqlx::raw_sql(AssertSqlSafe(refresh)).execute(&pool).await.unwrap_err().to_string();
            assert!(failed.contains(&format!("{WEEK}@{} of board main could not be refreshed", first.0)), "{failed}");
        } else {
            run(&db, &["refresh", "--board", "main", "--period", WEEK])
                .refused(1, &["is refreshed, but not all of its segments: an archive is missing"]);
        }
        assert_eq!(lacking().await, [first.0.as_str()]);
        db.execute(&rename("centile_archive.away", name)).await;
        db.execute(due).await;
        until("the archives agree", async || shown().await == [!is_banned; 3]).await;
        run(&db, &["verify"]).well();
    }
}

/// The archives of segments keep the live rankings as of the end of the period.
#[tokio::test]
async fn a_season_keeps_the_segments_of_its_end() {
    let db = TestDb::new().await;
    let (site, _files) = board(&db).await;
    let pool = db.pool().await;
    run(&db, &["close", "--due"]).well();
    db.execute("SELECT centile.create_season('main', 'cup', clock_timestamp(), clock_timestamp() + interval '1 hour')")
        .await;
    let score = async |user: &str, points: i64| {
        site.post("/v1/boards/main/scores", json!({"user_id": user, "points": points})).await.is(200)
    };
    score("p0", 5).await;
    score("p1", 7).await;
    set(&site, "p0", json!({"country": "US"})).await.is(200);
    score("p0", 1).await;
    score("p2", 9).await;
    let of = async |segment: &str| page(&site, "main", &format!("period=season:cup&segment={segment}")).await;
    let before = (of("country:DE").await, of("country:US").await, of("country:FR").await);
    db.execute("UPDATE centile_store.periods SET ends_at = now() WHERE kind = 'season'").await;
    // These changes come too late for the season, closed or not.
    set(&site, "p0", json!({"country": "FR"})).await.is(200);
    set(&site, "p1", json!({"country": null})).await.is(200);
    let after = (of("country:DE").await, of("country:US").await, of("country:FR").await);
    assert_eq!(after, before);
    let closed = run(&db, &["close", "--due"]).well();
    assert!(closed.contains("season:cup@country:US"), "{closed}");
    assert_eq!((of("country:DE").await, of("country:US").await, of("country:FR").await), before);
    let differences = "SELECT count(*) FROM centile.archive_differences";
    assert_eq!(query_scalar::<_, i64>(differences).fetch_one(&pool).await.ok(), Some(0));
    let now = page(&site, "main", "segment=country:FR").await;
    assert!(now.iter().any(|row| row.2 == "p0") && !now.iter().any(|row| row.2 == "p1"), "{now:?}");
    run(&db, &["verify"]).well();
    audit::rankings_are_sound(&pool).await;
}

/// Closes a week like a process that is killed before it closes the segments.
async fn close_whole(db: &TestDb, week: &str) {
    let id = format!("(SELECT id FROM centile_store.periods WHERE label = '{week}' AND segment = '')");
    db.execute(&format!(
        "DROP TABLE IF EXISTS cut; CREATE TABLE cut AS SELECT centile_store.cut_off_period({id}) AS at"
    ))
    .await;
    for step in ["build_archive", "compare_archive"] {
        db.execute(&format!("SELECT centile_store.{step}({id})")).await;
    }
    db.execute(&format!("SELECT centile_store.finish_close({id}, at) FROM cut")).await;
}

/// Voids an event of the first week.
async fn void(db: &TestDb, pool: &PgPool, user: &str) {
    let event = "SELECT t.transaction_id FROM centile.score_history t
                 WHERE t.user_id = $1 AND t.kind = 'score' AND t.occurred_at < '2024-01-08Z' ORDER BY 1 LIMIT 1";
    let event: i64 = query_scalar(event).bind(user).fetch_one(pool).await.unwrap();
    run(db, &["score", "void", &event.to_string(), "--board", "main", "--by", "dora"]).well();
}

fn refresh(db: &TestDb, week: &str) {
    run(db, &["refresh", "--board", "main", "--period", week, "--by", "dora", "--reason", "x"]).well();
}

async fn differences(pool: &PgPool) -> i64 {
    query_scalar("SELECT count(*) FROM centile.archive_differences").fetch_one(pool).await.unwrap()
}

/// Changes between the closing of a period and that of its segments are in no archive until a refresh.
#[tokio::test]
async fn a_segment_that_closes_late_keeps_the_mark_of_a_correction() {
    let db = TestDb::new().await;
    let (site, files) = board(&db).await;
    let pool = db.pool().await;
    close_whole(&db, "2024-01-01").await;
    // An import leaves the cut-offs of these segments in place, and the week is still being closed.
    import(&db, &files.write("one.csv", "id,user_id,points,occurred_at\ni1,p1,5,2024-01-09T12:00:00Z\n"), "main", &[])
        .well(1, 0);
    let lost = "SELECT count(*) FROM centile_store.periods WHERE label = '2024-01-01' AND cut_off_at IS NULL";
    assert_eq!(query_scalar::<_, i64>(lost).fetch_one(&pool).await.ok(), Some(0));
    run(
        &db,
        &["correct", "p0", "5", "--board", "main", "--at", "2024-01-02T12:00:00Z", "--reason", "x", "--by", "dora"],
    )
    .refused(1, &["is being closed"]);
    void(&db, &pool, "p0").await;
    run(&db, &["close", "--due"]).well();
    assert_eq!(differences(&pool).await, 0);
    refresh(&db, "week:2024-01-01");
    compare(&site, &pool).await;
    run(&db, &["verify"]).well();
}

/// A ban marks no closed period. Later refreshes of the whole period and its segments agree.
#[tokio::test]
async fn a_refresh_includes_segments_of_banned_players() {
    let db = TestDb::new().await;
    let (site, _files) = board(&db).await;
    let pool = db.pool().await;
    run(&db, &["close", "--due"]).well();
    let revisions = async || -> Vec<(String, i32)> {
        let revisions =
            "SELECT segment, revision FROM centile.archive_index WHERE label = '2024-01-01' ORDER BY segment";
        query_as(revisions).fetch_all(&pool).await.unwrap()
    };
    let named = |revisions: [i32; 5]| {
        let names = ["", "class:mage", "country:DE", "country:FR", "country:US"];
        names.iter().map(|name| (*name).to_owned()).zip(revisions).collect::<Vec<_>>()
    };
    for (n, act) in [(1, "ban"), (2, "unban")] {
        site.admin(reqwest::Method::POST, &format!("/v1/users/p0/{act}"), json!(null)).await.is(200);
        assert_eq!(revisions().await, named([n, n, n, 1, 1]), "a closed period does not change by itself");
        refresh(&db, "week:2024-01-01");
        // Only the segments of the player.
        assert_eq!(revisions().await, named([n + 1, n + 1, n + 1, 1, 1]));
        for (segment, of) in SEGMENTS {
            let mut wanted = ranked(&pool, WEEKS[0].1, WEEKS[0].2, of).await;
            if act == "ban" {
                wanted.retain(|row| row.2 != "p0");
            }
            let users = |rows: &[(u64, u64, String, i64)]| rows.iter().map(|row| row.2.clone()).collect::<Vec<_>>();
            let query = format!("period=week:2024-01-01{segment}");
            until(&query, async || users(&page(&site, "main", &query).await) == users(&wanted)).await;
        }
    }
    compare(&site, &pool).await;
    // A ban between the two refreshes is in neither archive.
    let week = |segment: &str| {
        format!("(SELECT id FROM centile_store.periods WHERE label = '2024-01-01' AND segment = '{segment}')")
    };
    let steps = |segment: &str| format!("SELECT centile_store.refresh_archive({}, 'dora', 'x')", week(segment));
    db.execute(&steps("")).await;
    site.admin(reqwest::Method::POST, "/v1/users/p0/ban", json!(null)).await.is(200);
    db.execute(&steps("country:DE")).await;
    let archived = async |segment: &str| -> bool {
        let archive = format!("SELECT archive FROM centile.periods WHERE period_id = {}", week(segment));
        let archive: String = query_scalar(AssertSqlSafe(archive)).fetch_one(&pool).await.unwrap();
        let holds = format!(
            "SELECT EXISTS (SELECT FROM {archive} a JOIN centile.users u ON u.internal_id = a.user_id WHERE u.user_id = 'p0')"
        );
        query_scalar(AssertSqlSafe(holds)).fetch_one(&pool).await.unwrap()
    };
    assert_eq!((archived("").await, archived("country:DE").await), (true, true));
    refresh(&db, "week:2024-01-01");
    assert_eq!((archived("").await, archived("country:DE").await), (false, false));
    run(&db, &["verify"]).well();
    let alone =
        ["refresh", "--board", "main", "--period", "week:2024-01-01@country:DE", "--by", "dora", "--reason", "x"];
    run(&db, &alone).refused(1, &["week:2024-01-01@country:DE is refreshed together with week:2024-01-01"]);
}

/// The segment gets an archive, whether it is closed before the refresh of the period or after it.
#[tokio::test]
async fn a_correction_in_a_closed_period_may_be_the_first_score_of_a_segment() {
    let db = TestDb::new().await;
    let (site, _files) = board(&db).await;
    let pool = db.pool().await;
    set(&site, "p99", json!({"country": "PT"})).await.is(201);
    run(&db, &["close", "--due"]).well();
    // A segment without players is closed like its period.
    let path = "/v1/boards/main/scores?period=week:2024-01-01&segment=country:PT";
    let empty = site.get(path).await.is(200);
    assert_eq!((&empty["period"]["state"], &empty["players"]), (&json!("closed"), &json!(0)), "{empty}");
    for (week, day, closes_first) in [("week:2024-01-01", "02", true), ("week:2024-01-08", "10", false)] {
        let at = format!("2024-01-{day}T12:00:00Z");
        let output =
            run(&db, &["correct", "p99", "500", "--board", "main", "--at", &at, "--reason", "x", "--by", "dora"])
                .well();
        assert!(output.ends_with(&format!("centile refresh --board main --period {week}\n")), "{output}");
        if closes_first {
            run(&db, &["close", "--due"]).well();
            let before = page(&site, "main", &format!("period={week}&segment=country:PT")).await;
            assert_eq!(before, [], "like the whole period, it lacks the correction");
        }
        refresh(&db, week);
        run(&db, &["close", "--due"]).well();
        assert_eq!(differences(&pool).await, 0, "{week}");
        let query = format!("period={week}&segment=country:PT");
        until(week, async || page(&site, "main", &query).await == [(1, 1, "p99".to_owned(), 500)]).await;
        assert_eq!(page(&site, "main", &format!("period={week}")).await[0].2, "p99");
    }
    // Another correction, once the segment has an archive.
    set(&site, "p98", json!({"country": "PT"})).await.is(201);
    let again = ["--board", "main", "--at", "2024-01-03T12:00:00Z", "--reason", "x", "--by", "dora"];
    run(&db, &[&["correct", "p98", "400"], &again[..]].concat()).well();
    refresh(&db, "week:2024-01-01");
    until("both", async || page(&site, "main", "period=week:2024-01-01&segment=country:PT").await.len() == 2).await;
    let marked =
        "SELECT count(*) FROM centile.periods WHERE needs_refresh OR state <> 'closed' AND label LIKE '2024-01%'";
    assert_eq!(query_scalar::<_, i64>(marked).fetch_one(&pool).await.ok(), Some(0));
    run(&db, &["verify"]).well();
    audit::rankings_are_sound(&pool).await;
}

/// Its whole period was closed before the tiers of the board changed.
#[tokio::test]
async fn a_segment_that_is_opened_late_has_the_tiers_of_its_period() {
    let db = TestDb::new().await;
    let (site, _files) = board(&db).await;
    let tiers = async |tiers: &[&str]| {
        site.admin(reqwest::Method::PATCH, "/v1/boards/main", json!({"tiers": tiers})).await.is(200);
    };
    tiers(&["gold: rank 1"]).await;
    run(&db, &["close", "--due"]).well();
    tiers(&["new: rank 1"]).await;
    set(&site, "p99", json!({"country": "PT"})).await.is(201);
    let acts = ["--board", "main", "--at", "2024-01-03T12:00:00Z", "--reason", "x", "--by", "dora"];
    run(&db, &[&["correct", "p99", "400"], &acts[..]].concat()).well();
    run(&db, &["close", "--due"]).well();
    refresh(&db, "week:2024-01-01");
    for query in ["", "&segment=country:PT"] {
        let path = format!("/v1/boards/main/scores/p99?period=week:2024-01-01{query}");
        until(&path, async || site.get(&path).await.body["tier"] == "gold").await;
    }
}

/// Closing a period by its name closes the segments that are left. One that cannot be closed does not
/// keep the others open.
#[tokio::test]
async fn closing_a_period_again_finishes_its_segments() {
    let db = TestDb::new().await;
    let (site, _files) = board(&db).await;
    let pool = db.pool().await;
    close_whole(&db, "2024-01-01").await;
    let name = "SELECT archive_name FROM centile_store.periods WHERE label = '2024-01-01' AND segment = 'country:DE'";
    let name: String = query_scalar(name).fetch_one(&pool).await.unwrap();
    db.execute(&format!("CREATE VIEW centile_archive.{name} AS SELECT 1")).await;
    let close = ["close", "--board", "main", "--period", "week:2024-01-01"];
    let failed = run(&db, &close);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.err.contains("periods that could not be closed or prepared: 1"), "{failed:?}");
    assert!(failed.out.contains("failed   main week:2024-01-01@country:DE"), "{failed:?}");
    assert_eq!(failed.out.matches("closed   main week:2024-01-01@").count(), 3, "{failed:?}");
    db.execute(&format!("DROP VIEW centile_archive.{name}")).await;
    let closed = run(&db, &close).well();
    assert!(closed.starts_with("closed   main week:2024-01-01@country:DE"), "{closed}");
    assert_eq!(run(&db, &close).well(), "skipped  main week:2024-01-01: already closed\n");
    compare(&site, &pool).await;
    // Whole periods come before the segments of others.
    close_whole(&db, "2024-01-08").await;
    let closed = run(&db, &["close", "--due"]).well();
    assert!(closed.starts_with("closed   main week:2024-01-15:"), "{closed}");
    assert_eq!(closed.lines().count(), 9, "{closed}");
    run(&db, &["verify"]).well();
}

/// A process may be killed after it has closed the whole period.
#[tokio::test]
async fn an_interrupted_closing_continues_with_the_same_cut_off() {
    let db = TestDb::new().await;
    let (site, files) = board(&db).await;
    let pool = db.pool().await;
    close_whole(&db, "2024-01-01").await;
    let before = page(&site, "main", "period=week:2024-01-01").await;
    // A ban after the cut-off, and an import, which must not cancel the cut-offs of the segments.
    site.admin(reqwest::Method::POST, "/v1/users/p0/ban", json!(null)).await.is(200);
    let late = "id,user_id,points,occurred_at\nl1,p1,1000,2024-01-02T12:00:00Z\nl2,p1,5,2024-01-09T12:00:00Z\n";
    let imported = import(&db, &files.write("late.csv", late), "main", &[]);
    assert_eq!(imported.rejects.as_ref().map(|rejects| rejects.keys().copied().collect::<Vec<_>>()), Some(vec![2]));
    let cancelled = "SELECT count(*) FROM centile_store.periods WHERE label = '2024-01-01' AND segment <> '' AND cut_off_at IS NULL";
    assert_eq!(query_scalar::<_, i64>(cancelled).fetch_one(&pool).await.ok(), Some(0));
    run(&db, &["close", "--due"]).well();
    let mut users: Vec<String> = Vec::new();
    for segment in ["country:DE", "country:FR", "country:US"] {
        let rows = page(&site, "main", &format!("period=week:2024-01-01&segment={segment}")).await;
        users.extend(rows.into_iter().map(|row| row.2));
    }
    users.sort();
    let mut wanted: Vec<String> = before.into_iter().map(|row| row.2).collect();
    wanted.sort();
    assert_eq!(users, wanted, "the banned player is in the archive, and in that of the segment");
    assert!(users.contains(&"p0".to_owned()));
    run(&db, &["verify"]).well();
    audit::rankings_are_sound(&pool).await;
}

/// For a new player, an import uses the present attributes; for a known one, the segments of the time.
#[tokio::test]
async fn an_import_counts_in_the_segments_of_each_period() {
    let db = TestDb::new().await;
    let (site, files) = board(&db).await;
    let pool = db.pool().await;
    set(&site, "p0", json!({"country": "US"})).await.is(200);
    // The week of 2023 has no ranking yet.
    let more = "id,user_id,points,occurred_at\nm1,p0,3,2024-01-03T12:00:00Z\nm2,p0,4,2023-12-26T12:00:00Z\nm3,new,1,2023-12-26T12:00:00Z\n";
    set(&site, "new", json!({"country": "US"})).await.is(201);
    import(&db, &files.write("more.csv", more), "main", &[]).well(3, 0);
    let of = async |query: &str| page(&site, "main", query).await.into_iter().map(|row| row.2).collect::<Vec<_>>();
    assert!(of("period=week:2024-01-01&segment=country:DE").await.contains(&"p0".to_owned()));
    assert_eq!(of("period=week:2023-12-25&segment=country:DE").await, ["p0"]);
    assert_eq!(of("period=week:2023-12-25&segment=country:US").await, ["new"]);
    assert!(of("segment=country:US").await.contains(&"p0".to_owned()));
    assert!(!of("segment=country:DE").await.contains(&"p0".to_owned()));
    run(&db, &["verify"]).well();
    audit::rankings_are_sound(&pool).await;
    run(&db, &["close", "--due"]).well();
    assert_eq!(of("period=week:2023-12-25&segment=country:DE").await, ["p0"]);
    run(&db, &["verify"]).well();
}
