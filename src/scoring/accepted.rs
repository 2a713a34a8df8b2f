//! Counts of accepted scores, from which rebalancing derives how many rows it may move.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use tokio::sync::Notify;

/// Accepted scores after which rebalancing runs early. A new ranking has all its players in one
/// bucket.
const EARLY_RUN_SCORES: u64 = 20_000;

/// Accepted scores of each board since rebalancing last took them.
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
    pub(crate) fn add(&self, board_id: i32, scores: u64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.by_board.entry(board_id).or_default() += scores;
        counts.since_notified += scores;
        if counts.since_notified >= EARLY_RUN_SCORES {
            counts.since_notified = 0;
            self.early.notify_one();
        }
    }

    /// Takes the scores that each board has accepted since the last call.
    pub(crate) fn take(&self) -> HashMap<i32, u64> {
        std::mem::take(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner).by_board)
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
        accepted.add(1, EARLY_RUN_SCORES - 1);
        assert!(!is_notified(), "one score too few");
        accepted.add(2, 1);
        assert!(is_notified(), "scores of all boards are counted together");
        accepted.add(1, EARLY_RUN_SCORES - 1);
        assert!(!is_notified(), "scores are counted only once");
        assert_eq!(accepted.take(), HashMap::from([(1, 2 * (EARLY_RUN_SCORES - 1)), (2, 1)]));
        assert!(accepted.take().is_empty(), "a board without new scores takes no memory");
    }
}
