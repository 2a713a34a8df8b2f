//! The load generator: `wrk` with a script for each kind of request, all of it closed loop.

use std::{fs, path::Path, process::Command};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::{
    common::{Outcome, output},
    system::BOARD,
};

/// Events of a bulk.
pub const BULK: u64 = 1_000;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Cell {
    /// Rank of a random player, 32 connections
    Rank,
    /// The same with four neighbours on either side
    Around,
    /// The first ten
    Top,
    /// Ten from rank 500,000, or from the middle
    Page,
    /// One score at a time, one caller
    One,
    /// Scores from 256 callers
    Many,
    /// 1,000 scores a request, four callers
    Bulk,
}

impl Cell {
    pub fn title(self) -> &'static str {
        match self {
            Self::Rank => "rank of a random player",
            Self::Around => "a random player with ±4",
            Self::Top => "top 10",
            Self::Page => "page far down",
            Self::One => "scores, 1 caller",
            Self::Many => "scores, 256 callers",
            Self::Bulk => "scores, bulks of 1,000",
        }
    }

    pub fn connections(self) -> u32 {
        match self {
            Self::Rank | Self::Around | Self::Top | Self::Page => 32,
            Self::One => 1,
            Self::Many => 256,
            Self::Bulk => 4,
        }
    }

    pub fn writes(self) -> bool {
        matches!(self, Self::One | Self::Many | Self::Bulk)
    }

    /// What a request counts for.
    pub fn weight(self) -> f64 {
        if self == Self::Bulk { BULK as f64 } else { 1.0 }
    }

    /// The body of the script's `request`.
    fn request(self, players: u64, page: u64) -> String {
        let scores = format!("/v1/boards/{BOARD}/scores");
        let event = format!(
            r#"'{{"user_id":"player-' .. math.random({players}) .. '","points":' .. math.random(0, 1000) .. '}}'"#
        );
        match self {
            Self::Rank => format!(
                "return wrk.format('GET', '{scores}/player-' .. math.random({players}) .. '?around=0&period=all_time')"
            ),
            Self::Around => format!(
                "return wrk.format('GET', '{scores}/player-' .. math.random({players}) .. '?around=4&period=all_time')"
            ),
            Self::Top => format!("return wrk.format('GET', '{scores}?limit=10')"),
            Self::Page => format!("return wrk.format('GET', '{scores}?from={page}&limit=10')"),
            Self::One | Self::Many => format!("return wrk.format('POST', '{scores}', nil, {event})"),
            Self::Bulk => format!(
                "local events = {{}}\n  for n = 1, {BULK} do events[n] = {event} end\n  \
                 return wrk.format('POST', '{scores}', nil, '[' .. table.concat(events, ',') .. ']')"
            ),
        }
    }
}

/// What a run is made of.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub cell: Cell,
    pub connections: u32,
    pub seconds: u32,
    pub players: u64,
    /// Position of the page far down.
    pub page: u64,
    /// The same seed asks for the same players.
    pub seed: u32,
    /// Server key, where one is asked for.
    pub key: &'a str,
}

/// What a run gave; latencies in milliseconds, of whole requests.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Answers {
    pub requests: u64,
    pub seconds: f64,
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    /// Statuses above 399, failed connections, reads and writes, and time-outs.
    pub errors: u64,
}

/// Asks a server. `dir` keeps the script.
pub fn run(dir: &Path, address: &str, run: Run) -> Outcome<Answers> {
    let Run { cell, connections, seconds, players, page, seed, key } = run;
    let script = dir.join("load.lua");
    let text = format!(
        "math.randomseed({seed})
wrk.headers['Content-Type'] = 'application/json'
wrk.headers['Authorization'] = 'Bearer {key}'
function request()
  {}
end
function done(summary, latency)
  local errors = summary.errors
  local function at(percent) if summary.requests == 0 then return 0 end return latency:percentile(percent) / 1000 end
  io.write(string.format('RESULT {{\"requests\":%d,\"seconds\":%.6f,\"p50\":%.4f,\"p99\":%.4f,\"p999\":%.4f,\"errors\":%d}}\\n',
    summary.requests, summary.duration / 1e6, at(50), at(99), at(99.9),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
",
        cell.request(players, page)
    );
    fs::write(&script, text)?;
    // The time-out is beyond what the slowest need, so that their latencies are seen and not cut.
    let said = output(
        Command::new("wrk")
            .args(["-t1", &format!("-c{connections}"), &format!("-d{seconds}s"), "--timeout", "60s", "-s"])
            .arg(&script)
            .arg(address),
    )?;
    let line = said.lines().find_map(|line| line.strip_prefix("RESULT ")).ok_or("wrk printed no result")?;
    Ok(serde_json::from_str(line)?)
}

/// The version of the load generator.
pub fn version() -> String {
    // Its help goes out with a status of failure.
    let said = Command::new("wrk").arg("-v").output().map(|said| said.stdout).unwrap_or_default();
    String::from_utf8_lossy(&said).split(" [").next().unwrap_or_default().trim().to_owned()
}
