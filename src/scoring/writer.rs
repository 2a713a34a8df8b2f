//! The writers: one task per board and lane collects what arrives at the same moment and writes it
//! in one transaction.
//!
//! Under light load a batch is one event and adds no waiting; under heavy load it grows, and the
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
    model::{board::Board, score::Event},
    ranking::acknowledged::Acknowledged,
    rules::Source,
    scoring::{
        accepted::AcceptedScores,
        wait_estimate::WaitEstimate,
        write::{self, Answer, Submitted},
    },
    store::Store,
    telemetry,
};

/// A batch takes no more jobs once it has this many events.
const BATCH_EVENTS: usize = 500;

/// Events that may wait for one lane; beyond it callers are told to come back.
const QUEUE_EVENTS: usize = 10_000;

/// So many events of a board may wait however long it takes: a burst of as many callers with a
/// score each.
const ADMITTED_EVENTS: usize = 1_024;

/// While no more requests than these are being answered, their events may wait, too: a few callers
/// with long lists, each of whom waits for an answer before sending the next.
const ADMITTED_REQUESTS: usize = 16;

/// What became of events, each by itself.
type Answers = Vec<Answer>;

/// The writers of this instance.
#[derive(Debug)]
pub(crate) struct Writers {
    /// How long events may have to wait.
    wait: Duration,
    /// Requests with scores that are being answered.
    requests: AtomicUsize,
    lanes: Mutex<HashMap<(i32, i16), Lane>>,
    shared: Shared,
    runtime: Handle,
    tasks: TaskTracker,
}

/// What all writers use.
#[derive(Debug, Clone)]
struct Shared {
    store: Store,
    acknowledged: Arc<Acknowledged>,
    accepted: Arc<AcceptedScores>,
}

/// The way to one writer.
#[derive(Debug)]
struct Lane {
    queue: mpsc::UnboundedSender<Job>,
    room: Arc<Semaphore>,
    estimate: Arc<WaitEstimate>,
}

/// A request with scores that is being answered, as long as the value lives.
#[derive(Debug)]
pub(crate) struct Admission<'a>(&'a AtomicUsize);

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Events of one caller.
#[derive(Debug)]
struct Job {
    events: Vec<Event>,
    reply: oneshot::Sender<Result<Answers>>,
    _room: OwnedSemaphorePermit,
}

impl Writers {
    /// No writer runs until the first event of its lane; all run on the current runtime. Events are
    /// welcome as long as they need not wait for longer than `wait`.
    pub(crate) fn new(
        store: Store,
        acknowledged: Arc<Acknowledged>,
        accepted: Arc<AcceptedScores>,
        wait: Duration,
    ) -> Self {
        Self {
            wait,
            requests: AtomicUsize::new(0),
            lanes: Mutex::default(),
            shared: Shared { store, acknowledged, accepted },
            runtime: Handle::current(),
            tasks: TaskTracker::new(),
        }
    }

    /// Lets a request with scores in, before anybody knows which. [`Error::Unavailable`] when they
    /// would wait for too long, as far as is known. `None` is a board that nobody has asked for
    /// lately.
    pub(crate) fn admit(&self, board: Option<&Board>) -> Result<Admission<'_>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let admit = Admission(&self.requests);
        board.map_or(Ok(()), |board| self.check(board))?;
        Ok(admit)
    }

    /// [`Error::Unavailable`] when scores that come now would wait for too long. A request that was
    /// let in asks once more when its events are to be queued: on a busy machine hundreds are let
    /// in at once, while none of their events is waiting yet.
    pub(crate) fn check(&self, board: &Board) -> Result<()> {
        let others = self.requests.load(Ordering::Relaxed).saturating_sub(1);
        if others >= ADMITTED_REQUESTS && self.is_full(board) { Err(full()) } else { Ok(()) }
    }

    /// As long as its slowest lane: a list has events for all of them. One that stands still counts
    /// only if all do, so that it does not keep the others idle.
    fn is_full(&self, board: &Board) -> bool {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut events, mut standing, mut longest) = (0, 0, Duration::ZERO);
        for lane in (0..board.lanes).filter_map(|lane| lanes.get(&(board.id, lane))) {
            let waiting = lane.waiting();
            events += waiting;
            if lane.estimate.stands_still(self.wait) {
                standing += 1;
            } else {
                longest = longest.max(lane.estimate.wait(waiting));
            }
        }
        events >= ADMITTED_EVENTS && (standing >= board.lanes || longest > self.wait)
    }

    /// Hands events to their lane; the answer comes after the commit. [`Error::Unavailable`] at
    /// once when the queue is full, or the lane stands still and enough are waiting already.
    pub(crate) fn submit(
        &self,
        board: &Board,
        lane: i16,
        events: Vec<Event>,
    ) -> Result<impl Future<Output = Result<Answers>> + use<>> {
        let (reply, answer) = oneshot::channel();
        {
            let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            if self.tasks.is_closed() {
                return Err(Error::unavailable("the service is stopping"));
            }
            let lane = match lanes.entry((board.id, lane)) {
                // One whose writer has ended in the middle of its work gets another.
                Entry::Occupied(mut known) if known.get().queue.is_closed() => {
                    known.insert(self.start(board.id, lane));
                    known.into_mut()
                }
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(self.start(board.id, lane)),
            };
            if lane.waiting() >= ADMITTED_EVENTS && lane.estimate.stands_still(self.wait) {
                return Err(full());
            }
            let permits = u32::try_from(events.len()).map_err(|_| full())?;
            let room = Arc::clone(&lane.room).try_acquire_many_owned(permits).map_err(|_| full())?;
            lane.queue.send(Job { events, reply, _room: room }).map_err(|_| full())?;
        }
        Ok(async move {
            // The writer answers every job; only its own death drops one unanswered.
            answer.await.unwrap_or_else(|_| Err(Error::Internal("a writer ended in the middle of its work".to_owned())))
        })
    }

    fn start(&self, board_id: i32, lane: i16) -> Lane {
        let (queue, jobs) = mpsc::unbounded_channel();
        let estimate = Arc::new(WaitEstimate::default());
        let writing = write_lane(self.shared.clone(), board_id, lane, jobs, Arc::clone(&estimate));
        self.tasks.spawn_on(writing, &self.runtime);
        Lane { queue, room: Arc::new(Semaphore::new(QUEUE_EVENTS)), estimate }
    }

    /// Events that wait for their writer, or are with it.
    pub(crate) fn waiting(&self) -> usize {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.values().map(Lane::waiting).sum()
    }

    /// Takes no more events, and waits until those accepted are written.
    pub(crate) async fn shut_down(&self) {
        self.tasks.close();
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.tasks.wait().await;
    }
}

