//! PostgreSQL is cut off for as long as a network switch takes to restart.

use std::time::Duration;

use crate::{
    report::{Trial, seconds},
    support::{
        cutting::{Limits, cut_off},
        proxy::Way,
    },
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_ends_while_postgresql_is_cut_off() {
    let mut trial = Trial::begin(
        "network",
        "PostgreSQL cut off for 30 s, by reset and by silence",
        "every call ends by its deadline; all connections usable again within 5 s",
    );
    // The service's default timeout.
    let limits = Limits { statement: Duration::from_secs(10), cut: Duration::from_secs(30) };
    let ways = [Way::Reset, Way::Silent];
    let seen = cut_off(&ways, &limits).await;
    trial.saw(format!(
        "{} events acknowledged, each in the ledger once; {} times 503",
        seen.acknowledged, seen.unavailable
    ));
    let (longest, deadline) = (seen.longest_read, limits.deadline());
    trial.expect(longest <= deadline, format!("longest read {} of {}", seconds(longest), seconds(deadline)));
    for (way, after) in ways.iter().zip(&seen.recovery_times) {
        let way = format!("{way:?}").to_lowercase();
        trial.expect(*after <= Duration::from_secs(5), format!("usable again {} after the {way}", seconds(*after)));
    }
    trial.end();
}
