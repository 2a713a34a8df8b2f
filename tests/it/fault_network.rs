//! PostgreSQL cut off, by reset and by silence: every call ends, nothing acknowledged is lost, and all is well again after it.
//! (`make torture` cuts it off for thirty seconds, with the service's own limits, and compares times with them.)

use std::time::Duration;

use crate::support::{
    cutting::{Limits, cut_off},
    proxy::Way,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_cuts_postgresql_off_every_call_ends_and_all_is_well_again() {
    let limits = Limits { statement: Duration::from_secs(1), cut: Duration::ZERO };
    let seen = cut_off(&[Way::Reset, Way::Silent], &limits).await;
    assert_eq!(seen.whole_again.len(), 2, "{seen:?}");
}
