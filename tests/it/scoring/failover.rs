//! `kill -9` of the primary and promotion of its synchronous replica, under load: no acknowledged
//! event is lost. The test has a cluster of its own for each failover.

use std::{sync::Arc, time::Instant};

use tokio_util::sync::CancellationToken;

use crate::support::{
    Serve, amount, audit,
    load::{PATIENT, key},
    replica::Cluster,
    sender::Sender,
};

const BOARD: &str = "SELECT centile.create_board('arena', p_lanes => 4::smallint, p_layout_bounds => '{0,20,100}')";
const CALLERS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_loses_no_acknowledged_event() {
    let failovers = amount(1, 100);
    let mut times = Vec::new();
    for failover in 0..failovers {
        let mut cluster = Cluster::start(BOARD).await;
        cluster.synchronize().await;
        let url = cluster.url();
        let sender = Arc::new(Sender::new(key(&url, "server")));
        let flags: Vec<String> = PATIENT.iter().map(|&flag| flag.to_owned()).collect();
        let serve = tokio::task::spawn_blocking(move || Serve::spawn(&url, None, "failover", &flags)).await;
        let serve = serve.expect("a service");
        let (address, stop) = (serve.at("/v1/boards/arena/scores"), CancellationToken::new());
        let callers = sender.spawn(CALLERS, &address, &stop);
        sender.wait_for_more([20, 300, 1_000][failover % 3]).await;
        cluster.fail_over().await;
        let promoted_at = Instant::now();
        sender.wait_for_more(1).await;
        times.push(promoted_at.elapsed());
        sender.wait_for_more(300).await;
        stop.cancel();
        callers.join_all().await;
        sender.finish(&address).await;
        sender.expect_all_once(&cluster.on_replica).await;
        assert_eq!(audit::rankings_are_sound(&cluster.on_replica).await, 4);
    }
    times.sort_unstable();
    eprintln!(
        "{failovers} failovers: written again after {:?} (median), {:?} (longest)",
        times[times.len() / 2],
        times.last()
    );
}
