//! Measures boards of a template beside one board with as many players. `cargo bench --bench boards`
//! prints a table.
//!
//! `BENCH_BOARDS` (100,000) sets the number of boards, `BENCH_PLAYERS` (20) the players of each,
//! `BENCH_ROUNDS` (3) the number of rounds; each round loads both in turn. With `BENCH_ROUNDS=0`, it only
//! fills the boards and prints their size on disk. `BENCH_WEEKS=0` keeps the ranking of all time only,
//! and closes no week. `BENCH_LOADS=rank` measures only loads whose names contain that.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    env,
    path::Path,
    thread,
    time::{Duration, Instant},
};

#[path = "../common/mod.rs"]
mod common;

use common::{
    Bench, BenchResult, Serve, median, number_of,
    wrk::{self, Answers, Run},
};

const SECONDS: u32 = 8;
/// MiB for the indexes of an instance of little memory.
const SMALL_MEMORY: &str = "128";
/// Boards per second of a warm-up.
const READS_OF_BOARDS: u32 = 1_000;
/// Players of the board with a league.
const LEAGUE_PLAYERS: u32 = 3_000;
/// Callers who write scores while a week is closed.
const CLOSING_CALLERS: u32 = 32;
/// Users, of whom each board has some.
const USERS: u32 = 100_000;

/// A load: its name, the number of connections, and the Lua expressions of the request to the
/// template's boards and to the one board.
struct Load {
    what: &'static str,
    connections: u32,
    requests: [String; 2],
}

#[tokio::main]
async fn main() -> BenchResult<()> {
    let (boards, players) = (number_of("BENCH_BOARDS", 100_000)?, number_of("BENCH_PLAYERS", 20)?);
    let (rounds, has_weeks) = (number_of("BENCH_ROUNDS", 3)?, number_of("BENCH_WEEKS", 1)? > 0);
    Bench::run_as_recommended(async |bench, dir| {
        println!("{}", bench.machine()?);
        println!(
            "{boards} boards of {players} players, and one board of {USERS}; all time{}",
            if has_weeks { " and a week" } else { "" }
        );
        fill(bench, boards, players, has_weeks)?;
        if rounds > 0 { measure(bench, dir, [boards, players], rounds, has_weeks) } else { Ok(()) }
    })
    .await
}

