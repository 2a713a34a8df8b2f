//! Answers that several callers wait for.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    thread::{self, ThreadId},
};

/// Callers on one thread that wait for the same answer.
///
/// Waking a task on another thread takes a system call; on the same thread it is almost free. So
/// the answer wakes one caller of the group, and that caller wakes the others.
#[derive(Debug)]
struct CallerGroup<R> {
    thread: ThreadId,
    state: Mutex<State<R>>,
}

#[derive(Debug)]
struct State<R> {
    /// `Ready(None)` if no answer will come.
    answer: Poll<Option<R>>,
    /// One waker per caller, indexed by [`PendingAnswer::index`]; `None` before the first poll or
    /// after a drop.
    wakers: Vec<Option<Waker>>,
}

/// The callers that wait for one answer, grouped by thread.
///
/// If it is dropped without an answer, every caller gets `None`.
#[derive(Debug)]
pub(super) struct Callers<R>(Vec<Arc<CallerGroup<R>>>);

/// The answer to one caller; `None` if the answering task panicked.
#[derive(Debug)]
pub(in crate::ranking) struct PendingAnswer<R> {
    group: Arc<CallerGroup<R>>,
    /// Index of the caller's waker in [`State::wakers`].
    index: usize,
    caller: Arc<()>,
}

impl<R> Default for Callers<R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<R> Callers<R> {
    /// Adds a caller of this thread.
    pub(super) fn add(&mut self) -> PendingAnswer<R> {
        let thread = thread::current().id();
        let group = self.0.iter().find(|group| group.thread == thread).cloned().unwrap_or_else(|| {
            let state = Mutex::new(State { answer: Poll::Pending, wakers: Vec::new() });
            let group = Arc::new(CallerGroup { thread, state });
            self.0.push(Arc::clone(&group));
            group
        });
        let index = {
            let mut state = group.state();
            state.wakers.push(None);
            state.wakers.len() - 1
        };
        PendingAnswer { group, index, caller: Arc::default() }
    }

    /// Gives all callers this answer.
    pub(super) fn answer(mut self, answer: &R)
    where
        R: Clone,
    {
        for group in self.0.drain(..) {
            group.answer(Some(answer.clone()));
        }
    }
}

impl<R> Drop for Callers<R> {
    fn drop(&mut self) {
        for group in self.0.drain(..) {
            group.answer(None);
        }
    }
}

