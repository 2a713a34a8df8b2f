//! Two instances, and calls to either.

use std::{
    io::Write as _,
    process::Stdio,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rand::{RngExt as _, rngs::StdRng};
use reqwest::Method;
use serde_json::Value;

use crate::support::{Serve, TestDb, centile, folder, load::PATIENT, spawn_serve};

/// Maximum lag of a top list behind writes of the other instance, with a margin for a busy machine.
const TOP_LAG: Duration = Duration::from_secs(2);

/// The service, as two processes.
#[derive(Debug)]
pub struct Client {
    instances: [Serve; 2],
    database_url: String,
    key: String,
    /// When the last write was acknowledged, and by which instance; `None` if by neither.
    last_write: Mutex<(Instant, Option<usize>)>,
}

impl Client {
    /// Starts both instances, and creates a key for everything.
    pub async fn start(db: &TestDb, redis: &str) -> Self {
        Self::of(db, [spawn_serve(db, Some(redis), PATIENT).await, spawn_serve(db, None, PATIENT).await])
    }

    /// Wraps two running instances on `db`.
    pub fn of(db: &TestDb, instances: [Serve; 2]) -> Self {
        let output = centile()
            .args(["key", "create", "--name", "tests", "--role", "admin"])
            .env("DATABASE_URL", db.url())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        Self {
            instances,
            database_url: db.url().to_owned(),
            key: String::from_utf8(output.stdout).unwrap().trim().to_owned(),
            last_write: Mutex::new((Instant::now(), None)),
        }
    }

    /// Reads from a random instance.
    pub async fn get(&self, path: &str, rng: &mut StdRng) -> (u16, Value) {
        self.call(Method::GET, path, None, rng.random_range(0..2)).await
    }

    /// Reads chosen players whose ids are too many for a URL.
    pub async fn query(&self, path: &str, body: &Value, rng: &mut StdRng) -> (u16, Value) {
        self.call(Method::POST, path, Some(body), rng.random_range(0..2)).await
    }

    /// Reads a top list until it is `expected`: at once from the last writer, within the lag from
    /// the other instance.
    pub async fn top(&self, path: &str, rng: &mut StdRng, expected: impl Fn(&Value) -> bool) -> Value {
        let instance = rng.random_range(0..2);
        loop {
            let (at, writer) = *self.last_write.lock().unwrap_or_else(PoisonError::into_inner);
            // Checked before the request, because only a later request must include the write.
            let has_to_be_right = writer == Some(instance) || at.elapsed() > TOP_LAG;
            let (status, answer) = self.call(Method::GET, path, None, instance).await;
            assert_eq!(status, 200, "{path}: {answer}");
            if has_to_be_right || expected(&answer) {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn post(&self, path: &str, body: &Value, rng: &mut StdRng) -> (u16, Value) {
        self.write(Method::POST, path, Some(body), rng).await
    }

    pub async fn put(&self, path: &str, body: &Value, rng: &mut StdRng) -> (u16, Value) {
        let answer = self.write(Method::PUT, path, Some(body), rng).await;
        // A cached top list may have an old name on every instance.
        self.wrote_elsewhere();
        answer
    }

    async fn write(&self, method: Method, path: &str, body: Option<&Value>, rng: &mut StdRng) -> (u16, Value) {
        let instance = rng.random_range(0..2);
        let answer = self.call(method, path, body, instance).await;
        let mut last = self.last_write.lock().unwrap_or_else(PoisonError::into_inner);
        // The other instance's top list may lag behind this one's earlier write.
        let seen = last.1 == Some(instance) || last.0.elapsed() > TOP_LAG;
        *last = (Instant::now(), seen.then_some(instance));
        drop(last);
        answer
    }

    /// Records a write that neither instance made.
    pub fn wrote_elsewhere(&self) {
        *self.last_write.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), None);
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>, instance: usize) -> (u16, Value) {
        let serve = &self.instances[instance];
        let mut request = serve.client.request(method, serve.at(path)).bearer_auth(&self.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        assert!(status < 500, "{path}: {status} {text}");
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// Imports NDJSON lines by the command; all of them must be accepted.
    pub async fn import(&self, board: &str, lines: String) {
        let rejects = folder("rejects");
        let mut command = centile();
        command.args(["import", "-", "--format", "ndjson", "--board", board, "--rejects"]).arg(rejects);
        command.env("DATABASE_URL", &self.database_url);
        let import = move || {
            let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = piped.spawn().unwrap();
            child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?} of {lines}");
        };
        tokio::task::spawn_blocking(import).await.unwrap();
        self.wrote_elsewhere();
    }
}

/// Encodes a text for a path or a parameter.
pub fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
