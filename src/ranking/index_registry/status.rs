//! Status of the rank indexes.

use std::{sync::Arc, time::Duration};

use crate::ranking::index_registry::{IndexRegistry, board::IndexSlot, memory::EXPECTED_BYTES};

/// Status of an index, for `/metrics` and `/ops`.
#[derive(Debug, Clone)]
pub(crate) struct IndexStatus {
    /// Board and period, and the attribute of segments.
    pub(crate) name: Arc<str>,
    pub(crate) players: u64,
    /// Bytes that it takes or, if refused, needs.
    pub(crate) bytes: u64,
    /// Time since the last round; `None` for an index that was refused for its size.
    pub(crate) age: Option<Duration>,
}

impl IndexStatus {
    /// Leaves out the value of a segment: `arena/week:2026-11-23@country`.
    fn by_attribute(mut self) -> Self {
        if let Some((period, segment)) = self.name.split_once('@') {
            self.name = format!("{period}@{}", segment.split(':').next().unwrap_or_default()).into();
        }
        self
    }

    /// Adds the sizes of `other` if it has the same name and state. Returns whether it has.
    fn merge(&mut self, other: &Self) -> bool {
        let is_same = self.name == other.name && self.age.is_some() == other.age.is_some();
        if is_same {
            self.players += other.players;
            self.bytes += other.bytes;
            self.age = self.age.max(other.age);
        }
        is_same
    }
}

impl IndexRegistry {
    /// Returns the status of each index, loaded or refused for its size, and the bytes and users of
    /// the directory. Segments of one period by one attribute share a status: there may be many, and
    /// their values are private.
    pub(crate) fn status(&self) -> (Vec<IndexStatus>, (usize, usize)) {
        let mut all = Vec::new();
        for board in self.boards().values() {
            all.extend(board.rankings().values().filter_map(|slot| slot.status(self)).map(IndexStatus::by_attribute));
        }
        all.sort_by(|a, b| a.name.cmp(&b.name).then(a.age.is_some().cmp(&b.age.is_some())));
        all.dedup_by(|status, kept| kept.merge(status));
        (all, self.users.size())
    }

    /// Returns the bytes that indexes and directory take.
    pub(crate) fn used_bytes(&self) -> u64 {
        let (indexes, (directory_bytes, _)) = self.status();
        let loaded = indexes.iter().filter(|index| index.age.is_some()).map(|index| index.bytes);
        let small = self.boards().values().map(|board| board.small.bytes()).sum::<u64>();
        loaded.sum::<u64>() + small + directory_bytes as u64
    }
}

impl IndexSlot {
    fn status(&self, indexes: &IndexRegistry) -> Option<IndexStatus> {
        match self {
            Self::Ready(loaded) => Some(IndexStatus {
                name: Arc::clone(&loaded.name),
                players: loaded.index.len() as u64,
                bytes: self.bytes(),
                age: Some(indexes.since(&loaded.round_at)),
            }),
            Self::Refused { name, bytes: Some(bytes), .. } => {
                Some(IndexStatus { name: Arc::clone(name), players: *bytes / EXPECTED_BYTES, bytes: *bytes, age: None })
            }
            _ => None,
        }
    }
}
