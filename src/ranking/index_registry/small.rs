//! Rankings of boards of templates, as long as they are small. None is kept in memory: a statement
//! reads each of them whole, for all callers that wait.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, Utc};
use crate::{
    Error, Result,
    model::id::RankingId,
    ranking::{
        batcher::Work,
        index_registry::board::LoadedIndex,
        rank_index::{RankIndex, key::RankKey},
    },
    store::{
        IndexReader,
        index::{SmallSnapshot, StoredProfile},
    },
};

/// A small ranking at the time of a statement, with its players' names.
#[derive(Debug)]
pub(super) struct SmallRanking {
    pub(super) loaded: LoadedIndex,
    /// Profile revision of the names.
    pub(super) revision: i64,
    /// The database's clock at the start of the statement.
    pub(super) read_at: DateTime<Utc>,
    profiles: HashMap<u32, StoredProfile>,
}

/// Small rankings that one statement has read.
pub(super) type SmallRankings = Arc<HashMap<RankingId, Arc<SmallRanking>>>;

/// Small rankings of one statement.
const READ_AT_ONCE: usize = 64;

/// Reads small rankings.
pub(super) struct ReadSmall(pub(super) IndexReader);

impl Work<RankingId, Result<SmallRankings>> for ReadSmall {
    async fn answer(&mut self, mut asked: Vec<RankingId>) -> Result<SmallRankings> {
        asked.sort_unstable();
        asked.dedup();
        let mut read = HashMap::with_capacity(asked.len());
        for some in asked.chunks(READ_AT_ONCE) {
            for snapshot in self.0.small_rankings(some).await? {
                read.insert(snapshot.ranking_id, Arc::new(small_ranking(snapshot)?));
            }
        }
        Ok(Arc::new(read))
    }
}

impl SmallRanking {
    /// Returns the internal id of a player of the ranking.
    pub(super) fn find(&self, external_id: &str) -> Option<u32> {
        self.profiles.iter().find(|(_, profile)| profile.external_id == external_id).map(|(id, _)| *id)
    }

    /// Returns the profiles of players of the ranking, in their order.
    pub(super) fn profiles(&self, user_ids: &[u32]) -> Result<Vec<StoredProfile>> {
        let found: Option<Vec<_>> = user_ids.iter().map(|id| self.profiles.get(id).cloned()).collect();
        found.ok_or_else(|| Error::Internal("a small ranking lacks the profile of a player".to_owned()))
    }
}

fn small_ranking(snapshot: SmallSnapshot) -> Result<SmallRanking> {
    let mut keys = Vec::with_capacity(snapshot.players.len());
    let mut profiles = HashMap::with_capacity(snapshot.players.len());
    for ((rank_key, tie_key), profile) in snapshot.players {
        let user_id = u32::try_from(profile.id)
            .map_err(|_| Error::Internal(format!("user id {} does not fit into an index", profile.id)))?;
        keys.push(RankKey { rank_key, tie_key, user_id });
        profiles.insert(user_id, profile);
    }
    keys.sort_unstable_by(|a, b| b.cmp(a));
    let mut builder = RankIndex::builder(keys.len());
    for key in keys {
        builder.push(key).map_err(|error| Error::Internal(error.to_string()))?;
    }
    let loaded = LoadedIndex::new(Arc::default(), snapshot.version, builder.finish(), 0);
    Ok(SmallRanking { loaded, revision: snapshot.revision, profiles, read_at: snapshot.read_at })
}
