//! Keeping layouts even while scores come in: rows go from large buckets to the ones beside them,
//! and empty buckets to where there are many players. Each step follows from the counts of
//! the buckets, never from a scan of players.
//!
//! Every step is a short transaction of its own; between two, writers have at least as long.

mod balance;

pub(crate) use balance::UNIT_MIN;

use std::{
    collections::{BTreeMap, HashMap},
    ops::AddAssign,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    Error, Result,
    maintenance::rebalance::balance::{Step, next_step},
    scoring::accepted::AcceptedScores,
    store::{Store, layout::CurrentRanking},
    telemetry,
};

/// Changes made to layouts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moves {
    /// Boundaries that were moved.
    pub boundaries_moved: u64,
    /// Rows that went with them.
    pub rows_moved: u64,
    /// Empty buckets that got a new place.
    pub buckets_repositioned: u64,
}

impl AddAssign for Moves {
    fn add_assign(&mut self, other: Self) {
        self.boundaries_moved += other.boundaries_moved;
        self.rows_moved += other.rows_moved;
        self.buckets_repositioned += other.buckets_repositioned;
    }
}

/// Rows that the timer may move for each score that was accepted, and besides at each look. Up to
/// 1.4 rows a score are needed (see [`balance`]); a busy ranking comes to rest all the same.
const ROWS_PER_SCORE: u64 = 3;

const ROWS_PER_LOOK: u64 = 5_000;

/// Credit does not grow beyond this.
const CREDIT_MAX: u64 = 500_000;

/// Steps of one ranking in turn, until the next ranking has its turn.
const STEPS_IN_TURN: u32 = 50;

/// The rest of the time of a step it has waited for the structure lock.
const LONGEST_STEP: Duration = Duration::from_millis(20);

/// Keeps the layouts of an instance's rankings even.
#[derive(Debug)]
pub(crate) struct Rebalancer {
    /// Scores that this instance has accepted.
    pub(crate) accepted: Arc<AcceptedScores>,
    /// How the timer's last run left each ranking.
    left: Mutex<HashMap<i64, Progress>>,
}

/// How a ranking was left.
#[derive(Debug, Clone, Default)]
struct Progress {
    /// The last batches of its board by then.
    batches: Vec<i64>,
    /// Whether nothing was left to be done.
    is_at_rest: bool,
    /// Scores that its board had accepted here.
    accepted: u64,
    /// Rows that may be moved.
    credit: u64,
}

impl Rebalancer {
    /// Nothing has been rebalanced yet.
    pub(crate) fn new(accepted: Arc<AcceptedScores>) -> Self {
        Self { accepted, left: Mutex::default() }
    }

    /// What the timer has to spend on a ranking; `None` when that was at rest and nothing has been
    /// written since.
    /// An early run is for boards with new scores alone, and grants nothing else.
    fn due(&self, ranking: &CurrentRanking, is_early: bool) -> Option<Progress> {
        let accepted = self.accepted.of(ranking.board_id);
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).get(&ranking.ranking_id).cloned();
        let left = left.unwrap_or_default();
        let is_quiet = left.batches == ranking.batches;
        if is_quiet && left.is_at_rest || is_early && accepted == left.accepted {
            return None;
        }
        let granted = if is_early { 0 } else { ROWS_PER_LOOK };
        let earned = (accepted - left.accepted).saturating_mul(ROWS_PER_SCORE) + granted;
        // Nobody writes: there is time for all of it.
        let credit = if is_quiet { u64::MAX } else { left.credit.saturating_add(earned).min(CREDIT_MAX) };
        Some(Progress { batches: ranking.batches.clone(), is_at_rest: false, accepted, credit })
    }
}

/// Brings the layouts of all current rankings into shape. One that is damaged is left as it is, and
/// named in the log.
pub async fn rebalance_all(store: &Store) -> Result<Moves> {
    let rankings = store.current_rankings().await?;
    let mut busy = rankings.into_iter().map(|ranking| (ranking.ranking_id, u64::MAX)).collect();
    Ok(rebalance_in_turn(store, &mut busy).await)
}