impl<R> CallerGroup<R> {
    fn answer(&self, answer: Option<R>) {
        let waker = {
            let mut state = self.state();
            state.answer = Poll::Ready(answer);
            state.wakers.iter_mut().find_map(Option::take)
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> PendingAnswer<R> {
    /// Returns a reference that expires when this value is dropped.
    pub(super) fn caller(&self) -> Weak<()> {
        Arc::downgrade(&self.caller)
    }

    /// Wakes the other callers of this thread. The answer may have woken only this one.
    fn wake_others(&self, mut state: MutexGuard<'_, State<R>>) {
        let others = std::mem::take(&mut state.wakers);
        drop(state);
        others
            .into_iter()
            .enumerate()
            .filter(|(index, _)| *index != self.index)
            .filter_map(|(_, waker)| waker)
            .for_each(Waker::wake);
    }
}

impl<R: Clone> Future for PendingAnswer<R> {
    type Output = Option<R>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.group.state();
        if state.answer.is_ready() {
            let answer = state.answer.clone();
            self.wake_others(state);
            return answer;
        }
        let waker = &mut state.wakers[self.index];
        if waker.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl<R> Drop for PendingAnswer<R> {
    /// Wakes the other callers of this thread if the answer has come, but this caller never saw it.
    fn drop(&mut self) {
        let mut state = self.group.state();
        if state.answer.is_ready() {
            self.wake_others(state);
        } else if let Some(own) = state.wakers.get_mut(self.index) {
            *own = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        task::Wake,
    };

    use super::*;

    /// Counts how often its task is woken.
    #[derive(Default)]
    struct Task(AtomicU32);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A caller and its task.
    struct Caller {
        answer: Option<PendingAnswer<u32>>,
        task: Arc<Task>,
    }

    impl Caller {
        fn new(callers: &mut Callers<u32>) -> Self {
            Self { answer: Some(callers.add()), task: Arc::default() }
        }

        fn poll(&mut self) -> Poll<Option<u32>> {
            let waker = Waker::from(Arc::clone(&self.task));
            let polled = Pin::new(self.answer.as_mut().unwrap_or_else(|| panic!("answered")))
                .poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                self.answer = None;
            }
            polled
        }

        fn woken(&self) -> u32 {
            self.task.0.load(Ordering::SeqCst)
        }
    }

    fn three(callers: &mut Callers<u32>) -> [Caller; 3] {
        let mut three = [(); 3].map(|()| Caller::new(callers));
        assert!(three.iter_mut().all(|caller| caller.poll().is_pending()));
        three
    }

    #[test]
    fn an_answer_wakes_one_caller_which_wakes_the_others() {
        let mut callers = Callers::default();
        let mut three = three(&mut callers);
        let mut late = Caller::new(&mut callers);
        callers.answer(&7);
        assert_eq!(three.each_ref().map(Caller::woken), [1, 0, 0]);
        assert_eq!(three[0].poll(), Poll::Ready(Some(7)));
        assert_eq!(three.each_ref().map(Caller::woken), [1, 1, 1]);
        assert_eq!((three[2].poll(), three[1].poll()), (Poll::Ready(Some(7)), Poll::Ready(Some(7))));
        assert_eq!(late.poll(), Poll::Ready(Some(7)), "a caller that polls first after the answer");
        assert_eq!(three.each_ref().map(Caller::woken), [1, 1, 1]);
    }

    #[test]
    fn a_caller_that_keeps_its_answer_wakes_the_others() {
        let mut callers = Callers::default();
        let mut three = three(&mut callers);
        callers.answer(&7);
        let mut kept = three[0].answer.take().unwrap_or_else(|| panic!("answered"));
        let polled = Pin::new(&mut kept).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(Some(7)));
        assert_eq!(three.each_ref().map(Caller::woken), [1, 1, 1], "the answer is still alive");
    }

    #[test]
    fn a_dropped_caller_that_was_woken_wakes_the_others() {
        let mut callers = Callers::default();
        let mut three = three(&mut callers);
        callers.answer(&7);
        three[0].answer = None;
        assert_eq!(three.each_ref().map(Caller::woken), [1, 1, 1]);
        assert_eq!(three[1].poll(), Poll::Ready(Some(7)));
    }

    #[test]
    fn a_caller_dropped_before_the_answer_is_not_woken() {
        let mut callers = Callers::default();
        let mut three = three(&mut callers);
        let caller = three[0].answer.as_ref().map(PendingAnswer::caller);
        three[0].answer = None;
        assert_eq!(caller.map(|caller| caller.strong_count()), Some(0));
        assert_eq!(three.each_ref().map(Caller::woken), [0, 0, 0]);
        callers.answer(&7);
        assert_eq!(three.each_ref().map(Caller::woken), [0, 1, 0]);
    }

    #[test]
    fn an_answer_wakes_one_caller_per_thread() {
        let mut callers = Callers::default();
        let mut here = [(); 2].map(|()| Caller::new(&mut callers));
        let mut there = thread::scope(|scope| scope.spawn(|| [(); 2].map(|()| Caller::new(&mut callers))).join())
            .unwrap_or_else(|_| panic!("the other thread panicked"));
        assert!(here.iter_mut().chain(&mut there).all(|caller| caller.poll().is_pending()));
        callers.answer(&7);
        assert_eq!(here.each_ref().map(Caller::woken), [1, 0]);
        assert_eq!(there.each_ref().map(Caller::woken), [1, 0]);
    }

    #[test]
    fn callers_get_none_if_the_answer_is_dropped() {
        let mut callers = Callers::default();
        let mut three = three(&mut callers);
        drop(callers);
        assert_eq!(three[0].poll(), Poll::Ready(None));
        assert_eq!((three[1].poll(), three[2].poll()), (Poll::Ready(None), Poll::Ready(None)));
    }
}
