//! Compares answers with a replay of the ledger under faults. The test starts its own PostgreSQL
//! and instances, because it kills them.

use crate::support::{amount, faults::compare_under_faults};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "kills servers under load: make torture"]
async fn answers_match_their_version_while_servers_are_killed() {
    let seen = compare_under_faults(amount(150, 500), amount(300, 1_000)).await;
    let happened = [seen.postgresql_kills, seen.instance_kills, seen.rebuilds];
    assert!(happened.iter().all(|count| *count > 0) && seen.appliers_ended > 0 && seen.closed > 0, "{seen:?}");
}
