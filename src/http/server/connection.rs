//! Connections with limits: on the time that a client may take, and on unwanted data that it may
//! send.
//!
//! actix limits the time of the head of a connection's first request, but no other delay by a
//! client. Here a stream observes the bytes, and [`super::observe`] the requests. Together they
//! track the phase of the connection, and its start.

use std::{
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

use crate::{
    http::server::{
        activity::{Activity, CONTINUE, ConnectionLimits, Interim, Phase},
        tls::Stream,
    },
    telemetry,
};

/// Bytes of a response that a client must read within each timeout.
const PROGRESS_BYTES: usize = 32 << 10;

/// Bytes that one poll reads from the system. Otherwise actix would read up to 128 KiB before it
/// parses any, and keep that memory while the connection is open.
const POLL_BYTES: usize = 16 << 10;

/// Maximum number of consecutive polls without a byte read or written. Once actix has read 128 KiB
/// of requests that wait behind the current one, it polls without pause. A request that waits for a
/// result has far fewer polls.
const IDLE_POLLS: u32 = 20_000;

/// The stream of a connection. It ends when the client takes too long or sends too much.
pub(crate) struct WatchedStream {
    stream: Stream,
    activity: Rc<Activity>,
    allowed: ConnectionLimits,
    /// Time since which the current chunk of a response has waited for the client.
    blocked: Option<Instant>,
    /// Bytes that the client has read of this chunk.
    chunk_bytes: usize,
    /// Whether reading pauses until the response is sent.
    is_unread: bool,
    poll_bytes: usize,
    /// Polls since the last byte read or written.
    idle_polls: u32,
    /// Wakes the connection at its next deadline. Each poll sets it at its end.
    timer: Pin<Box<Sleep>>,
    is_cut: bool,
    _counted: telemetry::GaugeGuard,
}

impl WatchedStream {
    /// Watches a newly accepted `stream`.
    pub(crate) fn new(stream: Stream, allowed: ConnectionLimits) -> Self {
        let now = Instant::now();
        // A client may connect before it has a request. Closing such a connection early would break
        // a request in flight.
        let phase = if stream.is_encrypted() { Phase::Head(now) } else { Phase::Idle(now) };
        Self {
            stream,
            activity: Rc::new(Activity::new(phase)),
            allowed,
            blocked: None,
            chunk_bytes: 0,
            is_unread: false,
            poll_bytes: 0,
            idle_polls: 0,
            timer: Box::pin(sleep_until(now + allowed.transfer)),
            is_cut: false,
            _counted: telemetry::GaugeGuard::count(telemetry::CONNECTIONS_NOW),
        }
    }

    /// The state of the connection, for its requests.
    pub(crate) fn activity(&self) -> Rc<Activity> {
        Rc::clone(&self.activity)
    }

    /// The time by which the client must have read the current chunk.
    fn chunk_deadline(&self) -> Option<Instant> {
        self.blocked.map(|since| since + self.allowed.transfer)
    }

    /// The time by which the next bytes must have arrived; `None` while a response waits, because
    /// reading is then paused.
    fn read_deadline(&self) -> Option<Instant> {
        if self.blocked.is_some() { None } else { self.activity.deadline(&self.allowed) }
    }

    /// Counts bytes that the client has read.
    fn sent(&mut self, bytes: usize) {
        self.idle_polls = 0;
        self.chunk_bytes += bytes;
        if self.chunk_bytes >= PROGRESS_BYTES {
            // The next chunk has the full timeout.
            self.chunk_bytes = 0;
            self.blocked = self.blocked.map(|_| Instant::now());
        }
    }

    /// Notes that the client is not reading.
    fn block(&mut self) {
        self.blocked.get_or_insert_with(Instant::now);
    }

    /// Notes that the client has read all waiting bytes.
    fn unblock(&mut self, context: &Context<'_>) {
        self.blocked = None;
        self.chunk_bytes = 0;
        if std::mem::take(&mut self.is_unread) {
            self.activity.restart();
            context.waker().wake_by_ref();
        }
    }

    /// Sets the timer to the first deadline.
    fn set_timer(&mut self, context: &mut Context<'_>) {
        let read = if self.is_cut { None } else { self.read_deadline() };
        let Some(deadline) = read.into_iter().chain(self.chunk_deadline()).min() else { return };
        if self.timer.deadline() != deadline {
            self.timer.as_mut().reset(deadline);
        }
        if self.timer.as_mut().poll(context).is_ready() {
            // The next poll handles it.
            context.waker().wake_by_ref();
        }
    }

    /// Whether the timer has passed this deadline.
    fn is_over(&self, deadline: Option<Instant>) -> bool {
        self.timer.is_elapsed() && deadline.is_some_and(|deadline| deadline <= self.timer.deadline())
    }

    /// Ends the connection of a client that does not read its response.
    fn end_if_unread(&mut self) -> io::Result<()> {
        if !self.is_over(self.chunk_deadline()) {
            return Ok(());
        }
        self.cut("response");
        // Otherwise the system would keep the unread bytes for minutes.
        self.stream.abandon();
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Records an error of the system, which has its own timeout for clients that do not read.
    fn failed(&mut self, error: io::Error) -> io::Error {
        if error.kind() == io::ErrorKind::TimedOut {
            self.cut("response");
        }
        error
    }

    /// Sends `100 Continue` if it is due.
    fn poll_continue(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Interim::Due(sent) = self.activity.interim.get() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &CONTINUE[sent..]))?;
            let is_sent = written == 0 || sent + written == CONTINUE.len();
            self.activity.interim.set(if is_sent { Interim::None } else { Interim::Due(sent + written) });
        }
        Poll::Ready(Ok(()))
    }

    /// Returns the number of bytes to write before `100 Continue`, and holds it back if it comes first.
    fn hold_continue(&self, context: &Context<'_>, bytes: &[u8]) -> Option<usize> {
        match self.activity.interim.get() {
            Interim::Expected => {
                let at = bytes.windows(CONTINUE.len()).position(|window| window == CONTINUE)?;
                if at == 0 {
                    self.activity.interim.set(Interim::Held);
                    self.activity.waker.replace(Some(context.waker().clone()));
                }
                Some(at)
            }
            Interim::Held => {
                // The final response.
                self.activity.interim.set(Interim::None);
                None
            }
            Interim::None | Interim::Due(_) => None,
        }
    }

    fn cut(&mut self, why: &'static str) {
        if !self.is_cut {
            self.is_cut = true;
            telemetry::count_cut_connection(why);
            if self.activity.is_endless.get() {
                telemetry::count_dropped_subscriber();
            }
        }
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.activity.received.get() > this.allowed.unread_bytes {
            this.cut("unread");
        } else if this.is_over(this.read_deadline()) {
            this.cut(match this.activity.phase.get() {
                Phase::Idle(_) => "idle",
                Phase::Linger(_) => "body",
                Phase::Head(_) | Phase::Response => "head",
            });
        }
        if this.is_cut {
            // The end of the stream: actix sends its remaining data, and closes.
            return Poll::Ready(Ok(()));
        }
        // Otherwise requests would accumulate in memory while their client reads no response.
        // Writing resumes reading.
        if this.blocked.is_some() {
            this.is_unread = true;
            return Poll::Pending;
        }
        if let Err(error) = ready!(this.poll_continue(context)) {
            return Poll::Ready(Err(this.failed(error)));
        }
        if this.poll_bytes >= POLL_BYTES {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        if bytes > 0 {
            this.poll_bytes += bytes;
            this.idle_polls = 0;
            this.activity.received(bytes);
        }
        match read {
            Poll::Ready(Err(error)) => Poll::Ready(Err(this.failed(error))),
            // The subscriber has disconnected. actix would notice only when it sends the next
            // event.
            Poll::Ready(Ok(())) if bytes == 0 && this.activity.is_endless.get() => {
                Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
            }
            read => read,
        }
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.end_if_unread()?;
        let bytes = match this.hold_continue(context, bytes) {
            Some(0) => return Poll::Ready(Ok(CONTINUE.len())),
            Some(before) => &bytes[..before],
            None => bytes,
        };
        let written = match this.poll_continue(context) {
            Poll::Ready(Ok(())) => Pin::new(&mut this.stream).poll_write(context, bytes),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        };
        match written {
            Poll::Ready(Ok(some)) => {
                this.sent(some);
                if some == bytes.len() {
                    this.unblock(context);
                }
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(this.failed(error))),
            Poll::Pending => {
                this.block();
                this.set_timer(context);
            }
        }
        written
    }

    /// actix flushes at the end of each poll, when all bytes are written.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.poll_bytes = 0;
        this.end_if_unread()?;
        this.idle_polls += 1;
        if this.idle_polls > IDLE_POLLS {
            this.cut("unread");
            this.stream.abandon();
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        if flushed.is_pending() {
            this.block();
        } else {
            this.unblock(context);
        }
        this.set_timer(context);
        flushed
    }

    /// Closing TLS may have to wait for the client too.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.end_if_unread()?;
        let shut_down = Pin::new(&mut this.stream).poll_shutdown(context);
        if shut_down.is_pending() {
            this.block();
            this.set_timer(context);
        }
        shut_down
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, time::Duration};

    use tokio::{
        net::{TcpListener, TcpStream},
        task::yield_now,
        time::advance,
    };

    use super::*;

    /// Number of bytes read, 0 at the end of the stream; `None` if it is pending.
    async fn read(watched: &mut WatchedStream) -> io::Result<Option<usize>> {
        // Lets the runtime poll the system in between.
        yield_now().await;
        let mut bytes = [0; 16];
        let mut buffer = ReadBuf::new(&mut bytes);
        match poll_fn(|context| Poll::Ready(Pin::new(&mut *watched).poll_read(context, &mut buffer))).await {
            Poll::Ready(read) => read.map(|()| Some(buffer.filled().len())),
            Poll::Pending => Ok(None),
        }
    }

    /// Number of bytes written; `None` if it is pending.
    async fn write(watched: &mut WatchedStream, bytes: &[u8]) -> io::Result<Option<usize>> {
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
        let mut watched =
            WatchedStream::new(Stream::Clear(accepted?.0), ConnectionLimits { transfer, idle, unread_bytes: 1_000 });
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
    async fn a_request_is_not_late_while_a_response_waits() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (client, accepted) = tokio::join!(TcpStream::connect(listener.local_addr()?), listener.accept());
        let (client, transfer) = (client?, Duration::from_secs(10));
        let allowed = ConnectionLimits { transfer, idle: transfer, unread_bytes: 1_000 };
        let mut watched = WatchedStream::new(Stream::Clear(accepted?.0), allowed);
        client.writable().await?;
        assert_eq!(client.try_write(b"GET /")?, 5);
        while read(&mut watched).await? != Some(5) {}

        // Half of the timeout later, fill the buffers of the system.
        advance(transfer / 2).await;
        let answer = vec![b'x'; 1 << 20];
        let mut waiting = 0;
        while let Some(some) = write(&mut watched, &answer).await? {
            waiting += some;
        }
        // The timeout of the head passes, but not that of the chunk.
        advance(transfer * 6 / 10).await;
        assert_eq!(client.try_write(b" HTTP")?, 5);
        for _ in 0..100 {
            assert_eq!(read(&mut watched).await?, None);
        }
        // The client reads everything. Then the head is read, although its first timeout has
        // passed.
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

    #[tokio::test(start_paused = true)]
    async fn a_response_may_take_the_timeout_for_each_piece() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (client, accepted) = tokio::join!(TcpStream::connect(listener.local_addr()?), listener.accept());
        let (client, transfer) = (client?, Duration::from_secs(10));
        let allowed = ConnectionLimits { transfer, idle: transfer, unread_bytes: 1_000 };
        let mut watched = WatchedStream::new(Stream::Clear(accepted?.0), allowed);
        let response = vec![b'x'; 1 << 20];
        while write(&mut watched, &response).await?.is_some() {}
        let begin = Instant::now();
        let mut chunk = vec![0; 4 << 20];
        // A client that reads now and then stays connected.
        for _ in 0..20 {
            advance(transfer * 9 / 10).await;
            let mut sent = 0;
            while sent < PROGRESS_BYTES {
                yield_now().await;
                client.try_read(&mut chunk).ok();
                sent += write(&mut watched, &response).await?.unwrap_or(0);
            }
            while write(&mut watched, &response).await?.is_some() {}
        }
        assert!(begin.elapsed() >= transfer * 18);
        // A client that reads nothing is disconnected.
        advance(transfer + Duration::from_millis(1)).await;
        assert!(write(&mut watched, &response).await.is_err());
        Ok(())
    }
}
