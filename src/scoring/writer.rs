//! The writers: one task per lane of a board or template batches the events that arrive meanwhile, and writes
//! each batch in one transaction.
//!
//! Under light load a batch is one event and adds no wait. Under heavy load batches grow, and the
//! cost per score falls.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
};
use tokio_util::task::TaskTracker;

use crate::{
    Error, Result,
    model::{board::Board, id::Lane, score::Event},
    ranking::acknowledged::AcknowledgedBatches,
    rules::{EventSource, Refusal},
    scoring::{
        accepted::AcceptedScores,
        batch::{self, EventOutcome, WrittenBatch},
        wait_estimate::WaitEstimate,
    },
    store::{BucketWriter, ScoreWriter},
    telemetry,
};

/// A batch takes no more jobs once it has this many events.
const BATCH_EVENTS: usize = 500;

/// A lane's writer ends when it has received no events for this time.
const IDLE_AFTER: Duration = Duration::from_mins(10);

/// Maximum events queued for one lane. Beyond it callers get 503 with Retry-After.
const QUEUE_EVENTS: usize = 10_000;

/// A board never sheds requests while fewer events are queued: a burst of this many callers with
/// one score each.
const NEVER_SHED_EVENTS: usize = 1_024;

/// Requests are never shed while at most this many are in progress. So a few callers with long
/// lists are served, if each waits for an answer before it sends the next list.
const NEVER_SHED_REQUESTS: usize = 16;

type EventOutcomes = Vec<Result<EventOutcome, Refusal>>;

#[derive(Debug)]
pub(crate) struct Writers {
    /// Maximum estimated wait of events.
    max_wait: Duration,
    /// Requests with scores in progress.
    requests: AtomicUsize,
    lanes: Mutex<HashMap<(i32, Lane), LaneQueue>>,
    context: WriterContext,
    runtime: Handle,
    tasks: TaskTracker,
}

/// State shared by all writers.
#[derive(Debug, Clone)]
struct WriterContext {
    score_writer: ScoreWriter,
    bucket_writer: BucketWriter,
    acknowledged: Arc<AcknowledgedBatches>,
    /// `None` without background maintenance.
    accepted: Option<Arc<AcceptedScores>>,
}

/// The queue of one writer.
#[derive(Debug)]
struct LaneQueue {
    queue: mpsc::UnboundedSender<Job>,
    permits: Arc<Semaphore>,
    estimate: Arc<WaitEstimate>,
    used_at: Instant,
}

/// A request with scores in progress, counted until this value is dropped.
#[derive(Debug)]
pub(crate) struct Admission<'a>(&'a AtomicUsize);

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Job {
    board_id: i32,
    events: Vec<Event>,
    reply: oneshot::Sender<Result<EventOutcomes>>,
    _permit: OwnedSemaphorePermit,
}

impl Writers {
    /// Creates writers that run on the current runtime.
    ///
    /// A lane's writer starts with its first event. Events are refused when their estimated wait
    /// exceeds `max_wait`.
    pub(crate) fn new(
        score_writer: ScoreWriter,
        bucket_writer: BucketWriter,
        acknowledged: Arc<AcknowledgedBatches>,
        accepted: Option<Arc<AcceptedScores>>,
        max_wait: Duration,
    ) -> Self {
        Self {
            max_wait,
            requests: AtomicUsize::new(0),
            lanes: Mutex::default(),
            context: WriterContext { score_writer, bucket_writer, acknowledged, accepted },
            runtime: Handle::current(),
            tasks: TaskTracker::new(),
        }
    }

