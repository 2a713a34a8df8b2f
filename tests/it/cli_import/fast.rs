//! `centile import --fast` beside the ordinary import: the same file, the same result.

use std::collections::BTreeMap;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::{Value, json};
use sqlx::{PgPool, query_as, query_scalar};

use super::{ledger_rows, made_up, make_board, names, same_standings};
use crate::support::{
    Files, TestDb, amount, audit::rankings_are_sound, import, make_key, run, spawn_import, spawn_serve, wait,
};

const HEADER: &str = "id,user_id,user_name,points,occurred_at,reason,tiebreak\n";

/// Lines with everything that a file can hold: times on both sides of a season's start and end, in several zones and in no
/// order, equal times and points, repeated ids with the same and with other content, and invalid lines.
fn random_file(seed: u64, events: u32, with_tiebreaks: bool) -> String {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut text = HEADER.to_owned();
    for event in 0..events {
        let player = rng.random_range(0..events / 12);
        let points = rng.random_range(-3..12);
        let name = ["", "Zoë \\ B", "\"Tab, or not\"", "Ann"][rng.random_range(0..4)];
        let zone = ["Z", "+01:00", "-09:30", "+05:45"][rng.random_range(0..4)];
        let (month, days) = [(1, 9..12), (2, 3..7)][rng.random_range(0..2)].clone();
        let days = amount(days, 1..29);
        let (day, minute) = (rng.random_range(days), rng.random_range(0..1_440) / 30 * 30);
        let at = format!("2024-{month:02}-{day:02}T{:02}:{:02}:00{zone}", minute / 60, minute % 60);
        let reason = ["", "won", "\"a, b\"", "back\\slash"][rng.random_range(0..4)];
        let tiebreak =
            if with_tiebreaks && rng.random_bool(0.5) { rng.random_range(-4..4).to_string() } else { String::new() };
        let id = if rng.random_bool(0.8) { format!("e{event}") } else { String::new() };
        let line = format!("{id},p{player},{name},{points},{at},{reason},{tiebreak}\n");
        text.push_str(&line);
        let another = match rng.random_range(0..40) {
            // The same again, if it has an id.
            0 | 1 if !id.is_empty() => line,
            2 if !id.is_empty() => format!("{id},p{player},,{},{at},,\n", points + 1),
            3 => format!("x{event},p{player},,1.5,{at},,\n"),
            4 => format!("x{event},banned,,1,{at},,\n"),
            5 => format!("y{event},p{player},,1,2090-01-01T00:00:00Z,,\n"),
            6 => format!("z{event},p{player},,1000000,{at},,\n"),
            _ => String::new(),
        };
        text.push_str(&another);
    }
    text
}

/// Ids that are known on a board, each with the event that it belongs to.
async fn ids(pool: &PgPool, board: &str) -> BTreeMap<(String, String), String> {
    let rows: Vec<(String, String, String)> = query_as(
        "SELECT u.external_id, i.external_id, concat_ws(' ', t.points, t.tiebreak, t.reason, t.occurred_at)
         FROM centile_store.transaction_ids i
         JOIN centile_store.boards b ON b.id = i.board_id
         JOIN centile_store.users u ON u.id = i.user_id
         JOIN centile_store.score_transactions t
             ON t.board_id = b.id AND t.user_id = i.user_id AND t.id = i.transaction_id AND t.occurred_at = i.occurred_at
         WHERE b.slug = $1 AND i.expires_at IS NULL AND coalesce(i.standings, '{}') = '{}'",
    )
    .bind(board)
    .fetch_all(pool)
    .await
    .unwrap();
    rows.into_iter().map(|(user, id, event)| ((user, id), event)).collect()
}

