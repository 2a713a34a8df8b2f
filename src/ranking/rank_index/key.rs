//! Keys of a rank index.

use std::cmp::Ordering;

/// Total order of the players of a ranking; the larger key is the better one.
///
/// `rank_key` decides first, then `tie_key`; between equals the lower `user_id` is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the names of the columns")]
pub struct RankKey {
    /// Score, negated where smaller scores are better.
    pub rank_key: i64,
    /// Tiebreak and time packed in one number, or the second number with ties `second`; larger is better.
    pub tie_key: i64,
    /// Internal id of the user.
    pub user_id: u32,
}

impl Ord for RankKey {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.rank_key.cmp(&other.rank_key))
            .then_with(|| self.tie_key.cmp(&other.tie_key))
            .then_with(|| other.user_id.cmp(&self.user_id))
    }
}

impl PartialOrd for RankKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
