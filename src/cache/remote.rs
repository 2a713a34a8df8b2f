//! The cache in Redis.
//!
//! Calls borrow connections from a pool, and a background task opens them. So no call waits for a
//! connection to open. After a call without an answer, all calls are skipped until the task has
//! checked the connections.
//!
//! Each connection is multiplexed: Redis answers requests in order, and the answer to a dropped
//! call is read and discarded. So a connection stays usable after a call that timed out. The pool
//! pings a connection before it lends it, and drops one that does not answer.

use std::{fs, path::Path, sync::Arc, time::Duration};

use deadpool_redis::{
    Manager, Pool, Runtime, Timeouts,
    redis::{
        AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, IntoConnectionInfo as _, RedisError,
        TlsCertificates, cmd,
    },
};
use futures::future::join_all;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::{
    Error, Result,
    cache::{Failure, MAX_BYTES},
};

/// Connections of the pool. A call takes one for two round trips.
const CONNECTIONS: usize = 8;

/// Timeout of a call, including the wait for a connection and its ping.
const CALL_TIMEOUT: Duration = Duration::from_millis(50);

/// Timeout for opening a connection, including TLS and authentication.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Milliseconds between two checks of a Redis that does not answer.
const PAUSE_MS: u64 = 1_000;

/// Timeouts of a call. It opens no connection.
const LENDING: Timeouts =
    Timeouts { wait: Some(CALL_TIMEOUT), create: Some(Duration::ZERO), recycle: Some(CALL_TIMEOUT) };

/// Timeouts of the background task.
const OPENING: Timeouts =
    Timeouts { wait: Some(CONNECT_TIMEOUT), create: Some(CONNECT_TIMEOUT), recycle: Some(CALL_TIMEOUT) };

/// Keys that one SCAN inspects, which takes less than a millisecond of the server's time.
const SCAN_COUNT: u32 = 1_000;

/// A Redis server that may be unreachable at any time.
#[derive(Debug)]
pub(super) struct Remote {
    pool: Pool,
    prefix: String,
    state: watch::Sender<State>,
}

/// Whether calls go to Redis. While they do not, a background task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Calls go to Redis.
    Up,
    /// The connections are checked for the first time, or since a call without an answer.
    Checking,
    /// The last check failed. The task repeats it.
    Down,
}

impl Remote {
    /// Creates a client and starts to connect. Call it within a Tokio runtime.
    ///
    /// `authorities` is a PEM file with the certificate authorities trusted for TLS; the system's
    /// by default. [`Error::Invalid`] if the file cannot be read or `url` is not a Redis URL. The
    /// message does not repeat the URL, which may hold a password.
    pub(super) fn new(url: &str, authorities: Option<&Path>, prefix: String) -> Result<Arc<Self>> {
        let root_cert = authorities.map(fs::read).transpose();
        let root_cert = root_cert.map_err(|error| Error::invalid("REDIS_CA", format!("cannot be read: {error}")))?;
        // Check the URL first, so that a bad URL is not reported as a bad certificate.
        let refused =
            |_| Error::invalid("REDIS_URL", "must be a Redis URL such as redis://host:6379/0, or rediss:// for TLS");
        let mut address = url.into_connection_info().map_err(refused)?;
        if root_cert.is_some() {
            let client = Client::build_with_tls(address, TlsCertificates { client_tls: None, root_cert });
            let client = client.map_err(|_| {
                Error::invalid("REDIS_CA", "must be a file of PEM certificates, and needs a rediss:// URL")
            })?;
            address = client.get_connection_info().clone();
        }
        // The pool and `call` have the timeouts.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let manager = Manager::new_with_config(address, config).map_err(refused)?;
        let pool = Pool::builder(manager).max_size(CONNECTIONS).runtime(Runtime::Tokio1).build();
        let pool = pool.map_err(|error| Error::Internal(format!("no pool for Redis: {error}")))?;
        let remote = Arc::new(Self { pool, prefix, state: watch::Sender::new(State::Checking) });
        remote.check();
        Ok(remote)
    }

    /// Returns the bytes stored under `key`. More than [`MAX_BYTES`] are a mismatch.
    pub(super) async fn get(self: &Arc<Self>, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        // GETRANGE limits the transfer if another program stored a larger value. It returns an
        // empty string for an absent key; no frame is empty.
        let bytes: Vec<u8> = self.call(cmd("GETRANGE").arg(key).arg(0).arg(MAX_BYTES)).await?;
        match bytes.len() {
            0 => Ok(None),
            length if length > MAX_BYTES => Err(Failure::Mismatch),
            _ => Ok(Some(bytes)),
        }
    }

    /// Stores `bytes` under `key` for `lifetime`, replacing any value.
    pub(super) async fn put(self: &Arc<Self>, key: &str, bytes: &[u8], lifetime: Duration) -> Result<(), Failure> {
        self.call(cmd("SET").arg(key).arg(bytes).arg("EX").arg(lifetime.as_secs())).await
    }

