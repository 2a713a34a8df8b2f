//! Definitions and writes that are refused.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    http::api::site::Site,
    support::{Files, TestDb, run},
};

#[tokio::test]
async fn nothing_is_written_to_a_combined_board() {
    let (db, files) = (TestDb::new().await, Files::new());
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"periods": ["all_time", "week"]}), &[("ada", 5)]).await;
    run(&db, &["board", "combine", "hero", "--source", "main@all_time"]).well();
    let before = site.get("/v1/boards/hero/scores").await.is(200);

    let event = json!({"user_id": "ada", "points": 1});
    for (path, body) in
        [("/v1/boards/hero/scores", event.clone()), ("/v1/boards/hero/scores/batch", json!({"events": [event]}))]
    {
        let refused = site.post(path, body).await.is(409);
        assert_eq!(refused["code"], "board_combined", "{path}: {refused}");
        assert!(refused["detail"].as_str().unwrap().contains("computed from other boards"), "{refused}");
    }
    let reset = site.admin(Method::POST, "/v1/boards/hero/scores/ada/reset", Value::Null).await.is(409);
    assert_eq!(reset["code"], "board_combined");
    let season = json!({"name": "spring", "starts_at": "2030-01-01T00:00:00Z", "ends_at": "2030-02-01T00:00:00Z"});
    let season = site.admin(Method::POST, "/v1/boards/hero/seasons", season).await.is(409);
    assert_eq!(season["code"], "board_combined");
    run(&db, &["score", "submit", "ada", "1", "--board", "hero"]).refused(1, &["computed from other boards"]);
    let correction =
        ["correct", "ada", "1", "--board", "hero", "--at", "2024-01-02T12:00:00Z", "--reason", "x", "--by", "dora"];
    run(&db, &correction).refused(1, &["computed from other boards"]);
    let file = files.write("events.csv", "user_id,points,occurred_at\nada,5,2024-01-10T12:00:00Z\n");
    let imported = run(&db, &["import", file.to_str().unwrap(), "--board", "hero"]);
    assert!(imported.code == Some(1) && imported.err.contains("computed from other boards"), "{imported:?}");
    run(&db, &["refresh", "--board", "hero", "--period", "all_time"])
        .refused(1, &["--period: board hero is combined and has one ranking"]);
    run(&db, &["rebuild", "--board", "hero", "--period", "all_time"]).refused(1, &[]);
    for (field, change) in [
        ("snapshots", json!({"snapshots": "day"})),
        ("lanes", json!({"lanes": 2})),
        ("points_min", json!({"points_min": 1})),
        ("kept_archives", json!({"kept_archives": {"week": 3}})),
        ("mode", json!({"mode": "sum"})),
    ] {
        let refused = site.admin(Method::PATCH, "/v1/boards/hero", change.clone()).await;
        assert!([409, 422].contains(&refused.status), "{change}: {refused:?}");
        assert!(refused.status == 409 || refused.body["field"] == field, "{change}: {refused:?}");
    }
    // No other board becomes combined.
    let refused = site.admin(Method::PATCH, "/v1/boards/main", json!({"combination": {"join": "union"}})).await.is(422);
    assert_eq!(refused["field"], "combination");
    run(&db, &["board", "combine", "main", "--replace", "--source", "hero@all_time"]).refused(1, &["combination"]);
    assert_eq!(site.get("/v1/boards/hero/scores").await.is(200), before);
    run(&db, &["refresh", "--board", "main"]).refused(1, &["name a closed period"]);
}