fn measure(bench: &Bench, dir: &Path, [boards, players]: [u32; 2], rounds: u32, has_weeks: bool) -> BenchResult<()> {
    let serve = Serve::start(bench, &["--no-maintenance", "--key-boards", "0"])?;
    let key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
    // The players of board n are those after n, in steps.
    let board = format!("local n = math.random({boards})");
    let player = format!("(n * 7 + math.random({players}) * 97) % {USERS} + 1");
    let of_board = |method: &str, path: &str, body: &str| {
        format!(
            "(function() {board} local p = {player} return wrk.format('{method}', '/v1/boards/level-' .. n .. '{path}, nil, {body}) end)()"
        )
    };
    let of_one = |method: &str, path: &str, body: &str| {
        format!(
            "(function() local p = math.random({USERS}) return wrk.format('{method}', '/v1/boards/main{path}, nil, {body}) end)()"
        )
    };
    fill_league(bench)?;
    let of_league = |path: &str| {
        format!(
            "(function() local p = math.random({LEAGUE_PLAYERS}) return wrk.format('GET', '/v1/boards/arena{path}) end)()"
        )
    };
    let score = r#"'{"user_id":"player-' .. p .. '","points":' .. math.random(1000) .. '}'"#;
    // Reads first: writes leave work for the background.
    let loads = [
        Load {
            what: "rank of a player, 32 connections",
            connections: 32,
            requests: [of_board("GET", "/scores/player-' .. p", "nil"), of_one("GET", "/scores/player-' .. p", "nil")],
        },
        Load {
            what: "top 10, 32 connections",
            connections: 32,
            requests: [of_board("GET", "/scores?limit=10'", "nil"), of_one("GET", "/scores?limit=10'", "nil")],
        },
        Load {
            what: "league standing of a player, beside a standing, 32 connections",
            connections: 32,
            requests: [
                of_league("/league?user_id=player-' .. p"),
                of_league("/scores/player-' .. p .. '?period=week'"),
            ],
        },
        Load {
            what: "scores, 256 callers",
            connections: 256,
            requests: [of_board("POST", "/scores'", score), of_one("POST", "/scores'", score)],
        },
        // Beside a score on a board of the template that exists.
        Load {
            what: "first score of a new board, one caller",
            connections: 1,
            requests: [
                format!(
                    "(function() local p = math.random({USERS}) return wrk.format('POST', '/v1/boards/level-new-' .. math.random(1e12) .. '/scores', nil, {score}) end)()"
                ),
                of_board("POST", "/scores'", score),
            ],
        },
    ];
    let run_at = |address: &str, request: &str, connections, seconds, seed| {
        wrk::run(dir, &Run { address, connections, seconds, seed, key: key.trim(), request, varies: true })
    };
    let run = |request: &str, connections, seconds, seed| run_at(&serve.address, request, connections, seconds, seed);
    println!("| load | boards of a template, per second | p50, ms | one board, per second | p50, ms | ratio |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let wanted = env::var("BENCH_LOADS").unwrap_or_default();
    for Load { what, connections, requests } in loads.iter().filter(|load| load.what.contains(&wanted)) {
        let mut rates: [Vec<f64>; 2] = Default::default();
        let mut waits: [Vec<f64>; 2] = Default::default();
        // The first round warms up; that of reads until most boards have been read.
        for round in 0..=rounds {
            for (n, request) in requests.iter().enumerate() {
                let warm_up = if what.contains("score") { SECONDS } else { SECONDS.max(boards / READS_OF_BOARDS) };
                let seconds = if round > 0 { SECONDS } else { warm_up };
                let answers = run(request, *connections, seconds, round)?;
                if answers.errors > 0 {
                    return Err(format!("{what}: {answers:?}").into());
                }
                if round > 0 {
                    rates[n].push(answers.requests as f64 / answers.seconds);
                    waits[n].push(answers.p50);
                }
            }
        }
        let ([small, one], [small_p50, one_p50]) = (rates.map(median), waits.map(median));
        println!("| {what} | {small:.0} | {small_p50:.2} | {one:.0} | {one_p50:.2} | {:.2} |", small / one);
    }
    println!("\npeak memory of the instance: {:.0} MiB", serve.peak_memory_mb()?);
    // An instance of little memory, which reads most boards once or twice.
    let small = Serve::start(bench, &["--no-maintenance", "--index-memory", SMALL_MEMORY])?;
    run_at(&small.address, &loads[0].requests[0], 32, SECONDS.max(boards / READS_OF_BOARDS), 0)?;
    println!("with --index-memory {SMALL_MEMORY}, after ranks on random boards: {:.0} MiB", small.peak_memory_mb()?);
    drop(small);
    if has_weeks {
        close_week(bench, &|seconds, seed| run(&of_board("POST", "/scores'", score), CLOSING_CALLERS, seconds, seed))?;
    }
    Ok(())
}

/// Closes the week of all boards of the template while `run` writes scores for some seconds.
fn close_week(bench: &Bench, run: &(dyn Fn(u32, u32) -> BenchResult<Answers> + Sync)) -> BenchResult<()> {
    let quiet = run(SECONDS, 100)?;
    let relations = || bench.psql("SELECT count(*) FROM pg_class");
    let before = relations()?;
    bench.psql("UPDATE centile_store.periods p SET ends_at = now() FROM centile_store.templates t WHERE p.board_id = t.board_id AND p.kind = 'week'")?;
    // Writers use a period for up to a second more.
    thread::sleep(Duration::from_secs(2));
    let (closed, meanwhile) = thread::scope(|scope| {
        let closing = scope.spawn(|| {
            let began = Instant::now();
            let said = bench.centile(&["close", "--due"]).map_err(|error| error.to_string());
            (began.elapsed().as_secs_f64(), said)
        });
        let meanwhile = run(SECONDS, 101);
        (closing.join(), meanwhile)
    });
    let ((seconds, said), meanwhile) = (closed.map_err(|_| "the closing failed")?, meanwhile?);
    println!("closing the week of the template: {seconds:.1} s: {}", said?.trim());
    println!(
        "scores of {CLOSING_CALLERS} callers before and during the first {SECONDS} s: {:.0} and {:.0}/s, p99 {:.0} and {:.0} ms; errors {}",
        quiet.requests as f64 / quiet.seconds,
        meanwhile.requests as f64 / meanwhile.seconds,
        quiet.p99,
        meanwhile.p99,
        quiet.errors + meanwhile.errors
    );
    println!("relations before and after: {} and {}", before.trim(), relations()?.trim());
    Ok(())
}

/// Creates a board with a league, whose players have a score each in the current week.
fn fill_league(bench: &Bench) -> BenchResult<()> {
    bench.centile(&["board", "create", "arena", "--periods", "all_time,week", "--lanes", "2"])?;
    let league = ["league", "create", "arena-league", "--board", "arena", "--period", "week", "--size", "30"];
    let moves = ["--divisions", "bronze,silver,gold", "--promote", "7", "--relegate", "7"];
    bench.centile(&[&league[..], &moves].concat())?;
    bench.psql(&format!(
        "SELECT count(centile.submit('arena', 'player-' || n, 1 + n * 7919 % 1000)) FROM generate_series(1, {LEAGUE_PLAYERS}) AS n"
    ))?;
    while bench.psql("SELECT count(*) FROM centile.submissions WHERE board = 'arena'")?.trim() != "0" {
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Creates the boards of a template, and one board, with a score of each player. The rows of a board
/// are not adjacent, as if all boards had grown together.
fn fill(bench: &Bench, boards: u32, players: u32, has_weeks: bool) -> BenchResult<()> {
    let periods = if has_weeks { r#""all_time", "week""# } else { r#""all_time""# };
    let rules = format!(r#"{{"periods": [{periods}], "lanes": 2}}"#);
    bench.psql(&format!(
        "SELECT centile.create_board('main', '{rules}');
         SELECT centile.set_template('level', 'level-*', '{rules}', 10000000);
         SELECT centile_store.open_periods(b.id, ARRAY[now()]) FROM centile_store.boards b;
         INSERT INTO centile_store.users (external_id, name, lane_hash)
         SELECT 'player-' || n, 'Player ' || n, centile.lane_hash('player-' || n) FROM generate_series(1, {USERS}) AS n"
    ))?;
    let before: f64 = bench.psql("SELECT pg_database_size(current_database())")?.parse()?;
    bench.psql(&format!(
        "INSERT INTO centile_store.template_boards (template_id, slug)
         SELECT t.board_id, 'level-' || n FROM centile_store.templates t CROSS JOIN generate_series(1, {boards}) AS n"
    ))?;
    let empty: f64 = bench.psql("SELECT pg_database_size(current_database())")?.parse()?;
    let given = |of: &str, user: &str| {
        format!(
            "INSERT INTO centile_store.score_transactions (board_id, user_id, kind, points, occurred_at, lane, batch)
             SELECT x.board_id, u.id, 'score', 1 + (x.n * 7919 + u.id * 31) % 1000, now(), u.lane_hash % 2, 1
             FROM {of} JOIN centile_store.users u ON u.external_id = 'player-' || {user}
             ORDER BY x.p"
        )
    };
    bench.psql(&format!(
        "{};
         {};
         INSERT INTO centile_store.rankings (board_id, period_id, players_of, lanes, has_bucket_rows, removed_bucket, buckets, low_rank_keys, low_tie_keys, low_user_keys)
         SELECT g.board_id, g.period_id, b.id, g.lanes, false, 100, g.buckets, g.low_rank_keys, g.low_tie_keys, g.low_user_keys
         FROM centile_store.template_boards b JOIN centile_store.rankings g ON g.players_of = b.template_id;
         INSERT INTO centile_store.players (board_id, lane, user_id, batch, period_ids, rank_keys, tie_keys)
         SELECT t.board_id, t.lane, t.user_id, 1, p.ids, array_fill(t.points, ARRAY[cardinality(p.ids)]), array_fill(centile.tie_key(t.occurred_at), ARRAY[cardinality(p.ids)])
         FROM centile_store.score_transactions t
         JOIN (SELECT p.board_id, array_agg(p.id ORDER BY p.id) AS ids FROM centile_store.periods p GROUP BY p.board_id) p ON p.board_id = centile_store.owner_of(t.board_id);
         UPDATE centile_store.board_lanes SET batch = 1, last_at = now();
         INSERT INTO centile_store.applied (board_id, lane, batch) SELECT l.board_id, l.lane, 1 FROM centile_store.board_lanes l;
         INSERT INTO centile_store.batch_log (board_id, lane, batch, changes, ranking_ids, user_ids, was_rank_keys, was_tie_keys, rank_keys, tie_keys)
         SELECT l.board_id, l.lane, 1, 0, '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}' FROM centile_store.board_lanes l",
        given(
            &format!("(SELECT b.id AS board_id, substr(b.slug, 7)::bigint AS n, m.p FROM centile_store.template_boards b CROSS JOIN generate_series(1, {players}) AS m (p)) x"),
            &format!("((x.n * 7 + x.p * 97) % {USERS} + 1)")
        ),
        given(
            &format!("(SELECT b.id AS board_id, n, 1 AS p FROM centile_store.boards b CROSS JOIN generate_series(1, {USERS}) AS n WHERE b.slug = 'main') x"),
            "x.n"
        )
    ))?;
    bench.centile(&["rebuild", "--board", "main", "--all"])?;
    bench.psql("VACUUM ANALYZE")?;
    let filled: f64 = bench.psql("SELECT pg_database_size(current_database())")?.parse()?;
    println!(
        "{:.0} bytes of disk for an empty board; {:.1} kB for one with {players} players",
        (empty - before) / f64::from(boards),
        (filled - before) / f64::from(boards) / 1e3
    );
    Ok(())
}
