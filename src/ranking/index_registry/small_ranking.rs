//! A small ranking, as one reader gets it.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::{
    Error, Result,
    ranking::{
        index_registry::{board::LoadedIndex, small::SmallRankings},
        rank_index::RankIndex,
    },
    store::small::SmallRef,
};

/// A small ranking for one reader.
#[derive(Debug)]
pub(super) struct SmallRanking {
    pub(super) loaded: LoadedIndex,
    pub(super) revision: i64,
    /// The database's clock at the start of the statement.
    pub(super) read_at: DateTime<Utc>,
}

impl SmallRanking {
    /// Returns a ranking of an answer; `None` if it is not current.
    pub(super) fn of(rankings: &SmallRankings, of: SmallRef) -> Result<Option<Self>> {
        let Some((keys, reached)) = rankings.get(&of) else { return Ok(None) };
        let mut builder = RankIndex::small_builder(keys.len());
        for key in &**keys {
            builder.push(*key).map_err(|error| Error::Internal(error.to_string()))?;
        }
        let loaded = LoadedIndex::new(Arc::default(), reached.version.clone(), builder.finish(), 0);
        Ok(Some(Self { loaded, revision: reached.revision, read_at: reached.read_at }))
    }
}
