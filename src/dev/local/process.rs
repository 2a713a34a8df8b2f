//! A server process that does not outlive this one.

use std::{
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{Error, Result};

/// How often a state is looked at again while waiting for it.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// What the watchdog runs. It hears over its standard input which process to watch (`watch PID`) and that all is well
/// (`done`). When the input ends without `done`, this process is gone, however it went (also by `kill -9`), and the
/// watchdog stops the server and removes the folders it was given.
const WATCHDOG: &str = r#"
trap '' INT TERM HUP QUIT PIPE
pid=
while read -r word value; do
    case $word in
        watch) pid=$value ;;
        done) exit 0 ;;
    esac
done
if [ -n "$pid" ]; then
    kill -CONT "$pid"; kill -INT "$pid"
    tries=0
    while kill -0 "$pid"; do
        tries=$((tries + 1))
        if [ "$tries" -ge 100 ]; then kill -KILL "$pid"; break; fi
        sleep 0.1
    done
fi
[ $# -eq 0 ] || rm -rf -- "$@" || { sleep 1; rm -rf -- "$@"; }
"#;

/// Stops a process, and removes folders, when this process ends before it has seen to that itself, even by `kill -9`.
///
/// Dropping the value is like that end, unless [`Watchdog::forget`] came before: what is watched is stopped.
#[derive(Debug)]
pub struct Watchdog {
    shell: Child,
    /// What the shell listens to; closing it sets the watchdog off.
    line: Option<ChildStdin>,
    watches: bool,
}

impl Watchdog {
    /// One that watches no process yet. The folders `doomed` go if this process ends while one is watched, or while
    /// none is and this value has not been dropped.
    pub fn new(doomed: &[&Path]) -> Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", WATCHDOG, "sh"])
            .args(doomed)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed("start a shell to watch a server"))?;
        let line = shell.stdin.take();
        Ok(Self { shell, line, watches: false })
    }

    /// Watches the process of this id, instead of the one before.
    pub fn watch(&mut self, pid: u32) -> Result<()> {
        self.watches = true;
        self.tell(&format!("watch {pid}\n"))
    }

    /// Watches no process: it has been waited for, and its id may become another's.
    pub fn forget(&mut self) -> Result<()> {
        self.watches = false;
        self.tell("watch\n")
    }

    fn tell(&mut self, order: &str) -> Result<()> {
        match &mut self.line {
            Some(line) => line.write_all(order.as_bytes()).map_err(failed("talk to a watchdog")),
            None => Ok(()),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if !self.watches {
            self.tell("done\n").ok();
        }
        self.line = None;
        self.shell.wait().ok();
    }
}

/// A server's process, now and after each new start: in a process group of its own, so that Ctrl-C on the terminal
/// reaches us and not the server, and watched, so that it ends when this process ends.
#[derive(Debug)]
pub(crate) struct Process {
    child: Option<Child>,
    watchdog: Watchdog,
}

impl Process {
    /// None yet. The folders `doomed` go when this process dies before this value is dropped.
    pub(crate) fn new(doomed: &[&Path]) -> Result<Self> {
        Ok(Self { child: None, watchdog: Watchdog::new(doomed)? })
    }

    /// Starts `command`, unless one runs already.
    pub(crate) fn start(&mut self, mut command: Command) -> Result<()> {
        if self.runs() {
            return Ok(());
        }
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::null()).process_group(0).spawn().map_err(failed(&format!("start {name}")))?;
        self.watchdog.watch(child.id())?;
        self.child = Some(child);
        Ok(())
    }

    /// The id of the process, if one was started and not stopped.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Whether there is one that has not ended.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Sends a signal by name, if it runs.
    pub(crate) fn signal(&mut self, name: &str) -> Result<()> {
        match self.id() {
            // The id of a child that has not been waited for cannot be another process's.
            Some(id) if self.runs() => signal(id, name),
            _ => Ok(()),
        }
    }

    /// Stops it by signal `name`, or by SIGKILL when it has not ended after `patience`.
    pub(crate) fn stop(&mut self, name: &str, patience: Duration) -> Result<()> {
        self.signal(name)?;
        let ended = wait_until(patience, || !self.runs());
        let Some(mut child) = self.child.take() else { return Ok(()) };
        if !ended {
            child.kill().map_err(failed("kill a server"))?;
        }
        child.wait().map_err(failed("wait for a server"))?;
        self.watchdog.forget()
    }
}

/// Sends the signal called `name` (`TERM`, `KILL`, `STOP`, …) to one process.
///
/// Through the shell, whose `kill` is built in: sending a signal takes `unsafe` in Rust, and a `kill` program is not
/// everywhere.
pub fn signal(pid: u32, name: &str) -> Result<()> {
    let status = Command::new("sh")
        .args(["-c", r#"kill -"$1" "$2""#, "sh", name, &pid.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(failed("start a shell"))?;
    if status.success() { Ok(()) } else { Err(Error::Internal(format!("cannot send SIG{name} to process {pid}"))) }
}

/// Waits until `done` says so; `false` when `patience` has run out before.
pub(crate) fn wait_until(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(POLL);
    }
}

/// Turns an [`io::Error`] into "cannot `what`: …".
pub(crate) fn failed(what: &str) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::Internal(format!("cannot {what}: {error}"))
}
