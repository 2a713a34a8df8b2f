//! `close`, together with `refresh`, `correct`, `maintain` and `import`.

mod correction;
mod import;
mod operator;
mod retention;

use std::{fmt::Write as _, io::Write as _};

use chrono::{SecondsFormat, Utc};
use sqlx::PgPool;

use crate::support::{Files, Ran, TestDb, import, import_stdin, run, spawn, spawn_import, spawn_serve, wait::until};

/// Ten players over three weeks of January 2024; one of them ties with another.
fn three_weeks() -> String {
    let mut file = String::from("id,user_id,points,occurred_at\n");
    for (n, day) in (1..=20).enumerate() {
        let (user, points) = (n % 10, (n * 7) % 30);
        writeln!(file, "e{n},p{user},{points},2024-01-{day:02}T12:00:00Z").unwrap();
    }
    file
}

/// Returns `count` lines of one point each, for fifty players over twenty days of January 2024,
/// without the header.
fn lines(count: u32) -> String {
    let mut lines = String::new();
    for n in 0..count {
        writeln!(lines, "m{n},p{},1,2024-01-{:02}T00:00:00Z", n % 50, 1 + n % 20).unwrap();
    }
    lines
}

async fn board_with(periods: &str, content: &str) -> (TestDb, Files) {
    let (db, files) = (TestDb::new().await, Files::new());
    run(&db, &["board", "create", "arena", "--periods", periods, "--lanes", "2"]).well();
    let imported = import(&db, &files.write("three_weeks.csv", content), "arena", &[]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    (db, files)
}

async fn states(pool: &PgPool) -> Vec<(String, String)> {
    sqlx::query_as(
        "SELECT p.kind || ':' || p.label, p.state FROM centile_store.periods p WHERE p.kind <> 'all_time' ORDER BY p.starts_at, p.kind",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

/// Returns an archive's players in order, with rank and score.
async fn archive(pool: &PgPool, name: &str) -> Vec<(i64, String, i64)> {
    let statement = format!(
        "SELECT a.rank, u.external_id, a.score FROM centile_archive.{name} a JOIN centile_store.users u ON u.id = a.user_id ORDER BY a.position"
    );
    sqlx::query_as(sqlx::AssertSqlSafe(statement)).fetch_all(pool).await.unwrap()
}

/// Returns the same from the ledger, by PostgreSQL's own `rank()`.
async fn ranked(pool: &PgPool, from: &str, until: &str) -> Vec<(i64, String, i64)> {
    sqlx::query_as(
        "SELECT rank() OVER (ORDER BY sum(t.points) DESC), u.external_id, sum(t.points)::bigint
         FROM centile_store.score_transactions t JOIN centile_store.users u ON u.id = t.user_id
         WHERE t.occurred_at >= $1::timestamptz AND t.occurred_at < $2::timestamptz
         GROUP BY u.id
         ORDER BY sum(t.points) DESC, coalesce(max(t.occurred_at) FILTER (WHERE t.points <> 0), min(t.occurred_at)), u.id",
    )
    .bind(from)
    .bind(until)
    .fetch_all(pool)
    .await
    .unwrap()
}

async fn count(pool: &PgPool, statement: &'static str) -> i64 {
    sqlx::query_scalar(statement).fetch_one(pool).await.unwrap()
}

const EVENTS: &str = "SELECT count(*) FROM centile_store.score_transactions";
const CLOSED: &str = "SELECT count(*) FROM centile_store.periods WHERE state = 'closed'";

#[tokio::test]
async fn ended_periods_are_closed_once() {
    let (db, _files) = board_with("all_time,week,month", &three_weeks()).await;
    let pool = db.pool().await;
    let one = run(&db, &["close", "--board", "arena", "--period", "week:2024-01-08"]).well();
    assert!(one.starts_with("closed   arena week:2024-01-08: 7 players"), "{one}");
    let again = run(&db, &["close", "--board", "arena", "--period", "week:2024-01-08"]).well();
    assert_eq!(again, "skipped  arena week:2024-01-08: already closed\n");
    let before = archive(&pool, "arena_week_2024_01_08").await;
    assert_eq!(before, ranked(&pool, "2024-01-08Z", "2024-01-15Z").await);

    let due = run(&db, &["close", "--due"]).well();
    let closed: Vec<&str> =
        due.lines().filter_map(|line| line.split([' ', ':']).find(|word| *word == "closed")).collect();
    assert_eq!(closed.len(), 3, "{due}");
    assert_eq!(run(&db, &["close", "--due"]).well(), "nothing is due\n");
    assert!(states(&pool).await.iter().all(|(_, state)| state == "closed"));
    for (name, from, until) in [
        ("arena_week_2024_01_01", "2024-01-01Z", "2024-01-08Z"),
        ("arena_week_2024_01_15", "2024-01-15Z", "2024-01-22Z"),
        ("arena_month_2024_01", "2024-01-01Z", "2024-02-01Z"),
    ] {
        assert_eq!(archive(&pool, name).await, ranked(&pool, from, until).await, "{name}");
    }
    assert_eq!(archive(&pool, "arena_week_2024_01_08").await, before);
    let output: i64 = sqlx::query_scalar("SELECT count(*) FROM centile_store.outbox").fetch_one(&pool).await.unwrap();
    assert_eq!(output, 4);
}

#[tokio::test]
async fn an_invalid_close_or_refresh_is_explained() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let close = |period| run(&db, &["close", "--board", "arena", "--period", period]);
    close("week").refused(1, &["is not over yet", "ends at"]);
    close("all_time").refused(1, &["all_time", "never ends"]);
    close("week:2030-01-07").refused(1, &["is not over yet", "ends at"]);
    close("day:2024-01-15").refused(1, &["day:2024-01-15", "has no period of this name"]);
    close("week:2024-01-16").refused(2, &["weeks are named by their Monday"]);
    assert_eq!(close("week:2023-01-02").well(), "skipped  arena week:2023-01-02: no scores\n");
    run(&db, &["close"]).refused(2, &["--due"]);
    run(&db, &["close", "--due", "--board", "arena"]).refused(2, &["cannot be used with"]);
    run(&db, &["close", "--board", "arena"]).refused(2, &["--period"]);
    run(&db, &["close", "--board", "none", "--period", "week"]).refused(1, &["no board \"none\""]);
    run(&db, &["refresh", "--board", "arena", "--period", "week:2024-01-01", "--by", "dora"])
        .refused(1, &["week:2024-01-01 of board arena is not closed"]);
}

#[tokio::test]
async fn a_step_out_of_order_is_refused() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    let all_time = "(SELECT id FROM centile_store.periods WHERE kind = 'all_time')";
    let week = "(SELECT min(id) FROM centile_store.periods WHERE kind = 'week')";
    let refused = async |call: String, words: &str| {
        let statement = format!("SELECT centile_store.{call}");
        let error = sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&pool).await.unwrap_err();
        assert!(error.to_string().contains(words), "{call}: {error}");
    };
    refused(format!("cut_off_period({all_time})"), "not over").await;
    for step in ["build_archive", "compare_archive"] {
        refused(format!("{step}({week})"), "not cut off").await;
    }
    refused(format!("refresh_archive({week}, 'x', 'x')"), "not closed").await;
    refused(format!("drop_archive({week}, false)"), "not closed").await;
    run(&db, &["close", "--due"]).well();
    for step in ["cut_off_period", "build_archive", "compare_archive"] {
        refused(format!("{step}({week})"), "closed").await;
    }
    refused(format!("finish_close({week}, now())"), "already closed").await;
    refused(format!("drop_archive({week}, true)"), "still answers").await;
    assert_eq!(count(&pool, CLOSED).await, 3);
}

