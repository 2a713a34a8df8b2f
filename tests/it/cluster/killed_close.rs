//! Closing on a cluster: if the command or a server is killed, the archives are still those of a single
//! server. The tests need PostgreSQL with Citus.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use centile::{dev::local::LocalCluster, store::migrate::init_cluster};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use sqlx::PgPool;
use tokio::time::sleep;

use crate::{
    periods::killed_close::{PAST, STEPS, closing, digests, expect_closed},
    support::{TESTING, amount, cluster, run_at, spawn, wait::until_blocking},
};

/// A cluster, and a single server with a board of the past.
struct Past {
    cluster: LocalCluster,
    /// Address of the single server.
    single: String,
    /// Digests of the archives that the single server creates.
    wanted: Vec<String>,
    /// Number of copies.
    copies: AtomicUsize,
}

impl Past {
    async fn new() -> Self {
        let cluster = cluster::start();
        let single = cluster::create_single(&cluster).await;
        let pool = PgPool::connect(&single).await.unwrap();
        for statements in [TESTING, PAST] {
            sqlx::raw_sql(statements).execute(&pool).await.unwrap();
        }
        pool.close().await;
        let admin = PgPool::connect(&cluster.coordinator.url("postgres")).await.unwrap();
        sqlx::raw_sql("CREATE DATABASE closed TEMPLATE single").execute(&admin).await.unwrap();
        let closed = cluster.coordinator.url("closed");
        run_at(&closed, &["close", "--due"]).well();
        let wanted = digests(&PgPool::connect(&closed).await.unwrap()).await;
        Self { cluster, single, wanted, copies: AtomicUsize::new(0) }
    }

    /// Copies the single server's database into the cluster. Returns the address of the copy.
    async fn copy(&self) -> String {
        let name = format!("copy_{}", self.copies.fetch_add(1, Ordering::Relaxed));
        let url = self.cluster.create_database(&name).unwrap();
        init_cluster(&url, 4, 4, Some(&self.single)).await.unwrap();
        url
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn a_killed_close_ends_like_one_of_a_single_server() {
    let past = Past::new().await;
    closing(&STEPS, amount(3, 9))
        .run_on(async || past.copy().await, async |_| {}, async |pool| expect_closed(pool, &past.wanted).await)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn a_close_with_killed_servers_ends_like_one_of_a_single_server() {
    let mut past = Past::new().await;
    let seed = rand::random();
    eprintln!("kills from seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let command = ["close", "--due"];
    let mut interrupted = 0;
    for kill in 0..amount(6, 30) {
        let url = past.copy().await;
        let mut child = spawn(&url, &command);
        // At a random moment of the command.
        sleep(Duration::from_millis(random.random_range(0..2_000))).await;
        let is_running = child.try_wait().unwrap().is_none();
        let server = match kill % 3 {
            0 => &mut past.cluster.coordinator,
            worker => &mut past.cluster.workers[worker - 1],
        };
        tokio::task::block_in_place(|| server.kill_hard().and_then(|()| server.start_again())).unwrap();
        let ran = tokio::task::block_in_place(|| child.wait_with_output()).unwrap();
        interrupted += u32::from(is_running);
        eprintln!("kill {kill}: running: {is_running}, {}", ran.status);
        until_blocking("the command succeeds", || {
            let again = run_at(&url, &command);
            again.code == Some(0) && !again.out.contains(closing(&[], 0).busy)
        });
        expect_closed(&PgPool::connect(&url).await.unwrap(), &past.wanted).await;
    }
    assert!(interrupted > 0, "each close had ended before the kill");
}
