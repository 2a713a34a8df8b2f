//! Restored backups: a dump into another server, and a base backup with WAL up to a given time.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use centile::dev::local::{LocalPostgres, PostgresOptions};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool};

use crate::{
    http::api::site::Site,
    support::{
        Files, Serve, amount, audit, folder, next_number, own_postgres, ranking_reads, redis_url, run_at,
        wait::{until, until_some},
    },
};

/// Starts an instance on the database at `url`. It closes no periods on its own.
async fn serve(url: &str, redis: Option<&str>, prefix: &str) -> Serve {
    let (url, redis, prefix) = (url.to_owned(), redis.map(ToOwned::to_owned), prefix.to_owned());
    tokio::task::spawn_blocking(move || Serve::spawn(&url, redis.as_deref(), &prefix, &[])).await.expect("a service")
}

async fn connect(url: &str) -> PgPool {
    PgPool::connect(url).await.expect("a connection")
}

async fn execute(pool: &PgPool, statements: &str) {
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(pool).await.expect(statements);
}

/// Runs one of PostgreSQL's programs.
#[track_caller]
fn program(server: &LocalPostgres, name: &str, arguments: &[&str]) {
    let output = Command::new(server.program(name)).args(arguments).current_dir("/").output().expect(name);
    assert!(output.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Imports events of five days in two weeks of January 2024, some players with equal scores. Then
/// closes the weeks and months and refreshes one of them.
fn make_past(url: &str) {
    let files = Files::new();
    for board in ["arena", "race"] {
        let lines = (0..300).map(|event| {
            let (player, points, day) = (event * 7 % 60, (event * event + 3) % 17, 12 + event % 5);
            json!({"user_id": format!("p{player}"), "points": points, "occurred_at": format!("2024-01-{day}T10:{:02}:00Z", event % 60),
                   "id": format!("{board} {event}")}).to_string()
        });
        let file = files.write(board, lines.collect::<Vec<_>>().join("\n"));
        run_at(url, &["import", file.to_str().expect("a path"), "--format", "ndjson", "--board", board]).well();
    }
    run_at(url, &["close", "--due"]).well();
    run_at(url, &["correct", "p5", "7", "--board", "arena", "--at", "2024-01-16T10:00:00Z", "--reason", "a match"])
        .well();
    run_at(url, &["refresh", "--board", "arena", "--period", "week:2024-01-15", "--reason", "a match"]).well();
}

/// An archive as a table, of which a dump contains the rows.
const CONVERT: &str = "
    DO $$ BEGIN
        ASSERT centile.convert_archive('race', 'week:2024-01-15'), 'a view becomes a table';
        ASSERT NOT centile.convert_archive('race', 'week:2024-01-15'), 'a table stays';
    END $$";

const BOARDS: &str = "
    SELECT centile.create_board('arena', '{\"lanes\": 4, \"first_layout\": {\"bounds\": [0,20,100]}}');
    SELECT centile.create_board('race', '{\"mode\": \"best\", \"order\": \"asc\", \"ties\": \"first\"}');
    SELECT centile.create_board('encrypted', '{\"reading\": \"key\", \"periods\": [\"all_time\"]}');
    SELECT centile.create_season('race', 'spring', now() + interval '1 day', now() + interval '9 days')";

const ACTS: &str = "
    SELECT testing.submit_score('arena', 'p' || n, n % 9, 'now', 'live ' || n) FROM generate_series(1, 80) AS n;
    SELECT centile.ban_user('arena', 'p3', true), centile.reset_player('arena', 'p4');
    SELECT centile.void_score('arena', max(transaction_id)) FROM centile.score_history WHERE board = 'arena' AND kind = 'score'";

/// Returns the row count and a digest of every table, archive and sequence.
async fn contents(pool: &PgPool) -> BTreeMap<String, (i64, String)> {
    let relations: Vec<(String, bool)> = sqlx::query_as(
        "SELECT oid::regclass::text, relkind = 'S' FROM pg_class
         WHERE relnamespace::regnamespace::text LIKE 'centile%' AND relkind IN ('r', 'm', 'S')",
    )
    .fetch_all(pool)
    .await
    .expect("the tables");
    let mut contents = BTreeMap::new();
    for (name, is_sequence) in relations {
        // Leaves out `log_cnt`, the numbers that a sequence has logged ahead in the WAL.
        let row = if is_sequence { "(t.last_value, t.is_called)" } else { "t" };
        let digest = format!(
            "SELECT count(*), coalesce(md5(string_agg({row}::text, E'\\n' ORDER BY {row}::text COLLATE \"C\")), '') FROM {name} t"
        );
        let found = sqlx::query_as(AssertSqlSafe(digest)).fetch_one(pool).await.expect("a digest");
        contents.insert(name, found);
    }
    contents
}

/// Returns the answers to reads of everything, without versions, because these contain the epoch.
async fn answers(site: &Site) -> Vec<Value> {
    let mut answers = Vec::new();
    for board in ["arena", "race"] {
        for period in ["all_time", "week", "week:2024-01-08", "week:2024-01-15", "month:2024-01", "day:2024-01-12"] {
            for rest in ranking_reads("p7") {
                let answer = site.get(&format!("/v1/boards/{board}/{rest}period={period}")).await;
                assert!([200, 404].contains(&answer.status), "{answer:?}");
                let mut body = answer.body;
                body["version"] = Value::Null;
                answers.push(body);
            }
        }
        answers.push(site.get(&format!("/v1/boards/{board}/periods")).await.is(200));
        let history = format!("/v1/boards/{board}/scores/p7/history");
        answers.push(site.admin(Method::GET, &history, Value::Null).await.is(200));
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_is_restored_into_another_server() {
    let source = own_postgres(PostgresOptions::ephemeral()).await;
    let url = source.url("postgres");
    let pool = connect(&url).await;
    execute(&pool, BOARDS).await;
    make_past(&url);
    execute(&pool, CONVERT).await;
    execute(&pool, ACTS).await;
    run_at(&url, &["verify"]).well();
    run_at(&url, &["webhook", "set", "--board", "arena", "http://127.0.0.1:9/hook"]).well();
    let prefix = format!("dump-{}-{}:", std::process::id(), next_number());
    let redis = redis_url().await;
    let site = Site::of(serve(&url, Some(&redis), &prefix).await, &url);
    let before = answers(&site).await;

    let files = Files::new();
    let dump = files.path("centile.dump").display().to_string();
    program(&source, "pg_dump", &["-Fc", "-f", &dump, &url]);
    let (kept, rankings) = (contents(&pool).await, audit::rankings_are_sound(&pool).await);
    assert!(kept.len() > 120 && kept.keys().any(|name| name.starts_with("centile_archive.")), "{:?}", kept.keys());

    // A server that has neither Centile's databases nor its roles.
    let target = LocalPostgres::start(&folder("restored"), PostgresOptions::ephemeral()).expect("a server");
    let admin = connect(&target.url("postgres")).await;
    execute(&admin, "CREATE DATABASE restored").await;
    execute(&admin, "CREATE ROLE centile_reader NOLOGIN; CREATE ROLE centile_service NOLOGIN; CREATE ROLE centile_operator NOLOGIN; CREATE ROLE centile_writer NOLOGIN; ALTER ROLE centile_service SET jit = off").await;
    let restored = target.url("restored");
    program(&target, "pg_restore", &["--exit-on-error", "-d", &restored, &dump]);

    let pool = connect(&restored).await;
    assert_eq!(contents(&pool).await, kept);
    assert_eq!(run_at(&restored, &["migrate"]).well().trim(), "nothing to do: the schema is current");
    run_at(&restored, &["verify"]).well();
    assert_eq!(audit::rankings_are_sound(&pool).await, rankings);
    // The same Redis, whose entries carry the other epoch, and the same keys.
    let site = Site { serve: serve(&restored, Some(&redis), &prefix).await, ..site };
    assert_eq!(answers(&site).await, before);

    // Writes work after the restore.
    site.post("/v1/boards/arena/scores", json!({"user_id": "p7", "points": 1_000})).await.is(200);
    let first = site.get("/v1/boards/arena/scores/p7").await.is(200);
    assert_eq!(first["rank"], 1, "{first}");
    for week in ["week:2024-01-08", "week:2024-01-15"] {
        run_at(&restored, &["refresh", "--board", "race", "--period", week, "--reason", "a rehearsal"]).well();
    }
    run_at(&restored, &["verify"]).well();
}

/// Waits until the WAL written so far is archived.
async fn archived(pool: &PgPool) {
    let segment: String =
        sqlx::query_scalar("SELECT pg_walfile_name(pg_switch_wal())").fetch_one(pool).await.expect("a segment");
    until("the WAL is archived", async || {
        let last: Option<String> = sqlx::query_scalar("SELECT last_archived_wal FROM pg_stat_archiver")
            .fetch_one(pool)
            .await
            .expect("the archiver");
        // The last archived name can be a backup label, which begins with its segment.
        last.is_some_and(|last| last >= segment)
    })
    .await;
}

/// Replaces the server's data with the base backup and recovers it up to `moment`.
fn recover(server: &mut LocalPostgres, base: &Path, moment: &str) {
    server.kill_hard().expect("a dead server");
    let data = server.home().join("data");
    let lost = server.home().join("lost");
    fs::rename(&data, &lost).expect("the data directory is moved away");
    fs::rename(base, &data).expect("the base backup in their place");
    let settings = data.join("postgresql.auto.conf");
    let before = fs::read_to_string(&settings).expect("settings");
    let recovery = format!(
        "restore_command = 'cp ../wal/%f %p'\nrecovery_target_time = '{moment}'\nrecovery_target_action = 'promote'\n"
    );
    fs::write(&settings, before + &recovery).expect("settings");
    fs::write(data.join("recovery.signal"), "").expect("the signal");
    // Under root, the server runs as another account, which must own the files.
    let own = "chown -R \"$(ls -nd \"$1\" | awk '{print $3\":\"$4}')\" \"$2\"";
    let status = Command::new("sh").args(["-c", own, "sh"]).args([&lost, &data]).status().expect("a shell");
    assert!(status.success());
    fs::remove_dir_all(&lost).expect("the data are gone");
    server.start_again().expect("a recovered server");
}

/// Repeats a request until the service answers from PostgreSQL again. A lost connection is noticed
/// at its next use. Until then a top list is the last known one, marked stale.
async fn answered(site: &Site, method: Method, path: &str, body: &str) -> Value {
    let authorization = format!("Bearer {}", site.server_key);
    let headers = [("authorization", &*authorization), ("content-type", "application/json")];
    until_some("the service finds the database again", async || {
        let answer = site.send(method.clone(), path, &headers, body.to_owned()).await;
        (answer.status != 503 && answer.body["stale"] != true).then_some(answer)
    })
    .await
    .is(200)
}

async fn read(site: &Site, path: &str) -> Value {
    answered(site, Method::GET, path, "").await
}

/// Points of each player, from which the ranks follow.
#[derive(Clone, Default)]
struct Sums(BTreeMap<String, i64>);

impl Sums {
    /// Submits a score over HTTP and counts it once it is acknowledged.
    async fn score(&mut self, site: &Site, user: &str, points: i64) {
        let event = json!({"user_id": user, "points": points, "id": format!("event {}", next_number())});
        answered(site, Method::POST, "/v1/boards/arena/scores", &event.to_string()).await;
        *self.0.entry(user.to_owned()).or_default() += points;
    }

    fn rank(&self, user: &str) -> usize {
        1 + self.0.values().filter(|sum| **sum > self.0[user]).count()
    }

    /// Checks every rank, the top list and a page against these sums.
    async fn are_served_by(&self, site: &Site) {
        for period in ["all_time", "week"] {
            for (user, sum) in &self.0 {
                let answer = read(site, &format!("/v1/boards/arena/scores/{user}?period={period}")).await;
                assert_eq!(answer["score"], *sum, "{answer}");
                assert_eq!(answer["rank"], self.rank(user), "{answer}");
            }
            for path in ["?limit=10", "?limit=100", "?from=1&limit=100"] {
                let answer = read(site, &format!("/v1/boards/arena/scores{path}&period={period}")).await;
                assert_eq!(answer["players"], self.0.len(), "{answer}");
                let rows = answer["data"].as_array().expect("rows");
                assert_eq!(rows.len(), self.0.len().min(if path == "?limit=10" { 10 } else { 100 }), "{answer}");
                for row in rows {
                    let user = row["user_id"].as_str().expect("a player");
                    assert_eq!(
                        (&row["score"], &row["rank"]),
                        (&json!(self.0[user]), &json!(self.rank(user))),
                        "{answer}"
                    );
                }
            }
        }
    }
}

/// Returns the frozen top of the closed week as (player, score).
async fn closed(site: &Site) -> Vec<(String, i64)> {
    let answer = read(site, "/v1/boards/race/scores?period=week:2024-01-15").await;
    assert_eq!(answer["period"]["state"], "closed", "{answer}");
    let row =
        |row: &Value| (row["user_id"].as_str().expect("a player").to_owned(), row["score"].as_i64().expect("a score"));
    answer["data"].as_array().expect("rows").iter().map(row).collect()
}

const CLOSE: [&str; 5] = ["close", "--board", "race", "--period", "week:2024-01-15"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_point_in_time_recovery_has_every_score_before_it_and_none_after() {
    let archiving = [("archive_mode", "on"), ("archive_command", "mkdir -p ../wal && cp %p ../wal/%f")];
    let settings = archiving.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let mut server = own_postgres(PostgresOptions { settings, ..PostgresOptions::ephemeral() }).await;
    let url = server.url("postgres");
    let (redis, prefix) = (redis_url().await, format!("recovery-{}-{}:", std::process::id(), next_number()));
    let pool = connect(&url).await;
    // With one lane each score is a batch, and batch numbers repeat after the recovery.
    execute(&pool, "SELECT centile.create_board('arena', '{\"lanes\": 1, \"first_layout\": {\"bounds\": [0,20,100]}, \"periods\": [\"all_time\", \"week\"]}');
                    SELECT centile.create_board('race', '{\"mode\": \"best\", \"periods\": [\"week\"]}')").await;
    let files = Files::new();
    let lines = (0..20)
        .map(|n| json!({"user_id": format!("p{n}"), "points": n, "occurred_at": "2024-01-16T10:00:00Z"}).to_string());
    let file = files.write("race", lines.collect::<Vec<_>>().join("\n"));
    run_at(&url, &["import", file.to_str().expect("a path"), "--format", "ndjson", "--board", "race"]).well();
    let site = Site::of(serve(&url, Some(&redis), &prefix).await, &url);

    let mut sums = Sums::default();
    for n in 0..10 {
        sums.score(&site, &format!("p{n}"), 10 + n).await;
    }
    let base = server.home().join("base");
    program(&server, "pg_basebackup", &["-d", &url, "-D", base.to_str().expect("a path"), "-c", "fast"]);
    for n in 0..20 {
        sums.score(&site, &format!("p{n}"), 3 * n % 11).await;
    }
    let moment: String = sqlx::query_scalar("SELECT clock_timestamp()::text").fetch_one(&pool).await.expect("a moment");
    let last_kept: i64 = sqlx::query_scalar("SELECT max(id) FROM centile_store.score_transactions")
        .fetch_one(&pool)
        .await
        .expect("a row");

    // The recovery loses these: acknowledged scores that were read and cached, and a closed period.
    let mut lost = sums.clone();
    for n in 0..amount(5, 20) {
        lost.score(&site, &format!("p{n}"), 100 - 7 * n % 30).await;
        lost.are_served_by(&site).await;
    }
    execute(&pool, "SELECT centile.ban_user('race', 'p19', true)").await;
    run_at(&url, &CLOSE).well();
    assert_eq!(closed(&site).await[0], ("p18".to_owned(), 18));
    let epoch = "SELECT centile.epoch()";
    let epoch_before: String = sqlx::query_scalar(epoch).fetch_one(&pool).await.expect("an epoch");
    archived(&pool).await;
    pool.close().await;

    recover(&mut server, &base, &moment);
    let pool = connect(&url).await;
    let epoch_after: String = sqlx::query_scalar(epoch).fetch_one(&pool).await.expect("an epoch");
    assert_ne!(epoch_before, epoch_after);
    let newest: i64 = sqlx::query_scalar("SELECT max(id) FROM centile_store.score_transactions")
        .fetch_one(&pool)
        .await
        .expect("a row");
    assert_eq!(newest, last_kept, "the last row of the ledger");
    run_at(&url, &["verify"]).well();
    // Compare the instance that ran through the recovery with a new one; both use the same Redis.
    let other = Site {
        serve: serve(&url, Some(&redis), &prefix).await,
        server_key: site.server_key.clone(),
        admin_key: site.admin_key.clone(),
    };
    for site in [&site, &other] {
        sums.are_served_by(site).await;
    }
    for n in 0..amount(5, 20) {
        sums.score(&site, &format!("p{n}"), 5 + 13 * n % 40).await;
        sums.are_served_by(&site).await;
    }
    // A top list may lag behind scores that another instance acknowledged.
    for period in ["all_time", "week"] {
        for limit in [10, 100] {
            let path = format!("/v1/boards/arena/scores?limit={limit}&period={period}");
            let here = read(&site, &path).await["data"].clone();
            until("the same top", async || read(&other, &path).await["data"] == here).await;
        }
    }
    sums.are_served_by(&other).await;
    // The same period and revision, but another result.
    run_at(&url, &CLOSE).well();
    for site in [&site, &other] {
        assert_eq!(closed(site).await[0], ("p19".to_owned(), 19));
    }
    run_at(&url, &["verify"]).well();
}
