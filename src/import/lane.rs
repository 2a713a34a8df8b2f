//! Writes events: a task per lane, in file order within it.

use std::sync::Arc;

use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

use crate::{
    Error, Result,
    import::{Line, Progress, Rejects, event::Event},
    maintenance::rebalance,
    model::board::Board,
    rules::{Refusal, Source},
    scoring::{
        lane_of,
        write::{self, Answer, Submitted},
    },
    store::Store,
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
}

impl Lanes {
    pub(super) fn start(
        store: &Store,
        board: &Arc<Board>,
        batch_size: usize,
        rejects: &Arc<Rejects>,
        progress: &Arc<Progress>,
    ) -> Self {
        let shared = Arc::new(Shared {
            store: store.clone(),
            board: Arc::clone(board),
            rejects: Arc::clone(rejects),
            progress: Arc::clone(progress),
            room: Semaphore::new(BATCHES_AT_ONCE as usize),
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
        rebalance::rebalance_board(&self.shared.store, self.board.id).await.map(drop)
    }
}

impl Shared {
    /// Writes the batches of one lane, until there are no more or one fails.
    async fn write_lane(self: Arc<Self>, lane: i16, mut batches: mpsc::Receiver<Vec<Line>>) -> Result<()> {
        let mut lane = write::Lane::new(self.board.id, lane);
        while let Some(lines) = batches.recv().await {
            if lines.is_empty() {
                continue;
            }
            let events: Vec<Submitted> = lines.iter().map(|line| (&line.event).into()).collect();
            let written = {
                let _room = self.room.acquire().await;
                lane.write(&self.store, Source::Import, &events).await?
            };
            self.note(&lines, &written.answers)?;
        }
        Ok(())
    }

    /// Counts what became of the lines, and passes those on that were refused.
    fn note(&self, lines: &[Line], answers: &[Answer]) -> Result<()> {
        let (mut accepted, mut repeats) = (0, 0);
        for (line, answer) in lines.iter().zip(answers) {
            let refusal = match answer {
                Answer::Accepted { repeated: true, .. } => {
                    repeats += 1;
                    continue;
                }
                Answer::Accepted { .. } => {
                    accepted += 1;
                    continue;
                }
                // The id of a live event; imported ones do not go there.
                Answer::Quarantined { .. } => &Refusal::IdInQuarantine,
                Answer::Refused(refusal) => refusal,
            };
            self.rejects.add(line.number, &line.raw, &refusal.error(&self.board), &self.progress)?;
        }
        self.progress.add_written(accepted, repeats);
        Ok(())
    }
}

impl<'a> From<&'a Event> for Submitted<'a> {
    fn from(event: &'a Event) -> Self {
        Self {
            user_id: event.user_id.as_str(),
            points: event.points,
            tiebreak: event.tiebreak,
            reason: event.reason.as_deref(),
            id: event.id.as_deref(),
            at: event.occurred_at,
        }
    }
}
