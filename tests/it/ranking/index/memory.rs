//! The memory limit of indexes, and boards that load at the start.

use std::fmt::Write as _;

use serde_json::json;

use super::{from_index, source};
use crate::{
    http::api::site::Site,
    support::{
        Files, Ran, Serve, TestDb, import, spawn_serve,
        wait::{until, until_some},
    },
};

/// Number of players of a board; one such board fits into a mebibyte, two do not.
const MANY: u64 = 12_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_board_that_does_not_fit_is_read_by_sql_and_reported() {
    let db = TestDb::new().await;
    let files = Files::new();
    let site = Site::start(&db, &["--index-memory", "1"]).await;
    for board in ["first", "second"] {
        site.board(json!({"slug": board, "periods": ["all_time"], "ties": "first"}), &[]).await;
        let mut file = String::from("user_id,points,occurred_at\n");
        for n in 0..MANY {
            writeln!(file, "p{n},{n},2024-01-16T12:00:00Z").unwrap();
        }
        import(&db, &files.write(&format!("{board}.csv"), file), board, &[]).well(MANY, 0);
    }
    let path = |board: &str, n: u64| format!("/v1/boards/{board}/scores/p{n}?around=1");
    let is_right = |output: &serde_json::Value, n: u64| {
        assert_eq!((&output["rank"], &output["players"]), (&json!(MANY - n), &json!(MANY)), "{output}");
        let beside = [&output["above"][0], &output["below"][0]].map(|row| row["user_id"].clone());
        assert_eq!(beside, [json!(format!("p{}", n + 1)), json!(format!("p{}", n - 1))], "{output}");
    };
    is_right(&from_index(&site, &path("first", 500)).await, 500);
    let value = |metrics: &str, name: &str| -> f64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} in {metrics}")).trim().parse().unwrap()
    };
    let names = value(&site.get("/metrics").await.text, "centile_directory_users ");
    assert!(names > 1_000.0, "{names} users in the directory");
    let refused = "centile_index_refused_bytes{index=\"second/all_time\"} ";
    let metrics = until_some("the second index is refused", async || {
        let answer = site.get(&path("second", 700)).await;
        assert_eq!(source(&answer), "sql", "{answer:?}");
        is_right(&answer.is(200), 700);
        Some(site.get("/metrics").await.text).filter(|text| text.contains(refused))
    })
    .await;
    assert!(value(&metrics, refused) > 30.0 * f64::from(u32::try_from(MANY).unwrap()), "{metrics}");
    // The refused load evicted nothing.
    assert!(value(&metrics, "centile_directory_users ") >= names, "{names} before: {metrics}");
    let taken =
        value(&metrics, "centile_index_bytes{index=\"first/all_time\"} ") + value(&metrics, "centile_directory_bytes ");
    assert!(taken <= f64::from(1 << 20) && taken <= value(&metrics, "centile_index_memory_bytes "), "{metrics}");
    assert!(!metrics.contains("centile_index_bytes{index=\"second/all_time\"}"), "{metrics}");
    // Both boards stay right while they change, and the first stays in memory.
    for n in [3, MANY - 2] {
        for board in ["first", "second"] {
            let event = json!({"user_id": format!("p{n}"), "points": 0});
            site.post(&format!("/v1/boards/{board}/scores"), event).await.is(200);
            is_right(&site.get(&path(board, n)).await.is(200), n);
        }
    }
    is_right(&from_index(&site, &path("first", MANY / 2)).await, MANY / 2);
    assert_eq!(source(&site.get(&path("second", MANY / 2)).await), "sql");
    site.serve.logged("not enough memory for a rank index", 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_is_ready_once_its_boards_are_in_memory() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('main', '{\"periods\": [\"all_time\"]}'), centile.create_board('other', '{\"periods\": [\"all_time\"]}');
         SELECT testing.submit_score('main', 'ada', 5);
         SELECT testing.submit_score('main', 'bob', 3);",
    )
    .await;
    // A load waits at the first bucket.
    let mut held = db.hold("LOCK TABLE centile_store.leaderboard_bucket_99 IN ACCESS EXCLUSIVE MODE").await;
    let flags = ["--index-memory", "8", "--index-boards", "main", "--ready-when-indexed"];
    let site = Site::of(spawn_serve(&db, None, &flags).await, db.url());
    db.until_waiting(1, || false).await;
    let loading = site.get("/readyz").await;
    assert!(loading.status == 503 && loading.text.contains("rank indexes are being loaded"), "{loading:?}");
    site.get("/healthz").await.is(200);
    sqlx::raw_sql("ROLLBACK").execute(&mut held).await.unwrap();
    until("the instance is ready", async || {
        let answer = site.get("/readyz").await;
        assert!([200, 503].contains(&answer.status), "{answer:?}");
        answer.status == 200
    })
    .await;
    // A ready instance has loaded the index before any read.
    let metrics = site.get("/metrics").await.text;
    assert!(metrics.contains("centile_index_players{index=\"main/all_time\"} 2\n"), "{metrics}");
    assert_eq!(from_index(&site, "/v1/boards/main/scores/bob").await["rank"], 2);
    assert!(!metrics.contains("other/all_time"), "{metrics}");
}

#[tokio::test]
async fn an_unknown_board_to_load_is_refused_at_the_start() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main')").await;
    let start = |flags: &[&str]| {
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        Ran::of(&mut Serve::command(db.url(), None, &db.redis_prefix(), &flags))
    };
    let unknown = start(&["--index-boards", "main,nowhere", "--log", "error"]);
    unknown.refused(1, &["no board", "nowhere"]);
    start(&["--index-boards", "No Board"]).refused(2, &["--index-boards", "No Board"]);
    start(&["--ready-when-indexed"]).refused(2, &["--index-boards"]);
}
