//! Rankings of boards of templates, as long as they are small. None is kept in memory: a statement
//! reads each of them whole, for all callers that wait.

use std::{collections::HashMap, sync::Arc};

use crate::{
    Error, Result,
    model::id::RankingId,
    ranking::{
        batcher::Work,
        index_registry::board::LoadedIndex,
        rank_index::{RankIndex, key::RankKey},
        user_lookup::UserLookup,
    },
    store::{IndexReader, index::SmallSnapshot},
};
use chrono::{DateTime, Utc};

/// A small ranking at the time of a statement.
#[derive(Debug)]
pub(super) struct SmallRanking {
    pub(super) loaded: LoadedIndex,
    /// Profile revision that the directory has reached.
    pub(super) revision: i64,
    /// The database's clock at the start of the statement.
    pub(super) read_at: DateTime<Utc>,
}

/// Small rankings that one statement has read.
pub(super) type SmallRankings = Arc<HashMap<RankingId, Arc<SmallRanking>>>;

/// Small rankings of one statement.
const READ_AT_ONCE: usize = 64;

/// Reads small rankings, and brings the directory to their profile revision.
pub(super) struct ReadSmall {
    pub(super) index_reader: IndexReader,
    pub(super) users: UserLookup,
}

impl Work<RankingId, Result<SmallRankings>> for ReadSmall {
    async fn answer(&mut self, mut asked: Vec<RankingId>) -> Result<SmallRankings> {
        asked.sort_unstable();
        asked.dedup();
        let mut read = HashMap::with_capacity(asked.len());
        for some in asked.chunks(READ_AT_ONCE) {
            for snapshot in self.index_reader.small_rankings(some).await? {
                self.users.catch_up(&snapshot.version.epoch, snapshot.revision).await?;
                read.insert(snapshot.ranking_id, Arc::new(small_ranking(snapshot)?));
            }
        }
        Ok(Arc::new(read))
    }
}

fn small_ranking(snapshot: SmallSnapshot) -> Result<SmallRanking> {
    let mut keys = Vec::with_capacity(snapshot.players.len());
    for ((rank_key, tie_key), user_id) in snapshot.players {
        let user_id = u32::try_from(user_id)
            .map_err(|_| Error::Internal(format!("user id {user_id} does not fit into an index")))?;
        keys.push(RankKey { rank_key, tie_key, user_id });
    }
    keys.sort_unstable_by(|a, b| b.cmp(a));
    let mut builder = RankIndex::builder(keys.len());
    for key in keys {
        builder.push(key).map_err(|error| Error::Internal(error.to_string()))?;
    }
    let loaded = LoadedIndex::new(Arc::default(), snapshot.version, builder.finish(), 0);
    Ok(SmallRanking { loaded, revision: snapshot.revision, read_at: snapshot.read_at })
}
