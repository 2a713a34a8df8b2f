//! Writes events: a task per lane, in file order within it.

use std::sync::Arc;

use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

use super::{Line, Progress, Rejects};
use crate::{
    Error, Result,
    board::Board,
    layout::{self, Keeper},
    score::{lane_of, refusal},
    service::Service,
    store::{
        Store,
        score::{Batch, Recorded},
    },
};

/// Batches that are written at the same time, of however many lanes: more would only wait for each other.
pub(super) const BATCHES_AT_ONCE: u32 = 6;
/// Batches that may wait for each lane.
const BATCHES_AHEAD: usize = 2;

/// The writers of an import.
pub(super) struct Lanes {
    board: Arc<Board>,
    batch_size: usize,
    /// Per lane: lines that do not make a batch yet, and the way to its task.
    queues: Vec<(Vec<Line>, mpsc::Sender<Vec<Line>>)>,
    tasks: JoinSet<Result<()>>,
    shared: Arc<Shared>,
}

/// What the tasks share.
struct Shared {
    store: Store,
    board: Arc<Board>,
    rejects: Arc<Rejects>,
    progress: Arc<Progress>,
    room: Semaphore,
    keeper: Arc<Keeper>,
}

impl Lanes {
    pub(super) fn start(
        service: &Service,
        board: &Arc<Board>,
        batch_size: usize,
        rejects: &Arc<Rejects>,
        progress: &Arc<Progress>,
    ) -> Self {
        let shared = Arc::new(Shared {
            store: service.store.clone(),
            board: Arc::clone(board),
            rejects: Arc::clone(rejects),
            progress: Arc::clone(progress),
            room: Semaphore::new(BATCHES_AT_ONCE as usize),
            keeper: Arc::clone(&service.keeper),
        });
        let mut tasks = JoinSet::new();
        let mut start = |lane| {
            let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
            tasks.spawn(Arc::clone(&shared).write_lane(lane, batches));
            (Vec::new(), sender)
        };
        let queues = (0..board.lanes).map(&mut start).collect();
        Self { board: Arc::clone(board), batch_size, queues, tasks, shared }
    }

    /// Takes lines whose players, months and periods exist. `false` when a lane has failed: then [`Self::finish`] says why.
    pub(super) async fn take(&mut self, lines: Vec<Line>) -> bool {
        for line in lines {
            let lane = usize::try_from(lane_of(&line.event.user_id, &self.board)).unwrap_or_default();
            let Some((waiting, sender)) = self.queues.get_mut(lane) else { return false };
            waiting.push(line);
            if waiting.len() >= self.batch_size && sender.send(std::mem::take(waiting)).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Writes what is left, and brings the layouts into shape. The error of a lane that failed.
    pub(super) async fn finish(mut self) -> Result<()> {
        for (waiting, sender) in self.queues {
            // Fails when the lane has: it is asked for the reason next.
            sender.send(waiting).await.ok();
        }
        let mut result = Ok(());
        while let Some(ended) = self.tasks.join_next().await {
            let ended = ended.unwrap_or_else(|error| Err(Error::Internal(format!("a lane's task ended: {error}"))));
            result = result.and(ended);
        }
        result?;
        layout::keep_board(&self.shared.store, self.board.id).await.map(drop)
    }
}

impl Shared {
    /// Writes the batches of one lane, until there are no more or one fails.
    async fn write_lane(self: Arc<Self>, lane: i16, mut batches: mpsc::Receiver<Vec<Line>>) -> Result<()> {
        while let Some(mut lines) = batches.recv().await {
            if lines.is_empty() {
                continue;
            }
            let batch = columns(&mut lines);
            let recorded = {
                let _room = self.room.acquire().await;
                self.store.record_scores(self.board.id, lane, &batch).await?
            };
            if let Some(crowded) = recorded.last().and_then(|last| last.crowded.as_deref()) {
                self.keeper.note_crowded(crowded);
            }
            self.note(&lines, &recorded)?;
        }
        Ok(())
    }

    /// Counts what became of the lines, and passes those on that were refused.
    fn note(&self, lines: &[Line], recorded: &[Recorded]) -> Result<()> {
        let (mut accepted, mut repeated) = (0, 0);
        for (line, recorded) in lines.iter().zip(recorded) {
            match &recorded.result {
                Some(_) if recorded.repeated => repeated += 1,
                Some(_) => accepted += 1,
                None => {
                    let reason = refusal(&self.board, &recorded.outcome, recorded.detail.as_deref());
                    self.rejects.add(line.number, &line.raw, &reason, &self.progress)?;
                }
            }
        }
        self.progress.add_written(accepted, repeated);
        Ok(())
    }
}

/// The events of these lines, column by column; the lines keep what is told of them afterwards.
fn columns(lines: &mut [Line]) -> Batch {
    let mut batch = Batch::default();
    let mut times = Vec::with_capacity(lines.len());
    for Line { event, .. } in lines {
        batch.user_ids.push(event.user_id.to_string());
        batch.points.push(event.points);
        batch.reasons.push(event.reason.take());
        batch.ids.push(event.id.take());
        batch.tiebreaks.push(event.tiebreak);
        times.push(event.occurred_at);
    }
    batch.times = Some(times);
    batch
}
