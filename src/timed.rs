//! For `benches/computation` and `benches/scale` only: pure code that requests run, otherwise
//! private.

pub use crate::model::{
    board::{Board, Limits, PeriodKind},
    period::{Period, PeriodSelector, PeriodState},
    rank::{AnsweredBy, Header, Page, Row},
    user::UserId,
};
use crate::{
    Error, Result, http,
    ranking::{
        cursor::Cursor,
        rank_index::{Builder, RankIndex, key::RankKey},
    },
    scoring,
    store::rank::StoredKey,
};

/// Returns the lane of a player.
pub fn lane_of(user_id: &UserId, board: &Board) -> Result<i16> {
    scoring::lane_of(user_id, board).map(|lane| lane.0)
}

/// Packs a rank key into the cursor of the next page.
#[must_use]
pub fn pack_key(board: &Board, period: &Period, [rank_key, tie_key, internal_id]: [i64; 3]) -> String {
    Cursor::text(board, period, StoredKey { rank_key, tie_key, internal_id })
}

/// Unpacks the rank key of a cursor.
pub fn unpack_key(text: &str, board: &Board, selector: &PeriodSelector) -> Result<[i64; 3]> {
    let StoredKey { rank_key, tie_key, internal_id } = Cursor::parse(text, board, selector)?.key;
    Ok([rank_key, tie_key, internal_id])
}

/// Renders the body of a top list.
pub fn top_body(board: &Board, page: &Page) -> Result<String> {
    http::render_top(board, page)
}

/// A player's key in a rank index: `rank_key`, `tie_key` and the internal id of the user.
pub type Key = (i64, i64, u32);

/// A rank index without the service that keeps it current.
#[derive(Debug)]
pub struct Index(RankIndex);

impl Index {
    /// Returns position, players with a better score, and players with the same or a better score.
    #[must_use]
    pub fn rank(&self, user_id: u32) -> Option<(u64, u64, u64)> {
        self.0.position(user_id).map(|found| (found.position, found.better, found.no_worse))
    }

    /// Returns the key at a position, counted from 1.
    #[must_use]
    pub fn at(&self, position: u64) -> Option<Key> {
        self.0.key_at(position).map(key_of)
    }

    /// Returns up to `limit` keys from a position on, best first.
    #[must_use]
    pub fn page(&self, from: u64, limit: usize) -> Vec<Key> {
        self.0.range(from).take(limit).map(key_of).collect()
    }

    /// Returns the number of players with a better score.
    #[must_use]
    pub fn better(&self, rank_key: i64) -> u64 {
        self.0.count_better(rank_key)
    }

    /// Inserts a player, or moves the player to this key.
    pub fn set(&mut self, (rank_key, tie_key, user_id): Key) {
        self.0.set(RankKey { rank_key, tie_key, user_id });
    }

    /// Returns the bytes that the index reports as its size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// Bulk load of an [`Index`], as an instance loads it.
#[derive(Debug)]
pub struct IndexLoad(Builder);

impl IndexLoad {
    /// Starts the load of an index.
    #[must_use]
    pub fn new(players: usize) -> Self {
        Self(RankIndex::builder(players))
    }

    /// Appends the next key, best first.
    pub fn push(&mut self, (rank_key, tie_key, user_id): Key) -> Result<()> {
        self.0.push(RankKey { rank_key, tie_key, user_id }).map_err(|error| Error::Internal(error.to_string()))
    }

    /// Ends the load and returns the index.
    #[must_use]
    pub fn finish(self) -> Index {
        Index(self.0.finish())
    }
}

fn key_of(key: RankKey) -> Key {
    (key.rank_key, key.tie_key, key.user_id)
}
