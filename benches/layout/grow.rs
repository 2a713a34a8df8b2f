//! Sends scores over HTTP, a thousand per request, as game servers do.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rand::rngs::StdRng;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{common::BenchResult, spread::Spread};

/// Events per request.
const EVENTS: usize = 1_000;
/// Concurrent requests.
const CALLERS: usize = 4;
/// Delay before a retry when the queue is full.
const PAUSE: Duration = Duration::from_millis(50);

/// The sender and its target.
#[derive(Clone)]
pub struct Sender {
    client: Client,
    url: String,
    key: String,
}

impl Sender {
    pub fn new(address: &str, board: &str, key: &str) -> Self {
        let url = format!("{address}/v1/boards/{board}/scores/batch");
        Self { client: Client::new(), url, key: key.to_owned() }
    }

    /// Sends the scores of new players `first` to `last`. Returns the accepted scores and the
    /// duration.
    pub async fn arrive(
        &self,
        spread: Spread,
        first: u64,
        last: u64,
        random: &mut StdRng,
    ) -> BenchResult<(u64, Duration)> {
        let began = Instant::now();
        let (requests, waiting) = mpsc::channel::<Vec<Value>>(CALLERS);
        let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                let (sender, waiting) = (self.clone(), Arc::clone(&waiting));
                tokio::spawn(async move {
                    let mut sent = 0;
                    loop {
                        let Some(events) = waiting.lock().await.recv().await else { return Ok(sent) };
                        sender.send(&events).await?;
                        sent += events.len() as u64;
                    }
                })
            })
            .collect();
        let mut events = Vec::new();
        for player in first..=last {
            events.extend(spread.arrival(player, random));
            if (events.len() >= EVENTS - 1 || player == last)
                && requests.send(std::mem::take(&mut events)).await.is_err()
            {
                break;
            }
        }
        drop(requests);
        let mut sent = 0;
        for caller in callers {
            sent += caller.await?.map_err(|error: String| error)?;
        }
        Ok((sent, began.elapsed()))
    }

    /// Sends events, and retries until they are written.
    async fn send(&self, events: &[Value]) -> Result<(), String> {
        loop {
            let answer =
                self.client.post(&self.url).bearer_auth(&self.key).json(&json!({ "events": events })).send().await;
            let answer = answer.map_err(|error| error.to_string())?;
            let status = answer.status();
            let text = answer.text().await.map_err(|error| error.to_string())?;
            if status == StatusCode::SERVICE_UNAVAILABLE {
                tokio::time::sleep(PAUSE).await;
            } else if status != StatusCode::OK || text.contains("\"refused\"") {
                return Err(format!("{status}: {}", text.chars().take(500).collect::<String>()));
            } else {
                return Ok(());
            }
        }
    }
}
