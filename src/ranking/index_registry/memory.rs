//! The memory bound of the indexes: reservations for loads, and which indexes to drop.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crate::{
    model::id::RankingId,
    ranking::index_registry::{
        IndexRegistry,
        board::{BoardIndexes, IndexSlot, LoadedIndex},
    },
};

/// An index read within this time is not dropped to load another. If all indexes together exceed
/// the memory bound, it may be dropped.
const IN_USE_FOR: Duration = Duration::from_mins(1);

/// Bytes per player that must be free before a load starts.
pub(super) const EXPECTED_BYTES: u64 = 48;

/// Largest share of the memory for indexes, as numerator and denominator. The directory gets the
/// rest.
const INDEX_SHARE: (u64, u64) = (3, 4);

impl IndexRegistry {
    /// Returns the bytes of the indexes that `counts` selects.
    fn bytes(&self, counts: impl Fn(&LoadedIndex) -> bool) -> u64 {
        let of_slot = |slot: &IndexSlot| match slot {
            IndexSlot::Ready(loaded) if counts(loaded) => slot.bytes(),
            _ => 0,
        };
        let of_board = |board: &Arc<BoardIndexes>| board.rankings().values().map(of_slot).sum::<u64>();
        self.boards().values().map(of_board).sum()
    }

    /// Returns the bytes that indexes may take after a load.
    fn share(&self) -> u64 {
        self.memory / INDEX_SHARE.1 * INDEX_SHARE.0
    }

    /// Reserves memory for an index of this many players while it loads. Returns the needed bytes
    /// as `Err` if there is not enough.
    pub(super) async fn reserve(&self, players: u64) -> std::result::Result<(), u64> {
        let needed = players * EXPECTED_BYTES;
        // Decide before dropping any index.
        if self.bytes(|loaded| self.since(&loaded.read_at) < IN_USE_FOR) + needed > self.share() {
            return Err(needed);
        }
        self.reserved.store(needed, Ordering::Relaxed);
        if self.free_memory().await {
            return Ok(());
        }
        self.release();
        Err(needed)
    }

    pub(super) fn release(&self) {
        self.reserved.store(0, Ordering::Relaxed);
    }

    /// Drops the least recently read indexes until the others and the reservation fit.
    ///
    /// Returns `false` if they do not fit. The directory gets the memory that indexes leave.
    pub(super) async fn free_memory(&self) -> bool {
        let _alone = self.bounds.lock().await;
        let reserved = self.reserved.load(Ordering::Relaxed);
        let mut used = self.bytes(|_| true) + reserved;
        while used > self.share() {
            // A load never drops an index in use. Growth beyond the bound does.
            let min_idle = if used.saturating_sub(reserved) > self.memory { Duration::ZERO } else { IN_USE_FOR };
            let Some((bytes, board, ranking_id)) = self.least_recently_read(min_idle) else { break };
            board.rankings_mut().remove(&ranking_id);
            used = used.saturating_sub(bytes);
        }
        let has_room = used <= self.share();
        // Small rankings get what the others leave of the share, in equal parts.
        let small: Vec<_> =
            self.boards().values().map(|board| Arc::clone(&board.small)).filter(|small| small.is_used()).collect();
        let left = if self.is_paused() { 0 } else { self.share().saturating_sub(used) };
        for one in &small {
            one.set_max_bytes(left / small.len() as u64);
            used += one.bytes();
        }
        self.users.set_max_bytes(usize::try_from(self.memory.saturating_sub(used)).unwrap_or(usize::MAX)).await;
        has_room
    }

    /// Returns the index with the oldest last read, unless all were read within `min_idle`.
    fn least_recently_read(&self, min_idle: Duration) -> Option<(u64, Arc<BoardIndexes>, RankingId)> {
        let mut found: Option<(Duration, u64, Arc<BoardIndexes>, RankingId)> = None;
        for board in self.boards().values() {
            for (id, slot) in board.rankings().iter() {
                let IndexSlot::Ready(loaded) = slot else { continue };
                let unread = self.since(&loaded.read_at);
                if unread >= min_idle && found.as_ref().is_none_or(|(longest, ..)| unread > *longest) {
                    found = Some((unread, slot.bytes(), Arc::clone(board), *id));
                }
            }
        }
        found.map(|(_, bytes, board, id)| (bytes, board, id))
    }
}
