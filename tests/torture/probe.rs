//! A probe that waits until the service has recovered, and the memory of a process.

use std::{
    fs,
    time::{Duration, Instant},
};

use reqwest::{Client, StatusCode};
use serde_json::json;

use crate::support::Serve;

/// Timeout of a recovery.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Creates the probe's own board.
pub const BOARD: &str = "SELECT centile.create_board('probe', '{\"lanes\": 1}')";

/// Waits until a score is accepted and a player is read. Returns the time since `since`. Until then
/// every answer must be 503 or a connection error.
pub async fn until_recovered(serve: &Serve, key: &str, since: Instant) -> Duration {
    let client = Client::builder().timeout(Duration::from_secs(30)).build().expect("a client");
    let scores = serve.at("/v1/boards/probe/scores");
    loop {
        let event = json!({"user_id": "probe", "points": 1});
        let written =
            client.post(&scores).bearer_auth(key).json(&event).send().await.ok().map(|answer| answer.status());
        // While PostgreSQL is unreachable, a board that is not cached needs a key: its rights may
        // have changed.
        let read =
            client.get(format!("{scores}/probe")).bearer_auth(key).send().await.ok().map(|answer| answer.status());
        for status in [written, read].into_iter().flatten() {
            assert!(
                [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE, StatusCode::NOT_FOUND].contains(&status),
                "{status}"
            );
        }
        if (written, read) == (Some(StatusCode::OK), Some(StatusCode::OK)) {
            return since.elapsed();
        }
        assert!(since.elapsed() < TIMEOUT, "not recovered: {written:?}, {read:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the memory of a process in megabytes: current (`VmRSS`) or maximum (`VmHWM`).
pub fn memory_mb(process: u32, which: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(which)).expect("its memory");
    let kb: f64 = line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().expect("a number");
    kb / 1024.0
}
