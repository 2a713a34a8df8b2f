//! The batches that this instance has acknowledged. Its cached answers must contain them.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
    time::{Duration, Instant},
};

use crate::model::id::Batch;

/// Time after which acknowledged batches are forgotten. Each cached answer was confirmed by a read
/// that began much later, so it contains them.
const FORGET_AFTER: Duration = Duration::from_mins(10);

/// The highest batch number that this instance has acknowledged, per board and lane.
#[derive(Debug, Default)]
pub(crate) struct AcknowledgedBatches(RwLock<HashMap<i32, Batches>>);

/// The acknowledged batches of a board.
#[derive(Debug)]
struct Batches {
    lanes: Vec<Batch>,
    raised_at: Instant,
}

impl AcknowledgedBatches {
    /// Records that a batch of a lane was acknowledged to a caller.
    pub(crate) fn raise(&self, board_id: i32, lane: usize, batch: Batch) {
        let mut boards = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let raised_at = Instant::now();
        let board = boards.entry(board_id).or_insert_with(|| Batches { lanes: Vec::new(), raised_at });
        if board.lanes.len() <= lane {
            board.lanes.resize(lane + 1, Batch(0));
        }
        board.lanes[lane] = board.lanes[lane].max(batch);
        board.raised_at = raised_at;
    }

    /// Forgets boards whose batches were acknowledged long before `now`.
    pub(crate) fn forget_idle(&self, now: Instant) {
        let mut boards = self.0.write().unwrap_or_else(PoisonError::into_inner);
        boards.retain(|_, board| now.saturating_duration_since(board.raised_at) < FORGET_AFTER);
    }

    /// Forgets everything: the database is another one, or has gone back.
    pub(crate) fn forget_all(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the highest acknowledged batch of each lane of a board.
    pub(crate) fn batches(&self, board_id: i32) -> Vec<Batch> {
        let boards = self.0.read().unwrap_or_else(PoisonError::into_inner);
        boards.get(&board_id).map(|board| board.lanes.clone()).unwrap_or_default()
    }
}

/// Returns whether a state with these batches contains all of `acknowledged`.
pub(crate) fn covers(batches: &[Batch], acknowledged: &[Batch]) -> bool {
    acknowledged.iter().enumerate().all(|(lane, batch)| batches.get(lane).copied().unwrap_or(Batch(0)) >= *batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_must_hold_every_lane() {
        let acknowledged = AcknowledgedBatches::default();
        assert!(covers(&[0, 0].map(Batch), &acknowledged.batches(1)));
        acknowledged.raise(1, 1, Batch(7));
        acknowledged.raise(1, 1, Batch(5));
        assert!(covers(&[0, 7].map(Batch), &acknowledged.batches(1)));
        assert!(!covers(&[9, 6].map(Batch), &acknowledged.batches(1)));
        assert!(!covers(&[Batch(9)], &acknowledged.batches(1)));
        assert!(covers(&[], &acknowledged.batches(2)));
    }

    #[test]
    fn boards_without_new_batches_are_forgotten() {
        let acknowledged = AcknowledgedBatches::default();
        acknowledged.raise(1, 1, Batch(7));
        let now = Instant::now();
        acknowledged.forget_idle(now);
        assert_eq!(acknowledged.batches(1), [0, 7].map(Batch), "a cached answer may be older");
        acknowledged.forget_idle(now + FORGET_AFTER);
        assert!(acknowledged.0.read().unwrap_or_else(PoisonError::into_inner).is_empty());
    }
}
