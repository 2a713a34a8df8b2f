//! Rounds of a board. Each brings the board's indexes to the state that the database has reached.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use tokio::time::{Instant, timeout_at};

use crate::{
    Code, Error, Result,
    model::id::RankingId,
    ranking::{
        batcher::{PendingAnswer, Work},
        index_registry::{
            IndexRegistry,
            board::{BoardIndexes, IndexSlot, JointResult, LastRound, RoundResult},
        },
    },
    store::{
        index::{AskedBoard, BoardState, CurrentRanking, Round},
        rank::Version,
    },
};

/// Maximum batches and changes of entries that a round applies. An index that lags further reloads.
/// 500,000 changes and the columns that PostgreSQL returns take about 50 MB.
const LIMITS: (i32, i64) = (20_000, 500_000);

/// Maximum wait of a round of several boards for the rounds of these boards in progress.
const ROUND_LOCKS_TIMEOUT: Duration = Duration::from_millis(20);

/// The same limits, for each board in a round of several boards. A board that lags further is read
/// alone, so that the others do not wait for it.
const JOINT_LIMITS: (i32, i64) = (1_000, 3_000);

impl IndexRegistry {
    /// Requests a round that begins after this call.
    pub(super) fn request_round(&self, board: &Arc<BoardIndexes>) -> PendingAnswer<Result<Arc<RoundResult>>> {
        board.rounds.ask((), || Rounds { indexes: self.itself.upgrade(), board: Arc::clone(board) })
    }

    /// Requests a round of all these boards that begins after this call.
    pub(super) fn request_joint_round(&self, boards: Vec<Arc<BoardIndexes>>) -> PendingAnswer<Result<JointResult>> {
        self.joint_rounds.ask(boards, || JointRounds { indexes: self.itself.upgrade() })
    }
}

/// The task that runs rounds of a board.
struct Rounds {
    indexes: Option<Arc<IndexRegistry>>,
    board: Arc<BoardIndexes>,
}

impl Work<(), Result<Arc<RoundResult>>> for Rounds {
    async fn answer(&mut self, _: Vec<()>) -> Result<Arc<RoundResult>> {
        let Some(indexes) = self.indexes.clone() else {
            return Err(Error::Stopping);
        };
        // Take the lock before a connection: a round that waits must not hold one.
        let _guard = self.board.round_lock.lock().await;
        let mut connection = indexes.index_reader.round_connection().await?;
        // Determine the indexes' state after the wait for the connection: another round may have
        // advanced it.
        let RoundParameters { asked, version: known } = RoundParameters::from_board(&self.board);
        if asked.is_empty() {
            return Ok(Arc::new(RoundResult::empty()));
        }
        let last = self.board.take_last(&asked, &known);
        let revision_asked = indexes.users.revision(&known.epoch);
        let (id, snapshots) = (self.board.board, last.as_ref().map(|last| &*last.snapshots));
        let round = connection.read_round(id, &asked, &known.batches, Some(revision_asked), snapshots, LIMITS).await?;
        drop(connection);
        let Round { epoch, read_at, snapshots, state } = round;
        let (batches, rankings) = match (state, last) {
            (Some(state), _) => {
                let batches = state.batches.clone();
                (batches, apply(&indexes, &self.board, &asked, &known, (&epoch, revision_asked), state))
            }
            (None, Some(last)) if last.epoch == epoch => (last.batches, last.rankings),
            // Another database answered, and its snapshots happen to be equal.
            (None, _) => {
                return Err(Error::retry(Code::ConcurrentChange, "the database has been replaced; retry"));
            }
        };
        // After a change of epoch, `apply` returns no rankings. Later rounds must not share that.
        let last = snapshots.filter(|_| epoch == known.epoch).map(|snapshots| {
            let (epoch, rankings) = (epoch.clone(), Arc::clone(&rankings));
            LastRound { snapshots, asked, batches, epoch, rankings }
        });
        self.board.end_round(indexes.millis(), last);
        Ok(Arc::new(RoundResult { epoch, read_at, rankings }))
    }
}

/// Applies the state of a board that a round has read. `known`: the version that all its indexes
/// had reached. `asked_revision`: the profile revision from which the round listed changes.
fn apply(
    indexes: &IndexRegistry,
    board: &BoardIndexes,
    asked: &[RankingId],
    known: &Version,
    (epoch, asked_revision): (&str, i64),
    mut state: BoardState,
) -> Arc<[CurrentRanking]> {
    // `asked_revision` belongs to the known epoch. A list of profiles from another epoch may have
    // gaps.
    let profiles = state.profiles.take().filter(|_| epoch == known.epoch);
    indexes.users.apply(epoch, asked_revision, state.revision, profiles);
    board.apply(asked, known, epoch, state)
}

/// The task that runs rounds of several boards, each in one statement.
struct JointRounds {
    indexes: Option<Arc<IndexRegistry>>,
}