#[tokio::test]
async fn close_due_fails_for_a_window_although_another_process_closes() {
    let (db, files) = board_with("all_time,week", &three_weeks()).await;
    run(&db, &["board", "change", "arena", "--rolling", "366d"]).well();
    let imported =
        format!("id,user_id,points,occurred_at\ne,ann,9,{}\n", Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true));
    import(&db, &files.write("now.csv", imported), "arena", &[]).well(1, 0);
    // The window cannot be filled.
    db.execute(
        "ALTER TABLE centile_store.players ADD CONSTRAINT players_broken CHECK (cardinality(period_ids) < 3) NOT VALID",
    )
    .await;
    let pool = db.pool().await;
    let mut other = pool.acquire().await.unwrap();
    let is_ours: bool =
        sqlx::query_scalar("SELECT centile_store.try_closing_lock()").fetch_one(&mut *other).await.unwrap();
    assert!(is_ours);
    let ran = run(&db, &["close", "--due"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.starts_with("failed   arena rolling:366d-"), "{ran:?}");
    assert!(ran.out.contains("players_broken"), "{ran:?}");
    assert!(ran.out.ends_with("another process is closing periods; no period was closed\n"), "{ran:?}");
    assert!(ran.err.contains("error: periods that could not be closed or prepared: "), "{ran:?}");
}

