//! A score that one instance acknowledges is in the next answer of another one that reads from its
//! index.

use rand::RngExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{BY_SQL, INDEXED, Sums, from_index, source};
use crate::{
    http::api::site::{Answer, Site},
    support::{TestDb, amount, random::seeded, wait::until},
};

const LIST: &str = "/v1/boards/main/scores?from=2&limit=1000";

/// Starts an instance that writes, and one that reads from its index.
async fn two(db: &TestDb, scores: &[(&str, i64)]) -> (Site, Site) {
    let (writer, reader) = (Site::start(db, &BY_SQL).await, Site::start(db, &INDEXED).await);
    writer.board(json!({"lanes": 3, "periods": ["all_time"]}), scores).await;
    from_index(&reader, LIST).await;
    (writer, reader)
}

/// Sends reads that keep rounds running all the time.
fn crowd(reader: &Site) -> JoinSet<()> {
    let mut crowd = JoinSet::new();
    for _ in 0..3 {
        let (client, url) = (reader.serve.client.clone(), reader.serve.at("/v1/boards/main/rank?score=5"));
        crowd.spawn(async move {
            loop {
                client.get(&url).send().await.unwrap().bytes().await.unwrap();
            }
        });
    }
    crowd
}

/// An instance uses a board's rules for up to a second after another one has changed them.
#[tokio::test]
async fn a_top_list_with_outdated_rules_is_replaced() {
    const TOP: &str = "/v1/boards/main/scores?limit=10";
    let db = TestDb::new().await;
    let (writer, reader) = (Site::start(&db, &BY_SQL).await, Site::start(&db, &INDEXED).await);
    writer.board(json!({"lanes": 1, "periods": ["all_time"]}), &[]).await;
    let score = async |user: &str, points: i64| {
        writer.post("/v1/boards/main/scores", json!({"user_id": user, "points": points})).await.is(200);
    };
    reader.get("/v1/boards/main").await.is(200);
    writer.admin(Method::PATCH, "/v1/boards/main", json!({"order": "asc"})).await.is(200);
    score("ann", 10).await;
    score("bob", 20).await;
    from_index(&reader, TOP).await;
    score("fay", 15).await;
    let scores = async || -> Vec<i64> {
        let top = reader.get(TOP).await.is(200);
        top["data"].as_array().unwrap().iter().map(|row| row["score"].as_i64().unwrap()).collect()
    };
    // As long as the reader has the old order, the scores may be negative.
    until("the list has the new score", async || scores().await.len() == 3).await;
    until("the list has the new order", async || scores().await == [10, 15, 20]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_score_is_in_the_next_answer_of_another_instance() {
    let db = TestDb::new().await;
    let (writer, reader) = two(&db, &[("p0", 1), ("p1", 1)]).await;
    let _crowd = crowd(&reader);
    let mut sums = Sums::default();
    sums.add("p0", 1);
    sums.add("p1", 1);
    let mut rng = seeded();
    let (mut written, mut seen) = (0, 0);
    // Answers by SQL, which a busy machine may cause, must be right but do not count.
    while seen < amount(300, 100_000) {
        written += 1;
        assert!(written < amount(6_000, 2_000_000), "{seen} answers of {written} came from the index");
        let is_first = rng.random_range(0..10) == 0 && sums.0.len() < 3_000;
        let user = format!("p{}", if is_first { sums.0.len() } else { rng.random_range(0..sums.0.len()) });
        let points = rng.random_range(1..9);
        let sum = sums.add(&user, points);
        writer.post("/v1/boards/main/scores", json!({"user_id": user, "points": points})).await.is(200);
        let path = match written % 3 {
            0 => format!("/v1/boards/main/scores/query?user_id={user}"),
            1 => format!("/v1/boards/main/scores/{user}"),
            _ => format!("/v1/boards/main/scores/{user}?around=2"),
        };
        let answer = reader.get(&path).await;
        seen += usize::from(source(&answer) == "index");
        let output = answer.is(200);
        let row = if written % 3 == 0 { &output["data"][0] } else { &output };
        assert_eq!((&row["user_id"], &row["score"]), (&json!(user), &json!(sum)), "{written}: {output}");
        assert_eq!(
            (&row["rank"], &output["players"]),
            (&json!(sums.rank(&user)), &json!(sums.0.len())),
            "{written}: {output}"
        );
    }
}

/// Repeats an act and the reads after it until the index has given enough answers.
async fn repeat(mut act: impl AsyncFnMut(usize) -> Vec<Answer>) {
    let mut seen = 0;
    for number in 0.. {
        assert!(number < 2_000, "{seen} answers came from the index");
        let answers = act(number).await;
        seen += answers.iter().filter(|answer| source(answer) == "index").count();
        if seen >= amount(10, 1_000) {
            return;
        }
    }
}

/// Returns a player's names in a list of rows.
fn names(rows: &Value, user: &str) -> Vec<Value> {
    let rows = rows.as_array().unwrap().iter();
    rows.filter(|row| row["user_id"] == user).map(|row| row["name"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rename_is_in_the_next_answer_of_another_instance() {
    let db = TestDb::new().await;
    let (writer, reader) = two(&db, &[("ada", 9), ("bob", 5), ("cyd", 3)]).await;
    let _crowd = crowd(&reader);
    repeat(async |number| {
        let name = format!("Bob the {number}th");
        writer.admin(Method::PUT, "/v1/users/bob", json!({"name": name, "avatar_url": null})).await.is(200);
        let paths = [
            ("/v1/boards/main/scores/bob", None),
            ("/v1/boards/main/scores/ada?around=1", Some("below")),
            (LIST, Some("data")),
            ("/v1/boards/main/scores/query?user_id=bob&user_id=cyd", Some("data")),
        ];
        let (path, rows) = paths[number % paths.len()];
        let answer = reader.get(path).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let output = match rows {
            None => vec![answer.body["name"].clone()],
            Some(rows) => names(&answer.body[rows], "bob"),
        };
        assert_eq!(output, [json!(name)], "{path}: {answer:?}");
        vec![answer]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_is_in_the_next_answer_of_another_instance() {
    let db = TestDb::new().await;
    let (writer, reader) = two(&db, &[("ada", 90_000), ("bob", 50_000)]).await;
    let _crowd = crowd(&reader);
    repeat(async |number| {
        writer.admin(Method::PUT, "/v1/users/cyd", json!({"name": "Cyd Vicious"})).await.is(201);
        writer.post("/v1/boards/main/scores", json!({"user_id": "cyd", "points": 7 + number})).await.is(200);
        assert_eq!(reader.get("/v1/boards/main/scores/cyd").await.is(200)["name"], "Cyd Vicious");
        let erased = writer.admin(Method::DELETE, "/v1/users/cyd", Value::Null).await.is(200);
        let new_id = erased["new_user_id"].as_str().unwrap();
        // The newest player ranks first among those below bob.
        let answer = reader.get("/v1/boards/main/scores/bob?around=1").await;
        assert_eq!(
            (&answer.body["below"][0]["user_id"], &answer.body["below"][0]["name"]),
            (&json!(new_id), &json!("(erased)")),
            "{answer:?}"
        );
        reader.get("/v1/boards/main/scores/cyd").await.is(404);
        let under_new_id = reader.get(&format!("/v1/boards/main/scores/{new_id}")).await;
        assert_eq!((under_new_id.status, &under_new_id.body["score"]), (200, &json!(7 + number)), "{under_new_id:?}");
        // The old id now belongs to a new player.
        writer.post("/v1/boards/main/scores", json!({"user_id": "cyd", "points": 1})).await.is(200);
        let other = reader.get("/v1/boards/main/scores/cyd").await;
        assert_eq!((&other.body["score"], &other.body["name"]), (&json!(1), &json!("cyd")), "{other:?}");
        writer.admin(Method::DELETE, "/v1/users/cyd", Value::Null).await.is(200);
        reader.get("/v1/boards/main/scores/cyd").await.is(404);
        vec![answer, under_new_id, other]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acts_are_in_the_next_answer_of_another_instance() {
    let db = TestDb::new().await;
    let (writer, reader) = two(&db, &[("ada", 9), ("bob", 5), ("cyd", 3), ("dan", 1)]).await;
    let _crowd = crowd(&reader);
    let post = |user: &str, points: i64| {
        let event = json!({"user_id": user, "points": points});
        let writer = &writer;
        async move { writer.post("/v1/boards/main/scores", event).await.is(200) }
    };
    repeat(async |_| {
        let mut answers = Vec::new();
        // A ban and an unban.
        writer.admin(Method::POST, "/v1/users/ada/ban", Value::Null).await.is(200);
        reader.get("/v1/boards/main/scores/ada").await.is(404);
        answers.push(reader.get(LIST).await);
        assert_eq!((answers[0].status, &answers[0].body["players"]), (200, &json!(3)), "{:?}", answers[0]);
        writer.admin(Method::POST, "/v1/users/ada/unban", Value::Null).await.is(200);
        answers.push(reader.get("/v1/boards/main/scores/ada").await);
        assert_eq!((&answers[1].body["rank"], &answers[1].body["score"]), (&json!(1), &json!(9)), "{:?}", answers[1]);
        // A void.
        let scored = post("bob", 100).await;
        assert_eq!(reader.get("/v1/boards/main/scores/bob").await.is(200)["score"], 105);
        let path = format!("/v1/boards/main/transactions/{}/void", scored["transaction_id"]);
        writer.admin(Method::POST, &path, json!({"reason": "a bot"})).await.is(204);
        answers.push(reader.get("/v1/boards/main/scores/bob").await);
        assert_eq!((&answers[2].body["rank"], &answers[2].body["score"]), (&json!(2), &json!(5)), "{:?}", answers[2]);
        // A reset, and the first score after it.
        writer.admin(Method::POST, "/v1/boards/main/scores/dan/reset", Value::Null).await.is(204);
        reader.get("/v1/boards/main/scores/dan").await.is(404);
        post("dan", 1).await;
        answers.push(reader.get("/v1/boards/main/scores/dan").await);
        assert_eq!((&answers[3].body["rank"], &answers[3].body["score"]), (&json!(4), &json!(1)), "{:?}", answers[3]);
        answers
    })
    .await;
}
