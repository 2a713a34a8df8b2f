//! Server processes that end with this process.

use std::{
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{Error, Result};

/// Poll interval of [`wait_until`].
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// Shell script of the watchdog.
///
/// It reads commands from standard input: `watch PID` sets the process to watch, `done` ends the
/// script. End of input without `done` means that this process has died, possibly by `kill -9`. The
/// watchdog then stops the watched process and removes its folders.
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

/// Stops a process and removes folders when this process dies, even by `kill -9`.
///
/// Dropping the watchdog also stops the watched process, unless [`Watchdog::forget`] was called.
#[derive(Debug)]
pub struct Watchdog {
    shell: Child,
    /// Standard input of the shell; closing it triggers the watchdog.
    stdin: Option<ChildStdin>,
    watches: bool,
}

impl Watchdog {
    /// Starts a watchdog that watches no process yet.
    ///
    /// It removes the `ephemeral` folders if this process dies, or if the value is dropped while it
    /// watches a process.
    pub fn new(ephemeral: &[&Path]) -> Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", WATCHDOG, "sh"])
            .args(ephemeral)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed("start a shell to watch a server"))?;
        let stdin = shell.stdin.take();
        Ok(Self { shell, stdin, watches: false })
    }

    /// Watches process `pid` instead of the previous one.
    pub fn watch(&mut self, pid: u32) -> Result<()> {
        self.watches = true;
        self.send(&format!("watch {pid}\n"))
    }

    /// Stops watching. Call it once the process was waited for, because its id may be reused.
    pub fn forget(&mut self) -> Result<()> {
        self.watches = false;
        self.send("watch\n")
    }

    fn send(&mut self, command: &str) -> Result<()> {
        match &mut self.stdin {
            Some(stdin) => stdin.write_all(command.as_bytes()).map_err(failed("write to a watchdog")),
            None => Ok(()),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if !self.watches {
            self.send("done\n").ok();
        }
        self.stdin = None;
        self.shell.wait().ok();
    }
}

/// A server process that can be restarted.
///
/// It has its own process group, so that Ctrl-C on the terminal does not reach it. A watchdog stops
/// it when this process dies.
#[derive(Debug)]
pub(crate) struct Process {
    child: Option<Child>,
    watchdog: Watchdog,
}

impl Process {
    /// Returns a process that is not started. The `ephemeral` folders are removed if this process
    /// dies before the value is dropped.
    pub(crate) fn new(ephemeral: &[&Path]) -> Result<Self> {
        Ok(Self { child: None, watchdog: Watchdog::new(ephemeral)? })
    }

    /// Starts `command`, unless the process is running.
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

    /// Returns the process id, if it was started and not stopped.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Sends the named signal if the process is running.
    pub(crate) fn signal(&mut self, name: &str) -> Result<()> {
        match self.id() {
            // The id of a child that was not waited for cannot be reused.
            Some(id) if self.runs() => signal(id, name),
            _ => Ok(()),
        }
    }

    /// Stops the process with signal `name`, or with SIGKILL after `timeout`.
    pub(crate) fn stop(&mut self, name: &str, timeout: Duration) -> Result<()> {
        self.signal(name)?;
        let ended = wait_until(timeout, || !self.runs());
        let Some(mut child) = self.child.take() else { return Ok(()) };
        if !ended {
            child.kill().map_err(failed("kill a server"))?;
        }
        child.wait().map_err(failed("wait for a server"))?;
        self.watchdog.forget()
    }
}

/// Sends the signal `name` (`TERM`, `KILL`, `STOP`, …) to one process.
///
/// Uses the shell's built-in `kill`: sending a signal needs `unsafe` in Rust, and not every system
/// has a `kill` program.
pub fn signal(pid: u32, name: &str) -> Result<()> {
    let status = Command::new("sh")
        .args(["-c", r#"kill -"$1" "$2""#, "sh", name, &pid.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(failed("start a shell"))?;
    if status.success() { Ok(()) } else { Err(Error::Internal(format!("cannot send SIG{name} to process {pid}"))) }
}

/// Waits until `done` returns `true`. Returns `false` after `timeout`.
pub(crate) fn wait_until(timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + timeout;
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

/// Converts an [`io::Error`] into the error "cannot `what`: …".
pub(crate) fn failed(what: &str) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::Internal(format!("cannot {what}: {error}"))
}
