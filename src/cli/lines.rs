//! Lines on their way to the log: whoever tells something leaves its line here, and a thread writes them, as many as there are at a time.
//! A line for each request would else be a call of the system for each, and a log that nobody takes would keep all requests waiting.

use std::{
    io::{self, Write},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Bytes of lines that may wait. Lines beyond are lost, and counted.
const ROOM: usize = 4 << 20;

/// Bytes of warnings and errors that may wait besides.
const ROOM_FOR_WARNINGS: usize = 1 << 20;

/// How long after a write the next one may be, unless a warning or this many bytes wait: what a crash takes with it.
const PAUSE: Duration = Duration::from_millis(10);

const BLOCK: usize = 256 << 10;

/// How long the end waits for a log that nobody takes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where lines are left. Cheap to clone.
#[derive(Clone)]
pub(super) struct Lines(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Lines that found no room since this was last told.
    lost: u64,
    /// Whether a warning waits.
    is_urgent: bool,
    /// Whether the thread would rather not be woken.
    is_pausing: bool,
    life: Life,
}

/// How far the thread is in its life.
#[derive(Default, PartialEq, Eq)]
enum Life {
    #[default]
    Writing,
    /// It is to write what waits, and end.
    Ending,
    Ended,
}

/// Ends the thread when it is dropped, once it has written what waits.
pub(super) struct Writing(Lines);

impl Lines {
    /// Begins to write to `out`; `tell` is told how many lines were lost, when lines are written again.
    pub(super) fn start(
        out: impl Write + Send + 'static,
        tell: impl Fn(u64) + Send + 'static,
    ) -> io::Result<(Self, Writing)> {
        let lines = Self(Arc::default());
        let shared = Arc::clone(&lines.0);
        thread::Builder::new().name("log".to_owned()).spawn(move || {
            write(&shared, out, tell);
            shared.state().life = Life::Ended;
            shared.changed.notify_all();
        })?;
        Ok((lines.clone(), Writing(lines)))
    }

    fn leave(&self, line: &[u8], is_warning: bool) {
        let mut state = self.0.state();
        let room = if is_warning { ROOM + ROOM_FOR_WARNINGS } else { ROOM };
        if state.waiting.len() + line.len() > room {
            state.lost += 1;
            return;
        }
        let before = state.waiting.len();
        state.waiting.extend_from_slice(line);
        state.is_urgent |= is_warning;
        let is_block = before < BLOCK && state.waiting.len() >= BLOCK;
        let wakes = is_warning || is_block || (before == 0 && !state.is_pausing);
        drop(state);
        if wakes {
            self.0.changed.notify_all();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes until the end. What cannot be written is lost like what found no room.
fn write(shared: &Shared, mut out: impl Write, tell: impl Fn(u64)) {
    let mut block = Vec::new();
    let mut lost = 0;
    loop {
        let state =
            shared.changed.wait_while(shared.state(), |state| state.waiting.is_empty() && state.life == Life::Writing);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.waiting.is_empty() {
            return;
        }
        mem::swap(&mut block, &mut state.waiting);
        lost += mem::take(&mut state.lost);
        state.is_urgent = false;
        state.is_pausing = true;
        drop(state);
        if out.write_all(&block).and_then(|()| out.flush()).is_err() {
            lost += String::from_utf8_lossy(&block).lines().count() as u64;
        } else if lost > 0 {
            tell(mem::take(&mut lost));
        }
        block.clear();
        block.shrink_to(BLOCK);
        let may_wait =
            |state: &mut State| !state.is_urgent && state.life == Life::Writing && state.waiting.len() < BLOCK;
        let paused = shared.changed.wait_timeout_while(shared.state(), PAUSE, may_wait);
        paused.unwrap_or_else(PoisonError::into_inner).0.is_pausing = false;
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let shared = &self.0.0;
        shared.state().life = Life::Ending;
        shared.changed.notify_all();
        let ended = shared.changed.wait_timeout_while(shared.state(), PATIENCE, |state| state.life != Life::Ended);
        drop(ended);
    }
}

/// A line that is being told.
pub(super) struct Line<'a> {
    lines: &'a Lines,
    is_warning: bool,
}

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.lines.leave(line, self.is_warning);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { lines: self, is_warning: false }
    }

    fn make_writer_for(&'a self, about: &Metadata<'_>) -> Line<'a> {
        Line { lines: self, is_warning: *about.level() <= Level::WARN }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// What was written, and a gate that each write passes: closed for as long as somebody holds it.
    #[derive(Clone, Default)]
    struct Out {
        written: Arc<Mutex<Vec<u8>>>,
        gate: Arc<Mutex<()>>,
    }

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            drop(self.gate.lock());
            self.written.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Out {
        fn lines(&self) -> Vec<String> {
            let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            String::from_utf8_lossy(&written).lines().map(ToOwned::to_owned).collect()
        }
    }

    #[test]
    fn all_lines_are_written_whole_and_in_order_before_the_end() -> io::Result<()> {
        let out = Out::default();
        let (sender, told) = mpsc::channel();
        let (lines, writing) = Lines::start(out.clone(), move |lost| assert!(sender.send(lost).is_ok()))?;
        thread::scope(|scope| {
            for teller in 0..4 {
                let lines = &lines;
                scope.spawn(move || (0..5_000).for_each(|n| lines.leave(format!("{teller} {n}\n").as_bytes(), false)));
            }
        });
        drop(writing);
        // Dropping waits for the writer for a second only; the channel ends with the writer.
        assert_eq!(told.iter().sum::<u64>(), 0);
        let written = out.lines();
        for teller in 0..4 {
            let told: Vec<_> = written.iter().filter_map(|line| line.strip_prefix(&format!("{teller} "))).collect();
            let wanted: Vec<String> = (0..5_000).map(|n| n.to_string()).collect();
            assert_eq!(told, wanted);
        }
        assert_eq!(written.len(), 20_000);
        Ok(())
    }

    #[test]
    fn a_log_that_nobody_takes_keeps_nobody_waiting_and_what_was_lost_is_told() -> io::Result<()> {
        let out = Out::default();
        let (sender, told) = mpsc::channel();
        let (lines, writing) = Lines::start(out.clone(), move |lost| assert!(sender.send(lost).is_ok()))?;
        let line = format!("{}\n", "x".repeat(1_023));
        let closed = out.gate.lock();
        for _ in 0..3 * ROOM / line.len() {
            lines.leave(line.as_bytes(), false);
        }
        lines.leave(b"a warning\n", true);
        drop(closed);
        drop(writing);
        // Several numbers if the writer began late. They end with the writer.
        let lost: u64 = told.iter().sum();
        let written = out.lines();
        assert!(written.iter().any(|line| line == "a warning"), "there is room for warnings");
        assert_eq!(written.len() as u64 - 1 + lost, (3 * ROOM / line.len()) as u64);
        // At most what waited and what was being written.
        assert!(lost >= (ROOM / line.len()) as u64, "{lost}");
        Ok(())
    }
}
