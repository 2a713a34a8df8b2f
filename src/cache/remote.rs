//! The cache in Redis.
//!
//! All calls share one connection. A background task opens, pings and replaces it, through a pool
//! of size 1. So no call waits for a connection to open, or to become free. After a call without an
//! answer, all calls are skipped until the task has checked the connection.
//!
//! The connection is multiplexed: Redis answers requests in order, and the answer to a dropped call
//! is read and discarded. So the connection stays usable after a call that timed out.

use std::{
    fs,
    panic::AssertUnwindSafe,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use deadpool_redis::{
    Manager, Pool, Runtime, Timeouts,
    redis::{
        AsyncConnectionConfig, Client, Cmd, FromRedisValue, IntoConnectionInfo as _, RedisError, TlsCertificates,
        aio::MultiplexedConnection, cmd,
    },
};
use futures::FutureExt as _;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::{
    Error, Result,
    background::Background,
    cache::{Failure, MAX_BYTES},
};

const CALL_TIMEOUT: Duration = Duration::from_millis(50);

/// Timeout for opening the connection, including TLS and authentication.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum wait for a check: a ping of the present connection, then a new one and its ping.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// Milliseconds between two checks of a Redis that does not answer.
const PAUSE_MS: u64 = 1_000;

/// Maximum keys that one command removes.
const KEYS_AT_ONCE: usize = 100;

/// A Redis server that may be unreachable at any time.
#[derive(Debug)]
pub(super) struct Remote {
    pool: Pool,
    prefix: String,
    background: Background,
    state: watch::Sender<State>,
    reads: Kind,
    writes: Kind,
}

/// Whether calls go to Redis. While they do not, a background task runs.
#[derive(Debug, Clone)]
enum State {
    Up(MultiplexedConnection),
    /// Redis is checked for the first time, or since a call without an answer.
    Checking,
    /// The last check failed. The task repeats it.
    Down,
}

/// A kind of commands. Redis may refuse one kind only: when it is full, it refuses writes.
#[derive(Debug)]
struct Kind {
    name: &'static str,
    is_refused: AtomicBool,
}

impl Kind {
    fn new(name: &'static str) -> Self {
        Self { name, is_refused: AtomicBool::new(false) }
    }
}

impl Remote {
    /// Creates a client and starts to connect. Call it within a Tokio runtime.
    ///
    /// `authorities` is a PEM file with the certificate authorities trusted for TLS; the system's
    /// by default. [`Error::Invalid`] if the file cannot be read or `url` is not a Redis URL. The
    /// message does not repeat the URL, which may hold a password.
    pub(super) fn new(
        url: &str,
        authorities: Option<&Path>,
        prefix: String,
        background: Background,
    ) -> Result<Arc<Self>> {
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
        let timeouts = Timeouts { wait: None, create: Some(CONNECT_TIMEOUT), recycle: Some(CALL_TIMEOUT) };
        let pool = Pool::builder(manager).max_size(1).timeouts(timeouts).runtime(Runtime::Tokio1).build();
        let pool = pool.map_err(|error| Error::Internal(format!("no pool for Redis: {error}")))?;
        let (state, reads, writes) = (watch::Sender::new(State::Checking), Kind::new("reads"), Kind::new("writes"));
        let remote = Arc::new(Self { pool, prefix, background, state, reads, writes });
        remote.check();
        Ok(remote)
    }

    /// Returns the bytes stored under `key`. More than [`MAX_BYTES`] are a mismatch.
    pub(super) async fn get(self: &Arc<Self>, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        // GETRANGE limits the transfer if another program stored a larger value. It returns an
        // empty string for an absent key; no value is empty.
        let bytes: Vec<u8> = self.call(&self.reads, cmd("GETRANGE").arg(key).arg(0).arg(MAX_BYTES)).await?;
        match bytes.len() {
            0 => Ok(None),
            length if length > MAX_BYTES => Err(Failure::Mismatch),
            _ => Ok(Some(bytes)),
        }
    }

    /// Stores `text` under `key` for `lifetime`, or without expiry, replacing any value.
    pub(super) async fn put(
        self: &Arc<Self>,
        key: &str,
        text: &str,
        lifetime: Option<Duration>,
    ) -> Result<(), Failure> {
        let mut set = cmd("SET");
        set.arg(key).arg(text);
        if let Some(lifetime) = lifetime {
            set.arg("EX").arg(lifetime.as_secs());
        }
        self.call(&self.writes, &set).await
    }

    /// Removes these keys. Waits for a check in progress.
    pub(super) async fn remove(self: &Arc<Self>, keys: &[String]) -> Result<(), Failure> {
        self.checked().await;
        let mut removed = Ok(());
        for keys in keys.chunks(KEYS_AT_ONCE) {
            removed = removed.and(self.call::<u64>(&self.writes, cmd("UNLINK").arg(keys)).await.map(drop));
        }
        removed
    }

    /// Returns whether Redis answers a read now.
    pub(super) async fn answers(self: &Arc<Self>) -> bool {
        timeout(CALL_TIMEOUT, self.checked()).await.ok();
        self.get(&format!("{}:", self.prefix)).await.is_ok()
    }

    /// Returns whether calls are skipped because Redis does not answer.
    pub(super) fn is_down(&self) -> bool {
        matches!(*self.state.borrow(), State::Down)
    }

    /// Waits for the end of a check in progress.
    pub(super) async fn checked(&self) {
        let mut state = self.state.subscribe();
        timeout(CHECK_TIMEOUT, state.wait_for(|state| !matches!(state, State::Checking))).await.ok();
    }

    /// Runs a command, if Redis answered the last one.
    async fn call<T: FromRedisValue>(self: &Arc<Self>, kind: &Kind, command: &Cmd) -> Result<T, Failure> {
        let State::Up(mut connection) = self.state.borrow().clone() else { return Err(Failure::Skipped) };
        let failure = match timeout(CALL_TIMEOUT, command.query_async(&mut connection)).await {
            Ok(Ok(value)) => {
                self.record_refusal(kind, None);
                return Ok(value);
            }
            // The server works, but the value has another type.
            Ok(Err(error)) if error.code() == Some("WRONGTYPE") => return Err(Failure::Mismatch),
            Ok(Err(error)) if is_refusal(&error) => {
                self.record_refusal(kind, Some(&error));
                return Err(Failure::Refused);
            }
            Ok(Err(_)) => Failure::Connection,
            Err(_) => Failure::Timeout,
        };
        let was_up = self.state.send_if_modified(|state| {
            let was_up = matches!(state, State::Up(_));
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

    /// Logs when Redis begins or ceases to refuse commands of this kind.
    fn record_refusal(&self, kind: &Kind, refusal: Option<&RedisError>) {
        let Kind { name, is_refused } = kind;
        if is_refused.swap(refusal.is_some(), Ordering::Relaxed) == refusal.is_some() {
            return;
        }
        let prefix = &self.prefix;
        if let Some(reason) = refusal {
            tracing::warn!(%prefix, %reason, "cache {prefix}: Redis refuses {name}");
        } else {
            tracing::info!(%prefix, "cache {prefix}: Redis accepts {name} again");
        }
    }

    /// Starts to check Redis, until it answers.
    fn check(self: &Arc<Self>) {
        let remote = Arc::downgrade(self);
        self.background.spawn(async move {
            while let Some(remote) = remote.upgrade() {
                // No other task would continue after a panic.
                let checking = AssertUnwindSafe(remote.connection()).catch_unwind();
                let answer = checking.await.unwrap_or_else(|_| Err("the check panicked".to_owned()));
                let (state, reason) = match answer {
                    Ok(connection) => (State::Up(connection), None),
                    Err(reason) => (State::Down, Some(reason)),
                };
                let (before, prefix) = (remote.state.send_replace(state), &remote.prefix);
                match (before, &reason) {
                    (State::Down, None) => tracing::info!(%prefix, "cache {prefix}: Redis answers again"),
                    (State::Checking, Some(reason)) => tracing::warn!(
                        %prefix, pause_ms = PAUSE_MS, %reason,
                        "cache {prefix}: Redis does not answer; skipping it, with a retry every {PAUSE_MS} ms"
                    ),
                    _ => {}
                }
                if reason.is_none() {
                    return;
                }
                drop(remote);
                sleep(Duration::from_millis(PAUSE_MS)).await;
            }
        });
    }

    /// Returns the pool's connection, or a new one, once it has answered. The pool pings only a
    /// connection that it already had. One that fails here is replaced by the next check.
    async fn connection(&self) -> Result<MultiplexedConnection, String> {
        let connection = self.pool.get().await.map_err(|error| error.to_string())?;
        let mut connection = MultiplexedConnection::clone(&connection);
        match timeout(CALL_TIMEOUT, cmd("PING").query_async::<String>(&mut connection)).await {
            Ok(Ok(answer)) if answer == "PONG" => Ok(connection),
            Ok(Ok(_)) => Err("it answers something else".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {} ms", CALL_TIMEOUT.as_millis())),
        }
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
            let error = Remote::new(url, None, "p".to_owned(), Background::default())
                .map(|_| ())
                .map_err(|error| error.to_string());
            assert!(error.as_ref().is_err_and(|text| text.starts_with("REDIS_URL: ")), "{url}: {error:?}");
            assert!(error.is_err_and(|text| !text.contains("sesame")), "{url}");
        }
    }
}
