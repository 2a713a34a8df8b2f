//! The commands: their output, their errors, and their agreement with HTTP.

use centile::dev::local::signal;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Serve, TestDb, centile, run, run_at, spawn_serve, wait::until};

#[tokio::test]
async fn boards_are_created_listed_and_shown() {
    let db = TestDb::new().await;
    let none = run(&db, &["board", "list"]);
    assert!(none.err.contains("no boards yet"), "{none:?}");
    assert_eq!(run(&db, &["board", "list", "--json"]).json(), json!([]));

    let rules = ["--mode", "best", "--order", "asc", "--ties", "first", "--periods", "week,all_time", "--lanes", "3"];
    let more = ["--title", "Laps, ms", "--time-zone", "Asia/Kolkata", "--points-min", "-5", "--points-max", "90000"];
    let layout = ["--layout-bounds", "-1,10,20", "--json"];
    let made = run(&db, &[["board", "create", "laps"].as_slice(), &rules, &more, &layout].concat()).json();
    for (field, value) in [
        ("slug", json!("laps")),
        ("title", json!("Laps, ms")),
        ("mode", json!("best")),
        ("order", json!("asc")),
        ("ties", json!("first")),
        ("periods", json!(["all_time", "week"])),
        ("lanes", json!(3)),
        ("time_zone", json!("Asia/Kolkata")),
        ("points_min", json!(-5)),
        ("points_max", json!(90_000)),
    ] {
        assert_eq!(made[field], value, "{field}");
    }
    assert_eq!(run(&db, &["board", "create", "arena", "--expected-points", "5000"]).well(), "board arena created\n");
    assert_eq!(run(&db, &["board", "show", "laps", "--json"]).json(), made);
    let shown = run(&db, &["board", "show", "arena"]).well();
    assert!(shown.contains("points_max         9,007,199,254,740,991\n"), "{shown}");

    let listed = run(&db, &["board", "list"]).well();
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("SLUG   TITLE     MODE  ORDER  TIES    PERIODS"), "{listed}");
    assert!(lines[1].starts_with("arena  arena     sum   desc   shared  all_time"), "{listed}");
    assert!(lines[2].starts_with("laps   Laps, ms  best  asc    first   all_time, week "), "{listed}");
    assert_eq!(run(&db, &["board", "list", "--json"]).json()[1], made);
}

#[tokio::test]
async fn invalid_boards_are_refused_with_their_flag() {
    let db = TestDb::new().await;
    run(&db, &["board", "create", "taken"]).well();
    let long = "a".repeat(41);
    for (arguments, code, words) in [
        (["main", "--time-zone", "Mars/Olympus"].as_slice(), 1, ["--time-zone: ", "Mars/Olympus"]),
        (&["main", "--time-zone", "EST5"], 1, ["--time-zone: ", "EST5"]),
        (&["main", "--ties", "tiebreak"], 1, ["--ties: ", "sum"]),
        (&["main", "--points-min", "2", "--points-max", "1"], 1, ["--points-min: ", "points"]),
        (&["main", "--title", ""], 1, ["--title: ", ""]),
        (&["main", "--layout-bounds", "20,10"], 1, ["--layout-bounds: ", ""]),
        (&["main", "--expected-points", "0"], 1, ["--expected-points: ", ""]),
        (&["taken"], 1, ["exists", ""]),
        (&["main", "--lanes", "0"], 2, ["--lanes", "1..=64"]),
        (&["main", "--lanes", "65"], 2, ["--lanes", "1..=64"]),
        (&["main", "--periods", "day,decade"], 2, ["--periods", "'decade'"]),
        (&["main", "--points-max", "1.5"], 2, ["--points-max", "1.5"]),
        (&["main", "--layout-bounds", "1", "--expected-points", "9"], 2, ["--layout-bounds", "--expected-points"]),
        (&["Main"], 2, ["SLUG", "lower-case"]),
        (&["7up"], 2, ["SLUG", "start with a letter"]),
        (&[""], 2, ["SLUG", ""]),
        (&[long.as_str()], 2, ["SLUG", "1 to 40"]),
    ] {
        run(&db, &[["board", "create"].as_slice(), arguments].concat()).refused(code, &words);
    }
    run(&db, &["board", "show", "main"]).refused(1, &["no board", "main"]);
    assert_eq!(run(&db, &["board", "list", "--json"]).json().as_array().map(Vec::len), Some(1));
}

