//! Writes events: one task per lane, in file order within the lane.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    Error, Result,
    import::{ImportProgress, ImportedLine, Rejects},
    maintenance::rebalance,
    model::{board::Board, id::Lane, score::Event},
    rules::{EventSource, Refusal},
    scoring::{
        applier,
        batch::{self, EventOutcome},
        lane_of,
    },
    store::{BucketWriter, ScoreWriter},
};

/// Maximum concurrent batches over all lanes. More would only wait for each other.
pub(super) const MAX_CONCURRENT_BATCHES: u32 = 6;

const QUEUED_BATCHES: usize = 2;

/// The writers of an import.
pub(super) struct Lanes {
    board: Arc<Board>,
    batch_size: usize,
    /// Per lane: lines of an incomplete batch, and the queue of its task.
    queues: BTreeMap<Lane, (Vec<ImportedLine>, mpsc::Sender<Vec<ImportedLine>>)>,
    tasks: JoinSet<Result<()>>,
    context: Arc<LaneContext>,
    applying: AbortOnDropHandle<()>,
}

/// State shared by the tasks.
struct LaneContext {
    score_writer: ScoreWriter,
    bucket_writer: BucketWriter,
    board: Arc<Board>,
    rejects: Arc<Rejects>,
    progress: Arc<ImportProgress>,
    permits: Semaphore,
}

impl Lanes {
    pub(super) fn start(
        score_writer: &ScoreWriter,
        bucket_writer: &BucketWriter,
        board: &Arc<Board>,
        batch_size: usize,
        rejects: &Arc<Rejects>,
        progress: &Arc<ImportProgress>,
    ) -> Self {
        let context = Arc::new(LaneContext {
            score_writer: score_writer.clone(),
            bucket_writer: bucket_writer.clone(),
            board: Arc::clone(board),
            rejects: Arc::clone(rejects),
            progress: Arc::clone(progress),
            permits: Semaphore::new(MAX_CONCURRENT_BATCHES as usize),
        });
        let mut tasks = JoinSet::new();
        let mut start = |lane| {
            let (sender, batches) = mpsc::channel(QUEUED_BATCHES);
            tasks.spawn(Arc::clone(&context).write_lane(lane, batches));
            (lane, (Vec::new(), sender))
        };
        let queues = (0..board.limits.lanes).map(Lane).map(&mut start).collect();
        let applying = AbortOnDropHandle::new(tokio::spawn(applier::apply_continuously(bucket_writer.clone())));
        Self { board: Arc::clone(board), batch_size, queues, tasks, context, applying }
    }

    /// Queues lines whose players, partitions and periods exist.
    ///
    /// Returns `false` when a lane has failed; [`Self::finish`] then returns its error.
    pub(super) async fn take(&mut self, lines: Vec<ImportedLine>) -> Result<bool> {
        for line in lines {
            let lane = lane_of(&line.record.event.user_id, &self.board)?;
            let Some((waiting, sender)) = self.queues.get_mut(&lane) else {
                return Err(Error::Internal(format!("board {} has no lane {}", self.board.slug, lane.0)));
            };
            waiting.push(line);
            if waiting.len() >= self.batch_size && sender.send(std::mem::take(waiting)).await.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the remaining lines, applies their batches and rebalances the board. Returns the error of a failed lane.
    pub(super) async fn finish(mut self) -> Result<()> {
        for (waiting, sender) in self.queues.into_values() {
            // Sending fails when the lane has failed; its error is collected next.
            sender.send(waiting).await.ok();
        }
        let mut result = Ok(());
        while let Some(ended) = self.tasks.join_next().await {
            let ended = ended.unwrap_or_else(|error| Err(Error::Internal(format!("a lane's task ended: {error}"))));
            result = result.and(ended);
        }
        drop(self.applying);
        result?;
        self.context.bucket_writer.apply(self.board.owner, true).await?;
        self.context.bucket_writer.grow_board(self.board.id).await;
        rebalance::rebalance_board(&self.context.bucket_writer, self.board.owner).await.map(drop)
    }
}

impl LaneContext {
    /// Writes the batches of one lane, until the queue ends or a batch fails.
    async fn write_lane(self: Arc<Self>, lane: Lane, mut batches: mpsc::Receiver<Vec<ImportedLine>>) -> Result<()> {
        let mut lane = batch::WriterLane::new(self.board.owner, lane);
        while let Some(lines) = batches.recv().await {
            if lines.is_empty() {
                continue;
            }
            let events: Vec<(i32, &Event)> = lines.iter().map(|line| (self.board.id, &line.record.event)).collect();
            let written = {
                let _permit = self.permits.acquire().await;
                lane.write_events(&self.score_writer, &self.bucket_writer, EventSource::Import, &events).await?
            };
            self.record(&lines, &written.answers)?;
        }
        Ok(())
    }

    /// Counts the outcomes of lines, and passes refused lines to the rejects.
    fn record(&self, lines: &[ImportedLine], answers: &[Result<EventOutcome, Refusal>]) -> Result<()> {
        let (mut accepted, mut repeats) = (0, 0);
        for (line, answer) in lines.iter().zip(answers) {
            let refusal = match answer {
                Ok(EventOutcome::Accepted { repeated: true, .. }) => {
                    repeats += 1;
                    continue;
                }
                Ok(EventOutcome::Accepted { .. }) => {
                    accepted += 1;
                    continue;
                }
                // A live event has this id. Imported events never go to quarantine.
                Ok(EventOutcome::Quarantined { .. }) => &Refusal::IdInQuarantine,
                Err(refusal) => refusal,
            };
            self.rejects.add(line.number, &line.raw, &refusal.error(&self.board), &self.progress)?;
        }
        self.progress.add_written(accepted, repeats);
        Ok(())
    }
}
