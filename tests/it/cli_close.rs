//! `close`, `refresh`, `correct`, `maintain` and what an import has to do with them.

use std::{fmt::Write as _, io::Write as _, time::Duration};

use sqlx::PgPool;

use crate::support::{Files, Ran, TestDb, import, run, spawn, spawn_import, spawn_serve};

/// Ten players over three weeks of January 2024, one of whom is level with another.
fn three_weeks() -> String {
    let mut file = String::from("id,user_id,points,occurred_at\n");
    for (n, day) in (1..=20).enumerate() {
        let (user, points) = (n % 10, (n * 7) % 30);
        writeln!(file, "e{n},p{user},{points},2024-01-{day:02}T12:00:00Z").unwrap();
    }
    file
}

/// So many lines of one point, over fifty players and twenty days of January 2024; without the header.
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

/// Players of an archive in their order, with rank and score.
async fn archive(pool: &PgPool, name: &str) -> Vec<(i64, String, i64)> {
    let statement = format!(
        "SELECT a.rank, u.external_id, a.score FROM centile_archive.{name} a JOIN centile_store.users u ON u.id = a.user_id ORDER BY a.position"
    );
    sqlx::query_as(sqlx::AssertSqlSafe(statement)).fetch_all(pool).await.unwrap()
}

/// The same from the ledger, by PostgreSQL's own `rank()`.
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

#[tokio::test]
async fn what_is_over_is_closed_once() {
    let (db, _files) = board_with("all_time,week,month", &three_weeks()).await;
    let pool = db.pool().await;
    let one = run(&db, &["close", "--board", "arena", "--period", "week:2024-01-08"]).well();
    assert!(one.starts_with("closed   arena week:2024-01-08: 7 players"), "{one}");
    let again = run(&db, &["close", "--board", "arena", "--period", "week:2024-01-08"]).well();
    assert_eq!(again, "nothing  arena week:2024-01-08: closed already\n");
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
    let told: i64 = sqlx::query_scalar("SELECT count(*) FROM centile_store.outbox").fetch_one(&pool).await.unwrap();
    assert_eq!(told, 4);
}

#[tokio::test]
async fn what_cannot_be_closed_is_said() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let close = |period| run(&db, &["close", "--board", "arena", "--period", period]);
    close("week").refused(1, &["is not over yet", "ends at"]);
    close("all_time").refused(1, &["all_time", "never ends"]);
    close("day:2024-01-15").refused(1, &["day:2024-01-15", "keeps none"]);
    close("week:2024-01-16").refused(2, &["weeks are named by their Monday"]);
    assert_eq!(close("week:2023-01-02").well(), "nothing  arena week:2023-01-02: nobody has scored in it\n");
    run(&db, &["close"]).refused(2, &["--due"]);
    run(&db, &["close", "--due", "--board", "arena"]).refused(2, &["cannot be used with"]);
    run(&db, &["close", "--board", "arena"]).refused(2, &["--period"]);
    run(&db, &["close", "--board", "none", "--period", "week"]).refused(1, &["no board \"none\""]);
    run(&db, &["refresh", "--board", "arena", "--period", "week:2024-01-01", "--by", "dora"])
        .refused(1, &["week:2024-01-01 of board arena is not closed"]);
}

#[tokio::test]
async fn a_step_out_of_turn_is_refused() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    let all_time = "(SELECT id FROM centile_store.periods WHERE kind = 'all_time')";
    let week = "(SELECT min(id) FROM centile_store.periods WHERE kind = 'week')";
    let refused = async |call: String, words: &str| {
        let statement = format!("SELECT centile_store.{call}");
        let error = sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&pool).await.unwrap_err();
        assert!(error.to_string().contains(words), "{call}: {error}");
    };
    refused(format!("cut_off_period({all_time})"), "not over yet").await;
    for step in ["build_archive", "compare_archive"] {
        refused(format!("{step}({week})"), "not cut off yet").await;
    }
    refused(format!("refresh_archive({week}, 'x', 'x')"), "not closed").await;
    refused(format!("drop_archive({week}, false)"), "not closed").await;
    run(&db, &["close", "--due"]).well();
    for step in ["cut_off_period", "build_archive", "compare_archive"] {
        refused(format!("{step}({week})"), "closed").await;
    }
    refused(format!("finish_close({week}, now())"), "closed already").await;
    refused(format!("drop_archive({week}, true)"), "still read").await;
    assert_eq!(count(&pool, CLOSED).await, 3);
}

