//! Centile's batching for the ledger of the sorted sets: a task per lane commits concurrent events
//! together.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use tokio::sync::{mpsc, oneshot};

use super::{Event, PeerResult, sorted_sets::Store};

/// Maximum events of a batch before its last job, as in Centile's writer.
const BATCH_EVENTS: usize = 500;
/// Maximum queued jobs per lane.
const QUEUE: usize = 10_000;

/// A job: the events of one caller.
struct Job {
    events: Vec<Event>,
    reply: oneshot::Sender<Result<Vec<i64>, String>>,
}

/// Handle to the writers.
pub struct Lanes(Vec<mpsc::Sender<Job>>);

impl Lanes {
    pub fn start(store: &Arc<Store>, lanes: usize) -> Self {
        let start = |_| {
            let (queue, jobs) = mpsc::channel(QUEUE);
            tokio::spawn(write_lane(Arc::clone(store), jobs));
            queue
        };
        Self((0..lanes).map(start).collect())
    }

    /// Queues each event in its player's lane. Returns the scores after the commits, in the order
    /// of the events.
    pub async fn write(&self, events: Vec<Event>) -> PeerResult<Vec<i64>> {
        let mut parts: Vec<(Vec<usize>, Vec<Event>)> = self.0.iter().map(|_| Default::default()).collect();
        let count = events.len();
        for (place, event) in events.into_iter().enumerate() {
            let lane = &mut parts[self.lane(&event.user_id)];
            lane.0.push(place);
            lane.1.push(event);
        }
        let mut answers = Vec::new();
        for (queue, (places, events)) in self.0.iter().zip(parts) {
            if !events.is_empty() {
                let (reply, answer) = oneshot::channel();
                queue.try_send(Job { events, reply }).map_err(|_| "the queue is full")?;
                answers.push((places, answer));
            }
        }
        let mut scores = vec![0; count];
        for (places, answer) in answers {
            for (place, score) in places.into_iter().zip(answer.await??) {
                scores[place] = score;
            }
        }
        Ok(scores)
    }

    fn lane(&self, user: &str) -> usize {
        let mut hasher = DefaultHasher::new();
        user.hash(&mut hasher);
        usize::try_from(hasher.finish() % self.0.len() as u64).unwrap_or_default()
    }
}

/// Runs a lane's writer until all senders are dropped.
async fn write_lane(store: Arc<Store>, mut queue: mpsc::Receiver<Job>) {
    while let Some(first) = queue.recv().await {
        let (mut events, mut replies) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(Job { events: more, reply }) = next {
            replies.push((more.len(), reply));
            events.extend(more);
            next = if events.len() < BATCH_EVENTS { queue.try_recv().ok() } else { None };
        }
        let written = store.write(&events).await.map_err(|error| error.to_string());
        let mut from = 0;
        for (count, reply) in replies {
            let part = written.as_ref().map(|scores| scores[from..from + count].to_vec()).map_err(Clone::clone);
            from += count;
            // Ignore callers that have disconnected.
            let _ = reply.send(part);
        }
    }
}