    /// Admits a request with scores before its key or body is read. Keep the returned value until
    /// the request is answered.
    ///
    /// Returns [`Error::Overload`] when its events would probably wait too long. `board` is `None`
    /// when the board is not cached, or known only from the body; the request is then admitted.
    pub(crate) fn admit(&self, board: Option<&Board>) -> Result<Admission<'_>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let admit = Admission(&self.requests);
        board.map_or(Ok(()), |board| self.check(board))?;
        Ok(admit)
    }

    /// Returns [`Error::Overload`] when new scores would wait too long.
    ///
    /// An admitted request checks again before it queues its events: a busy machine admits hundreds
    /// at once, while none of their events is queued.
    pub(crate) fn check(&self, board: &Board) -> Result<()> {
        let others = self.requests.load(Ordering::Relaxed).saturating_sub(1);
        if others >= NEVER_SHED_REQUESTS && self.is_full(board) {
            telemetry::count_refused("scores");
            return Err(full());
        }
        Ok(())
    }

    /// Returns whether new events of the board would wait too long.
    ///
    /// A list has events for all lanes, so the slowest lane decides. A stalled lane counts only if
    /// all are stalled; otherwise it would keep the others idle.
    fn is_full(&self, board: &Board) -> bool {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut events, mut stalled, mut longest) = (0, 0, Duration::ZERO);
        for lane in (0..board.limits.lanes).filter_map(|lane| lanes.get(&(board.owner, Lane(lane)))) {
            let waiting = lane.waiting();
            events += waiting;
            if lane.estimate.is_stalled(self.max_wait) {
                stalled += 1;
            } else {
                longest = longest.max(lane.estimate.wait(waiting));
            }
        }
        events >= NEVER_SHED_EVENTS && (stalled >= board.limits.lanes || longest > self.max_wait)
    }

    /// Queues events for their lane; the returned future resolves after the commit.
    ///
    /// Returns [`Error::Overload`] at once when the queue is full, or when the lane is stalled
    /// and enough events are queued.
    pub(crate) fn submit(
        &self,
        board: &Board,
        lane: Lane,
        events: Vec<Event>,
    ) -> Result<impl Future<Output = Result<EventOutcomes>> + use<>> {
        let (reply, answer) = oneshot::channel();
        {
            let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            if self.tasks.is_closed() {
                return Err(Error::Stopping);
            }
            let lane = match lanes.entry((board.owner, lane)) {
                // The lane's writer has panicked: start another.
                Entry::Occupied(mut known) if known.get().queue.is_closed() => {
                    known.insert(self.start(board.owner, lane));
                    known.into_mut()
                }
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(self.start(board.owner, lane)),
            };
            if lane.waiting() >= NEVER_SHED_EVENTS && lane.estimate.is_stalled(self.max_wait) {
                return Err(full());
            }
            let count = u32::try_from(events.len()).map_err(|_| full())?;
            let permit = Arc::clone(&lane.permits).try_acquire_many_owned(count).map_err(|_| full())?;
            lane.queue.send(Job { board_id: board.id, events, reply, _permit: permit }).map_err(|_| full())?;
            lane.used_at = Instant::now();
        }
        Ok(async move {
            // The writer answers every job; it drops one unanswered only when it panics.
            answer.await.unwrap_or_else(|_| Err(Error::Internal("a writer task ended before it answered".to_owned())))
        })
    }

    /// Creates a board of a template before its first score.
    ///
    /// Returns [`Error::Conflict`] if the template has its maximum number of boards.
    pub(crate) async fn create_board(&self, board: &Board) -> Result<Board> {
        let id = self.context.score_writer.ensure_board(&board.slug).await?;
        Ok(Board { id, ..board.clone() })
    }

    fn start(&self, board_id: i32, lane: Lane) -> LaneQueue {
        let (queue, jobs) = mpsc::unbounded_channel();
        let estimate = Arc::new(WaitEstimate::default());
        let writing = write_lane(self.context.clone(), board_id, lane, jobs, Arc::clone(&estimate));
        self.tasks.spawn_on(writing, &self.runtime);
        LaneQueue { queue, permits: Arc::new(Semaphore::new(QUEUE_EVENTS)), estimate, used_at: Instant::now() }
    }

    /// Ends the writers of lanes that have received no events for a while before `now`.
    pub(crate) fn end_idle(&self, now: Instant) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.retain(|_, lane| lane.waiting() > 0 || now.saturating_duration_since(lane.used_at) < IDLE_AFTER);
    }

    /// Returns the number of events that are queued or being written.
    pub(crate) fn waiting(&self) -> usize {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.values().map(LaneQueue::waiting).sum()
    }

    /// Stops accepting events, and waits until the accepted ones are written.
    pub(crate) async fn shut_down(&self) {
        self.tasks.close();
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.tasks.wait().await;
    }
}

impl LaneQueue {
    /// Returns the number of events that are queued or being written.
    fn waiting(&self) -> usize {
        QUEUE_EVENTS - self.permits.available_permits()
    }
}

/// The error for events that would wait too long.
fn full() -> Error {
    Error::overload("too many scores are queued")
}

/// Callers in a batch from which on its writer pauses before the next one.
///
/// Callers that were just answered often have their next score ready, and one batch of twice the
/// size costs far less than two batches.
const PAUSE_MIN_CALLERS: usize = 8;

/// The pause is this fraction of the time that the batch took.
const PAUSE_DIVISOR: u32 = 8;

const MAX_PAUSE: Duration = Duration::from_millis(20);

