//! Numbers that identify rows of the database. Each is a type of its own, so that a call that
//! swaps two of them does not compile.

use serde::{Deserialize, Serialize};

/// Id of a ranking, unique in the database. A rebuild gives the period a ranking with a new id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RankingId(pub i64);

/// Number of a writer lane of a board, from 0. A hash of the user id gives the lane of a player.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Lane(pub i16);

/// Number of a batch, counted from 1 for each lane of a board. 0 stands for no batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Batch(pub i64);

impl Batch {
    /// Returns the batches with these numbers, such as the last batch of each lane.
    pub(crate) fn from_numbers(numbers: Vec<i64>) -> Vec<Self> {
        numbers.into_iter().map(Self).collect()
    }
}
