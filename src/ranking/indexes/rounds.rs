//! Rounds of a board. Each brings the board's indexes to the state that the database has reached.

use std::{ops::RangeInclusive, sync::Arc};

use chrono::DateTime;

use crate::{
    Code, Error, Result,
    ranking::{
        batcher::Work,
        indexes::{
            Indexes,
            board::{BoardIndexes, LastRound, RoundResult, Slot, covers},
        },
    },
    store::{index::Round, rank::Version},
};

/// Maximum batches that a round applies. An index that lags further reloads.
const MAX_BATCHES: i32 = 20_000;

/// Limits of the changed users that a round applies. Between them the limit is 2 % of the players
/// of the largest index. Beyond it, reloading costs less.
const USER_LIMITS: RangeInclusive<i64> = 20_000..=100_000;

/// The task that runs rounds of a board.
pub(super) struct Rounds {
    pub(super) indexes: Option<Arc<Indexes>>,
    pub(super) board: Arc<BoardIndexes>,
}

impl Work<(), Result<Arc<RoundResult>>> for Rounds {
    async fn answer(&mut self, _: Vec<()>) -> Result<Arc<RoundResult>> {
        let Some(indexes) = self.indexes.clone() else {
            return Err(Error::unavailable(Code::ShuttingDown, "this instance is shutting down"));
        };
        let mut connection = indexes.store.round_connection().await?;
        // Determine the indexes' state after the wait for the connection: another round may have
        // advanced it.
        let (asked, known, players) = self.known();
        let limits = (MAX_BATCHES, (players / 50).clamp(*USER_LIMITS.start(), *USER_LIMITS.end()));
        if asked.is_empty() {
            let epoch = String::new();
            return Ok(Arc::new(RoundResult { epoch, read_at: DateTime::UNIX_EPOCH, rankings: Arc::default() }));
        }
        let last = self.board.take_last(&asked, &known);
        let revision_asked = indexes.users.revision(&known.epoch);
        let (id, snapshot) = (self.board.board, last.as_ref().map(|last| &*last.snapshot));
        let round = connection.read(id, &asked, &known.batches, Some(revision_asked), snapshot, limits).await?;
        indexes.store.keep_round_connection(connection);
        let Round { epoch, read_at, snapshot, state } = round;
        let (batches, rankings) = match (state, last) {
            (Some(mut state), _) => {
                // `revision_asked` belongs to the known epoch. A list of profiles from another
                // epoch may have gaps.
                let profiles = state.profiles.take().filter(|_| epoch == known.epoch);
                indexes.users.apply(&epoch, revision_asked, state.revision, profiles);
                let batches = state.batches.clone();
                (batches, self.board.apply(&asked, &known, &epoch, state))
            }
            (None, Some(last)) if last.epoch == epoch => (last.batches, last.rankings),
            // Another database answered, and its snapshot happens to be equal.
            (None, _) => {
                return Err(Error::unavailable(Code::ConcurrentChange, "the database has been replaced; retry"));
            }
        };
        // After a change of epoch, `apply` returns no rankings. Later rounds must not share that.
        let last = snapshot.filter(|_| epoch == known.epoch).map(|snapshot| {
            let (epoch, rankings) = (epoch.clone(), Arc::clone(&rankings));
            LastRound { snapshot, asked, batches, epoch, rankings }
        });
        self.board.end_round(indexes.millis(), last);
        Ok(Arc::new(RoundResult { epoch, read_at, rankings }))
    }
}

impl Rounds {
    /// Returns the rankings with indexes, the version that all these indexes have reached, and the
    /// number of players in the largest.
    fn known(&self) -> (Vec<i64>, Version, i64) {
        let rankings = self.board.rankings();
        let (mut asked, mut least, mut players) = (Vec::new(), None::<&Version>, 0);
        for (id, slot) in rankings.iter() {
            if let Slot::Ready(loaded) = slot {
                asked.push(*id);
                players = players.max(loaded.index.len());
                if least.is_none_or(|least| covers(&least.batches, &loaded.version.batches)) {
                    least = Some(&loaded.version);
                }
            }
        }
        let none = || Version { epoch: String::new(), layout: 0, batches: Vec::new() };
        (asked, least.cloned().unwrap_or_else(none), i64::try_from(players).unwrap_or(i64::MAX))
    }
}