impl Work<Vec<Arc<BoardIndexes>>, Result<JointResult>> for JointRounds {
    async fn answer(&mut self, requests: Vec<Vec<Arc<BoardIndexes>>>) -> Result<JointResult> {
        let Some(indexes) = self.indexes.clone() else {
            return Err(Error::Stopping);
        };
        let boards: BTreeMap<i32, Arc<BoardIndexes>> =
            requests.into_iter().flatten().map(|board| (board.board, board)).collect();
        // Locking in the order of ids prevents deadlocks. Skips a board whose own round is slow, because
        // the requests for the other boards would wait for it.
        let until = Instant::now() + ROUND_LOCKS_TIMEOUT;
        let mut locked = Vec::with_capacity(boards.len());
        for board in boards.values() {
            if let Ok(guard) = timeout_at(until, board.round_lock.lock()).await {
                locked.push((board, guard));
            }
        }
        let known = locked.iter().map(|(board, _)| (&***board, RoundParameters::from_board(board)));
        let known: Vec<(&BoardIndexes, RoundParameters)> = known.filter(|(_, known)| !known.asked.is_empty()).collect();
        let Some((first, RoundParameters { version: Version { epoch, .. }, .. })) = known.first() else {
            return Ok(Arc::default());
        };
        let mut connection = indexes.index_reader.round_connection().await?;
        let asked_revision = indexes.users.revision(epoch);
        let asked: Vec<AskedBoard> = known
            .iter()
            .map(|(board, known)| AskedBoard {
                board: board.board,
                ranking_ids: known.asked.clone(),
                batches: known.version.batches.clone(),
            })
            .collect();
        let mut rounds = connection.read_boards(&asked, asked_revision, JOINT_LIMITS).await?;
        drop(connection);
        let mut results = HashMap::with_capacity(known.len());
        // Only the first board's round lists changed profiles.
        if let Some(Round { epoch: reached, state: Some(state), .. }) = rounds.get_mut(&first.board) {
            let profiles = state.profiles.take().filter(|_| reached == epoch);
            indexes.users.apply(reached, asked_revision, state.revision, profiles);
        }
        for (board, RoundParameters { asked, version }) in &known {
            // The indexes of a board may be of another epoch than those of the first. Its own next
            // round drops them.
            let round = rounds.remove(&board.board).filter(|_| version.epoch == *epoch);
            let Some(Round { epoch, read_at, state: Some(state), .. }) = round else { continue };
            // Its own round decides whether its indexes reload.
            if state.changes.is_none() {
                continue;
            }
            let rankings = board.apply(asked, version, &epoch, state);
            board.record_round_end(indexes.millis());
            results.insert(board.board, Arc::new(RoundResult { epoch, read_at, rankings }));
        }
        drop(locked);
        Ok(Arc::new(results))
    }
}

/// Parameters of a round, for one board.
struct RoundParameters {
    asked: Vec<RankingId>,
    /// The version that all these indexes have reached, lane by lane.
    version: Version,
}

impl RoundParameters {
    fn from_board(board: &BoardIndexes) -> Self {
        let rankings = board.rankings();
        let (mut asked, mut least) = (Vec::new(), None::<Version>);
        for (id, slot) in rankings.iter() {
            if let IndexSlot::Ready(loaded) = slot {
                asked.push(*id);
                // On a cluster, a load may be ahead of other indexes in one lane and behind in another.
                match &mut least {
                    None => least = Some(loaded.version.clone()),
                    Some(least) => {
                        for (least, reached) in least.batches.iter_mut().zip(&loaded.version.batches) {
                            *least = (*least).min(*reached);
                        }
                    }
                }
            }
        }
        let none = || Version { epoch: String::new(), batches: Vec::new() };
        Self { asked, version: least.unwrap_or_else(none) }
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::{
        model::id::Batch,
        ranking::{
            batcher::Batcher,
            index_registry::{board::LoadedIndex, small::TemplateRankings},
            rank_index::RankIndex,
        },
    };

    #[tokio::test]
    async fn a_round_begins_with_the_lowest_batch_of_each_lane() {
        let board = BoardIndexes::new(
            1,
            Batcher::new(1, Handle::current(), TaskTracker::new()),
            Batcher::new(1, Handle::current(), TaskTracker::new()),
            TemplateRankings::new(Handle::current(), TaskTracker::new()),
        );
        for (ranking_id, batches) in [(1, vec![10, 20, 7]), (2, vec![11, 19, 7])] {
            let version = Version { epoch: "e".to_owned(), batches: Batch::from_numbers(batches) };
            let loaded = LoadedIndex::new("board all_time".into(), version, RankIndex::builder(0).finish(), 0);
            board.put(RankingId(ranking_id), Ok(Ok(loaded)), "board all_time".into());
        }
        assert_eq!(RoundParameters::from_board(&board).version.batches, [10, 19, 7].map(Batch));
    }
}
