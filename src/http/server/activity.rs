//! The phase of a connection, with the time since which it waits. The connection's stream and the
//! handlers of its requests share this state.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    task::Waker,
    time::Duration,
};

use tokio::time::Instant;

/// Time for which a client may continue to send after a timeout, so that it can read the response.
const LINGER: Duration = Duration::from_secs(1);

/// Interim response that invites a client to send its body (RFC 9110, section 10.1.1).
pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// State of [`CONTINUE`]. actix writes it before any handler has checked the request. The stream
/// holds it back until the handler reads the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interim {
    /// The client does not wait for it, or has it.
    None,
    /// actix is about to write it.
    Expected,
    /// The stream holds it back.
    Held,
    /// The stream must send it; this many bytes are sent.
    Due(usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Timeout of a request's head (over TLS the first one includes the handshake), and of each
    /// chunk of a response (see [`crate::http::server::chunks`]).
    pub(crate) transfer: Duration,
    /// Time for which a connection may stay open without a request.
    pub(crate) idle: Duration,
    /// Bytes that may follow a response without becoming a request: the rest of a refused body.
    pub(crate) unread_bytes: usize,
}

/// The phase of a connection, and its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waits for the rest of a request's head. Over TLS, also for the handshake and the first
    /// request.
    Head(Instant),
    /// Waits for the first byte of a request.
    Idle(Instant),
    /// Waits for the service. A body has a separate timeout (see [`crate::http::api::body`]).
    Response,
    /// Waits for the client to read that it was too slow.
    Linger(Instant),
}

/// State of one connection. The stream reports bytes; the request handler reports requests.
#[derive(Debug)]
pub(crate) struct Activity {
    pub(super) phase: Cell<Phase>,
    /// Bytes since the last response.
    pub(super) received: Cell<usize>,
    /// Whether the response is an event stream.
    pub(super) is_endless: Cell<bool>,
    pub(super) interim: Cell<Interim>,
    /// Wakes the connection while [`Interim::Held`].
    pub(super) waker: RefCell<Option<Waker>>,
}

impl Activity {
    pub(super) fn new(phase: Phase) -> Self {
        Self {
            phase: Cell::new(phase),
            received: Cell::new(0),
            is_endless: Cell::new(false),
            interim: Cell::new(Interim::None),
            waker: RefCell::default(),
        }
    }

    /// Records that the next request's client waits for `100 Continue` before it sends the body.
    pub(crate) fn expect_continue(&self) {
        self.interim.set(Interim::Expected);
    }

    /// Sends `100 Continue` if the client waits for it.
    pub(crate) fn send_continue(&self) {
        match self.interim.get() {
            Interim::Expected => self.interim.set(Interim::None),
            Interim::Held => {
                self.interim.set(Interim::Due(0));
                if let Some(waker) = self.waker.take() {
                    waker.wake();
                }
            }
            Interim::None | Interim::Due(_) => {}
        }
    }

    /// Returns whether the client still waits for `100 Continue`, so that its body may or may not follow.
    pub(crate) fn awaits_continue(&self) -> bool {
        matches!(self.interim.get(), Interim::Expected | Interim::Held)
    }

    /// Marks a request as being answered until the value is dropped.
    pub(crate) fn answering(self: &Rc<Self>) -> Answering {
        self.phase.set(Phase::Response);
        Answering(Rc::clone(self))
    }

    /// Marks the response as an event stream until the value is dropped.
    pub(crate) fn streaming(self: &Rc<Self>) -> Streaming {
        self.is_endless.set(true);
        Streaming(self.answering())
    }

    /// Restarts the timeout of a request that could not be read until now.
    pub(super) fn restart(&self) {
        match self.phase.get() {
            Phase::Head(_) => self.phase.set(Phase::Head(Instant::now())),
            Phase::Idle(_) => self.phase.set(Phase::Idle(Instant::now())),
            Phase::Response | Phase::Linger(_) => {}
        }
    }

    pub(super) fn received(&self, bytes: usize) {
        match self.phase.get() {
            Phase::Response => return,
            Phase::Idle(_) => self.phase.set(Phase::Head(Instant::now())),
            Phase::Head(_) | Phase::Linger(_) => {}
        }
        self.received.set(self.received.get().saturating_add(bytes));
    }

    /// The end of the current phase's timeout.
    pub(super) fn deadline(&self, allowed: &ConnectionLimits) -> Option<Instant> {
        match self.phase.get() {
            Phase::Head(since) => Some(since + allowed.transfer),
            Phase::Idle(since) => Some(since + allowed.idle),
            Phase::Response => None,
            Phase::Linger(since) => Some(since + LINGER),
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Answering(Rc<Activity>);

impl Answering {
    /// Makes this response, which says that the client was too slow, the connection's last one.
    pub(crate) fn end(self) {
        self.0.phase.set(Phase::Linger(Instant::now()));
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.received.set(0);
        if self.0.phase.get() == Phase::Response {
            self.0.phase.set(Phase::Idle(Instant::now()));
        }
    }
}

/// An event stream that is being sent. Only its chunks have timeouts.
#[derive(Debug)]
pub(crate) struct Streaming(Answering);

impl Drop for Streaming {
    fn drop(&mut self) {
        self.0.0.is_endless.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_stream_has_no_timeout() {
        let allowed =
            ConnectionLimits { transfer: Duration::from_secs(10), idle: Duration::from_secs(75), unread_bytes: 1 };
        let activity = Rc::new(Activity::new(Phase::Idle(Instant::now())));
        // The head of the response is written first, then the first event.
        drop(activity.answering());
        let streaming = activity.streaming();
        assert_eq!(activity.deadline(&allowed), None);
        drop(streaming);
        assert!(activity.deadline(&allowed).is_some());
        assert!(!activity.is_endless.get());
    }
}
