//! Boards with ties `second`: their rules, events, rows, files and pages, imports and archives.

use chrono::{TimeDelta, Utc};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{query_as, query_scalar};

use crate::{
    delivery::live::stream::Stream,
    http::{
        api::site::{Answer, Site},
        pages::snapshots::take,
    },
    support::{
        Files, TestDb,
        boundary::until_no_hour_ends,
        import,
        oracle::{Oracle, Place},
        replay::Ledger,
        run,
        wait::until_some,
    },
};

/// Player, rank, score, second number, and whether there is no time.
type Ranked = (String, i64, i64, Option<i64>, bool);

const BOARD: &str = "/v1/boards/main";
const SCORES: &str = "/v1/boards/main/scores";
const WEEK: &str = "week:2024-01-15";

#[track_caller]
fn refused(answer: &Answer, status: u16, field: &str, detail: &str) {
    let given = (answer.status, answer.body["field"].as_str().unwrap_or_default());
    assert_eq!(given, (status, field), "{answer:?}");
    assert!(answer.text.contains(detail), "{answer:?}");
}

/// Returns player, score and second number of each row.
fn rows(list: &Value) -> Vec<(String, i64, i64)> {
    let rows = list.as_array().unwrap().iter().map(|row| {
        assert!(row.get("reached_at").is_none(), "{row}");
        (row["user_id"].as_str().unwrap().to_owned(), row["score"].as_i64().unwrap(), row["tiebreak"].as_i64().unwrap())
    });
    rows.collect()
}

fn of(rows: &[(&str, i64, i64)]) -> Vec<(String, i64, i64)> {
    rows.iter().map(|(user, score, tiebreak)| ((*user).to_owned(), *score, *tiebreak)).collect()
}

fn event(user: &str, points: i64, tiebreak: impl Into<Option<i64>>) -> Value {
    match tiebreak.into() {
        Some(tiebreak) => json!({"user_id": user, "points": points, "tiebreak": tiebreak}),
        None => json!({"user_id": user, "points": points}),
    }
}

#[tokio::test]
async fn a_board_says_how_second_numbers_order_equal_scores() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let rules = async |path: &str| {
        let board = site.get(path).await.is(200);
        [board["ties"].clone(), board["tiebreak_order"].clone(), board["tiebreak_sum"].clone()]
    };
    site.board(json!({"ties": "second"}), &[]).await;
    assert_eq!(rules(BOARD).await, ["second", "desc", "added"]);
    site.board(json!({"slug": "laps", "mode": "best", "ties": "second", "tiebreak_order": "asc"}), &[]).await;
    assert_eq!(rules("/v1/boards/laps").await, [json!("second"), json!("asc"), Value::Null]);
    // Only such boards have these rules, and only a `sum` board has the second one.
    let change = async |path: &str, change: Value| site.admin(Method::PATCH, path, change).await;
    refused(
        &change("/v1/boards/laps", json!({"tiebreak_sum": "added"})).await,
        422,
        "tiebreak_sum",
        "only a sum board",
    );
    refused(
        &change(BOARD, json!({"ties": "first", "tiebreak_order": "asc"})).await,
        422,
        "tiebreak_order",
        "only a board",
    );
    refused(&change(BOARD, json!({"tiebreak_order": "up"})).await, 422, "tiebreak_order", "`desc` or `asc`");
    // In SQL, null means the default.
    let second = |order: &str| {
        format!("SELECT centile.update_board('main', '{{\"tiebreak_order\": {order}, \"tiebreak_sum\": null}}')")
    };
    change(BOARD, json!({"tiebreak_sum": "replaced"})).await.is(200);
    let stored = "SELECT concat_ws(' ', tiebreak_order, tiebreak_sum) FROM centile.boards WHERE slug = 'main'";
    for (order, wanted) in [("\"asc\"", "asc added"), ("null", "desc added")] {
        db.execute(&second(order)).await;
        assert_eq!(query_scalar::<_, String>(stored).fetch_one(&db.pool().await).await.unwrap(), wanted);
    }
    change(BOARD, json!({"ties": "first"})).await.is(200);
    assert_eq!(rules(BOARD).await, [json!("first"), Value::Null, Value::Null]);
    change(BOARD, json!({"ties": "second", "tiebreak_sum": "replaced"})).await.is(200);
    assert_eq!(rules(BOARD).await, ["second", "desc", "replaced"]);
    // Combined boards have times, and so do their sources.
    let combine = |sources: &[&str]| {
        let sources: Vec<Value> = sources.iter().map(|board| json!({"board": board, "period": "all_time"})).collect();
        json!({"slug": "both", "mode": "combined", "combination": {"sources": sources}})
    };
    refused(&site.admin(Method::POST, "/v1/boards", combine(&["main"])).await, 422, "sources", "ties second");
    site.board(json!({"slug": "plain"}), &[]).await;
    let mut both = combine(&["plain"]);
    both["ties"] = json!("second");
    refused(&site.admin(Method::POST, "/v1/boards", both).await, 422, "mode", "shared or first");
    site.admin(Method::POST, "/v1/boards", combine(&["plain"])).await.is(201);
    refused(&change("/v1/boards/plain", json!({"ties": "second"})).await, 422, "ties", "source");
    // With events, the rules cannot change.
    site.post(SCORES, event("ada", 1, 1)).await.is(200);
    for rule in [json!({"tiebreak_order": "asc"}), json!({"tiebreak_sum": "added"}), json!({"ties": "first"})] {
        let answer = change(BOARD, rule).await;
        assert_eq!((answer.status, &answer.body["code"]), (409, &json!("board_has_events")), "{answer:?}");
    }
    run(&db, &["board", "create", "cli", "--ties", "second", "--tiebreak-order", "asc", "--tiebreak-sum", "replaced"])
        .well();
    assert_eq!(rules("/v1/boards/cli").await, ["second", "asc", "replaced"]);
}