/// Does what [`keep_all`] does, for the timer: of rankings that were written to or not left at
/// rest, and within the credit that the scores since the last time have earned.
pub(crate) async fn rebalance_due(store: &Store, rebalancer: &Rebalancer, is_early: bool) -> Result<Moves> {
    let rankings = store.current_rankings().await?;
    let mut due: HashMap<i64, Progress> =
        rankings.iter().filter_map(|ranking| Some((ranking.ranking_id, rebalancer.due(ranking, is_early)?))).collect();
    let mut busy = due.iter().map(|(ranking_id, left)| (*ranking_id, left.credit)).collect();
    let moved = rebalance_in_turn(store, &mut busy).await;
    for (ranking_id, left) in &mut due {
        // Busy rankings wait for more credit.
        left.is_at_rest = !busy.contains_key(ranking_id);
        left.credit = busy.get(ranking_id).copied().unwrap_or_default();
    }
    let mut known = rebalancer.left.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|ranking_id, _| rankings.iter().any(|ranking| ranking.ranking_id == *ranking_id));
    known.extend(due);
    Ok(moved)
}

/// Brings layouts into shape, each as far as its credit goes, in turn: a ranking that is never at
/// rest is not to keep the others waiting. Leaves those that need more than they have, with the
/// credit that is left.
async fn rebalance_in_turn(store: &Store, busy: &mut BTreeMap<i64, u64>) -> Moves {
    let (mut all, mut waiting) = (Moves::default(), BTreeMap::new());
    while !busy.is_empty() {
        for (ranking_id, credit) in std::mem::take(busy) {
            match take_steps(store, ranking_id, credit).await {
                Ok((moved, is_at_rest)) => {
                    all += moved;
                    let credit = credit.saturating_sub(moved.rows_moved);
                    match (is_at_rest, credit) {
                        (true, _) => {}
                        (false, 0) => drop(waiting.insert(ranking_id, 0)),
                        (false, _) => drop(busy.insert(ranking_id, credit)),
                    }
                }
                Err(error) => {
                    tracing::error!(ranking_id, %error, "a layout could not be looked after");
                    // Damage stays; all else is tried again.
                    if let Error::Unavailable { .. } = error {
                        waiting.insert(ranking_id, credit);
                    }
                }
            }
        }
    }
    *busy = waiting;
    all
}

/// Brings the layouts of a board's current rankings into shape.
pub(crate) async fn rebalance_board(store: &Store, board_id: i32) -> Result<Moves> {
    let mut all = Moves::default();
    for ranking_id in store.rankings_of(board_id).await? {
        all += rebalance(store, ranking_id).await?;
    }
    Ok(all)
}

/// Brings the layout of a ranking into shape.
pub(crate) async fn rebalance(store: &Store, ranking_id: i64) -> Result<Moves> {
    let mut moved = Moves::default();
    loop {
        let (some, is_at_rest) = take_steps(store, ranking_id, u64::MAX).await?;
        moved += some;
        if is_at_rest {
            return Ok(moved);
        }
    }
}

/// Takes a few steps, while there is credit; says too whether the ranking is at rest then.
async fn take_steps(store: &Store, ranking_id: i64, credit: u64) -> Result<(Moves, bool)> {
    let mut moved = Moves::default();
    for _ in 0..STEPS_IN_TURN {
        if moved.rows_moved >= credit {
            return Ok((moved, false));
        }
        let Some(occupied) = store.occupied(ranking_id).await? else { return Ok((moved, true)) };
        let Some(step) = next_step(&occupied.players) else { return Ok((moved, true)) };
        // If another instance has changed the layout meanwhile, nothing is done, and the next step
        // is worked out anew.
        match step {
            Step::Move { from, to, rows } => {
                let rows = paced(store.move_boundary(ranking_id, occupied.layout, from, to, rows)).await?;
                telemetry::count_moved_rows(rows.unwrap_or_default());
                moved.boundaries_moved += u64::from(rows.is_some());
                moved.rows_moved += rows.unwrap_or_default();
            }
            Step::Reposition { place, beside, is_above } => {
                let done = paced(store.reposition_bucket(ranking_id, occupied.layout, place, beside, is_above)).await?;
                moved.buckets_repositioned += u64::from(done);
            }
        }
    }
    Ok((moved, false))
}

/// Does a step, and then leaves the structure lock to others for as long.
async fn paced<T>(step: impl Future<Output = Result<T>>) -> Result<T> {
    let begin = Instant::now();
    let done = step.await?;
    tokio::time::sleep(begin.elapsed().min(LONGEST_STEP)).await;
    Ok(done)
}