/// Submits one score; returns the status and the id of its score transaction.
async fn score(serve: &Serve, key: &str, user_id: &str) -> (StatusCode, Option<String>) {
    let event = json!({ "user_id": user_id, "points": 5 });
    let request = serve.client.post(serve.at("/v1/boards/main/scores")).bearer_auth(key).json(&event);
    let response = request.send().await.unwrap();
    let status = response.status();
    let body: Value = response.json().await.unwrap();
    (status, body["transaction_id"].as_i64().map(|id| id.to_string()))
}

#[tokio::test]
async fn keys_are_created_listed_and_revoked() {
    let db = TestDb::new().await;
    for slug in ["main", "laps"] {
        run(&db, &["board", "create", slug]).well();
    }
    let made =
        run(&db, &["key", "create", "--name", "game", "--role", "server", "--all-boards", "--expires-in", "30d"]);
    assert_eq!((made.code, made.out.lines().count()), (Some(0), 1), "{made:?}");
    assert!(made.err.contains("not shown again") && made.err.contains("role server, boards: all"), "{made:?}");
    let key = made.out.trim();
    let other = run(&db, &["key", "create", "--name", "laps", "--role", "server", "--board", "laps", "--json"]).json();
    let (other, boards) = (other["key"].as_str().unwrap(), &other["boards"]);
    assert_eq!(boards, &json!(["laps"]));

    let listed = run(&db, &["key", "list", "--json"]);
    assert!(!listed.out.contains(key) && !listed.out.contains(other), "{listed:?}");
    let listed = listed.json();
    assert_eq!((&listed[0]["name"], &listed[1]["name"]), (&json!("laps"), &json!("game")));
    assert_eq!((&listed[1]["state"], &listed[0]["expires_at"]), (&json!("active"), &Value::Null));
    let id = listed[1]["key_id"].as_str().unwrap();
    let shown = run(&db, &["key", "list"]).well();
    assert!(shown.contains(&format!("{id}  game  server  all     active")), "{shown}");

    let serve = spawn_serve(&db, None, &[]).await;
    assert_eq!(score(&serve, key, "ada").await.0, StatusCode::OK);
    assert_eq!(score(&serve, other, "ada").await.0, StatusCode::FORBIDDEN);
    assert_eq!(run(&db, &["key", "revoke", id]).well(), format!("key {id} revoked\n"));
    assert_eq!(run(&db, &["key", "list", "--json"]).json()[1]["state"], "revoked");
    until("the revoked key is refused", async || {
        let status = score(&serve, key, "ada").await.0;
        assert!([StatusCode::OK, StatusCode::UNAUTHORIZED].contains(&status), "{status}");
        status == StatusCode::UNAUTHORIZED
    })
    .await;
}

#[tokio::test]
async fn invalid_keys_are_refused() {
    let db = TestDb::new().await;
    let server = ["key", "create", "--role", "server", "--name"];
    for (arguments, code, words) in [
        (["a", "--expires-at", "2020-01-01T00:00:00Z"].as_slice(), 1, ["--expires-at: ", "future"]),
        (&["", "--json", "--all-boards"], 1, ["--name: ", ""]),
        (&["a"], 1, ["--board: ", "--all-boards"]),
        (&["a", "--board", "main", "--board", "main"], 1, ["--board: ", "repeats main"]),
        (&["a", "--board", "main", "--all-boards"], 1, ["--board: ", "all boards"]),
        (&["a", "--board", "nowhere"], 1, ["board", "nowhere"]),
        (&["a", "--expires-at", "tomorrow"], 2, ["--expires-at", "tomorrow"]),
        (&["a", "--expires-in", "30"], 2, ["--expires-in", "30d"]),
        (&["a", "--expires-in", "1d", "--expires-at", "2050-01-01T00:00:00Z"], 2, ["--expires-in", "--expires-at"]),
        (&["a", "--board", "No"], 2, ["--board", "lower-case"]),
    ] {
        run(&db, &[server.as_slice(), arguments].concat()).refused(code, &words);
    }
    run(&db, &["key", "create", "--name", "a", "--role", "king"]).refused(2, &["--role", "server, admin"]);
    run(&db, &["key", "create", "--role", "admin"]).refused(2, &["--name"]);
    run(&db, &["key", "revoke", "nobodys"]).refused(1, &["no key", "nobodys"]);
    assert_eq!(run(&db, &["key", "list", "--json"]).json(), json!([]));
}

