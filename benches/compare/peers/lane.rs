//! Centile's batching before the ledger of the sorted sets: what arrives at the same moment is committed together, a task per lane.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use tokio::sync::{mpsc, oneshot};

use super::{Answer, Event, sorted_sets::Store};

/// A batch takes no more jobs once it has this many events, as in Centile's writer.
const BATCH_EVENTS: usize = 500;
/// Jobs that may wait for one lane.
const QUEUE: usize = 10_000;

/// Events of one caller.
struct Job {
    events: Vec<Event>,
    reply: oneshot::Sender<Result<Vec<i64>, String>>,
}

/// The way to the writers.
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

    /// Hands each event to its player's lane; the scores come after the commits, in the order of the events.
    pub async fn write(&self, events: Vec<Event>) -> Answer<Vec<i64>> {
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
                queue.try_send(Job { events, reply }).map_err(|_| "too many scores are waiting already")?;
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

/// One lane's writer, until nobody can send any more.
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
            // A caller who went away does not want the answer.
            let _ = reply.send(part);
        }
    }
}
