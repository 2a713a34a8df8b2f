//! PostgreSQL cut off, by reset and by silence: every call ends by its deadline, nothing acknowledged is lost, and all is well again soon
//! after. (`make torture` cuts it off for thirty seconds, with the service's own limits.)

use std::time::Duration;

use crate::support::{
    cutting::{Limits, cut_off},
    proxy::Way,
};

/// How soon after the cut all connections have to be usable again.
const WHOLE_AGAIN: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_cuts_postgresql_off_every_call_ends_and_all_is_well_again() {
    let limits = Limits { statement: Duration::from_secs(1), cut: Duration::from_secs(6) };
    let seen = cut_off(&[Way::Reset, Way::Silent], &limits).await;
    assert!(seen.longest_read <= limits.deadline(), "{seen:?}");
    assert!(seen.whole_again.iter().all(|after| *after < WHOLE_AGAIN), "{seen:?}");
}
