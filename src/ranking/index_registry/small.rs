//! Rankings of boards of templates, as long as they are small. None is kept in memory: a statement
//! reads each of them whole, for all callers that wait.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, Utc};
use tokio::time::timeout;

use crate::{
    Error, Result,
    model::id::RankingId,
    ranking::{
        batcher::Work,
        index_registry::{IndexRegistry, IndexView, ViewSource, board::LoadedIndex},
        rank_index::{RankIndex, key::RankKey},
    },
    store::{
        IndexReader,
        layout::LARGE_PLAYERS,
        index::{SmallSnapshot, StoredProfile},
        period::{RankingRef, ResolvedPeriod},
    },
};

/// A small ranking at the time of a statement, with its players' names.
#[derive(Debug)]
pub(super) struct SmallRanking {
    pub(super) loaded: LoadedIndex,
    /// Profile revision of the names.
    pub(super) revision: i64,
    /// The database's clock at the start of the statement.
    read_at: DateTime<Utc>,
    profiles: HashMap<u32, StoredProfile>,
}

/// Small rankings that one statement has read.
pub(super) type SmallRankings = Arc<HashMap<RankingId, Arc<SmallRanking>>>;

/// Small rankings of one statement.
const READ_AT_ONCE: usize = 64;

/// Reads small rankings.
struct ReadSmall(IndexReader);

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

impl IndexRegistry {
    /// Gives large rankings of a board bucket rows, unless that is being done for any board. The next
    /// read starts it then.
    fn start_growth(&self, board_id: i32) {
        if let Ok(permit) = Arc::clone(&self.growing).try_acquire_owned() {
            let primary = self.primary.clone();
            let growth = async move {
                primary.grow_board(board_id).await;
                drop(permit);
            };
            self.tasks.spawn_on(growth, &self.runtime);
        }
    }

    /// Returns a small ranking as a statement reads it that starts after this call.
    ///
    /// [`Error::Replaced`] if `resolved` no longer holds.
    pub(super) async fn small_view(
        self: &Arc<Self>,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
    ) -> Result<IndexView> {
        let asked = self.small.ask(ranking.ranking_id, || ReadSmall(self.index_reader.clone()));
        let read = match timeout(self.pool_wait, asked).await {
            Ok(read) => read.ok_or(Error::Stopping)??,
            Err(_) => return Err(Error::overload("too many reads are waiting")),
        };
        let small = read.get(&ranking.ranking_id).ok_or(Error::Replaced)?;
        if !resolved.holds_at(small.read_at) {
            return Err(Error::Replaced);
        }
        if small.loaded.index.len() >= LARGE_PLAYERS {
            self.start_growth(ranking.players_of);
        }
        Ok(IndexView { indexes: Arc::clone(self), source: ViewSource::Small(Arc::clone(small)) })
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
