//! Measures a command's duration, and the peak memory of the command and of the server.

use std::{
    fs,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use crate::common::{Bench, BenchResult};

/// Sampling interval of memory. The kernel forgets the peak of a process when it ends.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);
/// Interval of the search for server processes.
const SAMPLES_PER_SEARCH: u32 = 10;

/// Measurements of a command.
pub struct Took {
    pub began: Instant,
    pub ended: Instant,
    /// Peak memory of the command's process, in MiB; 0 without /proc.
    pub peak_mib: f64,
    /// Peak memory of a server process without shared memory, in MiB.
    pub server_mib: f64,
    /// Its output.
    pub text: String,
}

impl Took {
    pub fn seconds(&self) -> f64 {
        (self.ended - self.began).as_secs_f64()
    }
}

/// Runs a command and measures it.
pub fn run(bench: &Bench, arguments: &[&str]) -> BenchResult<Took> {
    let began = Instant::now();
    let mut child = bench.command().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let postmaster = fs::read_to_string(bench.servers.postgres.home().join("data/postmaster.pid")).unwrap_or_default();
    let postmaster = postmaster.lines().next().unwrap_or_default();
    let (mut peak_mib, mut server_mib) = (0_f64, 0_f64);
    let mut samples = 0;
    while child.try_wait()?.is_none() {
        peak_mib = peak_mib.max(mib(Path::new(&status), "VmHWM:"));
        if samples % SAMPLES_PER_SEARCH == 0 {
            server_mib = server_mib.max(largest_child(postmaster));
        }
        samples += 1;
        std::thread::sleep(SAMPLE_EVERY);
    }
    let ended = Instant::now();
    let done = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        Ok(Took { began, ended, peak_mib, server_mib, text })
    } else {
        Err(format!("centile {}: {text}{}", arguments.join(" "), String::from_utf8_lossy(&done.stderr)).into())
    }
}

/// Reads a field in KiB of a process's status.
fn mib(status: &Path, field: &str) -> f64 {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / 1024.0
}

/// Returns the memory of the largest child of a process, without shared memory.
fn largest_child(parent: &str) -> f64 {
    let children = |parent: &str| -> Option<String> {
        // A PostgreSQL process has one thread, with the same id as the process.
        fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()
    };
    let children = children(parent).unwrap_or_default();
    let sizes = children.split_whitespace().map(|child| mib(Path::new(&format!("/proc/{child}/status")), "RssAnon:"));
    sizes.fold(0.0, f64::max)
}