#[tokio::test]
async fn a_board_does_not_become_a_source_while_its_ties_change() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('plain')").await;
    let mut changing = db.hold("SELECT centile.update_board('plain', '{\"ties\": \"second\"}')").await;
    let combining = db.spawn(
        "SELECT centile.create_board('both', '{\"mode\": \"combined\", \"combination\": {\"sources\": [{\"board\": \"plain\", \"period\": \"all_time\"}]}}')",
    );
    db.until_waiting(1, || combining.is_finished()).await;
    sqlx::raw_sql("COMMIT").execute(&mut changing).await.unwrap();
    let error = combining.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("board plain has ties second"), "{error}");
}

#[tokio::test]
async fn rows_are_ordered_by_and_show_the_second_number() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let rules = json!({"ties": "second", "tiebreak_order": "asc", "periods": ["all_time"], "tiers": ["gold: rank 1"]});
    site.board(rules, &[]).await;
    let events = [event("ada", 5, 60), event("bob", 10, 75), event("ada", 5, 20), event("cyd", 10, None)];
    site.post(SCORES, json!(events)).await.is(200);
    site.post(SCORES, event("dan", 10, 75)).await.is(200);
    // ada's 80 is worse than 75 and 0. bob and dan are equal: the internal id decides, and no rank is
    // shared.
    let wanted = of(&[("cyd", 10, 0), ("bob", 10, 75), ("dan", 10, 75), ("ada", 10, 80)]);
    let top = site.get(SCORES).await.is(200);
    assert_eq!(rows(&top["data"]), wanted);
    assert_eq!(top["data"].as_array().unwrap().iter().map(|row| &row["rank"]).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let own = site.get(&format!("{SCORES}/dan?around=1")).await.is(200);
    assert_eq!((&own["rank"], &own["tiebreak"], own.get("reached_at")), (&json!(3), &json!(75), None), "{own}");
    assert_eq!((rows(&own["above"]), rows(&own["below"])), (of(&[("bob", 10, 75)]), of(&[("ada", 10, 80)])));
    let chosen = site.get(&format!("{SCORES}/query?user_id=ada&user_id=cyd")).await.is(200);
    assert_eq!(rows(&chosen["data"]), of(&[("cyd", 10, 0), ("ada", 10, 80)]));
    // A page below a cursor.
    let first = site.get(&format!("{SCORES}?limit=2&from=1")).await.is(200);
    let next = site.get(&format!("{SCORES}?limit=2&cursor={}", first["next_cursor"].as_str().unwrap())).await.is(200);
    assert_eq!(rows(&next["data"]), wanted[2..]);
    let csv = site.get(&format!("{SCORES}.csv")).await.text;
    assert!(csv.starts_with("position,rank,user_id,name,score,tiebreak,tier\r\n1,1,cyd,cyd,10,0,gold\r\n"), "{csv}");
    let ndjson = site.get(&format!("{SCORES}.ndjson")).await.text;
    let line: Value = serde_json::from_str(ndjson.lines().nth(3).unwrap()).unwrap();
    assert_eq!((&line["tiebreak"], line.get("reached_at")), (&json!(80), None), "{line}");
    for path in ["/boards/main?player=ada", "/embed/main"] {
        let page = site.get(path).await.text;
        assert!(
            page.contains(r#"<td class="tiebreak"><data value="80">80</data></td>"#) && !page.contains("Reached "),
            "{page}"
        );
    }
    let history = site.get(&format!("{SCORES}/ada/history")).await.is(200);
    assert_eq!((&history["data"][0]["tiebreak"], &history["data"][1]["tiebreak"]), (&json!(20), &json!(60)));
    // In SQL.
    let wanted: Vec<Ranked> = wanted
        .iter()
        .zip(1..)
        .map(|((user, score, second), n)| (user.clone(), n, *score, Some(*second), true))
        .collect();
    db.execute("CALL centile.apply('main')").await;
    for source in [
        "centile.page('main')",
        "centile.ranking('main', 'all_time')",
        "centile.players_around('main', 'bob', 'all_time', 9)",
        "(SELECT * FROM centile.standings WHERE board = 'main')",
        "(SELECT u.id AS user_id, r.rank, r.score, r.tiebreak, r.reached_at, r.position
          FROM unnest('{ada,bob,cyd,dan}'::text[]) AS u (id), centile.player_rank('main', u.id) r)",
    ] {
        let statement =
            format!("SELECT user_id, rank, score, tiebreak, reached_at IS NULL FROM {source} AS r ORDER BY position");
        let found: Vec<Ranked> = query_as(sqlx::AssertSqlSafe(statement)).fetch_all(&db.pool().await).await.unwrap();
        assert_eq!(found, wanted, "{source}");
    }
    let keys: Vec<(String, i64, Option<i64>)> =
        query_as("SELECT user_id, tie_key, tiebreak FROM centile.bucket_rows('main', 'all_time', 1) LIMIT 2")
            .fetch_all(&db.pool().await)
            .await
            .unwrap();
    assert_eq!(keys, [("cyd".to_owned(), 0, Some(0)), ("bob".to_owned(), -75, Some(75))]);
}

