//! `centile explain` and `centile.explain_rank`: the steps that make up a rank.

use std::collections::BTreeMap;

use rand::{SeedableRng as _, rngs::StdRng};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, query_as, query_scalar, raw_sql};

use crate::support::{TestDb, layout, run, spawn_serve};

/// A row: description, value, statement.
type Step = (String, Option<String>, Option<String>);

const STEPS: &str = "SELECT what, value, statement FROM centile.explain_rank($1, $2, $3) ORDER BY step";

/// Runs the statement of each step, as `centile_reader`: it returns the value of the step.
async fn statements_return_the_values(db: &TestDb, steps: &[Step]) {
    let mut reader = PgConnection::connect(db.url()).await.unwrap();
    raw_sql("SET ROLE centile_reader").execute(&mut reader).await.unwrap();
    for (what, value, statement) in steps {
        let Some(statement) = statement else { continue };
        let again = format!("SELECT ({statement})::text");
        let found: Option<String> = query_scalar(AssertSqlSafe(again)).fetch_one(&mut reader).await.expect(statement);
        assert_eq!(&found, value, "{what}: {statement}");
    }
}

#[tokio::test]
async fn the_steps_add_up_to_the_rank_and_each_statement_returns_its_value() {
    let db = TestDb::new().await;
    let pool = db.pool().await;
    for (board, flags) in [
        ("shared", &["--ties", "shared"][..]),
        ("first", &["--ties", "first", "--order", "asc", "--mode", "best"]),
        ("tiebreak", &["--ties", "tiebreak", "--mode", "latest", "--lanes", "3"]),
    ] {
        run(&db, &[&["board", "create", board, "--periods", "all_time,week"], flags].concat()).well();
        // Some of the players have equal scores.
        db.execute(&format!(
            "SELECT centile.ensure_users(array_agg('p' || n)) FROM generate_series(1, 100) n;
             SELECT count(*) FROM generate_series(1, 100) n CROSS JOIN LATERAL testing.submit_score('{board}', 'p' || n, n % 15)"
        ))
        .await;
    }
    // Spreads the players over several buckets, in an order unrelated to the buckets' numbers. Some
    // bounds separate equal scores.
    let rankings: Vec<i64> = query_scalar("SELECT ranking_id FROM centile.periods").fetch_all(&pool).await.unwrap();
    let mut random = StdRng::seed_from_u64(1);
    for ranking in rankings {
        layout::scatter(&mut pool.acquire().await.unwrap(), ranking, &mut random, layout::MANY).await;
    }
    let serve = spawn_serve(&db, None, &[]).await;
    let mut buckets = std::collections::BTreeSet::new();
    for board in ["shared", "first", "tiebreak"] {
        for (player, periods) in [
            ("p1", &["all_time", "week"][..]),
            ("p14", &["week"]),
            ("p30", &["all_time"]),
            ("p40", &["week"]),
            ("p100", &["all_time"]),
        ] {
            for &period in periods {
                let steps: Vec<Step> =
                    query_as(STEPS).bind(board).bind(player).bind(period).fetch_all(&pool).await.unwrap();
                statements_return_the_values(&db, &steps).await;
                let value: BTreeMap<&str, &str> =
                    steps.iter().filter_map(|(what, value, _)| Some((what.as_str(), value.as_deref()?))).collect();
                let number = |what: &str| -> i64 { value[what].parse().unwrap() };
                let path = format!("/v1/boards/{board}/scores/{player}?period={period}");
                let output: Value = serve.client.get(serve.at(&path)).send().await.unwrap().json().await.unwrap();
                let sum = 1 + number("players in better buckets") + number("rows above in the bucket");
                assert_eq!(output["rank"], sum, "{board} {player}: {value:?}, {output}");
                assert_eq!(output["rank"], number("rank"));
                assert_eq!(output["position"], number("position"), "{board} {player}: {value:?}, {output}");
                assert_eq!(output["score"], number("score"));
                assert_eq!(output["version"], value["version"]);
                assert_eq!(value["ties"], board);
                let place: i64 = query_scalar(
                    "SELECT array_position(buckets, $2::smallint)::bigint FROM centile_store.rankings WHERE id = $1",
                )
                .bind(number("ranking"))
                .bind(number("bucket"))
                .fetch_one(&pool)
                .await
                .unwrap();
                assert_eq!(number("place of the bucket"), place);
                buckets.insert(number("bucket"));
            }
        }
    }
    assert!(buckets.len() > 3, "{buckets:?}");
    let printed = run(&db, &["explain", "p40", "--board", "shared", "--period", "week"]).well();
    for words in ["STEP", "rows above in the bucket", "FROM centile_store.leaderboard_bucket_", "all of these"] {
        assert!(printed.contains(words), "{words} is not in {printed}");
    }
    run(&db, &["explain", "p40", "--board", "none"]).refused(1, &["no board \"none\""]);
    run(&db, &["explain", "nobody", "--board", "shared"]).refused(1, &["no user \"nobody\""]);
    run(&db, &["explain", "p40", "--board", "shared", "--period", "season:none"]).refused(1, &["no period"]);
    run(&db, &["explain", "p40", "--board", "shared", "--period", "someday"]).refused(2, &["--period"]);
    run(&db, &["user", "set", "idle"]).well();
    for period in ["all_time", "week:2020-01-06"] {
        let refused = run(&db, &["explain", "idle", "--board", "shared", "--period", period]);
        refused.refused(1, &["no score of user \"idle\"", period]);
    }
}