#[tokio::test]
async fn players_are_named_banned_and_reset() {
    let db = TestDb::new().await;
    run(&db, &["board", "create", "main"]).well();
    let key = run(&db, &["key", "create", "--name", "game", "--role", "server", "--all-boards"]).well();
    let set = ["user", "set", "ada", "--name", "Ada Λ", "--avatar-url", "https://example.com/a.png", "--metadata"];
    assert_eq!(run(&db, &[set.as_slice(), &[r#"{"clan":"x"}"#]].concat()).well(), "player ada (Ada Λ) created\n");
    run(&db, &[set.as_slice(), &["[1]"]].concat()).refused(2, &["--metadata", "JSON object"]);
    assert_eq!(run(&db, &["user", "set", "ada", "--no-avatar"]).well(), "player ada (Ada Λ) changed\n");
    assert_eq!(
        run(&db, &["user", "show", "ada", "--json"]).json(),
        json!({ "user_id": "ada", "name": "Ada Λ", "avatar_url": null, "metadata": { "clan": "x" }, "attributes": {}, "banned": false, "reading": null })
    );
    run(&db, &["user", "show", "bob"]).refused(1, &["no user", "bob"]);
    run(&db, &["user", "show", ""]).refused(2, &["ID", "empty"]);
    run(&db, &["user", "ban", "bob"]).refused(1, &["no user", "bob"]);

    let serve = spawn_serve(&db, None, &[]).await;
    let (status, transaction) = score(&serve, key.trim(), "ada").await;
    assert_eq!((status, score(&serve, key.trim(), "ada").await.0), (StatusCode::OK, StatusCode::OK));
    let standing = async || {
        let response = serve.client.get(serve.at("/v1/boards/main/scores/ada")).send().await.unwrap();
        response.json::<Value>().await.unwrap()["score"].as_i64()
    };
    assert_eq!(standing().await, Some(10));

    let transaction = transaction.unwrap();
    let submit = |more: &[&str]| {
        run(&db, &[&["score", "submit", "cli", "7", "--board", "main", "--id", "cli-1"], more].concat())
    };
    let first = submit(&[]).well();
    assert!(first.starts_with("transaction") && first.contains("all_time"), "{first}");
    assert!(submit(&[]).well().contains("(repeated)"));
    submit(&["--reason", "other content"]).refused(1, &["other content"]);
    submit(&["--reason", &"x".repeat(257)]).refused(2, &["--reason", "256"]);
    run(&db, &["score", "submit", "cli", "1", "--board", "nowhere"]).refused(1, &["no board", "nowhere"]);
    run(&db, &["score", "submit", "cli", "many", "--board", "main"]).refused(2, &["POINTS"]);

    let void = run(&db, &["score", "void", &transaction, "--board", "main", "--reason", "a bug"]);
    assert_eq!(void.well(), format!("score transaction {transaction} of board main voided\n"));
    assert_eq!(standing().await, Some(5));
    run(&db, &["score", "void", "999999", "--board", "main"]).refused(1, &["999999"]);
    run(&db, &["score", "void", "0", "--board", "main"]).refused(2, &["TRANSACTION_ID"]);
    run(&db, &["score", "void", &transaction, "--board", "nowhere"]).refused(1, &["no board", "nowhere"]);

    assert_eq!(run(&db, &["user", "ban", "ada", "--reason", "cheated"]).well(), "player ada (Ada Λ) banned\n");
    assert!(run(&db, &["user", "show", "ada"]).well().contains("banned      yes"));
    assert_eq!(standing().await, None);
    assert_eq!(run(&db, &["user", "unban", "ada"]).well(), "player ada (Ada Λ) unbanned\n");
    assert_eq!(standing().await, Some(5));

    let long = "x".repeat(257);
    run(&db, &["score", "reset", "ada", "--board", "main", "--reason", &long]).refused(2, &["--reason", "256"]);
    let reset = run(&db, &["score", "reset", "ada", "--board", "main", "--reason", "asked for it"]);
    assert_eq!(reset.well(), "player ada reset on board main\n");
    assert_eq!(standing().await, None);
}

#[tokio::test]
async fn help_names_every_setting_and_no_secret() {
    let commands = ["serve", "demo", "migrate", "board create", "board list", "board show", "key create", "key list"];
    let more =
        ["key revoke", "user show", "user set", "user ban", "user unban", "score submit", "score void", "score reset"];
    let everywhere =
        ["DATABASE_URL", "REDIS_URL", "REDIS_PREFIX", "CENTILE_MASTER_KEY", "CENTILE_LOG", "CENTILE_LOG_FORMAT"];
    let instance = "LISTEN WORKERS DEFAULT_BOARD BODY_LIMIT READ_CONNECTIONS WRITE_CONNECTIONS NO_MAINTENANCE CONNECTIONS CLIENT_TIMEOUT \
         KEY_RATE KEY_BURST ADDRESS_RATE ADDRESS_BURST TRUSTED_PROXIES CORS_ORIGINS FRAME_ORIGINS POOL_WAIT WRITE_WAIT BODIES_LIMIT \
         LOG_REQUESTS";
    let demo = "DEMO_DIR GAMES_PER_SECOND DEMO_SEED";
    for command in commands.into_iter().chain(more) {
        let mut arguments: Vec<&str> = command.split(' ').collect();
        arguments.push("--help");
        let help = centile()
            .args(arguments)
            .env("DATABASE_URL", "postgres://u:hunter2@h/d")
            .env("REDIS_URL", "redis://:hunter2@h")
            .env("CENTILE_MASTER_KEY", "hunter2")
            .output();
        let help = String::from_utf8(help.unwrap().stdout).unwrap();
        assert!(!help.contains("hunter2"), "{help}");
        let mut settings = everywhere.map(str::to_owned).to_vec();
        for (commands, names) in [(["serve", "demo"].as_slice(), instance), (&["demo"], demo)] {
            if commands.contains(&command) {
                settings.extend(names.split(' ').map(|name| format!("CENTILE_{name}")));
            }
        }
        for name in settings {
            let named = help.contains(&format!("[env: {name}]")) || help.contains(&format!("[env: {name}="));
            assert!(named, "{name} is not in {help}");
        }
    }
    assert_eq!(centile().arg("fly").output().unwrap().status.code(), Some(2));
    assert_eq!(centile().output().unwrap().status.code(), Some(2));
}

#[tokio::test]
async fn an_unusable_database_is_reported_in_one_line() {
    let empty = TestDb::empty().await;
    for command in [["board", "list"].as_slice(), &["serve", "--listen", "127.0.0.1:0"], &["key", "revoke", "x"]] {
        run_at("", command).refused(1, &["--database-url: ", "DATABASE_URL"]);
        run_at("nonsense", command).refused(1, &["--database-url: "]);
        run_at("postgres://centile@127.0.0.1:1/none", command).refused(1, &["cannot connect to PostgreSQL"]);
        run(&empty, command).refused(1, &["has no schema", "`centile migrate`"]);
    }
    let db = TestDb::new().await;
    db.execute("UPDATE centile_store.applied_sql SET hash = 'earlier'").await;
    run(&db, &["board", "list"]).refused(1, &["another edition", "`centile migrate`"]);
    run(&db, &["migrate"]).well();
    run(&db, &["board", "list"]).well();
    db.execute("INSERT INTO centile_store.schema_history SELECT 999, 'later', applied_on, checksum FROM centile_store.schema_history LIMIT 1").await;
    run(&db, &["board", "list"]).refused(1, &["newer version of Centile"]);
}

#[tokio::test]
async fn serve_logs_its_cache_and_exits_with_0() {
    let db = TestDb::new().await;
    let mut serve = spawn_serve(&db, None, &["--log-format", "json"]).await;
    assert!(serve.url.starts_with("http://127.0.0.1:"), "{}", serve.url);
    let address = serve.url.trim_start_matches("http://");
    run(&db, &["serve", "--listen", address, "--log", "error"]).refused(1, &["--listen: ", address]);
    let answer = serve.client.get(serve.at("/readyz")).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(serve.stop().await.code(), Some(0), "{}", serve.output());
    let output = serve.output();
    let logged: Vec<Value> = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for message in ["instances share no cache", "started", "stopped"] {
        let found = |line: &Value| line["message"].as_str().is_some_and(|text| text.contains(message));
        assert!(logged.iter().any(found), "{message:?} is not in {output}");
    }

    // An unreachable Redis is reported and does not prevent serving. While an instance drains, it
    // answers requests.
    let mut serve = spawn_serve(&db, Some("redis://127.0.0.1:1"), &["--drain", "600"]).await;
    assert!(!serve.output().contains("instances share no cache"), "{}", serve.output());
    let answer = async |path: &str| {
        let answer = serve.client.get(serve.at(path)).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    let (status, text) = answer("/readyz").await;
    assert_eq!((status, text.contains(r#""cache":"unreachable""#)), (StatusCode::OK, true), "{text}");
    signal(serve.id(), "TERM").unwrap();
    until("it is not ready", async || answer("/readyz").await.0 == StatusCode::SERVICE_UNAVAILABLE).await;
    assert_eq!(answer("/v1/boards").await.0, StatusCode::OK);
    assert_eq!(serve.stop().await.code(), Some(0), "{}", serve.output());
}
