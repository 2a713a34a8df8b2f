//! Batches of requests: all requests that wait when a batch starts share its answer.
//!
//! A request joins only a batch that starts after the request arrived. So the answer includes
//! everything acknowledged before the request. An uncontended request starts at once.

mod answer;

pub(super) use answer::PendingAnswer;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::ranking::batcher::answer::Callers;

/// Calls of `yield_now` after a batch of several requests. They let callers with a next request
/// join the next batch.
const YIELDS: u32 = 3;

/// Answers batches of requests, one after the other.
///
/// The batcher creates one value per task and drops it when no request waits.
pub(super) trait Work<T, R>: Send + 'static {
    /// Returns the answer to all these requests.
    fn answer(&mut self, requests: Vec<T>) -> impl Future<Output = R> + Send;
}

/// Collects requests while earlier batches run.
#[derive(Debug)]
pub(super) struct Batcher<T, R> {
    at_once: usize,
    runtime: Handle,
    tasks: TaskTracker,
    state: Mutex<State<T, R>>,
}

#[derive(Debug)]
struct State<T, R> {
    waiting: Batch<T, R>,
    running: usize,
}

#[derive(Debug)]
struct Batch<T, R> {
    /// Requests. Each reference expires when the caller drops its [`PendingAnswer`].
    requests: Vec<(T, Weak<()>)>,
    callers: Callers<R>,
}

impl<T, R> Default for Batch<T, R> {
    fn default() -> Self {
        Self { requests: Vec::new(), callers: Callers::default() }
    }
}

impl<T: Send + 'static, R: Clone + Send + 'static> Batcher<T, R> {
    /// Creates a batcher that runs up to `at_once` concurrent batches, in tasks on `runtime`.
    pub(super) fn new(at_once: usize, runtime: Handle, tasks: TaskTracker) -> Arc<Self> {
        let state = Mutex::new(State { waiting: Batch::default(), running: 0 });
        Arc::new(Self { at_once, runtime, tasks, state })
    }

    /// Adds a request to the next batch. Starts a task with `work` unless `at_once` tasks are
    /// running.
    pub(super) fn ask<W: Work<T, R>>(self: &Arc<Self>, request: T, work: impl FnOnce() -> W) -> PendingAnswer<R> {
        let (answer, starts) = {
            let mut state = self.state();
            let answer = state.waiting.callers.add();
            state.waiting.requests.push((request, answer.caller()));
            let starts = state.running < self.at_once;
            state.running += usize::from(starts);
            (answer, starts)
        };
        if starts {
            let mut running = Running { batcher: Arc::clone(self), is_counted: true };
            let mut work = work();
            self.tasks.spawn_on(
                async move {
                    while let Some((requests, callers)) = running.next() {
                        let is_shared = requests.len() > 1;
                        let answer = work.answer(requests).await;
                        callers.answer(&answer);
                        if is_shared {
                            // Callers that make another request can join the next batch.
                            (0..YIELDS).for_each(|_| thread::yield_now());
                        }
                    }
                },
                &self.runtime,
            );
        }
        answer
    }

    fn state(&self) -> MutexGuard<'_, State<T, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that answers batches, counted until it ends.
struct Running<T: Send + 'static, R: Clone + Send + 'static> {
    batcher: Arc<Batcher<T, R>>,
    is_counted: bool,
}

impl<T: Send + 'static, R: Clone + Send + 'static> Running<T, R> {
    /// Takes all waiting requests. `None` ends the task; a later request starts another.
    fn next(&mut self) -> Option<(Vec<T>, Callers<R>)> {
        let mut state = self.batcher.state();
        let Batch { requests, callers } = std::mem::take(&mut state.waiting);
        let waiting = requests.into_iter().filter(|(_, caller)| caller.strong_count() > 0);
        let requests: Vec<T> = waiting.map(|(request, _)| request).collect();
        if requests.is_empty() {
            state.running -= 1;
            self.is_counted = false;
            return None;
        }
        Some((requests, callers))
    }
}

impl<T: Send + 'static, R: Clone + Send + 'static> Drop for Running<T, R> {
    fn drop(&mut self) {
        // After a panic or the end of the runtime. Fail the waiting requests if no other task is
        // left.
        if self.is_counted {
            let mut state = self.batcher.state();
            state.running -= 1;
            if state.running == 0 {
                state.waiting = Batch::default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    /// Numbers its batches; each ends when it gets a permit.
    #[derive(Clone)]
    struct Source {
        begun: Arc<AtomicU32>,
        ends: Arc<Semaphore>,
    }

    impl Source {
        fn new() -> Self {
            Self { begun: Arc::default(), ends: Arc::new(Semaphore::new(0)) }
        }
    }

    impl Work<u32, (u32, usize)> for Source {
        async fn answer(&mut self, requests: Vec<u32>) -> (u32, usize) {
            let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
            self.ends.acquire().await.unwrap_or_else(|_| unreachable!("never closed")).forget();
            assert!(!requests.contains(&13), "a request that panics");
            (number, requests.len())
        }
    }

    /// Lets tasks run until they all wait.
    async fn settle() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_request_joins_only_a_batch_that_starts_after_it() {
        let (batcher, source) = (Batcher::new(2, Handle::current(), TaskTracker::new()), Source::new());
        let ask = |request| batcher.ask(request, || source.clone());
        let first = ask(1);
        settle().await;
        let second = ask(2);
        settle().await;
        assert_eq!(source.begun.load(Ordering::SeqCst), 2, "two batches run at once");
        let waiting = [ask(3), ask(4), ask(5)];
        settle().await;
        assert_eq!(source.begun.load(Ordering::SeqCst), 2, "no third one");
        source.ends.add_permits(3);
        assert_eq!((first.await, second.await), (Some((1, 1)), Some((2, 1))));
        for answer in waiting {
            assert_eq!(answer.await, Some((3, 3)), "the waiting requests share the next batch");
        }
        settle().await;
        source.ends.add_permits(1);
        assert_eq!(ask(6).await, Some((4, 1)), "an ended task is replaced");
    }

    #[tokio::test]
    async fn a_dropped_request_does_not_affect_the_others() {
        let (batcher, source) = (Batcher::new(1, Handle::current(), TaskTracker::new()), Source::new());
        let ask = |request| batcher.ask(request, || source.clone());
        let first = ask(1);
        settle().await;
        drop(first);
        let (gone, other) = (ask(2), ask(3));
        drop(gone);
        source.ends.add_permits(2);
        assert_eq!(other.await, Some((2, 1)), "no batch runs for a dropped request");
    }

    #[tokio::test]
    async fn a_panic_fails_its_requests_and_no_others() {
        let (batcher, source) = (Batcher::new(1, Handle::current(), TaskTracker::new()), Source::new());
        let ask = |request| batcher.ask(request, || source.clone());
        let bad = ask(13);
        settle().await;
        let waiting = ask(1);
        source.ends.add_permits(2);
        assert!(bad.await.is_none());
        assert!(waiting.await.is_none(), "its task has ended");
        assert_eq!(ask(2).await, Some((2, 1)));
    }
}