#[tokio::test]
async fn an_import_calls_off_a_closing_that_has_begun() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    let week: i64 = sqlx::query_scalar("SELECT min(id) FROM centile_store.periods WHERE kind = 'week'")
        .fetch_one(&pool)
        .await
        .unwrap();
    let cut_off = async || -> Option<chrono::DateTime<chrono::Utc>> {
        sqlx::query_scalar("SELECT centile_store.cut_off_period($1)").bind(week).fetch_one(&pool).await.unwrap()
    };
    let finish = async |at: chrono::DateTime<chrono::Utc>| -> bool {
        sqlx::query_scalar("SELECT centile_store.finish_close($1, $2)")
            .bind(week)
            .bind(at)
            .fetch_one(&pool)
            .await
            .unwrap()
    };
    let at = cut_off().await.unwrap();
    sqlx::query("SELECT centile_store.build_archive($1)").bind(week).execute(&pool).await.unwrap();
    let first = at;
    let at = cut_off().await.unwrap();
    assert!(at > first, "each try takes a cut-off of its own");
    assert!(!finish(first).await, "which only its own archive closes with");
    let late = async || -> String {
        sqlx::query_scalar(
            "SELECT outcome FROM centile_store.record_scores(1, (centile.lane_hash('p1') % 2)::smallint, '{p1}', '{500}', '{}', '{}', '{}', '{2024-01-03 12:00Z}')",
        )
        .fetch_one(&pool)
        .await
        .unwrap()
    };
    assert_eq!(late().await, "period_closed", "nothing enters after the cut-off");
    sqlx::query("SELECT centile_store.build_archive($1)").bind(week).execute(&pool).await.unwrap();
    let import: i64 =
        sqlx::query_scalar("SELECT centile_store.begin_import(1, 'more.csv')").fetch_one(&pool).await.unwrap();
    assert!(!finish(at).await);
    assert_eq!(cut_off().await, None, "not while an import is announced");
    // What the import brings is in the archive that is built after it.
    assert_eq!(late().await, "accepted");
    sqlx::query("SELECT centile_store.end_import($1)").bind(import).execute(&pool).await.unwrap();
    run(&db, &["close", "--due"]).well();
    let first = archive(&pool, "arena_week_2024_01_01").await;
    assert_eq!(first, ranked(&pool, "2024-01-01Z", "2024-01-08Z").await);
    assert!(first[0].2 >= 500, "{first:?}");
}

#[tokio::test]
async fn of_two_closers_one_works_and_the_other_says_so() {
    let (db, _files) = board_with("all_time,week,month", &three_weeks()).await;
    let pool = db.pool().await;
    let mut other = pool.acquire().await.unwrap();
    let is_ours: bool =
        sqlx::query_scalar("SELECT centile_store.try_closing_lock()").fetch_one(&mut *other).await.unwrap();
    assert!(is_ours);
    let told = run(&db, &["close", "--due"]).well();
    assert_eq!(told, "another centile closes periods just now; nothing was done here\n");
    let told = run(&db, &["close", "--board", "arena", "--period", "week:2024-01-01"]).well();
    assert_eq!(told, "another centile closes periods just now; nothing was done here\n");
    assert!(states(&pool).await.iter().all(|(_, state)| state == "open"));
    other.close().await.unwrap();

    // For real: whoever comes second waits for the first, and finds nothing, or says who is at it.
    let both = [spawn(db.url(), &["close", "--due"]), spawn(db.url(), &["close", "--due"])];
    let both = both.map(|child| Ran::from(child.wait_with_output().unwrap()).well());
    let closed = |out: &String| out.matches("closed   ").count();
    assert_eq!(both.iter().map(closed).sum::<usize>(), 4, "{both:?}");
    assert!(both.iter().any(|out| closed(out) == 0), "{both:?}");
}

