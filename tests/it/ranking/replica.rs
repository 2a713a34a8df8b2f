//! Reads from a streaming replica. The tests pause, stop and promote a replica of their own.

use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};

use crate::support::{
    Ran, Serve,
    boundary::until_no_hour_ends,
    centile,
    load::{PATIENT, key},
    ranking_reads,
    replica::Cluster,
    wait::{until, until_some},
};

const BOARD: &str = "SELECT centile.create_board('arena', '{\"lanes\": 2, \"periods\": [\"all_time\"]}')";

/// A service that reads from a replica.
struct Site {
    serve: Serve,
    key: String,
}

impl Site {
    async fn start(cluster: &Cluster, flags: &[&str]) -> Self {
        // With the rights of a service only.
        let [url, replica] = [&cluster.primary, &cluster.replica].map(|server| {
            let url = server.url("postgres");
            format!("postgres://app:secret@{}", url.split_once('@').expect("a user").1)
        });
        // A read that begins while the replica goes away waits for a connection.
        let patient = ["--pool-wait", "10000", "--statement-timeout", "60"];
        let flags = [&["--read-url", &replica, "--index-memory", "64"], flags, &patient].concat();
        let flags: Vec<String> = flags.into_iter().map(ToOwned::to_owned).collect();
        let key = key(&cluster.primary.url("postgres"), "server");
        let serve = tokio::task::spawn_blocking(move || Serve::spawn(&url, None, "replica", &flags)).await;
        let site = Self { serve: serve.expect("a service"), key };
        site.until_read_from(true).await;
        site
    }

    /// Starts a service that uses the primary of both servers.
    async fn start_on_both(cluster: &Cluster) -> Self {
        let (url, key) = (cluster.url(), key(&cluster.primary.url("postgres"), "server"));
        let flags: Vec<String> = ["--index-memory", "64"].iter().chain(PATIENT).map(|&flag| flag.to_owned()).collect();
        let serve = tokio::task::spawn_blocking(move || Serve::spawn(&url, None, "failover", &flags)).await;
        Self { serve: serve.expect("a service"), key }
    }

    /// Adds points; returns the version of the response.
    async fn score(&self, user: &str, points: i64) -> String {
        let event = json!({"user_id": user, "points": points});
        let request = self.serve.client.post(self.serve.at("/v1/boards/arena/scores")).bearer_auth(&self.key);
        let answer = request.json(&event).send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        answer.headers()["centile-version"].to_str().expect("text").to_owned()
    }

    async fn get(&self, path: &str, min_version: Option<&str>) -> (u16, HeaderMap, Value) {
        let mut request = self.serve.client.request(Method::GET, self.serve.at(path));
        if let Some(version) = min_version {
            request = request.header("centile-min-version", version);
        }
        let answer = request.send().await.expect("an answer");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        (status, headers, answer.json().await.unwrap_or_default())
    }

    /// Returns the player's score, and whether the replica answered.
    async fn read(&self, user: &str, min_version: Option<&str>) -> (Option<i64>, bool) {
        let (status, headers, body) = self.get(&format!("/v1/boards/arena/scores/{user}"), min_version).await;
        assert!([200, 404].contains(&status), "{status} {body}");
        (body["score"].as_i64(), headers.contains_key("centile-lag"))
    }

