//! A connection, watched: how long a client may take, and how much it may send that nobody wants.
//!
//! actix limits the head of a connection's first request, and nothing else that a client can be slow with. Here a stream sees the bytes
//! and [`super::observe`] sees the requests; together they know what is being waited for, and for how long.

use std::{
    cell::Cell,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

use crate::{http::server::tls::Stream, telemetry};

/// How long a client may go on sending what was given up, so that it comes to read why.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Size of a piece: bytes that a client must take before the time limit of a piece ends.
const PIECE_BYTES: usize = 32 << 10;

/// Bytes of an answer that a client must take on average in that time: four pieces. Without this limit
/// a client could take each piece at the last moment, and hold a long answer for minutes.
const TAKEN_BYTES: u64 = 128 << 10;

/// Bytes that are taken from the system in a turn. actix would take all that have come, up to 128 KiB, before it looks at any, and keep the memory
/// for as long as the connection is open.
const TURN_BYTES: usize = 16 << 10;

/// Turns in which a connection reads nothing and writes nothing, one right after the other, before it is ended. actix begins one turn after
/// the other once it has read 128 KiB of requests that wait behind one that is being answered. No request that waits for anything has as many.
const IDLE_TURNS: u32 = 20_000;

/// What a client is allowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    /// How long the head of a request may take, of the first with the handshake of TLS, and how long a piece of an answer may wait to be taken
    /// (see [`crate::http::server::chunks`]).
    pub(crate) transfer: Duration,
    /// How long a connection may stay open without a request.
    pub(crate) idle: Duration,
    /// Bytes that may come after an answer without making a request: what is left of a body that was refused.
    pub(crate) unread_bytes: usize,
}

/// What a connection waits for, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The rest of a request's head. With TLS also the handshake and the first request.
    Head(Instant),
    /// A request of which no byte has come.
    Next(Instant),
    /// The service. A body has a limit of its own (see [`crate::http::extract::body`]).
    Answer,
    /// The client, to read that it was too slow.
    End(Instant),
}

/// State of one connection. The stream reports bytes; the request handler reports requests.
#[derive(Debug)]
pub(crate) struct Activity {
    phase: Cell<Phase>,
    /// Bytes since the last answer.
    received: Cell<usize>,
    /// Answers so far.
    answers: Cell<u64>,
    /// Whether the answer is one without an end.
    is_endless: Cell<bool>,
}

impl Activity {
    fn new(phase: Phase) -> Self {
        Self { phase: Cell::new(phase), received: Cell::new(0), answers: Cell::new(0), is_endless: Cell::new(false) }
    }

    /// A request is being answered, as long as the value lives.
    pub(crate) fn answering(self: &Rc<Self>) -> Answering {
        self.phase.set(Phase::Answer);
        self.answers.set(self.answers.get() + 1);
        Answering(Rc::clone(self))
    }

    /// An answer without an end is being sent, as long as the value lives.
    pub(crate) fn streaming(self: &Rc<Self>) -> Streaming {
        self.is_endless.set(true);
        Streaming(self.answering())
    }

    /// What is waited for could not come until now.
    fn begin_anew(&self) {
        match self.phase.get() {
            Phase::Head(_) => self.phase.set(Phase::Head(Instant::now())),
            Phase::Next(_) => self.phase.set(Phase::Next(Instant::now())),
            Phase::Answer | Phase::End(_) => {}
        }
    }

    fn received(&self, bytes: usize) {
        match self.phase.get() {
            Phase::Answer => return,
            Phase::Next(_) => self.phase.set(Phase::Head(Instant::now())),
            Phase::Head(_) | Phase::End(_) => {}
        }
        self.received.set(self.received.get().saturating_add(bytes));
    }

