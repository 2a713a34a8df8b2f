//! The log of an instance: lines wait in bounded buffers, one per thread, until a thread writes
//! them.

use std::{
    cell::OnceCell,
    io::{self, Write},
    mem,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, Receiver},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

/// Maximum size of a buffer, in bytes. Further lines are lost, and counted.
const BUFFER_BYTES: usize = 1 << 20;

/// Maximum size for warnings and errors, so that other lines cannot displace them.
const WARNINGS_BYTES: usize = BUFFER_BYTES + BUFFER_BYTES / 4;

/// Size from which the lines of requests are written at once.
const WRITE_BYTES: usize = 64 << 10;

/// Longest time that the line of a request waits. Waking the thread for each line would cost more
/// than the line.
const WRITE_EVERY: Duration = Duration::from_millis(100);

/// Interval between two reports of lost lines.
const LOST_LINES_EVERY: Duration = Duration::from_secs(1);

/// Timeout for the last write.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Lines that wait for the thread.
type Buffer = Arc<Mutex<Vec<u8>>>;

static LOG: OnceLock<Log> = OnceLock::new();

thread_local! {
    static BUFFER: OnceCell<Buffer> = const { OnceCell::new() };
}

/// Format of the lines of requests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LineFormat {
    Text,
    Json,
}

#[derive(Debug)]
struct Log {
    format: Option<LineFormat>,
    buffers: Mutex<Vec<Buffer>>,
    lost: AtomicUsize,
    is_stopping: AtomicBool,
    writer: OnceLock<Thread>,
}

impl Log {
    fn new(format: Option<LineFormat>) -> Self {
        Self {
            format,
            buffers: Mutex::default(),
            lost: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
            writer: OnceLock::new(),
        }
    }

    /// Adds the line that `append` writes to this thread's buffer, unless that has `limit` bytes.
    /// Returns the size of the buffer.
    fn add(&self, limit: usize, append: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> usize {
        let add = |buffer: &OnceCell<Buffer>| {
            let mut lines = locked(buffer.get_or_init(|| self.new_buffer()));
            if lines.len() >= limit || append(&mut lines).is_err() {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
            lines.len()
        };
        // Fails only at the end of a thread.
        BUFFER.try_with(add).unwrap_or_default()
    }

    fn new_buffer(&self) -> Buffer {
        let buffer = Buffer::default();
        locked(&self.buffers).push(Arc::clone(&buffer));
        buffer
    }

    fn wake_writer(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// Writes the lines of all threads until the log stops.
    fn write(&self, mut out: impl Write) {
        let mut reported_at = Instant::now();
        loop {
            let is_last = self.is_stopping.load(Ordering::Acquire);
            if is_last || reported_at.elapsed() >= LOST_LINES_EVERY {
                reported_at = Instant::now();
                let lines = self.lost.swap(0, Ordering::Relaxed);
                if lines > 0 {
                    tracing::warn!(lines, "log lines were lost: the log could not be written fast enough");
                }
            }
            for block in self.take() {
                out.write_all(&block).ok();
            }
            if is_last {
                return;
            }
            thread::park_timeout(WRITE_EVERY);
        }
    }

    /// Takes the lines of all threads. Those of the main thread, such as `stopped`, are the last.
    fn take(&self) -> Vec<Vec<u8>> {
        let mut buffers = locked(&self.buffers);
        // Only this list still refers to the buffer of a thread that has ended.
        buffers.retain(|buffer| Arc::strong_count(buffer) > 1 || !locked(buffer).is_empty());
        buffers.iter().rev().map(|buffer| mem::take(&mut *locked(buffer))).collect()
    }
}

/// Writes lines of `tracing`, one per call.
#[derive(Debug)]
pub(crate) struct LineWriter {
    limit: usize,
}

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(log) = LOG.get() {
            log.add(self.limit, |lines| lines.write_all(line));
            log.wake_writer();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a writer for warnings and errors.
pub(crate) fn warnings() -> LineWriter {
    LineWriter { limit: WARNINGS_BYTES }
}

/// Returns a writer for all other lines.
pub(crate) fn lines() -> LineWriter {
    LineWriter { limit: BUFFER_BYTES }
}

/// Adds the line of a request, which `append` writes. Returns whether this process has a log with a
/// format for it.
pub(crate) fn add_request(append: impl FnOnce(LineFormat, &mut Vec<u8>) -> io::Result<()>) -> bool {
    let Some((log, format)) = LOG.get().and_then(|log| Some((log, log.format?))) else { return false };
    if log.add(BUFFER_BYTES, |lines| append(format, lines)) >= WRITE_BYTES {
        log.wake_writer();
    }
    true
}

/// Writes the remaining lines when it is dropped, for at most [`STOP_TIMEOUT`].
#[derive(Debug)]
pub(crate) struct LogGuard {
    log: &'static Log,
    ended: Receiver<()>,
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        self.log.is_stopping.store(true, Ordering::Release);
        self.log.wake_writer();
        self.ended.recv_timeout(STOP_TIMEOUT).ok();
    }
}

/// Starts the log of this process, which a thread writes to `out`. Without a `format`,
/// [`add_request`] adds nothing.
pub(crate) fn start(format: Option<LineFormat>, out: impl Write + Send + 'static) -> io::Result<LogGuard> {
    let log = LOG.get_or_init(|| Log::new(format));
    let (sender, ended) = mpsc::channel::<()>();
    let thread = thread::Builder::new().name("log".to_owned()).spawn(move || {
        log.write(out);
        drop(sender);
    })?;
    log.writer.set(thread.thread().clone()).ok();
    Ok(LogGuard { log, ended })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_buffer_has_room_for_warnings() {
        let log = Log::new(None);
        let add = |limit, line: &[u8]| log.add(limit, |lines| lines.write_all(line));
        let size = add(BUFFER_BYTES, &vec![b'x'; BUFFER_BYTES]);
        assert_eq!(add(BUFFER_BYTES, b"lost"), size);
        assert_eq!(add(WARNINGS_BYTES, b"warning"), size + 7);
        assert_eq!(log.lost.load(Ordering::Relaxed), 1);
        assert!(log.take()[0].ends_with(b"xwarning"));
        assert_eq!(add(BUFFER_BYTES, b"line"), 4);
    }

    #[test]
    fn the_buffer_of_an_ended_thread_is_written_and_removed() {
        let log = Log::new(None);
        let add = || log.add(BUFFER_BYTES, |lines| lines.write_all(b"last words"));
        assert!(thread::scope(|scope| scope.spawn(add).join()).is_ok());
        assert_eq!(log.take(), [b"last words"]);
        assert!(log.take().is_empty());
    }
}