    /// Removes every key that matches `pattern`, in steps of [`SCAN_COUNT`]. Waits for a check in
    /// progress.
    pub(super) async fn remove(self: &Arc<Self>, pattern: &str) -> Result<(), Failure> {
        self.checked().await;
        let mut cursor = 0;
        loop {
            let mut scan = cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SCAN_COUNT);
            let (next, keys): (u64, Vec<Vec<u8>>) = self.call(&scan).await?;
            if !keys.is_empty() {
                self.call::<u64>(cmd("UNLINK").arg(keys)).await?;
            }
            if next == 0 {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// Returns whether Redis answers now.
    pub(super) async fn ping(self: &Arc<Self>) -> bool {
        timeout(CALL_TIMEOUT, self.checked()).await.is_ok() && self.call::<String>(&cmd("PING")).await.is_ok()
    }

    /// Returns whether calls are skipped because Redis does not answer.
    pub(super) fn is_down(&self) -> bool {
        *self.state.borrow() == State::Down
    }

    /// Waits for the end of a check in progress.
    pub(super) async fn checked(&self) {
        // The sender lives as long as `self`.
        let _ = self.state.subscribe().wait_for(|state| *state != State::Checking).await;
    }

    /// Runs a command, if Redis answered the last one.
    async fn call<T: FromRedisValue>(self: &Arc<Self>, command: &Cmd) -> Result<T, Failure> {
        if *self.state.borrow() != State::Up {
            return Err(Failure::BreakerOpen);
        }
        // Boxed, because the pool's future takes 29 kB, and every read would have room for it.
        let failure = match timeout(CALL_TIMEOUT, Box::pin(self.query(command))).await {
            Ok(Ok(value)) => return Ok(value),
            // The server works, but the value has another type.
            Ok(Err(error)) if error.code() == Some("WRONGTYPE") => return Err(Failure::Mismatch),
            Ok(Err(error)) if is_refusal(&error) => return Err(Failure::Refused),
            Ok(Err(_)) => Failure::Connection,
            Err(_) => Failure::Timeout,
        };
        let was_up = self.state.send_if_modified(|state| {
            let was_up = *state == State::Up;
            if was_up {
                *state = State::Checking;
            }
            was_up
        });
        if was_up {
            self.check();
        }
        Err(failure)
    }

    /// Starts to check the connections, until Redis answers.
    fn check(self: &Arc<Self>) {
        let remote = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(remote) = remote.upgrade() {
                let (answer, prefix) = (remote.connect().await, &remote.prefix);
                let state = if answer.is_ok() { State::Up } else { State::Down };
                let before = remote.state.send_replace(state);
                match answer {
                    Ok(()) if before == State::Down => tracing::info!(%prefix, "cache {prefix}: Redis answers again"),
                    Err(reason) if before == State::Checking => tracing::warn!(
                        %prefix, pause_ms = PAUSE_MS, %reason,
                        "cache {prefix}: Redis does not answer; skipping it, with a retry every {PAUSE_MS} ms"
                    ),
                    Ok(()) | Err(_) => {}
                }
                if state == State::Up {
                    return;
                }
                drop(remote);
                sleep(Duration::from_millis(PAUSE_MS)).await;
            }
        });
    }

    /// Checks all connections, opens missing ones, and pings Redis as a call does.
    async fn connect(&self) -> Result<(), String> {
        // All at once, so that each is a different one.
        let opened = join_all((0..CONNECTIONS).map(|_| self.pool.timeout_get(&OPENING))).await;
        if let Some(Err(error)) = opened.iter().find(|_| opened.iter().all(Result::is_err)) {
            return Err(error.to_string());
        }
        drop(opened);
        match timeout(CALL_TIMEOUT, self.query::<String>(&cmd("PING"))).await {
            Ok(Ok(answer)) if answer == "PONG" => Ok(()),
            Ok(Ok(_)) => Err("it answers something else".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {} ms", CALL_TIMEOUT.as_millis())),
        }
    }

    /// Runs a command on an open connection.
    async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        let connection = self.pool.timeout_get(&LENDING).await;
        let mut connection =
            connection.map_err(|error| RedisError::from((ErrorKind::Io, "no connection", error.to_string())))?;
        command.query_async(&mut connection).await
    }
}

/// Returns whether the server answered with an error: out of memory, loading, read-only, …
fn is_refusal(error: &RedisError) -> bool {
    error.code().is_some() && !error.is_unrecoverable_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_bad_url_does_not_repeat_it() {
        for url in ["", "nonsense", "http://:sesame@host", "redis://:sesame@host:port", "rediss://:sesame@host:port"] {
            let error = Remote::new(url, None, "p".to_owned()).map(|_| ()).map_err(|error| error.to_string());
            assert!(error.as_ref().is_err_and(|text| text.starts_with("REDIS_URL: ")), "{url}: {error:?}");
            assert!(error.is_err_and(|text| !text.contains("sesame")), "{url}");
        }
    }
}