/// Otherwise an archive would lack the scores of a lane whose row is missing, or of the lane after one
/// with two rows.
#[tokio::test]
async fn damaged_lane_rows_lead_to_no_wrong_archive() {
    let (db, _files) = board_with("week", &three_weeks()).await;
    let pool = db.pool().await;
    let first = ["--board", "arena", "--period", "week:2024-01-01"];
    for lane in [0, 1] {
        db.execute(&format!("DELETE FROM centile_store.board_lanes WHERE lane = {lane}")).await;
        let closed = run(&db, &[&["close"], &first[..]].concat());
        assert_eq!(closed.code, Some(1), "lane {lane}: {closed:?}");
        assert!(format!("{closed:?}").contains("a lane of the board has no row"), "lane {lane}: {closed:?}");
        run(&db, &[&["rebuild"], &first[..], &["--by", "dora"]].concat()).well();
    }
    db.execute(
        "INSERT INTO centile_store.board_lanes SELECT board_id, lane, batch + 7, last_at FROM centile_store.board_lanes WHERE lane = 0",
    )
    .await;
    run(&db, &["close", "--due"]).well();
    let found = archive(&pool, "arena_week_2024_01_01").await;
    assert_eq!(found, ranked(&pool, "2024-01-01Z", "2024-01-08Z").await);
    let refresh = [&["refresh"], &first[..], &["--by", "dora"]].concat();
    run(&db, &refresh).well();
    assert_eq!(archive(&pool, "arena_week_2024_01_01").await, found);
    db.execute("DELETE FROM centile_store.board_lanes WHERE lane = 1").await;
    run(&db, &refresh).refused(1, &["a lane of the board has no row"]);
    assert_eq!(archive(&pool, "arena_week_2024_01_01").await, found);
}

#[tokio::test]
async fn one_of_two_concurrent_closers_reports_the_other() {
    let (db, _files) = board_with("all_time,week,month", &three_weeks()).await;
    let pool = db.pool().await;
    let mut other = pool.acquire().await.unwrap();
    let is_ours: bool =
        sqlx::query_scalar("SELECT centile_store.try_closing_lock()").fetch_one(&mut *other).await.unwrap();
    assert!(is_ours);
    // Each waits three seconds before it reports the other.
    let one: &[&str] = &["close", "--board", "arena", "--period", "week:2024-01-01"];
    for child in [&["close", "--due"], one].map(|arguments| spawn(db.url(), arguments)) {
        let output = Ran::from(child.wait_with_output().unwrap()).well();
        assert_eq!(output, "another process is closing periods; no period was closed\n");
    }
    assert!(states(&pool).await.iter().all(|(_, state)| state == "open"));
    other.close().await.unwrap();

    // Two real closers: the second waits for the first and finds nothing to do, or reports that
    // another one is running.
    let both = [spawn(db.url(), &["close", "--due"]), spawn(db.url(), &["close", "--due"])];
    let both = both.map(|child| Ran::from(child.wait_with_output().unwrap()).well());
    let closed = |out: &String| out.matches("closed   ").count();
    assert_eq!(both.iter().map(closed).sum::<usize>(), 4, "{both:?}");
    assert!(both.iter().any(|out| closed(out) == 0), "{both:?}");
}

/// A close waits for changes of profiles before it takes the lock that writers need.
#[tokio::test]
async fn scores_are_written_while_a_close_waits_for_a_profile() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let session = db.hold("SELECT centile.put_user('wes', 'Wes')").await;
    let close = spawn(db.url(), &["close", "--board", "arena", "--period", "week:2024-01-01"]);
    db.until_waiting(1, || false).await;
    run(&db, &["score", "submit", "p1", "5", "--board", "arena"]).well();
    drop(session);
    Ran::from(close.wait_with_output().unwrap()).well();
}

