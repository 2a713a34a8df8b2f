//! Keeping layouts in shape while scores come in: stripes are split and merged by their size, and moved between buckets until
//! none holds twice its share. What is to be done follows from the counts of the stripes, never from a scan of players.
//!
//! Every step is a short transaction of its own; between two, writers have at least as long.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::AddAssign,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use crate::{
    Error, Result,
    service::Service,
    store::{Store, layout::CurrentRanking},
    telemetry,
};

/// What was done to layouts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Stripes that were cut off others, or joined to them.
    pub stripes_changed: u64,
    /// Stripes that went to another bucket.
    pub stripes_moved: u64,
    /// Rows that went with them.
    pub rows_moved: u64,
}

impl AddAssign for Kept {
    fn add_assign(&mut self, other: Self) {
        self.stripes_changed += other.stripes_changed;
        self.stripes_moved += other.stripes_moved;
        self.rows_moved += other.rows_moved;
    }
}

/// Rows that the timer may move between buckets for each score that was accepted, and beside that at each look: what scores that
/// all arrive at one end cost stays bounded, and a busy ranking comes to rest all the same.
const ROWS_PER_SCORE: u64 = 1;
const ROWS_PER_LOOK: u64 = 5_000;
/// How many targets of players a stripe may have.
const LARGEST: f64 = 2.0;
/// How many one that is to be moved may have; `stripe_moves` names as large what has more.
const LARGEST_MOVED: f64 = 0.5;
/// How often stripes are looked at anew before something else has its turn.
const MOST_PASSES: u32 = 3;
/// No step has the structure lock for longer, as a rule; the rest of its time it has waited.
const LONGEST_STEP: Duration = Duration::from_millis(20);

/// Looks after the layouts of an instance.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    /// Rankings in which a stripe has grown too large.
    crowded: Mutex<BTreeSet<i64>>,
    wake: Notify,
    /// Scores that this instance has accepted, by board.
    accepted: Mutex<HashMap<i32, u64>>,
    /// Of each ranking, how it was left by the timer's last look.
    left: Mutex<HashMap<i64, Left>>,
}

/// How a ranking was left.
#[derive(Debug, Clone, Default)]
struct Left {
    /// What its board had written by then.
    batches: Vec<i64>,
    /// Whether nothing was left to be done.
    is_at_rest: bool,
    /// Scores that its board had accepted here.
    accepted: u64,
    /// Rows that may be moved.
    credit: u64,
}

impl Keeper {
    /// Notes that stripes of these rankings should be split; it is done soon, once however often it is noted.
    pub(crate) fn note_crowded(&self, rankings: &[i64]) {
        self.crowded.lock().unwrap_or_else(PoisonError::into_inner).extend(rankings);
        self.wake.notify_one();
    }

    /// Splits what is noted, as long as the instance lives.
    pub(crate) async fn run(&self, store: &Store) {
        loop {
            self.wake.notified().await;
            // All that are noted by now in turn: one that is never done is not to keep the others waiting.
            for ranking_id in self.take_crowded() {
                match tidy(store, ranking_id).await {
                    Ok(0) => {}
                    Ok(_) => self.note_crowded(&[ranking_id]),
                    Err(error) => {
                        tracing::warn!(ranking_id, %error, "stripes could not be split; ranks stay exact, and get slower");
                    }
                }
            }
        }
    }

    /// Notes that so many scores of a board were accepted.
    pub(crate) fn note_accepted(&self, board_id: i32, scores: u64) {
        *self.accepted.lock().unwrap_or_else(PoisonError::into_inner).entry(board_id).or_default() += scores;
    }