#[tokio::test]
async fn a_closed_period_is_explained_by_its_archive() {
    let db = TestDb::new().await;
    let pool = db.pool().await;
    run(&db, &["board", "create", "main", "--periods", "all_time,week"]).well();
    db.execute(
        "SELECT centile.ensure_ledger_months('2024-01-01', '2024-01-31');
         SELECT centile.ensure_users('{ann,bob,cyd,dan}')",
    )
    .await;
    db.execute(
        "SELECT centile.correct_score('main', u, p, '2024-01-16 12:00Z', 'why', 'me')
         FROM (VALUES ('ann', 5), ('bob', 9), ('cyd', 5)) AS x (u, p)",
    )
    .await;
    run(&db, &["close", "--due"]).well();
    let steps: Vec<Step> =
        query_as(STEPS).bind("main").bind("cyd").bind("week:2024-01-15").fetch_all(&pool).await.unwrap();
    let value: BTreeMap<&str, &str> =
        steps.iter().filter_map(|(what, value, _)| Some((what.as_str(), value.as_deref()?))).collect();
    assert_eq!((value["period"], value["score"], value["rank"], value["position"]), ("week:2024-01-15", "5", "2", "3"));
    assert_eq!(value["archive of the closed period"], "centile_archive.main_week_2024_01_15");
    statements_return_the_values(&db, &steps).await;
    run(&db, &["explain", "dan", "--board", "main", "--period", "week:2024-01-15"])
        .refused(1, &["no score of user \"dan\""]);
}

/// Such a ranking has one place, which holds all players.
#[tokio::test]
async fn a_rank_without_bucket_rows_is_explained_by_the_entries() {
    let db = TestDb::new().await;
    run(&db, &["board", "create", "main", "--periods", "all_time,week", "--buckets", "all_time"]).well();
    db.execute(
        "SELECT centile.ensure_users('{ann,bob,cyd}');
         SELECT testing.submit_score('main', u, p) FROM (VALUES ('ann', 5), ('bob', 9), ('cyd', 5)) AS x (u, p)",
    )
    .await;
    let steps: Vec<Step> =
        query_as(STEPS).bind("main").bind("cyd").bind("week").fetch_all(&db.pool().await).await.unwrap();
    statements_return_the_values(&db, &steps).await;
    let value: BTreeMap<&str, &str> =
        steps.iter().filter_map(|(what, value, _)| Some((what.as_str(), value.as_deref()?))).collect();
    assert_eq!((value["players in better buckets"], value["rows above in the bucket"]), ("0", "1"));
    assert_eq!((value["rank"], value["position"], value.contains_key("bucket")), ("2", "3", false));
}