#[tokio::test]
async fn a_difference_is_recorded_and_the_ledger_wins() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    let wanted = ranked(&pool, "2024-01-01Z", "2024-01-08Z").await;
    // One entry with another score, and one missing entry.
    db.execute(
        "SELECT testing.allow_damage();
         WITH entry AS (
             SELECT l.ranking_id, l.user_id, row_number() OVER (ORDER BY l.user_id) AS n
             FROM centile_store.leaderboard l JOIN centile_store.periods p ON p.ranking_id = l.ranking_id
             WHERE p.kind = 'week' AND p.label = '2024-01-01'
         ), changed AS (
             UPDATE centile_store.leaderboard l SET score = l.score + 1 FROM entry e
             WHERE e.n = 1 AND l.ranking_id = e.ranking_id AND l.user_id = e.user_id
         )
         DELETE FROM centile_store.leaderboard l USING entry e
         WHERE e.n = 2 AND l.ranking_id = e.ranking_id AND l.user_id = e.user_id",
    )
    .await;
    let ran = run(&db, &["close", "--board", "arena", "--period", "week:2024-01-01"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("2 DIFFERENCES"), "{ran:?}");
    // Logged once, and reported once as the reason of the failure.
    assert!(
        ran.err.contains("ERROR centile::periods::closing: the live ranking did not agree with the ledger"),
        "{ran:?}"
    );
    assert!(ran.err.contains("error: periods whose live ranking differed from the ledger: 1;"), "{ran:?}");
    assert_eq!(archive(&pool, "arena_week_2024_01_01").await, wanted);
    let found: Vec<(Option<i64>, Option<i64>)> = sqlx::query_as(
        "SELECT live_score - archive_score, live_score FROM centile_store.archive_differences ORDER BY user_id",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].0, Some(1));
    assert_eq!(found[1].1, None);
}

#[tokio::test]
async fn archives_have_unique_names() {
    let (db, files) = (TestDb::new().await, Files::new());
    let long = "a-board-with-a-name-as-long-as-it-may-be";
    let season = "a-season-with-a-name-as-long-as-can-be";
    for board in ["a-b", "a_b", long] {
        run(&db, &["board", "create", board, "--periods", "all_time,week", "--lanes", "1"]).well();
        for season in [season, "a_season-with-a-name-as-long-as-can-be"] {
            db.execute(&format!("SELECT centile.create_season('{board}', '{season}', '2024-01-01', '2024-01-05')"))
                .await;
        }
        import(&db, &files.write(&format!("{board}.csv"), three_weeks()), board, &[]).well(20, 0);
    }
    // `--due` skips seasons that were over when they were created, because an import may follow.
    // Naming them closes them.
    assert!(!run(&db, &["close", "--due"]).well().contains("season"));
    let pool = db.pool().await;
    let seasons: Vec<i64> =
        sqlx::query_scalar("SELECT id FROM centile_store.periods WHERE state = 'open' AND kind = 'season'")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(seasons.len(), 6);
    db.execute("UPDATE centile_store.rankings SET created_at = created_at - interval '1 hour'").await;
    run(&db, &["close", "--due"]).well();
    let names: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT b.slug, p.label, v.matviewname::text FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
         LEFT JOIN pg_matviews v ON v.schemaname = 'centile_archive' AND v.matviewname = p.archive_name
         WHERE p.kind <> 'all_time' ORDER BY p.id",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert_eq!(names.len(), 3 * 5);
    let different: std::collections::BTreeSet<&str> = names.iter().map(|(_, _, name)| name.as_str()).collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
    let name = |board: &str, label: &str| {
        names.iter().find(|(b, l, _)| b == board && l == label).map(|(_, _, name)| name.clone()).unwrap()
    };
    assert_eq!(name("a-b", "2024-01-08"), "a_b_week_2024_01_08");
    assert!(name("a_b", "2024-01-08").starts_with("a_b_week_2024_01_08_"), "{names:?}");
    assert_eq!(name(long, season).len(), 63);
    for (_, _, name) in &names {
        assert!(!archive(&pool, name).await.is_empty(), "{name}");
    }
}
