//! The batches that this instance has acknowledged. Its cached answers must contain them.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

/// The highest batch number that this instance has acknowledged, per board and lane.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged(RwLock<HashMap<i32, Vec<i64>>>);

impl Acknowledged {
    /// Records that a batch of a lane was acknowledged to a caller.
    pub(crate) fn raise(&self, board_id: i32, lane: usize, batch: i64) {
        let mut boards = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let lanes = boards.entry(board_id).or_default();
        if lanes.len() <= lane {
            lanes.resize(lane + 1, 0);
        }
        lanes[lane] = lanes[lane].max(batch);
    }

    /// Forgets everything: the database is another one, or has gone back.
    pub(crate) fn forget_all(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the highest acknowledged batch of each lane of a board.
    pub(crate) fn of(&self, board_id: i32) -> Vec<i64> {
        let boards = self.0.read().unwrap_or_else(PoisonError::into_inner);
        boards.get(&board_id).cloned().unwrap_or_default()
    }
}

/// Returns whether a state with these batches contains all of `acknowledged`.
pub(crate) fn covers(batches: &[i64], acknowledged: &[i64]) -> bool {
    acknowledged.iter().enumerate().all(|(lane, batch)| batches.get(lane).copied().unwrap_or(0) >= *batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_must_hold_every_lane() {
        let acknowledged = Acknowledged::default();
        assert!(covers(&[0, 0], &acknowledged.of(1)));
        acknowledged.raise(1, 1, 7);
        acknowledged.raise(1, 1, 5);
        assert!(covers(&[0, 7], &acknowledged.of(1)));
        assert!(!covers(&[9, 6], &acknowledged.of(1)));
        assert!(!covers(&[9], &acknowledged.of(1)));
        assert!(covers(&[], &acknowledged.of(2)));
    }
}