/// A template's writer checks the board of one in so many events for large rankings. A large ranking
/// has many events, so one of them is soon checked.
const GROWTH_CHECK_EVENTS: usize = 256;

/// Writes one lane's batches until the queue is closed and empty.
async fn write_lane(
    context: WriterContext,
    board_id: i32,
    number: Lane,
    mut queue: mpsc::UnboundedReceiver<Job>,
    estimate: Arc<WaitEstimate>,
) {
    let mut lane = batch::WriterLane::new(board_id, number);
    let mut next = Instant::now();
    let mut until_check = GROWTH_CHECK_EVENTS;
    while let Some(first) = queue.recv().await {
        // A sleep until a time that has just passed may still take a millisecond.
        if queue.len() < BATCH_EVENTS && next > Instant::now() {
            tokio::time::sleep_until(next.into()).await;
        }
        let begin = Instant::now();
        let mut jobs = vec![first];
        let mut events = jobs[0].events.len();
        while events < BATCH_EVENTS {
            let Ok(job) = queue.try_recv() else { break };
            events += job.events.len();
            jobs.push(job);
        }
        let callers = jobs.len();
        let first_board = jobs[0].board_id;
        estimate.begin(events);
        write_jobs(&context, &mut lane, jobs).await;
        estimate.end();
        until_check = until_check.saturating_sub(events);
        if until_check == 0 {
            until_check = GROWTH_CHECK_EVENTS;
            if first_board != board_id {
                let bucket_writer = context.bucket_writer.clone();
                tokio::spawn(async move { bucket_writer.grow_board(first_board).await });
            }
        }
        next = Instant::now();
        if callers >= PAUSE_MIN_CALLERS {
            next += (begin.elapsed() / PAUSE_DIVISOR).min(MAX_PAUSE);
        }
    }
}

/// Writes jobs as one batch.
///
/// If the database refuses the whole batch, each half is tried alone, and so on, so that a bad job
/// affects no other.
async fn write_jobs(context: &WriterContext, lane: &mut batch::WriterLane, jobs: Vec<Job>) {
    let mut waiting = vec![jobs];
    while let Some(mut jobs) = waiting.pop() {
        let events: Vec<(i32, &Event)> =
            jobs.iter().flat_map(|job| job.events.iter().map(|event| (job.board_id, event))).collect();
        let begin = Instant::now();
        match lane.write_events(&context.score_writer, &context.bucket_writer, EventSource::Live, &events).await {
            Ok(WrittenBatch { batch, answers }) => {
                // Record the result for readers and rebalancing.
                telemetry::count_batch(events.len(), begin.elapsed());
                if let Some(counts) = &context.accepted {
                    let accepted =
                        answers.iter().filter(|answer| matches!(answer, Ok(EventOutcome::Accepted { .. }))).count();
                    counts.add(lane.board_id, accepted as u64);
                }
                context.acknowledged.raise(lane.board_id, lane.number.0.unsigned_abs().into(), batch);
                let mut answers = answers.into_iter();
                for job in jobs {
                    // The caller may have gone away.
                    let _ = job.reply.send(Ok(answers.by_ref().take(job.events.len()).collect()));
                }
            }
            Err(Error::Internal(error)) if jobs.len() > 1 => {
                tracing::error!(
                    lane.board_id,
                    lane = lane.number.0,
                    jobs = jobs.len(),
                    error,
                    "a batch failed; its halves are written separately"
                );
                // The first half first: events of a player keep their order.
                waiting.push(jobs.split_off(jobs.len() / 2));
                waiting.push(jobs);
            }
            Err(error) => {
                for job in jobs {
                    let _ = job.reply.send(Err(error.clone()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tested;

    #[tokio::test]
    async fn the_writer_of_an_idle_lane_ends() -> Result<()> {
        // No server listens there.
        let store = tested::store("postgres://nobody:nothing@127.0.0.1:1/none")?;
        let writers = Writers::new(store.score_writer, store.bucket_writer, Arc::default(), None, Duration::ZERO);
        let lanes = || writers.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = writers.start(1, Lane(0));
        let (permits, now) = (Arc::clone(&lane.permits), lane.used_at);
        lanes().insert((1, Lane(0)), lane);
        writers.end_idle(now);
        assert_eq!(lanes().len(), 1, "it has just been used");
        let waiting = permits.try_acquire();
        writers.end_idle(now + IDLE_AFTER);
        assert_eq!(lanes().len(), 1, "an event waits");
        drop(waiting);
        writers.end_idle(now + IDLE_AFTER);
        assert!(lanes().is_empty());
        writers.tasks.close();
        writers.tasks.wait().await;
        Ok(())
    }
}