#[tokio::test]
async fn a_difference_is_recorded_and_the_ledger_wins() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    let wanted = ranked(&pool, "2024-01-01Z", "2024-01-08Z").await;
    // One score of another value, one entry that is gone.
    db.execute(
        "WITH entry AS (
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
    // Once in the log, once as the reason of the failure.
    assert!(ran.err.contains("ERROR centile::closing: the live ranking did not agree with the ledger"), "{ran:?}");
    assert!(ran.err.contains("error: in 1 periods the live ranking did not agree"), "{ran:?}");
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

/// Waits until `done` says so.
async fn wait_for(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.unwrap_or_else(|_| panic!("{what} does not happen"));
}

async fn count(pool: &PgPool, statement: &'static str) -> i64 {
    sqlx::query_scalar(statement).fetch_one(pool).await.unwrap()
}

const EVENTS: &str = "SELECT count(*) FROM centile_store.score_transactions";
const CLOSED: &str = "SELECT count(*) FROM centile_store.periods WHERE state = 'closed'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_into_the_past_is_waited_for() {
    let (db, files) = (TestDb::new().await, Files::new());
    run(&db, &["board", "create", "arena", "--periods", "all_time,day,week", "--lanes", "2"]).well();
    run(&db, &["board", "create", "other", "--periods", "all_time,week", "--lanes", "1"]).well();
    assert_eq!(import(&db, &files.write("other.csv", three_weeks()), "other", &[]).code, Some(0));
    let pool = db.pool().await;
    let serve = spawn_serve(&db, None, &["--maintenance-every", "1"]).await;
    let rejects = files.path("rejects.csv");
    let flags = ["--format", "csv", "--batch-size", "50", "--rejects", rejects.to_str().unwrap()];
    let mut child = spawn_import(&db, std::path::Path::new("-"), "arena", &flags);
    let mut input = child.stdin.take().unwrap();
    let file = three_weeks();
    // Enough for a chunk to be handed on, twice: lines of January 2024, which are due as soon as they are there.
    let many = lines(24_000);
    input.write_all(file.as_bytes()).unwrap();
    let (first, second) = many.split_at(many.len() / 2);
    let second = &second[second.find('\n').unwrap() + 1..];
    let cut = many.len() - second.len();
    let writer = std::thread::spawn({
        let first = first[..].to_owned() + &many[first.len()..cut];
        move || {
            input.write_all(first.as_bytes()).unwrap();
            input
        }
    });
    wait_for("the first lines", async || count(&pool, EVENTS).await > 1_000).await;
    // The timer has closed the other board's weeks, so it has looked at these periods too.
    wait_for("closing the other board", async || count(&pool, CLOSED).await == 3).await;
    let told = run(&db, &["close", "--due"]).well();
    assert!(told.contains("waiting  arena day:2024-01-01: stdin is being imported"), "{told}");
    run(&db, &["import", "--abandon", "--board", "arena"]).refused(1, &["stdin", "is running"]);

    let mut input = writer.join().unwrap();
    let second = second.to_owned();
    std::thread::spawn(move || input.write_all(second.as_bytes()).unwrap()).join().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!rejects.exists());
    assert_eq!(count(&pool, EVENTS).await, 20 + 20 + 24_000);
    // And now they are closed, 20 days and 3 weeks more.
    wait_for("closing", async || count(&pool, CLOSED).await == 3 + 23).await;
    let numbers = serve.client.get(serve.at("/metrics")).send().await.unwrap().text().await.unwrap();
    for line in ["centile_periods_closed_total 26", "centile_archive_differences_total 0", "centile_periods_due 0"] {
        assert!(numbers.lines().any(|there| there == line), "{line} is not in {numbers}");
    }
    let arena = "SELECT count(*) FROM centile_archive.arena_week_2024_01_01";
    let wanted = "SELECT count(DISTINCT user_id) FROM centile_store.score_transactions
        WHERE board_id = 1 AND occurred_at >= '2024-01-01Z' AND occurred_at < '2024-01-08Z'";
    assert_eq!(count(&pool, arena).await, count(&pool, wanted).await);
    drop(serve);
    assert_eq!(run(&db, &["close", "--due"]).well(), "nothing is due\n");
}

