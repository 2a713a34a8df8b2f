//! Look-ups of players: what callers ask for at the same moment is read by one statement.
//!
//! Under light load each caller has a statement of its own and nobody waits; under heavy load a statement grows, and the cost per
//! player falls. A statement begins after everybody it answers has asked, so each answer holds all that was acknowledged before.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    vec,
};

use tokio::sync::{
    Semaphore,
    oneshot::{self, error::RecvError},
};

use crate::{
    Result,
    counts::KnownCounts,
    service::Service,
    store::rank::{BucketStanding, Question},
};

/// Statements of one question that run at the same time; whoever asks meanwhile shares the next.
const AT_ONCE: usize = 2;
/// Players that one statement looks up.
const MOST_PLAYERS: usize = 100;

/// A player as found, and the bucket counts of the same state.
pub(crate) type Found = (BucketStanding, Arc<KnownCounts>);
/// `None` when the ranking is no longer the one that was meant.
type Answer = Result<Option<Found>>;
/// Whom to look up, and where to send what was found.
type Job = (String, oneshot::Sender<Answer>);

/// Who waits for an answer to one question.
#[derive(Debug)]
struct Desk {
    question: Question,
    waiting: Mutex<Vec<Job>>,
    free: Semaphore,
}

/// Desks of the questions that are asked.
#[derive(Debug)]
pub(crate) struct Lookups(moka::sync::Cache<Question, Arc<Desk>>);

impl Default for Lookups {
    fn default() -> Self {
        Self(moka::sync::Cache::new(1_000))
    }
}

impl Lookups {
    /// A player's standing with up to `around` neighbours above and below; `None` when the ranking is no longer the one that was meant.
    pub(crate) async fn find(&self, service: &Service, question: Question, user_id: &str) -> Answer {
        let desk = self.0.get_with(question, || {
            Arc::new(Desk { question, waiting: Mutex::default(), free: Semaphore::new(AT_ONCE) })
        });
        // Unanswered where the caller who read for others went away in the middle of it: once more.
        loop {
            if let Ok(answer) = desk.answer(service, user_id).await {
                return answer;
            }
        }
    }
}

impl Desk {
    /// Waits until somebody has read for this caller, or does it for all who wait.
    async fn answer(&self, service: &Service, user_id: &str) -> std::result::Result<Answer, RecvError> {
        let (reply, mut answer) = oneshot::channel();
        self.waiting().push((user_id.to_owned(), reply));
        loop {
            let free = tokio::select! {
                biased;
                answer = &mut answer => return answer,
                free = self.free.acquire() => free,
            };
            let jobs = self.take();
            if jobs.is_empty() {
                // Another reads for this caller already.
                drop(free);
                return answer.await;
            }
            let (user_ids, replies): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
            let mut found = self.question.read(service, &user_ids).await;
            for reply in replies {
                let answer = match &mut found {
                    Ok(Some((standings, counts))) => {
                        Ok(standings.next().map(|standing| (standing, Arc::clone(counts))))
                    }
                    Ok(None) => Ok(None),
                    Err(error) => Err(error.clone()),
                };
                // A caller who went away does not want the answer.
                let _ = reply.send(answer);
            }
        }
    }

    /// Those who have waited longest, and still do.
    fn take(&self) -> Vec<Job> {
        let mut waiting = self.waiting();
        waiting.retain(|(_, reply)| !reply.is_closed());
        let taken = waiting.len().min(MOST_PLAYERS);
        waiting.drain(..taken).collect()
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Job>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Question {
    /// Looks players up; an answer for each, in their order.
    async fn read(
        &self,
        service: &Service,
        user_ids: &[String],
    ) -> Result<Option<(vec::IntoIter<BucketStanding>, Arc<KnownCounts>)>> {
        let known = service.counts.known(service, self.ranking).await?;
        let version = known.as_ref().map(|known| &known.version);
        let Some(found) = service.store.standings(self, user_ids, version).await? else { return Ok(None) };
        let counts = match (found.counts, known) {
            (Some(counts), _) => service.counts.learn(service, self.ranking, found.version, counts).await,
            (None, Some(known)) if known.version == found.version => known,
            // Known of an earlier life of the database: once more, without.
            _ => {
                service.counts.forget(self.ranking);
                return Ok(None);
            }
        };
        Ok(Some((found.standings.into_iter(), counts)))
    }
}
