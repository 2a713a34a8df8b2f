//! Keeps layouts even while scores arrive: moves rows from large buckets to their neighbours, and
//! empty buckets to where players are many.
//!
//! Each step follows from the bucket counts, never from a scan of players. Each is a short
//! transaction; between two steps, the bucket lock is free for as long as the step took, at most 20 ms.

mod balance;

pub(crate) use balance::UNIT_MIN;

use std::{
    collections::{BTreeMap, HashMap},
    ops::AddAssign,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    Result,
    maintenance::rebalance::balance::{RebalanceStep, next_step},
    model::id::{Batch, RankingId},
    scoring::{accepted::AcceptedScores, applier},
    store::{BucketWriter, layout::RebalanceCandidate},
    telemetry,
};

/// Changes made to layouts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moves {
    pub boundaries_moved: u64,
    pub rows_moved: u64,
    /// Empty buckets moved to a new place.
    pub buckets_repositioned: u64,
}

impl AddAssign for Moves {
    fn add_assign(&mut self, other: Self) {
        self.boundaries_moved += other.boundaries_moved;
        self.rows_moved += other.rows_moved;
        self.buckets_repositioned += other.buckets_repositioned;
    }
}

/// Rows that the timer may move per accepted score. Up to 1.4 rows per score are needed (see
/// [`balance`]), so that even a busy ranking is balanced in the end.
const ROWS_PER_SCORE: u64 = 3;

/// Rows that each run of the timer may move in addition.
const ROWS_PER_RUN: u64 = 5_000;

/// Maximum budget that a ranking accumulates.
const MAX_BUDGET: u64 = 500_000;

/// Steps of one ranking before the next ranking gets its turn.
const STEPS_PER_VISIT: u32 = 50;

/// Maximum pause after a step. A step that took longer spent the rest waiting for the bucket lock.
const MAX_PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Rebalancer {
    pub(crate) accepted: Arc<AcceptedScores>,
    /// Progress of each ranking at the timer's last run.
    left: Mutex<HashMap<RankingId, RebalanceProgress>>,
}

#[derive(Debug, Clone, Default)]
struct RebalanceProgress {
    /// Applied batches of its board.
    batches: Vec<Batch>,
    /// Whether no step is left.
    is_at_rest: bool,
    /// Rows that may still be moved.
    budget: u64,
}

impl Rebalancer {
    pub(crate) fn new(accepted: Arc<AcceptedScores>) -> Self {
        Self { accepted, left: Mutex::default() }
    }

    /// Returns the progress to start from, with the budget of this run.
    ///
    /// `accepted`: scores that its board has accepted on this instance since the last run. Returns
    /// `None` when the ranking was at rest and nothing was written since. An early run serves only
    /// boards with new scores, and adds no [`ROWS_PER_RUN`].
    fn due(&self, ranking: &RebalanceCandidate, accepted: u64, is_early: bool) -> Option<RebalanceProgress> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).get(&ranking.ranking_id).cloned();
        let left = left.unwrap_or_default();
        let is_quiet = left.batches == ranking.batches;
        if is_quiet && left.is_at_rest || is_early && accepted == 0 {
            return None;
        }
        let granted = if is_early { 0 } else { ROWS_PER_RUN };
        let earned = accepted.saturating_mul(ROWS_PER_SCORE).saturating_add(granted);
        // Without writes there is time for all steps.
        let budget = if is_quiet { u64::MAX } else { left.budget.saturating_add(earned).min(MAX_BUDGET) };
        Some(RebalanceProgress { batches: ranking.batches.clone(), is_at_rest: false, budget })
    }
}

/// Applies all batches and rebalances all current rankings. A ranking with damaged data is skipped
/// and logged.
pub async fn rebalance_all(bucket_writer: &BucketWriter) -> Result<Moves> {
    // Only players with bucket rows can be spread.
    applier::apply_all(bucket_writer).await?;
    let rankings = bucket_writer.reader.current_rankings().await?;
    let mut busy = rankings.into_iter().map(|ranking| (ranking.ranking_id, u64::MAX)).collect();
    Ok(rebalance_round_robin(bucket_writer, &mut busy).await)
}

