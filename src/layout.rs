//! Keeping layouts in shape while scores come in: stripes are split and merged by their size, and moved between buckets until
//! none holds twice its share. What is to be done follows from the counts of the stripes, never from a scan of players.
//!
//! Every step is a short transaction of its own; between two, writers have at least as long.

use std::{
    collections::{BTreeSet, HashMap},
    ops::AddAssign,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use tokio::sync::Notify;

use crate::{Result, service::Service, store::Store, telemetry};

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

/// Looks after the layouts of an instance.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    /// Rankings in which a stripe has grown too large.
    crowded: Mutex<BTreeSet<i64>>,
    wake: Notify,
    /// What each board had written when the layouts of its rankings were last in shape.
    seen: Mutex<HashMap<i64, Vec<i64>>>,
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
            while let Some(ranking_id) = self.next_crowded() {
                if let Err(error) = tidy(store, ranking_id).await {
                    tracing::warn!(ranking_id, %error, "stripes could not be split; ranks stay exact, and get slower");
                }
            }
        }
    }

    fn next_crowded(&self) -> Option<i64> {
        self.crowded.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }
}

/// Brings the layouts of all current rankings into shape whose boards have written since the last time. One that is damaged is
/// left as it is, and named in the log.
pub async fn keep_all(service: &Service) -> Result<Kept> {
    let mut all = Kept::default();
    let current = service.store.current_rankings().await?;
    let mut busy: Vec<i64> = {
        let seen = service.keeper.seen.lock().unwrap_or_else(PoisonError::into_inner);
        current.iter().filter(|(id, batches)| seen.get(id) != Some(batches)).map(|(id, _)| *id).collect()
    };
    // In turn: a ranking that is never at rest is not to keep the others waiting.
    while !busy.is_empty() {
        let mut left = Vec::new();
        for ranking_id in busy {
            match keep_once(&service.store, ranking_id).await {
                Ok(kept) => {
                    all += kept;
                    if kept.stripes_moved > 0 {
                        left.push(ranking_id);
                    }
                }
                Err(error) => tracing::error!(ranking_id, %error, "a layout could not be looked after"),
            }
        }
        busy = left;
    }
    *service.keeper.seen.lock().unwrap_or_else(PoisonError::into_inner) = current.into_iter().collect();
    Ok(all)
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
    loop {
        let once = keep_once(store, ranking_id).await?;
        kept += once;
        if once.stripes_moved == 0 {
            return Ok(kept);
        }
    }
}

/// Sees to the stripes of a ranking, and then to the bucket that is fullest.
async fn keep_once(store: &Store, ranking_id: i64) -> Result<Kept> {
    let mut kept = Kept { stripes_changed: tidy(store, ranking_id).await?, ..Kept::default() };
    for stripe in store.stripe_moves(ranking_id).await? {
        // Another instance has changed the layout: what comes next is worked out anew.
        let Some(rows) = paced(store.move_stripe(ranking_id, stripe)).await? else { break };
        telemetry::count_moved_rows(rows);
        kept.stripes_moved += 1;
        kept.rows_moved += rows;
    }
    Ok(kept)
}

/// Splits and merges the stripes of a ranking by their size; gives how many.
async fn tidy(store: &Store, ranking_id: i64) -> Result<u64> {
    let mut changes = 0;
    for bucket in store.buckets_to_tidy(ranking_id).await? {
        loop {
            match paced(store.tidy_stripes(ranking_id, bucket)).await? {
                0 => break,
                some => changes += some,
            }
        }
    }
    Ok(changes)
}

/// Does a step, and then leaves the structure lock to others for as long.
async fn paced<T>(step: impl Future<Output = Result<T>>) -> Result<T> {
    let begin = Instant::now();
    let done = step.await?;
    tokio::time::sleep(begin.elapsed()).await;
    Ok(done)
}
