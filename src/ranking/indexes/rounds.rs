//! The rounds of a board: each brings its indexes to the state that the database has reached.

use std::{ops::RangeInclusive, sync::Arc};

use chrono::DateTime;

use crate::{
    Error, Result,
    ranking::{
        batcher::Work,
        indexes::{BoardIndexes, Indexes, LastRound, RoundResult, Slot, covers},
    },
    store::{index::Round, rank::Version},
};

/// Batches that a round applies. An index that is further behind reloads.
const BATCHES_MAX: i32 = 20_000;

/// Changed users that a round applies: 2 % of the players of the largest index, within these bounds.
/// To reload costs more.
const USERS_MAX: RangeInclusive<i64> = 20_000..=100_000;

/// The task that runs rounds of a board.
pub(super) struct Rounds {
    pub(super) indexes: Option<Arc<Indexes>>,
    pub(super) board: Arc<BoardIndexes>,
}

impl Work<(), Result<Arc<RoundResult>>> for Rounds {
    async fn answer(&mut self, _: Vec<()>) -> Result<Arc<RoundResult>> {
        let Some(indexes) = self.indexes.clone() else { return Err(Error::unavailable("the instance stops")) };
        let mut connection = indexes.store.round_connection().await?;
        // Read the state after waiting for the connection: another round may have advanced it.
        let (asked, known, players) = self.known();
        let limits = (BATCHES_MAX, (players / 50).clamp(*USERS_MAX.start(), *USERS_MAX.end()));
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
                // `revision_asked` belongs to the known epoch; a list from another one may have gaps.
                let profiles = state.profiles.take().filter(|_| epoch == known.epoch);
                indexes.users.apply(&epoch, revision_asked, state.revision, profiles);
                let batches = state.batches.clone();
                (batches, self.board.apply(&asked, &known, &epoch, state))
            }
            (None, Some(last)) if last.epoch == epoch => (last.batches, last.rankings),
            // Another database answered, and its snapshot happens to be equal.
            (None, _) => return Err(Error::unavailable("the database has been replaced; retry")),
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
    /// The rankings that have indexes, the state that all of them have reached, and the players of
    /// the largest.
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
