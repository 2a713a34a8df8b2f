//! Answers from rank indexes, each compared with a replay of the ledger at its version.

use crate::{
    report::Trial,
    support::{amount, faults::compare_under_faults},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_match_their_version() {
    let wanted = std::env::var("CENTILE_ANSWERS").ok().and_then(|text| text.parse().ok());
    let wanted = wanted.unwrap_or_else(|| amount(100_000, 5_000_000));
    let mut trial = Trial::begin(
        "replay",
        format!(
            "{wanted} answers of rank indexes under writes, closings, rebuilds, rebalancing, renames, bans, kills, and with appliers held up, terminated and doubled"
        ),
        "none wrong",
    );
    let seen = compare_under_faults(wanted, 150_000).await;
    trial.saw(format!(
        "{} answers compared at {} versions, {} of them from an index; {} changes; {} periods closed, {} boards rebuilt",
        seen.answers, seen.versions, seen.from_index, seen.changes, seen.closed, seen.rebuilds
    ));
    let (postgresql, instances, appliers) = (seen.postgresql_kills, seen.instance_kills, seen.appliers_ended);
    trial.saw(format!(
        "PostgreSQL killed {postgresql} times, an instance {instances} times, {appliers} appliers terminated"
    ));
    trial.end();
}
