//! `kill -9` of the primary and promotion of its replica, under load. With synchronous replication
//! no acknowledged event is lost; otherwise only the latest ones are. Each failover has its own
//! cluster.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::support::{Serve, amount, audit, load::key, replica::Cluster, sender::Sender};

const BOARD: &str =
    "SELECT centile.create_board('arena', '{\"lanes\": 4, \"first_layout\": {\"bounds\": [0,20,100]}}')";
const CALLERS: usize = 4;

/// A cluster, a service that knows both servers, and callers.
struct Load {
    cluster: Cluster,
    sender: Arc<Sender>,
    _serve: Serve,
    address: String,
    stop: CancellationToken,
    callers: JoinSet<()>,
}

impl Load {
    async fn start(is_synchronous: bool) -> Self {
        let cluster = Cluster::start(BOARD).await;
        if is_synchronous {
            cluster.synchronize().await;
        }
        let url = cluster.url();
        let sender = Arc::new(Sender::new(key(&cluster.primary.url("postgres"), "server")));
        let serve = tokio::task::spawn_blocking(move || Serve::spawn(&url, None, "failover", &[])).await;
        let serve = serve.expect("a service");
        let (address, stop) = (serve.at("/v1/boards/arena/scores"), CancellationToken::new());
        let callers = sender.spawn(CALLERS, &address, &stop);
        Self { cluster, sender, _serve: serve, address, stop, callers }
    }

    /// Ends the load, and checks that the new primary has each acknowledged event once.
    async fn finish(self) {
        self.stop.cancel();
        self.callers.join_all().await;
        self.sender.finish(&self.address).await;
        self.sender.expect_all_once(&self.cluster.on_replica).await;
        assert!(audit::rankings_are_sound(&self.cluster.on_replica).await >= 4);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_loses_no_acknowledged_event() {
    let failovers = amount(1, 100);
    let mut times = Vec::new();
    for failover in 0..failovers {
        let mut load = Load::start(true).await;
        load.sender.wait_for_more([20, 300, 1_000][failover % 3]).await;
        load.cluster.fail_over().await;
        let promoted_at = Instant::now();
        load.sender.wait_for_more(1).await;
        times.push(promoted_at.elapsed());
        load.sender.wait_for_more(300).await;
        load.finish().await;
    }
    times.sort_unstable();
    eprintln!(
        "{failovers} failovers: written again after {:?} (median), {:?} (longest)",
        times[times.len() / 2],
        times.last()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_asynchronous_failover_loses_only_what_the_replica_lacks() {
    let failovers = amount(1, 100);
    let (mut losses, mut rates, mut longest) = (Vec::new(), Vec::new(), Duration::ZERO);
    for failover in 0..failovers {
        let mut load = Load::start(false).await;
        load.sender.wait_for_more([20, 300, 1_000][failover % 3]).await;
        let safe = load.sender.acknowledged();
        load.cluster.until_replayed().await;
        let begun = Instant::now();
        let before = load.sender.counts().0;
        let after = load.sender.wait_for_more([1, 500, 2_000][failover % 3]).await;
        rates.push((after - before) as f64 / begun.elapsed().as_secs_f64());
        load.cluster.primary.kill_hard().expect("a dead primary");
        let killed_at = Instant::now();
        // All calls have ended before the promotion, so that the new primary does not use the ids of
        // lost transactions.
        load.stop.cancel();
        std::mem::take(&mut load.callers).join_all().await;
        load.cluster.on_replica("SELECT pg_promote()").await;
        let lost = load.sender.forget_lost(&load.cluster.on_replica).await;
        assert!(safe.iter().all(|id| !lost.contains_key(id)), "events that the replica had are lost: {lost:?}");
        losses.push(lost.len());
        longest = lost.values().fold(longest, |longest, at| longest.max(killed_at.duration_since(*at)));
        // The others are complete, and new events are written.
        load.stop = CancellationToken::new();
        load.callers = load.sender.spawn(CALLERS, &load.address, &load.stop);
        load.sender.wait_for_more(300).await;
        load.finish().await;
    }
    rates.sort_by(f64::total_cmp);
    losses.sort_unstable();
    eprintln!(
        "{failovers} failovers at {:.0} events per second: {} lost acknowledged events; {} (median), {:?} (most), \
         acknowledged up to {longest:?} before the end of the primary",
        rates[rates.len() / 2],
        losses.iter().filter(|lost| **lost > 0).count(),
        losses[losses.len() / 2],
        losses.last()
    );
}