#[tokio::test]
async fn an_event_with_a_bad_second_number_is_refused_alone() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"ties": "second"}), &[]).await;
    site.board(json!({"slug": "laps", "mode": "best", "ties": "tiebreak"}), &[]).await;
    site.board(json!({"slug": "plain"}), &[]).await;
    let range = "-9223372036854775807 to 9223372036854775807";
    refused(&site.post(SCORES, event("ada", 1, i64::MIN)).await, 422, "tiebreak", range);
    refused(&site.post("/v1/boards/laps/scores", event("ada", 1, 2_048)).await, 422, "tiebreak", "-2048 to 2047");
    refused(&site.post("/v1/boards/plain/scores", event("ada", 1, 1)).await, 422, "tiebreak", "does not use tiebreaks");
    // A sum of second numbers beyond 64 bits.
    let events = [event("ada", 1, i64::MAX - 1), event("ada", 1, 2), event("bob", 1, 3), event("ada", 1, 1)];
    let answer = site.post(SCORES, json!(events)).await.is(200);
    let refusal = &answer["results"][1]["error"];
    assert_eq!((&refusal["code"], &refusal["field"]), (&json!("score_out_of_range"), &json!("events[1].points")));
    assert!(refusal["detail"].as_str().unwrap().contains("second number"), "{refusal}");
    assert_eq!(rows(&site.get(SCORES).await.is(200)["data"]), of(&[("ada", 2, i64::MAX), ("bob", 1, 3)]));
    // Nor may an act lead there.
    let correct = |tiebreak: i64| {
        let call = format!("SELECT * FROM centile.correct_score('main', 'ada', 0, now(), 'why', 'dora', {tiebreak})");
        let pool = db.pool();
        async move { sqlx::query(sqlx::AssertSqlSafe(call)).execute(&pool.await).await.map_err(|error| error.to_string()) }
    };
    assert!(correct(1).await.unwrap_err().contains("64 bits"));
    assert!(correct(-1).await.is_ok());
    let lost = site.post(SCORES, event("ada", 0, -5)).await.is(200)["transaction_id"].clone();
    site.post(SCORES, event("ada", 0, 6)).await.is(200);
    refused(
        &site.admin(Method::POST, &format!("{BOARD}/transactions/{lost}/void"), json!({})).await,
        422,
        "",
        "64 bits",
    );
    // On the command line.
    run(&db, &["score", "submit", "cli", "1", "--board", "main", "--tiebreak", "-5000"]).well();
    let at = Utc::now().to_rfc3339();
    let correct = [
        "correct",
        "cli",
        "1",
        "--board",
        "main",
        "--at",
        &at,
        "--tiebreak",
        "9000",
        "--reason",
        "why",
        "--by",
        "dora",
    ];
    run(&db, &correct).well();
    assert_eq!(site.get(&format!("{SCORES}/cli")).await.is(200)["tiebreak"], 4_000);
    run(&db, &["verify", "--whole"]).well();
}

