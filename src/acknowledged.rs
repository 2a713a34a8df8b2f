//! What this instance has acknowledged: the least that its cached answers must hold.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

/// The highest batch number acknowledged here, per board and lane.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged(RwLock<HashMap<i32, Vec<i64>>>);

impl Acknowledged {
    /// Notes that `batch` of a lane was acknowledged to somebody.
    pub(crate) fn raise(&self, board_id: i32, lane: usize, batch: i64) {
        let mut boards = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let lanes = boards.entry(board_id).or_default();
        if lanes.len() <= lane {
            lanes.resize(lane + 1, 0);
        }
        lanes[lane] = lanes[lane].max(batch);
    }

    /// Whether a state with these batches holds all that was acknowledged.
    pub(crate) fn is_covered_by(&self, board_id: i32, batches: &[i64]) -> bool {
        let boards = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(lanes) = boards.get(&board_id) else { return true };
        lanes.iter().enumerate().all(|(lane, batch)| batches.get(lane).is_some_and(|held| held >= batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_must_hold_every_lane() {
        let acknowledged = Acknowledged::default();
        assert!(acknowledged.is_covered_by(1, &[0, 0]));
        acknowledged.raise(1, 1, 7);
        acknowledged.raise(1, 1, 5);
        assert!(acknowledged.is_covered_by(1, &[0, 7]));
        assert!(!acknowledged.is_covered_by(1, &[9, 6]));
        assert!(!acknowledged.is_covered_by(1, &[9]));
        assert!(acknowledged.is_covered_by(2, &[]));
    }
}