#[tokio::test]
async fn an_import_that_was_cut_short_is_run_again_or_given_up() {
    let (db, files) = (TestDb::new().await, Files::new());
    run(&db, &["board", "create", "arena", "--periods", "all_time,week", "--lanes", "1"]).well();
    let pool = db.pool().await;
    let many = lines(50_000);
    let file = files.write("many.csv", format!("id,user_id,points,occurred_at\n{many}"));
    for is_given_up in [false, true] {
        let mut child = spawn_import(&db, &file, "arena", &["--batch-size", "10"]);
        let before = count(&pool, EVENTS).await;
        wait_for("the import", async || is_given_up || count(&pool, EVENTS).await > before).await;
        wait_for("its announcement", async || {
            count(&pool, "SELECT count(*) FROM centile_store.imports WHERE ended_at IS NULL").await == 1
        })
        .await;
        child.kill().unwrap();
        child.wait().unwrap();
        let ran = run(&db, &["close", "--due"]);
        if is_given_up {
            let told = run(&db, &["import", "--abandon", "--board", "arena"]).well();
            assert!(told.starts_with("1 import of board arena given up"), "{told}");
            assert!(run(&db, &["close", "--due"]).code == Some(0));
            assert_eq!(count(&pool, CLOSED).await, 3);
        } else {
            assert_eq!(ran.code, Some(1), "{ran:?}");
            assert!(ran.out.contains("many.csv was cut short"), "{ran:?}");
            assert!(ran.err.contains("--abandon"), "{ran:?}");
            assert_eq!(count(&pool, CLOSED).await, 0);
            assert_eq!(import(&db, &file, "arena", &[]).code, Some(0));
            assert_eq!(count(&pool, "SELECT count(*) FROM centile_store.imports WHERE ended_at IS NOT NULL").await, 1);
        }
    }
    assert_eq!(count(&pool, EVENTS).await, 50_000);
    assert_eq!(
        run(&db, &["import", "--abandon", "--board", "arena"]).well(),
        "no import of board arena was cut short\n"
    );
}

