//! The writers: one task per board and lane collects what arrives at the same moment and writes it in one transaction.
//!
//! Under light load a batch is one event and adds no waiting; under heavy load it grows, and the cost per score falls.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
};
use tokio_util::task::TaskTracker;

use crate::{
    Error, Result,
    acknowledged::Acknowledged,
    board::Board,
    layout::Keeper,
    score::Event,
    store::{
        Store,
        score::{Batch, Recorded},
    },
};

/// A batch takes no more jobs once it has this many events.
const BATCH_EVENTS: usize = 500;
/// Events that may wait for one lane; beyond it callers are told to come back.
const QUEUE_EVENTS: usize = 10_000;

/// The writers of this instance.
#[derive(Debug)]
pub(crate) struct Writers {
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
    keeper: Arc<Keeper>,
}

/// The way to one writer.
#[derive(Debug)]
struct Lane {
    queue: mpsc::UnboundedSender<Job>,
    room: Arc<Semaphore>,
}

/// Events of one caller.
#[derive(Debug)]
struct Job {
    events: Vec<Event>,
    reply: oneshot::Sender<Result<Vec<Recorded>>>,
    _room: OwnedSemaphorePermit,
}

impl Writers {
    /// No writer runs until the first event of its lane; all run on the current runtime.
    pub(crate) fn new(store: Store, acknowledged: Arc<Acknowledged>, keeper: Arc<Keeper>) -> Self {
        Self {
            lanes: Mutex::default(),
            shared: Shared { store, acknowledged, keeper },
            runtime: Handle::current(),
            tasks: TaskTracker::new(),
        }
    }

    /// Hands events to their lane; the answer comes after the commit. [`Error::Unavailable`] at once when the queue is full.
    pub(crate) fn submit(
        &self,
        board: &Board,
        lane: i16,
        events: Vec<Event>,
    ) -> Result<impl Future<Output = Result<Vec<Recorded>>> + use<>> {
        let (reply, answer) = oneshot::channel();
        let full = || Error::unavailable("too many scores are waiting already");
        {
            let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            if self.tasks.is_closed() {
                return Err(Error::unavailable("the service is stopping"));
            }
            let lane = lanes.entry((board.id, lane)).or_insert_with(|| self.start(board.id, lane));
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
        self.tasks.spawn_on(write_lane(self.shared.clone(), board_id, lane, jobs), &self.runtime);
        Lane { queue, room: Arc::new(Semaphore::new(QUEUE_EVENTS)) }
    }

    /// Takes no more events, and waits until those accepted are written.
    pub(crate) async fn shut_down(&self) {
        self.tasks.close();
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.tasks.wait().await;
    }
}

/// One lane's writer: until the queue is closed and empty.
async fn write_lane(shared: Shared, board_id: i32, lane: i16, mut queue: mpsc::UnboundedReceiver<Job>) {
    while let Some(first) = queue.recv().await {
        let mut jobs = vec![first];
        let mut events = jobs[0].events.len();
        while events < BATCH_EVENTS {
            let Ok(job) = queue.try_recv() else { break };
            events += job.events.len();
            jobs.push(job);
        }
        write_jobs(&shared, board_id, lane, jobs).await;
    }
}

/// Writes jobs as one batch. Should the database refuse the whole of it, each job is tried by itself, so that whatever is
/// wrong with one harms nobody else.
async fn write_jobs(shared: &Shared, board_id: i32, lane: i16, jobs: Vec<Job>) {
    let together = write_batch(shared, board_id, lane, jobs.iter().flat_map(|job| &job.events)).await;
    match together {
        Ok(recorded) => {
            let mut recorded = recorded.into_iter();
            for job in jobs {
                // A caller who went away does not want the answer.
                let _ = job.reply.send(Ok(recorded.by_ref().take(job.events.len()).collect()));
            }
        }
        Err(Error::Internal(error)) if jobs.len() > 1 => {
            tracing::error!(board_id, lane, error, "a batch was refused; its jobs are written one by one");
            for job in jobs {
                let alone = write_batch(shared, board_id, lane, job.events.iter()).await;
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

/// Writes events as one transaction; those of players whom nobody knows yet in a second one, when the players are made.
async fn write_batch<'a>(
    shared: &Shared,
    board_id: i32,
    lane: i16,
    events: impl Iterator<Item = &'a Event> + Clone,
) -> Result<Vec<Recorded>> {
    let mut recorded = record(shared, board_id, lane, &events.clone().collect()).await?;
    let is_of_newcomer = |one: &Recorded| one.outcome == "unknown_user";
    let newcomers = events.zip(&recorded).filter(|(_, one)| is_of_newcomer(one)).map(|(event, _)| event);
    let newcomers: Batch = newcomers.collect();
    let count = newcomers.user_ids.len();
    if count > 0 {
        match record_newcomers(shared, board_id, lane, &newcomers).await {
            Ok(theirs) => {
                for (one, written) in recorded.iter_mut().filter(|one| is_of_newcomer(one)).zip(theirs) {
                    *one = written;
                }
            }
            Err(error) if count == recorded.len() => return Err(error),
            // The others' are committed. These are told to send them again.
            Err(error) => tracing::error!(board_id, lane, ?error, "events of new players cannot be written"),
        }
    }
    Ok(recorded)
}

/// Makes players and writes their events.
async fn record_newcomers(shared: &Shared, board_id: i32, lane: i16, batch: &Batch) -> Result<Vec<Recorded>> {
    shared.store.ensure_users(&batch.user_ids, &vec![None; batch.user_ids.len()]).await?;
    record(shared, board_id, lane, batch).await
}

/// Writes a batch, and tells whom it concerns.
async fn record(shared: &Shared, board_id: i32, lane: i16, batch: &Batch) -> Result<Vec<Recorded>> {
    let recorded = shared.store.record_scores(board_id, lane, batch).await?;
    if let Some(last) = recorded.last() {
        let accepted = recorded.iter().filter(|one| one.result.is_some()).count();
        shared.keeper.note_accepted(board_id, accepted as u64);
        if let Some(crowded) = &last.crowded {
            shared.keeper.note_crowded(crowded);
        }
        shared.acknowledged.raise(board_id, usize::try_from(lane).unwrap_or_default(), last.batch);
    }
    Ok(recorded)
}