impl Lane {
    /// Events that wait for the writer, or are with it.
    fn waiting(&self) -> usize {
        QUEUE_EVENTS - self.room.available_permits()
    }
}

/// What a caller is told whose scores would be too many.
fn full() -> Error {
    Error::unavailable("too many scores are waiting already")
}

/// A writer whose last batch had this many callers waits a part of the time that the batch took:
/// those who were just answered often have their next score ready, and a batch of twice the size
/// costs far less than two.
const CROWD: usize = 8;

const PAUSE_PART: u32 = 8;

const PAUSE_MAX: Duration = Duration::from_millis(20);

/// One lane's writer: until the queue is closed and empty.
async fn write_lane(
    shared: Shared,
    board_id: i32,
    number: i16,
    mut queue: mpsc::UnboundedReceiver<Job>,
    estimate: Arc<WaitEstimate>,
) {
    let mut lane = write::Lane::new(board_id, number);
    let mut next = Instant::now();
    while let Some(first) = queue.recv().await {
        if queue.len() < BATCH_EVENTS {
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
        estimate.begin(events);
        write_jobs(&shared, &mut lane, jobs).await;
        estimate.end();
        next = Instant::now();
        if callers >= CROWD {
            next += (begin.elapsed() / PAUSE_PART).min(PAUSE_MAX);
        }
    }
}

/// Writes jobs as one batch. Should the database refuse the whole of it, each job is tried by
/// itself, so that whatever is wrong with one harms nobody else.
async fn write_jobs(shared: &Shared, lane: &mut write::Lane, jobs: Vec<Job>) {
    let events: Vec<&Event> = jobs.iter().flat_map(|job| &job.events).collect();
    match write_batch(shared, lane, &events).await {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            for job in jobs {
                // A caller who went away does not want the answer.
                let _ = job.reply.send(Ok(answers.by_ref().take(job.events.len()).collect()));
            }
        }
        Err(Error::Internal(error)) if jobs.len() > 1 => {
            tracing::error!(
                lane.board_id,
                lane = lane.number,
                error,
                "a batch was refused; its jobs are written one by one"
            );
            for job in jobs {
                let events: Vec<&Event> = job.events.iter().collect();
                let alone = write_batch(shared, lane, &events).await;
                let _ = job.reply.send(alone);
            }
        }
        Err(error) => {
            for job in jobs {
                let _ = job.reply.send(Err(error.clone()));
            }
        }
    }
}

/// Writes events as one batch, and records what it changed for readers and the layout.
async fn write_batch(shared: &Shared, lane: &mut write::Lane, events: &[&Event]) -> Result<Answers> {
    let begin = Instant::now();
    let submitted: Vec<Submitted> = events.iter().map(|event| (*event).into()).collect();
    let written = lane.write(&shared.store, Source::Live, &submitted).await?;
    telemetry::count_batch(events.len(), begin.elapsed());
    let accepted = written.answers.iter().filter(|answer| matches!(answer, Answer::Accepted { .. })).count();
    shared.accepted.add(lane.board_id, accepted as u64);
    shared.acknowledged.raise(lane.board_id, usize::try_from(lane.number).unwrap_or_default(), written.batch);
    Ok(written.answers)
}

impl<'a> From<&'a Event> for Submitted<'a> {
    fn from(event: &'a Event) -> Self {
        Self {
            user_id: event.user_id.as_str(),
            points: event.points,
            tiebreak: event.tiebreak,
            reason: event.reason.as_deref(),
            id: event.id.as_deref(),
            at: None,
        }
    }
}
