//! Processor time of processes.

use std::fs;

use centile::dev::local::LocalPostgres;

use super::BenchResult;

/// Ticks per second in /proc, on every Linux since 2.6.
const TICKS: f64 = 100.0;

/// Fields of `/proc/PID/stat`, after the name of the program.
struct Stat {
    parent: u32,
    /// Ticks of the process.
    own: u64,
    /// Ticks of its children that have ended.
    children: u64,
}

fn stat(process: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |from: usize| Some(fields.get(from)?.parse::<u64>().ok()? + fields.get(from + 1)?.parse::<u64>().ok()?);
    Some(Stat { parent: fields.get(1)?.parse().ok()?, own: ticks(11)?, children: ticks(13)? })
}

/// Returns the processor time of a process so far, in seconds.
pub fn process_seconds(process: u32) -> BenchResult<f64> {
    Ok(stat(process).ok_or("the process has ended")?.own as f64 / TICKS)
}

/// Returns the processor time of all processes of a server so far, in seconds.
pub fn server_seconds(server: &LocalPostgres) -> BenchResult<f64> {
    let file = fs::read_to_string(server.home().join("data/postmaster.pid"))?;
    let postmaster: u32 = file.lines().next().ok_or("postmaster.pid is empty")?.trim().parse()?;
    let own = stat(postmaster).ok_or("the server has ended")?;
    let mut ticks = own.own + own.children;
    for entry in fs::read_dir("/proc")? {
        let process = entry?.file_name().to_string_lossy().parse().ok();
        if let Some(stat) = process.and_then(stat).filter(|stat| stat.parent == postmaster) {
            ticks += stat.own;
        }
    }
    Ok(ticks as f64 / TICKS)
}
