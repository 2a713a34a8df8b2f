//! PostgreSQL is cut off by resets and by silence: every call ends, no acknowledged event is lost,
//! and the service recovers. `make torture` cuts it off for thirty seconds with the default limits
//! and checks the times.

use std::time::Duration;

use crate::support::{
    cutting::{Limits, cut_off},
    proxy::Way,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_ends_and_the_service_recovers_after_a_cut() {
    let limits = Limits { statement: Duration::from_secs(1), cut: Duration::ZERO };
    let seen = cut_off(&[Way::Reset, Way::Silent], &limits).await;
    assert_eq!(seen.recovery_times.len(), 2, "{seen:?}");
}