    /// What the timer has to spend on a ranking; `None` when that was at rest and nothing has been written since.
    fn due(&self, ranking: &CurrentRanking) -> Option<Left> {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        let accepted = accepted.get(&ranking.board_id).copied().unwrap_or_default();
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).get(&ranking.ranking_id).cloned();
        let left = left.unwrap_or_default();
        let is_quiet = left.batches == ranking.batches;
        if is_quiet && left.is_at_rest {
            return None;
        }
        let earned = (accepted - left.accepted).saturating_mul(ROWS_PER_SCORE) + ROWS_PER_LOOK;
        // Nobody writes: there is time for all of it.
        let credit = if is_quiet { u64::MAX } else { left.credit.saturating_add(earned) };
        Some(Left { batches: ranking.batches.clone(), is_at_rest: false, accepted, credit })
    }

    fn take_crowded(&self) -> BTreeSet<i64> {
        std::mem::take(&mut *self.crowded.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Brings the layouts of all current rankings into shape. One that is damaged is left as it is, and named in the log.
pub async fn keep_all(service: &Service) -> Result<Kept> {
    let rankings = service.store.current_rankings().await?;
    let mut busy = rankings.into_iter().map(|ranking| (ranking.ranking_id, u64::MAX)).collect();
    Ok(keep_in_turn(&service.store, &mut busy).await)
}

/// What the timer does: as [`keep_all`], of rankings that were written to, or not left at rest, and within what the scores since
/// the last time have earned.
pub(crate) async fn keep_due(service: &Service) -> Result<Kept> {
    let rankings = service.store.current_rankings().await?;
    let mut due: HashMap<i64, Left> =
        rankings.iter().filter_map(|ranking| Some((ranking.ranking_id, service.keeper.due(ranking)?))).collect();
    let mut busy = due.iter().map(|(ranking_id, left)| (*ranking_id, left.credit)).collect();
    let kept = keep_in_turn(&service.store, &mut busy).await;
    for (ranking_id, left) in &mut due {
        // What is still busy waits for more credit.
        left.is_at_rest = !busy.contains_key(ranking_id);
        left.credit = busy.get(ranking_id).copied().unwrap_or_default();
    }
    let mut known = service.keeper.left.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|ranking_id, _| rankings.iter().any(|ranking| ranking.ranking_id == *ranking_id));
    known.extend(due);
    Ok(kept)
}

/// Brings layouts into shape, each as far as its credit goes, in turn: a ranking that is never at rest is not to keep the others
/// waiting. Leaves those that need more than they have, with what they have left.
async fn keep_in_turn(store: &Store, busy: &mut BTreeMap<i64, u64>) -> Kept {
    let (mut all, mut waiting) = (Kept::default(), BTreeMap::new());
    while !busy.is_empty() {
        for (ranking_id, credit) in std::mem::take(busy) {
            match keep_once(store, ranking_id, credit).await {
                Ok(None) => drop(waiting.insert(ranking_id, credit)),
                Ok(Some(kept)) => {
                    all += kept;
                    if kept.stripes_moved > 0 {
                        busy.insert(ranking_id, credit.saturating_sub(kept.rows_moved));
                    }
                }
                Err(error) => {
                    tracing::error!(ranking_id, %error, "a layout could not be looked after");
                    // What is damaged stays so; all else is tried again.
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
pub(crate) async fn keep_board(store: &Store, board_id: i32) -> Result<Kept> {
    let mut all = Kept::default();
    for ranking_id in store.rankings_of(board_id).await? {
        all += keep(store, ranking_id).await?;
    }
    Ok(all)
}

/// Brings the layout of a ranking into shape.
pub(crate) async fn keep(store: &Store, ranking_id: i64) -> Result<Kept> {
    let mut kept = Kept::default();
    while let Some(once) = keep_once(store, ranking_id, u64::MAX).await? {
        kept += once;
        if once.stripes_moved == 0 {
            break;
        }
    }
    Ok(kept)
}

/// Sees to the stripes of a ranking, and then to the bucket that is fullest. `None` when that would move more rows than `credit`.
async fn keep_once(store: &Store, ranking_id: i64, credit: u64) -> Result<Option<Kept>> {
    let mut kept = Kept { stripes_changed: tidy(store, ranking_id).await?, ..Kept::default() };
    let mut moves = store.stripe_moves(ranking_id).await?;
    if moves.iter().map(|stripe| stripe.players.unsigned_abs()).sum::<u64>() > credit {
        return Ok(None);
    }
    // A move holds the lock for as long as its rows take: large stripes are cut first, and the moves planned anew. Under writers some
    // are always just past it; those are moved as they are.
    for _ in 0..MOST_PASSES {
        let large: BTreeSet<i16> =
            moves.iter().filter(|stripe| stripe.is_large).map(|stripe| stripe.from_bucket).collect();
        if large.is_empty() {
            break;
        }
        let cut = tidy_buckets(store, ranking_id, large.into_iter().collect(), LARGEST_MOVED).await?;
        kept.stripes_changed += cut;
        moves = store.stripe_moves(ranking_id).await?;
        if cut == 0 {
            break;
        }
    }
    for stripe in moves {
        // Another instance has changed the layout: what comes next is worked out anew.
        let Some(rows) = paced(store.move_stripe(ranking_id, stripe)).await? else { break };
        telemetry::count_moved_rows(rows);
        kept.stripes_moved += 1;
        kept.rows_moved += rows;
    }
    Ok(Some(kept))
}

/// Splits and merges the stripes of a ranking by their size; gives how many. Under writers there may always be more: it ends after a
/// few passes.
async fn tidy(store: &Store, ranking_id: i64) -> Result<u64> {
    let mut changes = 0;
    for _ in 0..MOST_PASSES {
        // The largest stripes first: they are the slowest to read, and while many arrive a step comes late.
        let buckets = store.buckets_to_tidy(ranking_id).await?;
        match tidy_buckets(store, ranking_id, buckets, LARGEST).await? {
            0 => break,
            some => changes += some,
        }
    }
    Ok(changes)
}

/// Splits stripes past `largest` times the target in each of these buckets, as far as one step can, and merges small ones; gives how
/// many. A bucket that is damaged keeps none of the others from it.
async fn tidy_buckets(store: &Store, ranking_id: i64, mut buckets: Vec<i16>, largest: f64) -> Result<u64> {
    let (mut changes, mut at_once, mut damage) = (0, buckets.len(), None);
    while !buckets.is_empty() {
        let step = &buckets[..at_once.min(buckets.len())];
        match paced(store.tidy_buckets(ranking_id, step, largest)).await {
            Ok(tidied) => {
                changes += tidied.changes;
                buckets.drain(..tidied.buckets.clamp(1, buckets.len()));
            }
            Err(Error::Internal(_)) if step.len() > 1 => at_once = 1,
            Err(error @ Error::Internal(_)) => {
                damage = Some(error);
                buckets.remove(0);
            }
            Err(error) => return Err(error),
        }
    }
    damage.map_or(Ok(changes), Err)
}

/// Does a step, and then leaves the structure lock to others for as long.
async fn paced<T>(step: impl Future<Output = Result<T>>) -> Result<T> {
    let begin = Instant::now();
    let done = step.await?;
    tokio::time::sleep(begin.elapsed().min(LONGEST_STEP)).await;
    Ok(done)
}
