//! A player's standings on several boards, from one round of their indexes.

use std::collections::BTreeMap;

use rand::RngExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{BY_SQL, INDEXED, Pair, Sums, from_index, source};
use crate::{
    http::api::site::Site,
    support::{TestDb, amount, random::seeded},
};

/// Creates boards with the tag `moba` and different rules, and a few players.
async fn boards(site: &Site) {
    let scores = [("ada", 9), ("bob", 5), ("cyd", 9), ("dan", 1)];
    for rules in [
        json!({"slug": "shared", "lanes": 3}),
        json!({"slug": "first", "ties": "first", "lanes": 1}),
        json!({"slug": "laps", "mode": "best", "order": "asc"}),
        json!({"slug": "latest", "mode": "latest", "ties": "tiebreak"}),
    ] {
        let mut rules = rules;
        rules["tags"] = json!(["moba"]);
        site.board(rules, &scores).await;
    }
}

#[tokio::test]
async fn standings_are_the_same_from_indexes_and_by_sql() {
    let db = TestDb::new().await;
    let pair = Pair::start(&db).await;
    boards(&pair.sql).await;
    for user in ["ada", "bob", "dan"] {
        for period in ["all_time", "day", "week"] {
            let output = pair.read(&format!("/v1/users/{user}/standings?tag=moba&period={period}")).await;
            assert_eq!(output["data"].as_array().unwrap().len(), 4, "{output}");
        }
    }
    // A board without an index does not change the others.
    pair.sql.board(json!({"slug": "new", "tags": ["moba"]}), &[]).await;
    pair.sql.admin(Method::PUT, "/v1/users/bob", json!({"name": "Bob"})).await.is(200);
    let path = "/v1/users/bob/standings?tag=moba";
    assert_eq!(pair.index.get(path).await.is(200), pair.sql.get(path).await.is(200));
    // The player is erased: the indexes still have the entries.
    pair.sql.admin(Method::DELETE, "/v1/users/bob", Value::Null).await.is(200);
    assert_eq!(pair.index.get(path).await.is(404)["code"], "user_not_found");
}

/// Sends reads of single boards, so that their own rounds overlap those of several boards.
fn crowd(reader: &Site) -> JoinSet<()> {
    let mut crowd = JoinSet::new();
    for board in ["shared", "first"] {
        let (client, url) = (reader.serve.client.clone(), reader.serve.at(&format!("/v1/boards/{board}/rank?score=5")));
        crowd.spawn(async move {
            loop {
                client.get(&url).send().await.unwrap().bytes().await.unwrap();
            }
        });
    }
    crowd
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scores_on_several_boards_are_in_the_next_standings_of_another_instance() {
    let db = TestDb::new().await;
    let (writer, reader) = (Site::start(&db, &BY_SQL).await, Site::start(&db, &INDEXED).await);
    let slugs = ["shared", "first", "third"];
    let mut sums: BTreeMap<&str, Sums> = BTreeMap::new();
    for (lanes, slug) in slugs.into_iter().enumerate() {
        let rules = json!({"slug": slug, "lanes": lanes + 1, "periods": ["all_time"], "tags": ["moba"]});
        writer.board(rules, &[("p0", 1), ("p1", 1)]).await;
        let sums = sums.entry(slug).or_default();
        sums.add("p0", 1);
        sums.add("p1", 1);
    }
    from_index(&reader, "/v1/users/p0/standings?tag=moba").await;
    let _crowd = crowd(&reader);
    let mut rng = seeded();
    let (mut written, mut seen) = (0, 0);
    // Answers by SQL, which a busy machine may cause, must be right but do not count.
    while seen < amount(200, 50_000) {
        written += 1;
        assert!(written < amount(5_000, 1_000_000), "{seen} answers of {written} came from the indexes");
        let user = format!("p{}", rng.random_range(0..30));
        let written_to: Vec<&str> = slugs.into_iter().filter(|_| rng.random_range(0..3) > 0).collect();
        let mut events = Vec::new();
        for slug in &written_to {
            let points = rng.random_range(1..9);
            sums.get_mut(slug).unwrap().add(&user, points);
            events.push(json!({"board": slug, "user_id": user, "points": points}));
        }
        if !events.is_empty() {
            writer.post("/v1/scores/batch", json!({"events": events})).await.is(200);
        }
        let answer = reader.get(&format!("/v1/users/{user}/standings?tag=moba")).await;
        if sums.values().all(|sums| !sums.0.contains_key(&user)) {
            assert_eq!(answer.status, 404, "{answer:?}");
            continue;
        }
        seen += usize::from(source(&answer) == "index");
        let output = answer.is(200);
        let rows = output["data"].as_array().unwrap();
        for (slug, sums) in &sums {
            let row = rows.iter().find(|row| row["board"] == *slug);
            assert_eq!(row.is_some(), sums.0.contains_key(&user), "{written}, {slug}: {output}");
            let Some(row) = row else { continue };
            let wanted = (json!(sums.0[&user]), json!(sums.rank(&user)), json!(sums.0.len()));
            assert_eq!(
                (&row["score"], &row["rank"], &row["players"]),
                (&wanted.0, &wanted.1, &wanted.2),
                "{written}: {row}"
            );
        }
    }
}