/// Rebalances like [`rebalance_all`] on the timer.
///
/// Skips rankings that are at rest and unchanged, and stays within the budget that accepted scores
/// have earned.
pub(crate) async fn rebalance_due(
    bucket_writer: &BucketWriter,
    rebalancer: &Rebalancer,
    is_early: bool,
) -> Result<Moves> {
    let accepted = rebalancer.accepted.take();
    // Only players with bucket rows can be spread.
    applier::apply_all(bucket_writer).await?;
    let rankings = bucket_writer.reader.current_rankings().await?;
    let due = |ranking: &RebalanceCandidate| {
        let accepted = accepted.get(&ranking.board_id).copied().unwrap_or_default();
        Some((ranking.ranking_id, rebalancer.due(ranking, accepted, is_early)?))
    };
    let mut due: HashMap<RankingId, RebalanceProgress> = rankings.iter().filter_map(due).collect();
    let mut busy = due.iter().map(|(ranking_id, left)| (*ranking_id, left.budget)).collect();
    let moved = rebalance_round_robin(bucket_writer, &mut busy).await;
    for (ranking_id, left) in &mut due {
        // Busy rankings wait for more budget.
        left.is_at_rest = !busy.contains_key(ranking_id);
        left.budget = busy.get(ranking_id).copied().unwrap_or_default();
    }
    let mut known = rebalancer.left.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|ranking_id, _| rankings.iter().any(|ranking| ranking.ranking_id == *ranking_id));
    known.extend(due);
    Ok(moved)
}

/// Rebalances rankings in turn, each within its budget, so that a busy ranking does not delay the
/// others.
///
/// Leaves in `busy` the rankings that need more steps, with their remaining budget.
async fn rebalance_round_robin(bucket_writer: &BucketWriter, busy: &mut BTreeMap<RankingId, u64>) -> Moves {
    let (mut all, mut waiting) = (Moves::default(), BTreeMap::new());
    while !busy.is_empty() {
        for (ranking_id, budget) in std::mem::take(busy) {
            match take_steps(bucket_writer, ranking_id, budget).await {
                Ok((moved, is_at_rest)) => {
                    all += moved;
                    let budget = budget.saturating_sub(moved.rows_moved);
                    match (is_at_rest, budget) {
                        (true, _) => {}
                        (false, 0) => drop(waiting.insert(ranking_id, 0)),
                        (false, _) => drop(busy.insert(ranking_id, budget)),
                    }
                }
                Err(error) => {
                    tracing::error!(ranking_id = ranking_id.0, %error, "a layout could not be rebalanced");
                    // A ranking with damaged data is not retried; one that was unavailable is.
                    if error.is_temporary() {
                        waiting.insert(ranking_id, budget);
                    }
                }
            }
        }
    }
    *busy = waiting;
    all
}

pub(crate) async fn rebalance_board(bucket_writer: &BucketWriter, board_id: i32) -> Result<Moves> {
    let mut all = Moves::default();
    for ranking_id in bucket_writer.reader.rankings_of(board_id).await? {
        all += rebalance(bucket_writer, ranking_id).await?;
    }
    Ok(all)
}

pub(crate) async fn rebalance(bucket_writer: &BucketWriter, ranking_id: RankingId) -> Result<Moves> {
    let mut moved = Moves::default();
    loop {
        let (some, is_at_rest) = take_steps(bucket_writer, ranking_id, u64::MAX).await?;
        moved += some;
        if is_at_rest {
            return Ok(moved);
        }
    }
}

/// Takes some steps within the budget; also returns whether the ranking is at rest.
async fn take_steps(bucket_writer: &BucketWriter, ranking_id: RankingId, budget: u64) -> Result<(Moves, bool)> {
    let mut moved = Moves::default();
    if bucket_writer.reader.servers.is_cluster() {
        // Moving rows would need a transaction over several servers.
        return Ok((moved, true));
    }
    for _ in 0..STEPS_PER_VISIT {
        if moved.rows_moved >= budget {
            return Ok((moved, false));
        }
        let Some(counts) = bucket_writer.reader.layout_counts(ranking_id).await? else { return Ok((moved, true)) };
        let Some(step) = next_step(&counts.players) else { return Ok((moved, true)) };
        // If another instance has changed the layout meanwhile, the step does nothing, and the next
        // one is computed again.
        match step {
            RebalanceStep::Move { from, to, rows } => {
                let rows = paced(bucket_writer.move_boundary(ranking_id, counts.layout, from, to, rows)).await?;
                telemetry::count_moved_rows(rows.unwrap_or_default());
                moved.boundaries_moved += u64::from(rows.is_some());
                moved.rows_moved += rows.unwrap_or_default();
            }
            RebalanceStep::Reposition { place, beside, is_above } => {
                let done =
                    paced(bucket_writer.reposition_bucket(ranking_id, counts.layout, place, beside, is_above)).await?;
                moved.buckets_repositioned += u64::from(done);
            }
        }
    }
    Ok((moved, false))
}

/// Runs a step, then leaves the bucket lock free for as long as the step took, at most [`MAX_PAUSE`].
async fn paced<T>(step: impl Future<Output = Result<T>>) -> Result<T> {
    let begin = Instant::now();
    let done = step.await?;
    tokio::time::sleep(begin.elapsed().min(MAX_PAUSE)).await;
    Ok(done)
}