    /// When what is waited for must have come.
    fn deadline(&self, allowed: &Allowed) -> Option<Instant> {
        match self.phase.get() {
            Phase::Head(since) => Some(since + allowed.transfer),
            Phase::Next(since) => Some(since + allowed.idle),
            Phase::Answer => None,
            Phase::End(since) => Some(since + LAST_WORDS),
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Answering(Rc<Activity>);

impl Answering {
    /// The answer says that the client was too slow: nothing more is waited for.
    pub(crate) fn end(self) {
        self.0.phase.set(Phase::End(Instant::now()));
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.received.set(0);
        if self.0.phase.get() == Phase::Answer {
            self.0.phase.set(Phase::Next(Instant::now()));
        }
    }
}

/// An answer without an end that is being sent: there is no time for all of it, nor is it waited for another request.
#[derive(Debug)]
pub(crate) struct Streaming(Answering);

impl Drop for Streaming {
    fn drop(&mut self) {
        self.0.0.is_endless.set(false);
    }
}

/// An answer that the client did not take at once.
#[derive(Debug, Clone, Copy)]
struct Taking {
    /// Which of the connection's.
    answer: u64,
    /// Since when it has been waited for.
    since: Instant,
    /// Bytes taken since.
    bytes: u64,
}

impl Taking {
    /// When more must have been taken, where a piece may wait for so long.
    fn deadline(&self, transfer: Duration) -> Instant {
        self.since + transfer + transfer.mul_f64(self.bytes as f64 / TAKEN_BYTES as f64)
    }
}

/// The stream of a connection, which ends when the client takes too long or sends too much.
pub(crate) struct Watched {
    stream: Stream,
    activity: Rc<Activity>,
    allowed: Allowed,
    /// Since when a piece of an answer has been waiting for the client: here, or encrypted in the stream.
    blocked: Option<Instant>,
    /// Bytes that the client has taken since.
    taken_bytes: usize,
    /// The answer that it belongs to, or that one before it in the same answer did.
    taking: Option<Taking>,
    /// Whether reading was put off until that piece is taken.
    is_unread: bool,
    /// Bytes that came in this turn.
    in_turn: usize,
    /// Turns since anything was read or written.
    idle_turns: u32,
    /// Wakes the connection. Set at the end of each turn only, and left alone by a request that came and was answered: whatever it goes off
    /// for, the phase then is what counts.
    timer: Pin<Box<Sleep>>,
    is_cut: bool,
    _counted: telemetry::UnderWay,
}

impl Watched {
    /// Watches `stream`, which has just been accepted.
    pub(crate) fn new(stream: Stream, allowed: Allowed) -> Self {
        let now = Instant::now();
        // A client may connect before it has a request. Closing such a connection early breaks the request that crosses with the closing.
        let phase = if stream.is_encrypted() { Phase::Head(now) } else { Phase::Next(now) };
        Self {
            stream,
            activity: Rc::new(Activity::new(phase)),
            allowed,
            blocked: None,
            taken_bytes: 0,
            taking: None,
            is_unread: false,
            in_turn: 0,
            idle_turns: 0,
            timer: Box::pin(sleep_until(Instant::now() + allowed.transfer)),
            is_cut: false,
            _counted: telemetry::one_more_connection(),
        }
    }

    /// What the connection is at, for whoever answers its requests.
    pub(crate) fn activity(&self) -> Rc<Activity> {
        Rc::clone(&self.activity)
    }

    /// When a piece that waits must have been taken.
    fn taken_by(&self) -> Option<Instant> {
        let piece = self.blocked? + self.allowed.transfer;
        let whole = self.taking.map(|taking| taking.deadline(self.allowed.transfer));
        Some(whole.map_or(piece, |whole| whole.min(piece)))
    }

    /// The client has taken so many bytes.
    fn taken(&mut self, bytes: usize) {
        self.idle_turns = 0;
        if let Some(taking) = &mut self.taking {
            taking.bytes += bytes as u64;
        }
        self.taken_bytes += bytes;
        if self.taken_bytes >= PIECE_BYTES {
            // The next piece has as much time.
            self.taken_bytes = 0;
            self.blocked = self.blocked.map(|_| Instant::now());
        }
    }

    /// The client takes no more at the moment.
    fn wait(&mut self) {
        let (answer, since) = (self.activity.answers.get(), Instant::now());
        self.blocked.get_or_insert(since);
        if self.taking.is_none_or(|taking| taking.answer != answer) {
            self.taking = Some(Taking { answer, since, bytes: 0 });
        }
    }

    /// The client has taken all that waited for it.
    fn go_on(&mut self, context: &Context<'_>) {
        self.blocked = None;
        self.taken_bytes = 0;
        if self.activity.is_endless.get() {
            // Each piece is one by itself: the next may come in hours.
            self.taking = None;
        }
        if std::mem::take(&mut self.is_unread) {
            self.activity.begin_anew();
            context.waker().wake_by_ref();
        }
    }

    /// When what is waited for must have come. While an answer waits to be taken nothing is read, and so nothing else is waited for.
    fn due_by(&self) -> Option<Instant> {
        if self.blocked.is_some() { None } else { self.activity.deadline(&self.allowed) }
    }

    /// Has the connection woken when the first of its times is over.
    fn set_timer(&mut self, context: &mut Context<'_>) {
        // What was given up is waited for no more.
        let phase = if self.is_cut { None } else { self.due_by() };
        let deadlines = phase.into_iter().chain(self.taken_by());
        let Some(deadline) = deadlines.min() else { return };
        if self.timer.deadline() != deadline {
            self.timer.as_mut().reset(deadline);
        }
        if self.timer.as_mut().poll(context).is_ready() {
            // Over already: the next turn finds it so.
            context.waker().wake_by_ref();
        }
    }

    /// Whether this time is over, as far as the timer has told.
    fn is_over(&self, deadline: Option<Instant>) -> bool {
        self.timer.is_elapsed() && deadline.is_some_and(|deadline| deadline <= self.timer.deadline())
    }

    /// Ends the connection of a client that does not take its answer.
    fn give_up_untaken(&mut self) -> io::Result<()> {
        if !self.is_over(self.taken_by()) {
            return Ok(());
        }
        self.cut("answer");
        // Or else the system would keep what the client does not take, for minutes.
        self.stream.abandon();
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Notes an error that the system has told, which gives up by itself what a client does not take of what it holds.
    fn failed(&mut self, error: io::Error) -> io::Error {
        if error.kind() == io::ErrorKind::TimedOut {
            self.cut("answer");
        }
        error
    }

    fn cut(&mut self, why: &'static str) {
        if !self.is_cut {
            self.is_cut = true;
            telemetry::count_cut_connection(why);
            if self.activity.is_endless.get() {
                telemetry::count_dropped_listener();
            }
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.activity.received.get() > this.allowed.unread_bytes {
            this.cut("unread");
        } else if this.is_over(this.due_by()) {
            this.cut(match this.activity.phase.get() {
                Phase::Next(_) => "idle",
                Phase::End(_) => "body",
                Phase::Head(_) | Phase::Answer => "head",
            });
        }
        if this.is_cut {
            // The end of the stream, after which actix sends what it has still to say and closes.
            return Poll::Ready(Ok(()));
        }
        // Nothing is read while the client takes no answer: its requests would pile up in memory. Writing
        // resumes reading.
        if this.blocked.is_some() {
            this.is_unread = true;
            return Poll::Pending;
        }
        if this.in_turn >= TURN_BYTES {
            // The end of this turn begins the next.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        if bytes > 0 {
            this.in_turn += bytes;
            this.idle_turns = 0;
            this.activity.received(bytes);
        }
        match read {
            Poll::Ready(Err(error)) => Poll::Ready(Err(this.failed(error))),
            // A listener that has gone: actix would find out when the next event cannot be sent.
            Poll::Ready(Ok(())) if bytes == 0 && this.activity.is_endless.get() => {
                Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
            }
            read => read,
        }
    }
}

impl AsyncWrite for Watched {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.give_up_untaken()?;
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        match written {
            Poll::Ready(Ok(some)) => {
                this.taken(some);
                if some == bytes.len() {
                    this.go_on(context);
                }
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(this.failed(error))),
            Poll::Pending => {
                this.wait();
                this.set_timer(context);
            }
        }
        written
    }

    /// Called by actix at the end of each turn in which all that there was has been written.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.in_turn = 0;
        this.give_up_untaken()?;
        this.idle_turns += 1;
        if this.idle_turns > IDLE_TURNS {
            this.cut("unread");
            this.stream.abandon();
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        if flushed.is_pending() {
            this.blocked.get_or_insert_with(Instant::now);
        } else {
            this.go_on(context);
        }
        this.set_timer(context);
        flushed
    }

    /// The last word of TLS may have to wait for the client, too.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.give_up_untaken()?;
        let shut_down = Pin::new(&mut this.stream).poll_shutdown(context);
        if shut_down.is_pending() {
            this.blocked.get_or_insert_with(Instant::now);
            this.set_timer(context);
        }
        shut_down
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::{
        net::{TcpListener, TcpStream},
        task::yield_now,
        time::advance,
    };

    use super::*;

    #[test]
    fn an_answer_without_an_end_is_waited_for_without_limit() {
        let allowed = Allowed { transfer: Duration::from_secs(10), idle: Duration::from_secs(75), unread_bytes: 1 };
        let activity = Rc::new(Activity::new(Phase::Next(Instant::now())));
        // The head of the answer is written, and a moment later the first of what it is followed by.
        drop(activity.answering());
        let streaming = activity.streaming();
        assert_eq!(activity.deadline(&allowed), None);
        drop(streaming);
        assert!(activity.deadline(&allowed).is_some());
        assert!(!activity.is_endless.get());
    }

    #[test]
    fn an_answer_may_take_as_long_again_for_each_four_pieces_of_it() {
        let since = Instant::now();
        for (bytes, seconds) in [(0, 10.0), (TAKEN_BYTES / 4, 12.5), (TAKEN_BYTES, 20.0), (10 * TAKEN_BYTES, 110.0)] {
            let deadline = Taking { answer: 1, since, bytes }.deadline(Duration::from_secs(10));
            assert_eq!(deadline - since, Duration::from_secs_f64(seconds), "{bytes} bytes");
        }
    }

    /// How many bytes come, 0 at the end; none for now where nothing is to be had.
    async fn read(watched: &mut Watched) -> io::Result<Option<usize>> {
        // What the system has to tell is heard of in between.
        yield_now().await;
        let mut bytes = [0; 16];
        let mut buffer = ReadBuf::new(&mut bytes);
        match poll_fn(|context| Poll::Ready(Pin::new(&mut *watched).poll_read(context, &mut buffer))).await {
            Poll::Ready(read) => read.map(|()| Some(buffer.filled().len())),
            Poll::Pending => Ok(None),
        }
    }

    /// How many of these bytes are taken; none for now where there is no room.
    async fn write(watched: &mut Watched, bytes: &[u8]) -> io::Result<Option<usize>> {
        yield_now().await;
        match poll_fn(|context| Poll::Ready(Pin::new(&mut *watched).poll_write(context, bytes))).await {
            Poll::Ready(written) => written.map(Some),
            Poll::Pending => Ok(None),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_yet_is_idle() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (client, accepted) = tokio::join!(TcpStream::connect(listener.local_addr()?), listener.accept());
        let _client = client?;
        let (transfer, idle) = (Duration::from_secs(10), Duration::from_secs(75));
        let mut watched = Watched::new(Stream::Clear(accepted?.0), Allowed { transfer, idle, unread_bytes: 1_000 });
        for waited in [transfer, Duration::from_secs(55)] {
            assert_eq!(read(&mut watched).await?, None);
            poll_fn(|context| Pin::new(&mut watched).poll_flush(context)).await?;
            advance(waited).await;
        }
        assert_eq!(read(&mut watched).await?, None, "10 s are left");
        poll_fn(|context| Pin::new(&mut watched).poll_flush(context)).await?;
        advance(transfer).await;
        poll_fn(|context| Pin::new(&mut watched).poll_flush(context)).await?;
        assert_eq!(read(&mut watched).await?, Some(0), "the end of the stream");
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_late_with_what_is_not_read_while_an_answer_waits() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (client, accepted) = tokio::join!(TcpStream::connect(listener.local_addr()?), listener.accept());
        let (client, transfer) = (client?, Duration::from_secs(10));
        let allowed = Allowed { transfer, idle: transfer, unread_bytes: 1_000 };
        let mut watched = Watched::new(Stream::Clear(accepted?.0), allowed);
        client.writable().await?;
        assert_eq!(client.try_write(b"GET /")?, 5);
        while read(&mut watched).await? != Some(5) {}

        // Later, until the client takes no more.
        advance(transfer / 2).await;
        let answer = vec![b'x'; 1 << 20];
        let mut waiting = 0;
        while let Some(some) = write(&mut watched, &answer).await? {
            waiting += some;
        }
        // More time than its head has goes by, and less than the piece has.
        advance(transfer * 6 / 10).await;
        assert_eq!(client.try_write(b" HTTP")?, 5);
        for _ in 0..100 {
            assert_eq!(read(&mut watched).await?, None);
        }
        // The client takes all, and what came meanwhile is read, after the time that its head had at first.
        let mut taken = vec![0; 1 << 20];
        while waiting > 0 {
            yield_now().await;
            waiting -= client.try_read(&mut taken).or_else(|error| match error.kind() {
                io::ErrorKind::WouldBlock => Ok(0),
                _ => Err(error),
            })?;
        }
        while write(&mut watched, b"x").await? != Some(1) {}
        poll_fn(|context| Pin::new(&mut watched).poll_flush(context)).await?;
        advance(transfer * 9 / 10).await;
        assert_eq!(read(&mut watched).await?, Some(5));
        Ok(())
    }
}
