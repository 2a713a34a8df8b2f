//! Answers while everything happens at once. It starts a PostgreSQL and instances of its own, because it kills them.

use crate::support::storm::storm;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_their_version_while_servers_are_killed() {
    let seen = storm(500, 1_000).await;
    assert!(seen.troubles.iter().all(|count| *count > 0) && seen.closed > 0, "{seen:?}");
}
