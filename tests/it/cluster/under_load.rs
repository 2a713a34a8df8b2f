//! A cluster under load, while Citus moves its lanes, and while its servers are killed, too. These tests
//! need PostgreSQL with Citus, and start their own servers.

use std::{sync::Arc, time::Duration};

use centile::{dev::local::LocalCluster, store::migrate::init_cluster};
use rand::RngExt as _;
use sqlx::{AssertSqlSafe, PgPool};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::support::{
    Serve, amount, audit, cluster,
    load::{Load, key, stop_after},
    random::seeded,
    record::Record,
    verdict,
    wait::{until, within},
};

/// The statements that create the boards of a round.
fn create_boards(round: usize) -> String {
    format!(
        "SELECT centile.create_board('shared-{round}', '{{\"periods\": [\"all_time\", \"week\"], \"first_layout\": {{\"bounds\": [-10,0,3,10,30,50]}}}}');
         SELECT centile.create_board('first-{round}', '{{\"mode\": \"latest\", \"order\": \"asc\", \"ties\": \"first\", \"periods\": [\"all_time\", \"week\"]}}')"
    )
}

/// Moves a random group of lanes to another worker.
const MOVE: &str = "
    SELECT citus_move_shard_placement(m.shard, m.from_host, m.from_port, m.to_host, m.to_port, m.mode::citus.shard_transfer_mode)
    FROM (SELECT g.shard, f.nodename AS from_host, f.nodeport AS from_port, t.nodename AS to_host, t.nodeport AS to_port,
                 CASE WHEN random() < 0.5 THEN 'block_writes' ELSE 'force_logical' END AS mode
          FROM centile_lanes.groups g
          JOIN pg_dist_placement p ON p.shardid = g.shard
          JOIN pg_dist_node f ON f.groupid = p.groupid
          JOIN pg_dist_node t ON t.groupid NOT IN (0, p.groupid)
          ORDER BY random() LIMIT 1) m";

/// Parts of the errors with which Citus refuses to move a group back while it drops the former copies.
const BUSY: [&str; 2] = ["leftover from the previous move", "lock required to move"];

/// A cluster with two instances of the service.
struct Trial {
    cluster: LocalCluster,
    pool: PgPool,
    url: String,
    instances: [Serve; 2],
}

impl Trial {
    async fn begin() -> Self {
        let cluster = cluster::start();
        let url = cluster::create_database(&cluster, "boards").await;
        Self::serve(cluster, url).await
    }

    async fn serve(cluster: LocalCluster, url: String) -> Self {
        let pool = PgPool::connect(&url).await.expect("a connection");
        let instances = [cluster::serve(&url, "one").await, cluster::serve(&url, "two").await];
        Self { cluster, pool, url, instances }
    }

    /// Moves a random group of lanes, and writes scores until all lanes accept them. Returns the record
    /// of these scores.
    async fn move_group(&self, load: &Load) -> Record {
        until("a group is moved", async || match sqlx::raw_sql(MOVE).execute(&self.pool).await {
            Ok(_) => true,
            Err(error) => {
                let error = error.to_string();
                assert!(BUSY.iter().any(|part| error.contains(part)), "{error}");
                false
            }
        })
        .await;
        within("scores are accepted after a move", accepted_everywhere(load)).await
    }

    /// Creates boards and a load on them.
    async fn load(&self, round: usize) -> Arc<Load> {
        sqlx::raw_sql(AssertSqlSafe(create_boards(round))).execute(&self.pool).await.expect("the boards");
        let urls = self.instances.iter().map(|instance| instance.url.clone()).collect();
        let boards = ["shared", "first"].map(|name| format!("{name}-{round}"));
        let mut load = Load::new(urls, &boards.each_ref().map(String::as_str), key(&self.url, "admin"));
        load.may_fail = true;
        load.pause = Duration::from_millis(amount(0, 200));
        Arc::new(load)
    }