    /// Waits until the replica answers, or no longer does.
    async fn until_read_from(&self, replica: bool) {
        until("another server answers", async || {
            let (status, headers, _) = self.get("/v1/boards/arena/scores", None).await;
            status == 200 && headers.contains_key("centile-lag") == replica
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_contains_the_writes_that_it_names() {
    let cluster = Cluster::start(BOARD).await;
    let site = Site::start(&cluster, &["--read-max-lag", "3600"]).await;
    let first = site.score("ann", 5).await;
    assert_eq!(site.read("ann", Some(&first)).await, (Some(5), true));
    // Loads the index from the replica.
    until("the index answers", async || {
        let (_, headers, _) = site.get("/v1/boards/arena/scores/ann", None).await;
        headers.get("centile-source").is_some_and(|source| source == "index")
    })
    .await;

    cluster.on_replica("SELECT pg_wal_replay_pause()").await;
    let second = site.score("ann", 2).await;
    assert_ne!(first, second);
    let other = site.score("ben", 1).await;
    // The index, top lists and SQL show the state of the replica.
    assert_eq!(site.read("ann", None).await, (Some(5), true));
    assert_eq!(site.read("ben", None).await, (None, true));
    assert_eq!(site.read("ann", Some(&first)).await, (Some(5), true));
    // The primary answers after a wait.
    assert_eq!(site.read("ann", Some(&second)).await, (Some(7), false));
    assert_eq!(site.read("ben", Some(&format!("{second},{other}"))).await, (Some(1), false));
    let (_, headers, top) = site.get("/v1/boards/arena/scores", Some(&second)).await;
    assert_eq!((&top["data"][0]["score"], headers.contains_key("centile-lag")), (&json!(7), false));

    cluster.on_replica("SELECT pg_wal_replay_resume()").await;
    cluster.until_replayed().await;
    assert_eq!(site.read("ann", Some(&second)).await, (Some(7), true));
    assert_eq!(site.read("ben", None).await, (Some(1), true));
    let (_, headers, top) = site.get("/v1/boards/arena/scores", Some(&second)).await;
    assert_eq!((&top["data"][0]["score"], headers.contains_key("centile-lag")), (&json!(7), true));

    for wrong in ["", "x", "1", "1:-2", "1:2,"] {
        let (status, _, body) = site.get("/v1/boards/arena/scores/ann", Some(wrong)).await;
        assert_eq!((status, &body["field"]), (422, &json!("Centile-Min-Version")), "{wrong}: {body}");
    }
    // A board that the replica does not have.
    assert_eq!(site.read("ann", Some("999:1")).await, (Some(7), false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_answers_every_read_like_the_primary() {
    let cluster = Cluster::start(
        "SELECT centile.create_board('arena', '{\"lanes\": 2, \"periods\": [\"all_time\", \"day\"], \"snapshots\": \"day\"}');
         SELECT centile.create_season('arena', 'old', now() - interval '2 days', now() - interval '1 day');
         SELECT testing.submit_score('arena', 'p' || n % 60, n % 17) FROM generate_series(1, 200) AS n;
         SELECT centile.correct_score('arena', 'p' || n, n % 7, now() - interval '36 hours', 'test', 'test') FROM generate_series(1, 40) AS n",
    )
    .await;
    until_no_hour_ends(&cluster.on_primary).await;
    let url = cluster.primary.url("postgres");
    Ran::of(centile().args(["close", "--board", "arena", "--period", "season:old"]).env("DATABASE_URL", &url)).well();
    let on_replica = Site::start(&cluster, &["--read-max-lag", "3600", "--default-board", "arena"]).await;
    let flags = ["--default-board", "arena"].map(ToOwned::to_owned);
    let primary = tokio::task::spawn_blocking(move || Serve::spawn(&url, None, "primary", &flags)).await;
    let on_primary = Site { serve: primary.expect("a service"), key: on_replica.key.clone() };
    cluster.until_replayed().await;
    let periods = ["", "period=day", "period=season:old"];
    let paths = ranking_reads("p7");
    let paths = paths.iter().flat_map(|read| periods.map(|period| format!("/v1/boards/arena/{read}{period}")));
    let files = ["", "?period=season:old"]
        .iter()
        .flat_map(|period| ["csv", "ndjson"].map(|format| format!("/v1/boards/arena/scores.{format}{period}")));
    let others = [
        "/v1/boards/arena/periods",
        "/v1/boards/arena/scores/p7/progress",
        "/v1/users/p7/standings",
        "/v1/scores",
        "/boards/arena",
    ];
    for path in paths.chain(files).chain(others.map(ToOwned::to_owned)) {
        let read = async |site: &Site| {
            let answer = site.serve.client.get(site.serve.at(&path)).bearer_auth(&site.key).send().await;
            let answer = answer.expect("an answer");
            let (status, is_lagging) = (answer.status(), answer.headers().contains_key("centile-lag"));
            (status, is_lagging, without_version(&answer.text().await.expect("a body")))
        };
        let ((status, is_lagging, body), (wanted, _, wanted_body)) = (read(&on_replica).await, read(&on_primary).await);
        assert_eq!(wanted, 200, "{path}: {wanted_body}");
        assert_eq!((status, body), (wanted, wanted_body), "{path}");
        assert!(is_lagging || !path.starts_with("/v1"), "{path} did not come from the replica");
    }
}

/// Removes the versions from a body: each server has its own epoch.
fn without_version(body: &str) -> String {
    let mut parts = body.split(r#""version":""#);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('"').map_or("", |(_, rest)| rest))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_behind_or_away_is_left_alone() {
    let mut cluster = Cluster::start(BOARD).await;
    let site = Site::start(&cluster, &["--read-max-lag", "1"]).await;
    cluster.on_replica("SELECT pg_wal_replay_pause()").await;
    site.score("ann", 5).await;
    site.until_read_from(false).await;
    assert!(site.serve.metric("centile_replica_used").await < 0.5);
    assert!(site.serve.metric("centile_replica_lag_seconds").await > 1.0);
    assert_eq!(site.read("ann", None).await, (Some(5), false));
    cluster.on_replica("SELECT pg_wal_replay_resume()").await;
    site.until_read_from(true).await;
    assert!(site.serve.metric("centile_replica_used").await > 0.5);
    assert_eq!(site.read("ann", None).await, (Some(5), true));

    cluster.replica.shut_down().expect("a stopped replica");
    site.until_read_from(false).await;
    site.score("ann", 1).await;
    assert_eq!(site.read("ann", None).await, (Some(6), false));
    cluster.replica.start_again().expect("the replica is back");
    site.until_read_from(true).await;
    let version = site.score("ann", 1).await;
    assert_eq!(site.read("ann", Some(&version)).await, (Some(7), true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_database_is_not_a_replica() {
    let cluster = Cluster::start(BOARD).await;
    let site = Site::start(&cluster, &["--read-max-lag", "3600"]).await;
    let first = site.score("ann", 5).await;
    assert_eq!(site.read("ann", Some(&first)).await, (Some(5), true));
    cluster.cut().await;
    cluster.on_replica("SELECT pg_promote()").await;
    site.until_read_from(false).await;
    site.score("ann", 2).await;
    assert_eq!(site.read("ann", None).await, (Some(7), false));
    // The log tells why.
    site.serve.logged("does not follow the primary", 1).await;
}

/// The former primary still runs, so open connections to it would work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_score_goes_to_a_former_primary() {
    let cluster = Cluster::start(BOARD).await;
    let site = Site::start_on_both(&cluster).await;
    for n in 0..20 {
        site.score(&format!("p{n}"), 1).await;
    }
    cluster.until_replayed().await;
    cluster.on_replica("SELECT pg_promote()").await;
    site.serve.logged("another server is the primary", 1).await;
    for n in 0..20 {
        site.score(&format!("p{n}"), 1).await;
        let (_, _, body) = site.get(&format!("/v1/boards/arena/scores/p{n}"), None).await;
        assert_eq!(body["score"], 2, "{body}");
    }
    let rows = "SELECT count(*) FROM centile_store.score_transactions";
    let rows = async |server| sqlx::query_scalar::<_, i64>(rows).fetch_one(server).await.expect("a number");
    assert_eq!((rows(&cluster.on_primary).await, rows(&cluster.on_replica).await), (20, 40));
}

/// Without synchronous replication a failover loses scores, which must not stay in an index.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failover_no_answer_shows_lost_scores() {
    let mut cluster = Cluster::start(BOARD).await;
    let site = Site::start_on_both(&cluster).await;
    site.score("ann", 5).await;
    site.score("ben", 5).await;
    cluster.until_replayed().await;
    cluster.cut().await;
    site.score("ann", 40).await;
    site.score("lost", 3).await;
    until("the index answers", async || {
        let (_, headers, body) = site.get("/v1/boards/arena/scores/ann", None).await;
        assert_eq!(body["score"], 45);
        headers["centile-source"] == "index"
    })
    .await;
    cluster.fail_over().await;
    let answer = async |user: &str| {
        let path = format!("/v1/boards/arena/scores/{user}");
        until_some("an answer after the failover", async || {
            let (status, _, body) = site.get(&path, None).await;
            (status != 503).then_some(body["score"].as_i64())
        })
        .await
    };
    assert_eq!(answer("ann").await, Some(5));
    assert_eq!(answer("lost").await, None);
    // The lost batch numbers are used again.
    for n in 1..4 {
        site.score("ann", 1).await;
        assert_eq!((answer("ann").await, answer("ben").await), (Some(5 + n), Some(5)));
    }
}