#[tokio::test]
async fn late_lines_are_refused_and_corrections_are_taken_in_by_a_refresh() {
    let (db, files) = board_with("all_time,week,month", &three_weeks()).await;
    let pool = db.pool().await;
    run(&db, &["close", "--board", "arena", "--period", "week:2024-01-08"]).well();
    let before = archive(&pool, "arena_week_2024_01_08").await;
    let late = "id,user_id,points,occurred_at\nl1,p1,1000,2024-01-09T12:00:00Z\nl2,p1,5,2024-01-02T12:00:00Z\n";
    let imported = import(&db, &files.write("late.csv", late), "arena", &[]);
    assert_eq!(imported.code, Some(1), "{imported:?}");
    let rejects = imported.rejects.as_ref().unwrap();
    assert_eq!(rejects.keys().copied().collect::<Vec<_>>(), [2]);
    assert!(rejects[&2].0.contains("closed"), "{rejects:?}");

    // The month is open and shows it at once; the week once it is refreshed.
    let month = async || {
        let page: Vec<(String, i64)> =
            sqlx::query_as("SELECT user_id, score FROM centile.page('arena', 'month:2024-01', 1, 100)")
                .fetch_all(&pool)
                .await
                .unwrap();
        page.into_iter().find(|(user, _)| user == "p1").unwrap().1
    };
    let was = month().await;
    let correct = ["correct", "p1", "-3", "--board", "arena", "--at", "2024-01-09T12:00:00Z"];
    let told = run(&db, &[&correct[..], &["--reason", "counted twice", "--by", "dora"]].concat()).well();
    assert!(told.ends_with("centile refresh --board arena --period week:2024-01-08\n"), "{told}");
    assert_eq!(month().await, was - 3);
    assert_eq!(archive(&pool, "arena_week_2024_01_08").await, before);
    let refresh =
        ["refresh", "--board", "arena", "--period", "week:2024-01-08", "--by", "dora", "--reason", "counted twice"];
    let told = run(&db, &refresh).well();
    assert_eq!(told, "refreshed arena week:2024-01-08: revision 2, 7 players\n");
    let after = archive(&pool, "arena_week_2024_01_08").await;
    assert_ne!(after, before);
    assert_eq!(after, ranked(&pool, "2024-01-08Z", "2024-01-15Z").await);
    let needs_refresh = async || -> bool {
        sqlx::query_scalar(
            "SELECT needs_refresh FROM centile.period_status WHERE kind = 'week' AND label = '2024-01-08'",
        )
        .fetch_one(&pool)
        .await
        .unwrap()
    };
    assert!(!needs_refresh().await);
    let event: i64 = sqlx::query_scalar(
        "SELECT min(id) FROM centile_store.score_transactions WHERE occurred_at >= '2024-01-08Z' AND occurred_at < '2024-01-15Z'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    run(&db, &["score", "void", &event.to_string(), "--board", "arena"]).well();
    assert!(needs_refresh().await, "a void waits for a refresh");
    assert_eq!(archive(&pool, "arena_week_2024_01_08").await, after);
    let audited: Vec<(String, String, String)> =
        sqlx::query_as("SELECT actor, action, subject FROM centile_store.audit_log ORDER BY id")
            .fetch_all(&pool)
            .await
            .unwrap();
    let line = |action: &str, subject: &str| ("dora".to_owned(), action.to_owned(), subject.to_owned());
    assert_eq!(audited, [line("correct", "p1"), line("refresh", "week:2024-01-08")]);

    for (arguments, words) in [
        (
            ["correct", "nobody", "1", "--board", "arena", "--at", "2024-01-09T12:00:00Z", "--reason", "x"],
            ["nobody", "user"],
        ),
        (["correct", "p1", "1", "--board", "arena", "--at", "2099-01-09T12:00:00Z", "--reason", "x"], ["--at", "now"]),
        (["correct", "p1", "1", "--board", "none", "--at", "2024-01-09T12:00:00Z", "--reason", "x"], ["none", "board"]),
    ] {
        run(&db, &[&arguments[..], &["--by", "dora"]].concat()).refused(1, &words);
    }
    assert_eq!(count(&pool, EVENTS).await, 23);
}

#[tokio::test]
async fn archives_beyond_retention_go_and_the_ledger_stays() {
    let (db, _files) = board_with("all_time,week,month", &three_weeks()).await;
    let pool = db.pool().await;
    run(&db, &["close", "--due"]).well();
    let views = "SELECT count(*) FROM pg_matviews WHERE schemaname = 'centile_archive'";
    assert!(run(&db, &["maintain"]).well().contains("archives    0 dropped"));
    assert_eq!(count(&pool, views).await, 4);
    assert_eq!(count(&pool, "SELECT count(*) FROM centile_store.rankings").await, 1);
    for rows in [
        "SELECT count(*) FROM centile_store.leaderboard",
        "SELECT count(*) FROM centile_store.leaderboard_bucket",
        "SELECT sum(c)::bigint FROM centile_store.bucket_counts, unnest(counts) c",
        "SELECT sum(c)::bigint FROM centile_store.stripe_counts, unnest(counts) c",
    ] {
        assert_eq!(count(&pool, rows).await, 10, "only the players of all time are left: {rows}");
    }
    db.execute("UPDATE centile_store.boards SET kept_archives = '{\"week\": 1}'").await;
    let told = run(&db, &["maintain"]).well();
    assert!(
        told.contains("dropped arena week:2024-01-01\n") && told.contains("dropped arena week:2024-01-08\n"),
        "{told}"
    );
    assert!(run(&db, &["maintain"]).well().contains("archives    0 dropped"));
    let left: Vec<String> =
        sqlx::query_scalar("SELECT matviewname::text FROM pg_matviews WHERE schemaname = 'centile_archive' ORDER BY 1")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(left, ["arena_month_2024_01", "arena_week_2024_01_15"]);
    assert_eq!(count(&pool, EVENTS).await, 20);
    run(&db, &["refresh", "--board", "arena", "--period", "week:2024-01-01", "--by", "dora"]).refused(1, &["dropped"]);
}

#[tokio::test]
async fn archives_have_names_of_their_own() {
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
    // Seasons that were over when they were made wait for an import, unless they are asked for.
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

#[tokio::test]
async fn acts_between_cut_off_and_close_are_taken_in_or_marked() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    let first = |rows: &[(i64, String, i64)]| rows[0].1.clone();
    let best = first(&ranked(&pool, "2024-01-01Z", "2024-01-08Z").await);
    let week = "(SELECT min(id) FROM centile_store.periods WHERE kind = 'week')";
    // A closer that died after its cut-off; the next one takes the ban in.
    db.execute(&format!("SELECT centile_store.cut_off_period({week})")).await;
    db.execute(&format!("SELECT centile.ban_user('arena', '{best}', true)")).await;
    run(&db, &["close", "--board", "arena", "--period", "week:2024-01-01"]).well();
    let rows = archive(&pool, "arena_week_2024_01_01").await;
    assert!(rows.iter().all(|(_, user, _)| *user != best), "{best} is in {rows:?}");

    // One that goes on at its own cut-off: the archive does not hold the act, and says so.
    let second = first(&ranked(&pool, "2024-01-08Z", "2024-01-15Z").await);
    let week = "(SELECT id FROM centile_store.periods WHERE kind = 'week' AND label = '2024-01-08')";
    let at: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT centile_store.cut_off_period({week})")))
            .fetch_one(&pool)
            .await
            .unwrap();
    db.execute(&format!("SELECT centile.ban_user('arena', '{second}', true)")).await;
    db.execute(&format!("SELECT centile_store.build_archive({week})")).await;
    let differences: i64 =
        sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT centile_store.compare_archive({week})")))
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(differences, 0, "later acts are no differences");
    let finish = format!("SELECT centile_store.finish_close({week}, $1)");
    sqlx::query(sqlx::AssertSqlSafe(finish)).bind(at).execute(&pool).await.unwrap();
    let needs_refresh = "SELECT count(*) FROM centile.archive_index WHERE needs_refresh";
    assert_eq!(count(&pool, needs_refresh).await, 1);
    run(&db, &["refresh", "--board", "arena", "--period", "week:2024-01-08", "--by", "dora"]).well();
    assert_eq!(count(&pool, needs_refresh).await, 0);
    let rows = archive(&pool, "arena_week_2024_01_08").await;
    assert!(rows.iter().all(|(_, user, _)| *user != second), "{second} is in {rows:?}");
}

#[tokio::test]
async fn a_refresh_does_not_hide_a_correction_that_came_too_late_for_it() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    run(&db, &["close", "--due"]).well();
    let pool = db.pool().await;
    let mut correction = pool.begin().await.unwrap();
    sqlx::query("SELECT centile.correct_score('arena', 'p1', 1, '2024-01-09 12:00Z', 'late', 'dora')")
        .execute(&mut *correction)
        .await
        .unwrap();
    let refresh = spawn(db.url(), &["refresh", "--board", "arena", "--period", "week:2024-01-08", "--by", "dora"]);
    // It has taken its cut-off, and waits for the period's row.
    wait_for("the refresh", async || {
        count(
            &pool,
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%refresh_archive%' AND wait_event_type = 'Lock'",
        )
        .await
            == 1
    })
    .await;
    correction.commit().await.unwrap();
    Ran::from(refresh.wait_with_output().unwrap()).well();
    assert_eq!(count(&pool, "SELECT archives_to_refresh FROM centile.upkeep").await, 1);
    run(&db, &["refresh", "--board", "arena", "--period", "week:2024-01-08", "--by", "dora"]).well();
    assert_eq!(count(&pool, "SELECT archives_to_refresh FROM centile.upkeep").await, 0);
}