/// Imports, corrections, voids and a reset in any order of time give what the oracle computes from
/// the ledger, while the week is open and after it.
#[tokio::test]
async fn imports_and_archives_agree_with_the_ledger() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let seed = rand::random::<u64>();
    eprintln!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let files = Files::new();
    for (board, mode, order, sum) in [
        ("added", "sum", "asc", Some("added")),
        ("replaced", "sum", "desc", Some("replaced")),
        ("best", "best", "asc", None),
        ("latest", "latest", "desc", None),
    ] {
        let rules = json!({
            "slug": board, "mode": mode, "ties": "second", "tiebreak_order": order, "tiebreak_sum": sum,
            "periods": ["all_time", "week"], "lanes": 2,
        });
        site.board(rules, &[]).await;
        for part in 0..4 {
            let lines = (0..40).map(|_| {
                let mut line = event(&format!("p{}", rng.random_range(0..9)), rng.random_range(0..4), None);
                // Few times, so that many are equal, in any order.
                line["occurred_at"] = format!("2024-01-{}T10:00:00Z", rng.random_range(14..20)).into();
                if rng.random_range(0..3) > 0 {
                    line["tiebreak"] = rng.random_range(-2..3).into();
                }
                line.to_string()
            });
            let file = files.write(&format!("{board}-{part}.ndjson"), lines.collect::<Vec<_>>().join("\n"));
            import(&db, &file, board, &[]).well(40, 0);
            compare(&db, &site, board, "all_time").await;
            compare(&db, &site, board, WEEK).await;
            // Acts compute a player's entries again.
            let latest = format!(
                "SELECT max(transaction_id) FROM centile.score_history WHERE board = '{board}' AND user_id = 'p{part}'"
            );
            db.execute(&format!("SELECT centile.void_score('{board}', ({latest}), 'why')")).await;
            db.execute(&format!(
                "SELECT * FROM centile.correct_score('{board}', 'p5', 2, '2024-01-16 10:00Z', 'why', 'dora', 2)"
            ))
            .await;
        }
        db.execute(&format!("SELECT centile.reset_player('{board}', 'p7', 'why')")).await;
        site.post(&format!("/v1/boards/{board}/scores"), event("p7", 1, 1)).await.is(200);
        compare(&db, &site, board, "all_time").await;
        let differences: Vec<(String, Option<Value>)> =
            query_as("SELECT d.kind, d.found FROM centile.verify($1, 'all_time') d")
                .bind(board)
                .fetch_all(&db.pool().await)
                .await
                .unwrap();
        assert!(differences.is_empty(), "{board}: {differences:?}");
        run(&db, &["close", "--board", board, "--period", WEEK]).well();
        compare(&db, &site, board, WEEK).await;
        // A correction changes the second number in the archive.
        db.execute(&format!(
            "SELECT * FROM centile.correct_score('{board}', 'p1', 3, '2024-01-19 10:00Z', 'why', 'dora', -2)"
        ))
        .await;
        run(&db, &["refresh", "--board", board, "--period", WEEK, "--by", "dora"]).well();
        compare(&db, &site, board, WEEK).await;
        run(&db, &["verify", "--whole", "--board", board]).well();
    }
}

