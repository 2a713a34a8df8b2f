//! Closed-loop load with `wrk` and a script.

use std::{fs, path::Path, process::Command};

use serde::Deserialize;

use super::{BenchResult, output};

/// Parameters of a run.
pub struct Run<'a> {
    pub address: &'a str,
    pub connections: u32,
    pub seconds: u32,
    /// Random seed of the players.
    pub seed: u32,
    /// Server key; empty if not required.
    pub key: &'a str,
    /// Lua expression of the request.
    pub request: &'a str,
    /// Whether requests differ. Building requests costs `wrk` time that it needs for sending.
    pub varies: bool,
}

/// Results of a run; latencies of whole requests, in milliseconds.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Answers {
    pub requests: u64,
    pub seconds: f64,
    pub p50: f64,
    pub p99: f64,
    #[allow(dead_code, reason = "one benchmark does not use it")]
    pub p999: f64,
    /// Statuses above 399, failed connections, reads and writes, and timeouts.
    pub errors: u64,
}

/// Runs wrk against a server. Writes the script to `dir`.
pub fn run(dir: &Path, load: &Run<'_>) -> BenchResult<Answers> {
    let Run { address, connections, seconds, seed, key, request, varies } = load;
    let script = dir.join("load.lua");
    let (once, each) = if *varies { ("nil", *request) } else { (*request, "once") };
    let text = format!(
        "math.randomseed({seed})
wrk.headers['Content-Type'] = 'application/json'
wrk.headers['Authorization'] = 'Bearer {key}'
local once
function init() once = {once} end
function request()
  return {each}
end
function done(summary, latency)
  local errors = summary.errors
  local function at(percent) if summary.requests == 0 then return 0 end return latency:percentile(percent) / 1000 end
  io.write(string.format('RESULT {{\"requests\":%d,\"seconds\":%.6f,\"p50\":%.4f,\"p99\":%.4f,\"p999\":%.4f,\"errors\":%d}}\\n',
    summary.requests, summary.duration / 1e6, at(50), at(99), at(99.9),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"
    );
    fs::write(&script, text)?;
    // The timeout exceeds the slowest response, so that no latency is cut off.
    let said = output(
        Command::new("wrk")
            .args(["-t1", &format!("-c{connections}"), &format!("-d{seconds}s"), "--timeout", "60s", "-s"])
            .arg(&script)
            .arg(address),
    )?;
    let line = said.lines().find_map(|line| line.strip_prefix("RESULT ")).ok_or("wrk printed no result")?;
    Ok(serde_json::from_str(line)?)
}

/// Returns the version of wrk.
#[allow(dead_code, reason = "one benchmark does not use it")]
pub fn version() -> String {
    // wrk exits with a failure after printing its version.
    let said = Command::new("wrk").arg("-v").output().map(|said| said.stdout).unwrap_or_default();
    String::from_utf8_lossy(&said).split(" [").next().unwrap_or_default().trim().to_owned()
}
