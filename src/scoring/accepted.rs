//! Scores that an instance has accepted: the credit that rebalancing spends.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use tokio::sync::Notify;

/// After so many scores rebalancing runs early: a new ranking has all its players in one bucket.
const EARLY_AFTER: u64 = 20_000;

/// Accepted scores by board.
#[derive(Debug, Default)]
pub(crate) struct AcceptedScores {
    counts: Mutex<Counts>,
    /// Notified when rebalancing should run early.
    pub(crate) early: Notify,
}

#[derive(Debug, Default)]
struct Counts {
    by_board: HashMap<i32, u64>,
    since_notified: u64,
}

impl AcceptedScores {
    /// Adds scores of a board.
    pub(crate) fn add(&self, board_id: i32, scores: u64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.by_board.entry(board_id).or_default() += scores;
        counts.since_notified += scores;
        if counts.since_notified >= EARLY_AFTER {
            counts.since_notified = 0;
            self.early.notify_one();
        }
    }

    /// Scores of a board so far.
    pub(crate) fn of(&self, board_id: i32) -> u64 {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.by_board.get(&board_id).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn many_scores_notify_once() {
        let accepted = AcceptedScores::default();
        let is_notified = || accepted.early.notified().now_or_never().is_some();
        accepted.add(1, EARLY_AFTER - 1);
        assert!(!is_notified(), "one score is missing");
        accepted.add(2, 1);
        assert!(is_notified(), "scores of all boards count");
        accepted.add(1, EARLY_AFTER - 1);
        assert!(!is_notified(), "scores before the last notification do not count again");
    }
}