#[tokio::test]
async fn metadata_follow_a_void_while_the_period_is_being_closed() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"ties": "second", "periods": ["all_time", "week"]}), &[]).await;
    let lines = [5, 7].map(|points| {
        let mut line = event("ada", points, 1);
        line["occurred_at"] = "2024-01-16T10:00:00Z".into();
        line["metadata"] = json!({"points": points});
        line.to_string()
    });
    let files = Files::new();
    import(&db, &files.write("past.ndjson", lines.join("\n")), "main", &[]).well(2, 0);
    db.execute(
        "SELECT centile_store.cut_off_period(id) FROM centile_store.periods WHERE kind = 'week' AND label = '2024-01-15';
         SELECT centile.void_score('main', transaction_id, 'why') FROM centile.score_history WHERE points = 7",
    )
    .await;
    let row = site.get(&format!("{SCORES}?period={WEEK}&metadata=true")).await.is(200)["data"][0].clone();
    assert_eq!((&row["score"], &row["metadata"]), (&json!(5), &json!({"points": 5})), "{row}");
}

/// Compares a period with the ledger, over HTTP.
async fn compare(db: &TestDb, site: &Site, board: &str, period: &str) {
    let ledger = Ledger::read(&db.pool().await, board).await;
    let mut oracle = Oracle::new(ledger.rules);
    ledger.rows.iter().for_each(|row| oracle.act(row.row));
    let row = |place: &Place| (ledger.names[&place.entry.user].clone(), place.entry.score, place.entry.tiebreak);
    let wanted: Vec<_> = oracle.standings(ledger.periods[period]).iter().map(row).collect();
    // A file is never older than the request.
    let file = site.get(&format!("/v1/boards/{board}/scores.ndjson?period={period}")).await.text;
    let lines: Vec<Value> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows(&json!(lines)), wanted, "{period} of {board}");
}

#[tokio::test]
async fn snapshots_messages_and_streams_have_the_second_number() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--maintenance-every", "1"]).await;
    until_no_hour_ends(&db.pool().await).await;
    let rules = json!({
        "ties": "second", "tiebreak_order": "asc", "snapshots": "day", "periods": ["all_time", "day"], "lanes": 1,
        "rolling": ["7d"],
    });
    site.board(rules, &[]).await;
    let at = (Utc::now() - TimeDelta::days(3)).format("%Y-%m-%dT12:00:00Z");
    let lines = format!("user_id,points,tiebreak,occurred_at\nbob,5,75,{at}\nada,5,60,{at}\n");
    let files = Files::new();
    import(&db, &files.write("past.csv", lines), "main", &[]).well(2, 0);
    take(&db, 2).await;
    let progress = site.get(&format!("{SCORES}/bob/progress")).await.is(200);
    let last = &progress["data"][0];
    assert_eq!(
        (&last["rank"], &last["tiebreak"], &last["reached_at"]),
        (&json!(2), &json!(75), &Value::Null),
        "{progress}"
    );
    let wanted = of(&[("ada", 5, 60), ("bob", 5, 75)]);
    let message: Value = query_scalar("SELECT payload FROM centile_store.outbox ORDER BY id LIMIT 1")
        .fetch_one(&db.pool().await)
        .await
        .unwrap();
    assert_eq!(rows(&message["top"]), wanted);
    // One window was there before the events, and the other one is filled from the ledger.
    site.admin(Method::PATCH, BOARD, json!({"rolling": ["7d", "30d"]})).await.is(200);
    for window in ["7d", "30d"] {
        let filled = until_some("the window is filled", async || {
            let answer = site.get(&format!("{SCORES}?period=rolling:{window}")).await;
            (answer.status == 200).then_some(answer.body)
        });
        assert_eq!(rows(&filled.await["data"]), wanted, "{window}");
    }
    // A change of the second number alone is a change of the ranking.
    let mut stream = Stream::open(&site.serve, &format!("{BOARD}/live?limit=5&user_id=bob"), &[]).await;
    let first = stream.one("started").await;
    assert_eq!((rows(&first["scores"]), rows(&first["standings"])), (wanted.clone(), wanted[1..].to_vec()));
    site.post(SCORES, event("bob", 0, -1)).await.is(200);
    let wanted = of(&[("ada", 5, 60), ("bob", 5, 74)]);
    stream.until(|event| event.data.get("scores").is_some_and(|scores| rows(scores) == wanted)).await;
}
