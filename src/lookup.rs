//! Look-ups of players: what callers ask for at the same moment is read by one statement.
//!
//! Two statements run at a time. Under light load each caller has one of its own and nobody waits; under heavy load a statement grows, and the cost per
//! player falls. A statement begins after everybody it answers has asked, so each answer holds all that was acknowledged before.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    vec,
};

use tokio::{
    sync::{
        Semaphore,
        oneshot::{self, error::RecvError},
    },
    time::Instant,
};

use crate::{
    Error, Result,
    counts::KnownCounts,
    service::Service,
    store::rank::{BucketStanding, Question},
    telemetry::{self, Origin},
};

/// Statements of one question that run at the same time; whoever asks meanwhile shares the next.
const AT_ONCE: usize = 2;
/// Players that one statement looks up when none of their neighbours are asked for; with neighbours fewer, so that it takes no longer.
const MOST_PLAYERS: usize = 100;

/// A player as found, and the bucket counts of the same state.
pub(crate) type Found = (BucketStanding, Arc<KnownCounts>);
/// `None` when the ranking is no longer the one that was meant.
type Answer = Result<Option<Found>>;

/// A caller who waits.
#[derive(Debug)]
struct Job {
    number: u64,
    user_id: String,
    reply: oneshot::Sender<Answer>,
}

/// Who waits for an answer to one question, in the order in which they came.
#[derive(Debug)]
struct Desk {
    question: Question,
    waiting: Mutex<Vec<Job>>,
    last_number: AtomicU64,
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
    /// A player's standing with up to `around` neighbours above and below; `None` when the ranking is no longer the one that was
    /// meant. [`Error::Unavailable`] when too many wait before this caller.
    pub(crate) async fn find(&self, service: &Service, question: Question, user_id: &str) -> Answer {
        let desk = self.0.get_with(question, || {
            Arc::new(Desk {
                question,
                waiting: Mutex::default(),
                last_number: AtomicU64::new(0),
                free: Semaphore::new(AT_ONCE),
            })
        });
        let deadline = Instant::now() + service.store.patience();
        // Unanswered where the caller who read for others went away in the middle of it: once more.
        loop {
            if let Ok(answer) = desk.answer(service, user_id, deadline).await {
                return answer;
            }
        }
    }
}

impl Desk {
    /// Waits until somebody has read for this caller, or does it for all who wait.
    async fn answer(
        &self,
        service: &Service,
        user_id: &str,
        deadline: Instant,
    ) -> std::result::Result<Answer, RecvError> {
        let (reply, mut answer) = oneshot::channel();
        let number = self.last_number.fetch_add(1, Ordering::Relaxed);
        self.waiting().push(Job { number, user_id: user_id.to_owned(), reply });
        loop {
            let free = tokio::select! {
                biased;
                answer = &mut answer => return answer,
                free = self.free.acquire() => free,
                () = tokio::time::sleep_until(deadline) => {
                    if self.leave(number) {
                        return Ok(Err(Error::unavailable("too many look-ups are waiting already")));
                    }
                    // A statement for this caller has begun.
                    return answer.await;
                }
            };
            // Another reads for this caller already: whoever still waits has a place of their own.
            if !self.waiting().iter().any(|job| job.number == number) {
                drop(free);
                return answer.await;
            }
            self.serve(service, self.take()).await;
        }
    }

    /// Looks up those who wait. Should the database refuse to do so, each is tried alone: what is damaged for one harms nobody else.
    async fn serve(&self, service: &Service, jobs: Vec<Job>) {
        let user_ids: Vec<String> = jobs.iter().map(|job| job.user_id.clone()).collect();
        let mut found = self.question.read(service, &user_ids).await;
        for job in jobs {
            let answer = match &mut found {
                Ok(Some((standings, counts))) => Ok(standings.next().map(|standing| (standing, Arc::clone(counts)))),
                Ok(None) => Ok(None),
                Err(Error::Internal(_)) if user_ids.len() > 1 => {
                    let alone = self.question.read(service, &[job.user_id]).await;
                    alone.map(|found| found.and_then(|(mut standings, counts)| Some((standings.next()?, counts))))
                }
                Err(error) => Err(error.clone()),
            };
            // A caller who went away does not want the answer.
            let _ = job.reply.send(answer);
        }
    }

    /// Those who have waited longest, and still do.
    fn take(&self) -> Vec<Job> {
        let mut waiting = self.waiting();
        waiting.retain(|job| !job.reply.is_closed());
        let rows = 1 + usize::try_from(self.question.around).unwrap_or_default() / 4;
        let taken = waiting.len().min((MOST_PLAYERS / rows).max(1));
        waiting.drain(..taken).collect()
    }

    /// Waits no longer; false when somebody reads for this caller already.
    fn leave(&self, number: u64) -> bool {
        let mut waiting = self.waiting();
        let before = waiting.len();
        waiting.retain(|job| job.number != number);
        waiting.len() < before
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
        let found = service.store.standings(self, user_ids, version).await?;
        let Some(found) = found else { return Ok(None) };
        let counts = match (found.counts, known) {
            (Some(counts), _) => {
                telemetry::count_read("counts", Origin::Database);
                service.counts.learn(service, self.ranking, found.version, counts).await
            }
            (None, Some(known)) if known.version == found.version => {
                telemetry::count_read("counts", Origin::Here);
                known
            }
            // Known of an earlier life of the database: once more, without.
            _ => {
                service.counts.forget(self.ranking);
                return Ok(None);
            }
        };
        Ok(Some((found.standings.into_iter(), counts)))
    }
}