#[tokio::test]
async fn impossible_definitions_are_refused_with_the_reason() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"periods": ["all_time", "week"]}), &[("ada", 5)]).await;
    let create = async |combination: Value, more: Value| {
        let mut board = json!({"slug": "hero", "mode": "combined", "combination": combination});
        board.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        let refused = site.admin(Method::POST, "/v1/boards", board.clone()).await;
        assert_eq!(refused.status, 422, "{board}: {refused:?}");
        (refused.body["field"].as_str().unwrap().to_owned(), refused.body["detail"].as_str().unwrap().to_owned())
    };
    let main = json!({"board": "main", "period": "week"});
    let refresh = |refresh: &str| json!({"sources": [main], "refresh": refresh});
    for (field, words, combination, more) in [
        ("sources", "no board 'none'", json!({"sources": [main, {"board": "none", "period": "week"}]}), json!({})),
        (
            "sources",
            "does not keep the period 'day'",
            json!({"sources": [{"board": "main", "period": "day:-2"}]}),
            json!({}),
        ),
        ("sources", "1 to 366", json!({"sources": []}), json!({})),
        ("sources", "1 to 366", json!({"sources": null}), json!({})),
        ("sources", "1 to 366", json!({"refresh": "manual"}), json!({})),
        (
            "combination.sources[0].period",
            "is not from -1 to -366",
            json!({"sources": [{"board": "main", "period": "week:-367"}]}),
            json!({}),
        ),
        (
            "combination.sources[1].weight",
            "not 0",
            json!({"sources": [main, {"board": "main", "period": "week", "weight": 0}]}),
            json!({}),
        ),
        (
            "combination.sources[0].weight",
            "1000000",
            json!({"sources": [{"board": "main", "period": "week", "weight": 1_000_001}]}),
            json!({}),
        ),
        (
            "combination.sources[0].board",
            "lower-case",
            json!({"sources": [{"board": "Main", "period": "week"}]}),
            json!({}),
        ),
        ("combination.refresh", "five fields", refresh("daily"), json!({})),
        ("combination.refresh", "no cron expression", refresh("61 * * * *"), json!({})),
        ("combination.refresh", "number of scores", refresh("after=0"), json!({})),
        ("combination.refresh", "a time such as", refresh("every=5"), json!({})),
        ("refresh", "has no future time", refresh("0 0 31 2 *"), json!({})),
        ("time_zone", "IANA", refresh("0 3 * * *"), json!({"time_zone": "Mars/Base"})),
        ("periods", "does not apply", refresh("manual"), json!({"periods": ["week"]})),
        ("points_max", "does not apply", refresh("manual"), json!({"points_max": 5})),
        ("snapshots", "does not apply", refresh("manual"), json!({"snapshots": "day"})),
        ("mode", "ties shared or first", refresh("manual"), json!({"ties": "tiebreak"})),
        ("combination", "only for this mode", refresh("manual"), json!({"mode": "sum"})),
        ("combination", "required for mode combined", Value::Null, json!({})),
    ] {
        let (found, detail) = create(combination.clone(), more).await;
        assert!(found == field && detail.contains(words), "{combination}: {found}: {detail}");
    }
    run(&db, &["board", "create", "hero", "--mode", "combined"]).refused(2, &["combined"]);
    run(&db, &["board", "combine", "hero", "--source", "main"]).refused(2, &["arena@week:previous*2"]);
    run(&db, &["board", "combine", "hero", "--source", "none@week"]).refused(1, &["no board 'none'"]);
    assert_eq!(site.get("/v1/boards").await.is(200)["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_cycle_is_refused_with_its_path() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"periods": ["all_time"]}), &[("ada", 5)]).await;
    for (slug, source) in [("a", "main@all_time"), ("b", "a@all_time"), ("c", "b@all_time")] {
        run(&db, &["board", "combine", slug, "--source", source]).well();
    }
    let replace = |slug: &str, source: &str| run(&db, &["board", "combine", slug, "--replace", "--source", source]);
    replace("a", "a@all_time").refused(1, &["a -> a"]);
    replace("b", "b@all_time*2").refused(1, &["b -> b"]);
    replace("a", "c@all_time").refused(1, &["a -> c -> b -> a"]);
    let change = json!({"title": "A", "combination": {"sources": [{"board": "main", "period": "all_time"}, {"board": "b", "period": "all_time"}]}});
    let refused = site.admin(Method::PATCH, "/v1/boards/a", change).await.is(422);
    assert!(refused["detail"].as_str().unwrap().contains("a -> b -> a"), "{refused}");
    // Nothing of a refused change remains.
    let shown = site.get("/v1/boards/a").await.is(200);
    assert_eq!((&shown["title"], &shown["combination"]["sources"][0]["board"]), (&json!("a"), &json!("main")));
    // Two definitions that close a cycle together do not both succeed.
    run(&db, &["board", "combine", "x", "--source", "main@all_time"]).well();
    run(&db, &["board", "combine", "y", "--source", "main@all_time"]).well();
    let change = |slug: &str, source: &str| {
        format!(
            "SELECT centile.update_board('{slug}', '{{\"combination\": {{\"sources\": [{{\"board\": \"{source}\", \"period\": \"all_time\"}}]}}}}')"
        )
    };
    let first = db.hold(&change("x", "y")).await;
    let second = db.spawn(&change("y", "x"));
    db.until_waiting(1, || second.is_finished()).await;
    drop(first);
    // The first one was rolled back, so the second one succeeds, and then the first is refused.
    second.await.unwrap().unwrap();
    run(&db, &["board", "combine", "x", "--replace", "--source", "y@all_time"]).refused(1, &["x -> y -> x"]);
}