    /// Compares all answers with the ledger, and audits the rankings.
    async fn check(&self, load: &Load, record: &Record, what: &str) {
        let verdict = verdict::of(&self.pool, load, record).await;
        verdict.expect_right(what);
        assert!(verdict.answers.values().sum::<usize>() > 100, "few answers: {:?}", verdict.answers);
        assert!(audit::rankings_are_sound(&self.pool).await >= 2 * load.boards.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn answers_are_exact_while_lanes_move() {
    let trial = Trial::begin().await;
    for round in 0..amount(1, 4) {
        let load = trial.load(round).await;
        let mut record = load.begin().await;
        let stop = CancellationToken::new();
        let (running, stopped) = (Arc::clone(&load), stop.clone());
        let running = tokio::spawn(async move { running.run(&stopped).await });
        let mut moves = 0;
        while moves < amount(6, 10) || load.answered() < amount(0, 60_000) {
            record.join(trial.move_group(&load).await);
            moves += 1;
        }
        stop.cancel();
        record.join(running.await.expect("the load"));
        trial.check(&load, &record, &format!("{moves} moves")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn answers_are_exact_while_lanes_move_and_servers_are_killed() {
    let mut trial = Trial::begin().await;
    let mut random = seeded();
    for round in 0..amount(1, 12) {
        let load = trial.load(round).await;
        trial.cluster.workers[round % 2].kill_hard().expect("a kill");
        let writer = Arc::clone(&load);
        let accepted = tokio::spawn(async move { accepted_everywhere(&writer).await });
        let any_uncopied = "SELECT EXISTS (SELECT FROM centile_lanes.uncopied_periods)";
        until("periods are opened without a worker", async || {
            sqlx::query_scalar(any_uncopied).fetch_one(&trial.pool).await.expect("whether there are any")
        })
        .await;
        tokio::task::block_in_place(|| trial.cluster.workers[round % 2].start_again()).expect("a start");
        let mut record = within("scores are accepted everywhere", accepted).await.expect("the scores");
        let kills = 6;
        for kill in 0..kills {
            let (running, part) = (Arc::clone(&load), Duration::from_secs(2));
            let running = tokio::spawn(async move { running.run(&stop_after(part)).await });
            let pool = trial.pool.clone();
            let moving = tokio::spawn(async move { sqlx::raw_sql(MOVE).execute(&pool).await.is_ok() });
            // At a random moment of the load and of the move.
            sleep(Duration::from_millis(random.random_range(0..1_500))).await;
            let server = match kill % 3 {
                0 => &mut trial.cluster.coordinator,
                worker => &mut trial.cluster.workers[worker - 1],
            };
            tokio::task::block_in_place(|| server.kill_hard().and_then(|()| server.start_again())).expect("a start");
            record.join(running.await.expect("the load"));
            eprintln!("kill {kill}: the move succeeded: {}", within("the move ends", moving).await.expect("a result"));
            let moved = async || sqlx::raw_sql(MOVE).execute(&trial.pool).await.is_ok();
            until("a group is moved after the kill", moved).await;
            record.join(within("scores are accepted after a kill and a move", accepted_everywhere(&load)).await);
            // More answers before the next kill.
            let wanted = record.answers.len() + amount(40, 14_000);
            let answered = async {
                while record.answers.len() < wanted {
                    record.join(load.run(&stop_after(Duration::from_secs(1))).await);
                }
            };
            within("questions are answered after the kill", answered).await;
        }
        trial.check(&load, &record, &format!("{kills} kills")).await;
    }
}

/// Adds a worker with the steps of docs/cluster.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn answers_are_exact_while_a_worker_is_added() {
    let cluster = cluster::start();
    let url = cluster.create_database("boards").unwrap();
    let pool = PgPool::connect(&url).await.unwrap();
    let port = cluster.workers[1].port();
    sqlx::query("SELECT citus_remove_node('127.0.0.1', $1)").bind(i32::from(port)).execute(&pool).await.unwrap();
    init_cluster(&url, 4, 4, None).await.unwrap();
    let trial = Trial::serve(cluster, url).await;
    let load = trial.load(0).await;
    let mut record = load.begin().await;
    let stop = CancellationToken::new();
    let (running, stopped) = (Arc::clone(&load), stop.clone());
    let running = tokio::spawn(async move { running.run(&stopped).await });
    sqlx::query("SELECT citus_add_node('127.0.0.1', $1)").bind(i32::from(port)).execute(&pool).await.unwrap();
    // Instances may hold a lock for a moment.
    until("the worker is prepared", async || init_cluster(&trial.url, 4, 4, None).await.is_ok()).await;
    record.join(trial.move_group(&load).await);
    until("questions are answered", async || load.answered() > 150).await;
    stop.cancel();
    record.join(running.await.expect("the load"));
    let players = cluster::players(&pool, port).await;
    assert_eq!(players.len(), 3, "the new worker has no lane");
    trial.check(&load, &record, "a worker was added").await;
}

/// Writes scores of most players until no lane refuses them; returns the record.
async fn accepted_everywhere(load: &Load) -> Record {
    let mut record = Record::default();
    loop {
        let part = load.begin().await;
        // Each player has two scores in it, unless banned. A lane has a quarter of the players.
        let accepted = part.acknowledged.len();
        record.join(part);
        if accepted * 2 > load.players * 3 {
            return record;
        }
    }
}