/// Position, rank and player of every period of a board.
async fn ranks(pool: &PgPool, board: &str) -> Vec<(String, i64, i64, String, i64)> {
    query_as(
        "SELECT p.kind || ':' || p.label, r.position, r.rank, r.user_id, r.score
         FROM centile.periods p
         CROSS JOIN LATERAL centile.ranking(p.board, CASE p.kind WHEN 'all_time' THEN p.kind ELSE p.kind || ':' || p.label END) r
         WHERE p.board = $1 ORDER BY 1, 2",
    )
    .bind(board)
    .fetch_all(pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn it_brings_what_the_ordinary_import_brings() {
    let (db, files) = (TestDb::new().await, Files::new());
    let pool = db.pool().await;
    run(&db, &["user", "set", "banned"]).well();
    run(&db, &["user", "ban", "banned"]).well();
    let seed = rand::random();
    for (number, (mode, order, ties)) in [
        ("sum", "desc", "shared"),
        ("sum", "asc", "first"),
        ("best", "desc", "tiebreak"),
        ("best", "asc", "shared"),
        ("latest", "desc", "first"),
        ("latest", "asc", "tiebreak"),
    ]
    .into_iter()
    .enumerate()
    {
        let seed = u64::wrapping_add(seed, number as u64);
        eprintln!("seed {seed}: {mode}, {order}, {ties}");
        let (fast, slow) = (format!("fast{number}"), format!("slow{number}"));
        for board in [&fast, &slow] {
            let lanes = (number % 3 + 1).to_string();
            // Rankings are what costs: each kind of period on half of the boards.
            let periods = amount(["all_time,day", "all_time,week,month"][number % 2], "all_time,day,week,month");
            let flags = [
                "--mode",
                mode,
                "--order",
                order,
                "--ties",
                ties,
                "--lanes",
                &lanes,
                "--points-min",
                "-100",
                "--points-max",
                "1000",
                "--time-zone",
                "America/Havana",
                "--periods",
                periods,
            ];
            make_board(&db, board, &flags);
            let season = "SELECT centile.create_season($1, 'winter', '2024-01-10 12:30Z', '2024-02-05 03:00Z')";
            sqlx::query(season).bind(board.as_str()).execute(&pool).await.unwrap();
        }
        let file = files.write("scores.csv", random_file(seed, amount(480, 1_200), ties == "tiebreak"));
        let (one, other) =
            (import(&db, &file, &fast, &["--fast"]), import(&db, &file, &slow, &["--batch-size", "5000"]));
        let counts = ["read", "accepted", "repeated", "rejected"];
        assert_eq!(counts.map(|name| one.count(name)), counts.map(|name| other.count(name)), "{one:?} {other:?}");
        assert!(one.count("repeated") > 0 && one.count("rejected") > 0, "{one:?}");
        assert_eq!(one.code, other.code);
        let at_board = |rejects: &BTreeMap<u64, (String, String)>| -> Vec<_> {
            rejects.iter().map(|(line, (reason, raw))| (*line, reason.replace(&fast, &slow), raw.clone())).collect()
        };
        assert_eq!(at_board(one.rejects.as_ref().unwrap()), at_board(other.rejects.as_ref().unwrap()));
        same_standings(&db, &fast, &slow).await;
        assert_eq!(ranks(&pool, &fast).await, ranks(&pool, &slow).await);
        let (ours, theirs) = (ids(&pool, &fast).await, ids(&pool, &slow).await);
        assert!(ours == theirs && !ours.is_empty(), "{} ids and {}", ours.len(), theirs.len());
        let batches = "SELECT batch, last_at FROM centile_store.board_lanes l JOIN centile_store.boards b ON b.id = l.board_id WHERE b.slug = $1 ORDER BY lane";
        let lanes: Vec<(i64, chrono::DateTime<chrono::Utc>)> =
            query_as(batches).bind(&fast).fetch_all(&pool).await.unwrap();
        assert!(lanes.iter().all(|(batch, _)| *batch == 1), "{lanes:?}");
        assert_eq!(
            query_scalar::<_, i64>("SELECT count(*) FROM centile_store.boards WHERE loading_import_id IS NOT NULL")
                .fetch_one(&pool)
                .await
                .unwrap(),
            0
        );
        // The ordinary import finds all that has an id there already.
        let with_ids: String = std::fs::read_to_string(&file)
            .unwrap()
            .lines()
            .filter(|line| !line.starts_with(','))
            .flat_map(|line| [line, "\n"])
            .collect();
        let again = import(&db, &files.write("again.csv", with_ids), &fast, &[]);
        assert_eq!(
            (again.count("accepted"), again.count("rejected")),
            (0, one.rejects.unwrap().values().filter(|(_, raw)| !raw.starts_with(',')).count() as u64),
            "{again:?}"
        );
    }
    assert!(rankings_are_sound(&pool).await > amount(80, 300));
    // Closing finds no difference between the rankings and the ledger.
    run(&db, &["close", "--due"]).well();
    let differences =
        "SELECT coalesce(sum(archive_differences), -1)::bigint FROM centile_store.periods WHERE state = 'closed'";
    assert_eq!(query_scalar::<_, i64>(differences).fetch_one(&pool).await.unwrap(), 0);
    for number in 0..6 {
        assert_eq!(
            ranks(&pool, &format!("fast{number}")).await,
            ranks(&pool, &format!("slow{number}")).await,
            "closed, {number}"
        );
    }
}

#[tokio::test]
async fn lines_without_a_time_count_now_and_names_are_the_first_or_the_last() {
    let (db, files) = (TestDb::new().await, Files::new());
    let file = files.write("now.csv", "user_id,user_name,points\nann,,1\nann,Ann,2\nann,Anna,4\nbob,,8\n");
    make_board(&db, "main", &["--periods", "all_time,day"]);
    import(&db, &file, "main", &["--fast"]).well(4, 0);
    assert_eq!(names(&db).await, json!({"ann": "Ann", "bob": "bob"}));
    let pool = db.pool().await;
    let recent = "SELECT count(*) FROM centile_store.score_transactions WHERE occurred_at BETWEEN now() - interval '1 hour' AND now()";
    assert_eq!(query_scalar::<_, i64>(recent).fetch_one(&pool).await.unwrap(), 4);
    let today = "SELECT string_agg(user_id || score, ' ' ORDER BY rank) FROM centile.ranking('main', 'day')";
    assert_eq!(query_scalar::<_, String>(today).fetch_one(&pool).await.unwrap(), "bob8 ann7");
    make_board(&db, "other", &["--periods", "all_time"]);
    import(&db, &file, "other", &["--fast", "--update-names"]).well(4, 0);
    assert_eq!(names(&db).await, json!({"ann": "Anna", "bob": "bob"}));
    // An empty file is a load as well, and leaves the board as it was: another one may follow.
    make_board(&db, "third", &[]);
    import(&db, &files.write("empty.csv", HEADER), "third", &["--fast"]).well(0, 0);
    import(&db, &file, "third", &["--fast"]).well(4, 0);
    rankings_are_sound(&pool).await;
}

#[tokio::test]
async fn it_is_refused_where_there_are_events_and_for_sums_out_of_range() {
    let (db, files) = (TestDb::new().await, Files::new());
    make_board(&db, "main", &["--periods", "all_time", "--points-max", "9223372036854775807"]);
    let huge = files.write("huge.csv", "user_id,points\nann,9223372036854775807\nbob,3\nann,1\n");
    let refused = import(&db, &huge, "main", &["--fast"]);
    assert_eq!((refused.code, refused.count("accepted")), (Some(1), 0), "{refused:?}");
    assert!(
        refused.err.contains("the score of player 'ann' in all_time would leave the range of 64 bits"),
        "{refused:?}"
    );
    assert_eq!(ledger_rows(&db, "main").await, 0);
    let file = files.write("one.csv", "user_id,points\nann,1\n");
    import(&db, &file, "main", &["--fast"]).well(1, 0);
    let refused = import(&db, &file, "main", &["--fast"]);
    assert!(refused.code == Some(1) && refused.err.contains("board main has events already"), "{refused:?}");
    import(&db, &file, "main", &[]).well(1, 0);
    let open = "SELECT count(*) FROM centile_store.imports WHERE ended_at IS NULL AND abandoned_at IS NULL";
    assert_eq!(query_scalar::<_, i64>(open).fetch_one(&db.pool().await).await.unwrap(), 0);
}

/// A load that stands still: its input does not end.
fn half_a_load(db: &TestDb, files: &Files, lines: &str) -> (std::process::Child, std::process::ChildStdin) {
    use std::io::Write as _;
    let rejects = files.path("half.rejects.csv");
    let flags = ["--fast", "--format", "csv", "--rejects", rejects.to_str().unwrap()];
    let mut child = spawn_import(db, std::path::Path::new("-"), "main", &flags);
    let mut input = child.stdin.take().unwrap();
    input.write_all(lines.as_bytes()).unwrap();
    (child, input)
}

async fn until(what: &str, pool: &PgPool, condition: &'static str) {
    wait::until(what, async || query_scalar(condition).fetch_one(pool).await.unwrap()).await;
}

const IS_LOADING: &str = "SELECT EXISTS (SELECT FROM centile_store.boards
    WHERE loading_import_id IS NOT NULL AND centile_store.import_is_running(loading_import_id))";

#[tokio::test]
async fn meanwhile_scores_are_refused_and_all_else_goes_on() {
    let (db, files) = (TestDb::new().await, Files::new());
    for board in ["main", "other"] {
        make_board(&db, board, &["--periods", "all_time,week"]);
    }
    let pool = db.pool().await;
    let key = make_key(db.url(), &["--role", "admin"]);
    let serve = spawn_serve(&db, None, &[]).await;
    let post = async |board: &str| {
        let event = json!({ "user_id": "eve", "points": 1 });
        let request = serve.client.post(serve.at(&format!("/v1/boards/{board}/scores"))).bearer_auth(&key).json(&event);
        request.send().await.unwrap()
    };
    let lines = format!("{HEADER}{}", made_up(1, 2_000).concat().replace('\n', ",\n"));
    let (child, input) = half_a_load(&db, &files, &lines);
    until("the load", &pool, IS_LOADING).await;

    let refused = post("main").await;
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    let problem: Value = refused.json().await.unwrap();
    assert!(problem["detail"].as_str().unwrap().contains("board main is being loaded"), "{problem}");
    assert!(post("other").await.status().is_success());
    let page = serve.client.get(serve.at("/v1/boards/main/scores")).send().await.unwrap();
    assert!(page.status().is_success());
    run(&db, &["user", "set", "eve"]).well();
    let one = files.write("one.csv", "user_id,points\nann,1\n");
    for flags in [&["--fast"][..], &[]] {
        let second = import(&db, &one, "main", flags);
        assert!(second.code == Some(1) && second.err.contains("board main is being loaded"), "{second:?}");
    }
    for statement in [
        "SELECT centile.reset_player('main', 'eve')",
        "SELECT centile.ban_user('main', 'eve', true)",
        "SELECT centile.correct_score('main', 'eve', 1, now() - interval '1 day', 'why', 'me')",
        "SELECT centile.create_season('main', 's', now(), now() + interval '1 day')",
        "SELECT centile.update_board('main', p_title => 'Other')",
        "SELECT centile.open_periods(1, ARRAY[now()])",
    ] {
        let error = sqlx::query(statement).execute(&pool).await.unwrap_err();
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
        assert_eq!(code.as_deref(), Some("CB503"), "{statement}: {error}");
    }
    run(&db, &["import", "--abandon", "--board", "main"]).refused(1, &["stdin", "is running"]);

    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(post("main").await.status().is_success());
    assert_eq!(ledger_rows(&db, "main").await, 2_001);
    rankings_are_sound(&pool).await;
}

#[tokio::test]
async fn killed_at_any_moment_it_leaves_nothing_and_is_run_again() {
    let (db, files) = (TestDb::new().await, Files::new());
    // More than the 4,000 that are read at once.
    let (events, periods) = amount((4_200, "all_time,week,month"), (30_000, "all_time,day,week,month"));
    make_board(&db, "main", &["--periods", periods]);
    let pool = db.pool().await;
    let lines = format!("{HEADER}{}", made_up(2, events).concat().replace('\n', ",\n"));
    // While lines come; then in the middle of the last transaction, held up where it needs something that is locked.
    for (number, (moment, lock)) in [
        ("reading", None),
        ("players", Some("centile_store.users")),
        ("periods", Some("centile_store.periods")),
        ("ledger", Some("centile_store.score_transactions")),
        ("ids", Some("centile_store.transaction_ids")),
        ("entries", Some("centile_store.leaderboard")),
        ("buckets", Some("centile_store.leaderboard_bucket")),
        ("the end", Some("centile_store.boards")),
    ]
    .into_iter()
    .enumerate()
    {
        // One after the other, or both each time.
        for kill_backend in amount(&[[false], [true]][number % 2][..], &[false, true]).iter().copied() {
            eprintln!("{moment}, backend killed: {kill_backend}");
            let (mut child, input) = half_a_load(&db, &files, &lines);
            until("the load", &pool, IS_LOADING).await;
            let (mut blocker, mut input) = (pool.begin().await.unwrap(), Some(input));
            if let Some(table) = lock {
                let lock = format!("LOCK TABLE {table} IN SHARE MODE");
                sqlx::query(sqlx::AssertSqlSafe(lock)).execute(&mut *blocker).await.unwrap();
                drop(input.take());
                until(
                    moment,
                    &pool,
                    "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'relation')",
                )
                .await;
            }
            if kill_backend {
                let ended = "SELECT bool_and(pg_terminate_backend(l.pid)) FROM pg_locks l
                    WHERE l.locktype = 'advisory' AND l.classid = 1128615509
                      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";
                assert!(query_scalar::<_, bool>(ended).fetch_one(&pool).await.unwrap(), "{moment}");
                // It learns that with the next line, or at the end of its input.
                drop(input);
                assert_eq!(child.wait().unwrap().code(), Some(1), "{moment}");
            } else {
                child.kill().unwrap();
                child.wait().unwrap();
            }
            // Also while what it waited for is still locked.
            let is_over = "SELECT NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = 1128615509
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
            until("the end of its session", &pool, is_over).await;
            blocker.rollback().await.unwrap();
            for table in [
                "score_transactions",
                "transaction_ids",
                "periods",
                "rankings",
                "leaderboard",
                "leaderboard_bucket",
                "stripes",
            ] {
                let rows = format!("SELECT count(*) FROM centile_store.{table}");
                let rows: i64 = query_scalar(sqlx::AssertSqlSafe(rows)).fetch_one(&pool).await.unwrap();
                assert_eq!(rows, 0, "{moment}, backend killed: {kill_backend}: {table}");
            }
        }
    }
    let opens = "SELECT centile.open_periods(1, ARRAY[now()])";
    sqlx::query(opens).execute(&pool).await.expect("the mark of the dead counts for nothing");
    assert_eq!(run(&db, &["close", "--due"]).well(), "nothing is due\n");
    let marked = "SELECT count(*) FROM centile_store.boards WHERE loading_import_id IS NOT NULL";
    assert_eq!(query_scalar::<_, i64>(marked).fetch_one(&pool).await.unwrap(), 0);
    let file = files.write("all.csv", lines);
    import(&db, &file, "main", &["--fast"]).well(events.into(), 0);
    make_board(&db, "slow", &["--periods", periods]);
    import(&db, &file, "slow", &[]).well(events.into(), 0);
    // One of these has periods of today as well, without players.
    same_standings(&db, "main", "slow").await;
    rankings_are_sound(&pool).await;
}