#[tokio::test]
async fn an_archive_that_is_being_read_is_dropped_later_and_holds_up_no_other() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    run(&db, &["close", "--due"]).well();
    run(&db, &["board", "change", "arena", "--keep", "week=1"]).well();
    let pool = db.pool().await;
    let mut reader = pool.begin().await.unwrap();
    sqlx::query("SELECT count(*) FROM centile_archive.arena_week_2024_01_01").execute(&mut *reader).await.unwrap();
    let told = run(&db, &["maintain"]).well();
    assert!(told.contains("arena week:2024-01-01 could not be dropped yet: somebody else uses it"), "{told}");
    assert!(told.contains("dropped arena week:2024-01-08\n"), "{told}");
    reader.rollback().await.unwrap();
    assert!(run(&db, &["maintain"]).well().contains("dropped arena week:2024-01-01\n"));
    // What is gone is not to be refreshed.
    let correct =
        ["correct", "p1", "-3", "--board", "arena", "--at", "2024-01-03T12:00:00Z", "--reason", "x", "--by", "dora"];
    assert_eq!(run(&db, &correct).well().lines().count(), 1);
}

#[tokio::test]
async fn a_correction_that_no_archive_could_hold_is_refused() {
    let (db, _files) = board_with("week", &three_weeks()).await;
    run(&db, &["close", "--due"]).well();
    let most = i64::MAX.to_string();
    let correct =
        ["correct", "p1", &most, "--board", "arena", "--at", "2024-01-09T12:00:00Z", "--reason", "x", "--by", "dora"];
    run(&db, &correct).refused(1, &["range of 64 bits"]);
    run(&db, &["refresh", "--board", "arena", "--period", "week:2024-01-08", "--by", "dora"]).well();
}

#[tokio::test]
async fn an_import_that_lost_its_announcement_stops() {
    let (db, files) = (TestDb::new().await, Files::new());
    run(&db, &["board", "create", "arena", "--periods", "all_time,week", "--lanes", "1"]).well();
    let pool = db.pool().await;
    let file = files.write("many.csv", format!("id,user_id,points,occurred_at\n{}", lines(50_000)));
    let child = spawn_import(&db, &file, "arena", &["--batch-size", "10"]);
    wait_for("the import", async || count(&pool, EVENTS).await > 0).await;
    let ended: bool = sqlx::query_scalar(
        "SELECT pg_terminate_backend(l.pid) FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = 1128615509
           AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert!(ended);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the connection that announces the import was lost"), "{ran:?}");
    assert!(count(&pool, EVENTS).await < 50_000);
}
