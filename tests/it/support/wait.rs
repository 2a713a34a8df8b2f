//! Waiting for events, with one deadline for all tests.

use std::{
    thread,
    time::{Duration, Instant},
};

use tokio::time::{sleep, timeout};

/// Deadline for an event that must happen. It is far above what a busy machine needs, so only a
/// fault reaches it. The benchmarks measure speed.
pub const DEADLINE: Duration = Duration::from_mins(3);

/// Interval between two checks of a condition.
const POLL: Duration = Duration::from_millis(10);

/// Returns the result of `future`. Fails the test if there is none by the deadline.
#[track_caller]
pub fn within<T>(what: &str, future: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move { timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("{caller}: timeout: {what}")) }
}

/// Returns once `condition` holds. Fails the test if it does not by the deadline.
#[track_caller]
pub fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    within(what, async move {
        while !condition().await {
            sleep(POLL).await;
        }
    })
}

/// Returns the first value that `look` finds. Fails the test if there is none by the deadline.
#[track_caller]
pub fn until_some<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> impl Future<Output = T> {
    within(what, async move {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            sleep(POLL).await;
        }
    })
}

/// Like [`until`], for code that blocks.
#[track_caller]
pub fn until_blocking(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < end, "timeout: {what}");
        thread::sleep(POLL);
    }
}
