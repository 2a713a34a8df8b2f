//! The cache in Redis.
//!
//! One multiplexed connection serves all callers. A deadpool-redis pool would ping a connection
//! each time it lends it, a second round trip per call. Redis answers requests in order. The answer
//! to a dropped call is read and discarded, so it cannot be taken for the answer to the next call.
//! A connection on which a call timed out is not used again, because it may be dead.

use std::{
    fs,
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, IntoConnectionInfo as _, RedisError, TlsCertificates,
    aio::MultiplexedConnection, cmd,
};

use crate::{
    Error, Result,
    cache::{
        Failure, MAX_BYTES,
        breaker::{Breaker, MAX_FAILURES, PAUSE},
    },
};

/// Timeout of a call, including the connection attempt.
const TIMEOUT: Duration = Duration::from_millis(50);

/// Keys that one SCAN inspects, which takes less than a millisecond of the server's time.
const SCAN_COUNT: u32 = 1_000;

/// A Redis server that may be unreachable at any time.
#[derive(Debug)]
pub(super) struct Remote {
    client: Client,
    prefix: String,
    breaker: Breaker,
    link: Mutex<Link>,
    /// Held while a caller connects. Other callers wait for that connection instead of opening
    /// their own.
    connecting: tokio::sync::Mutex<()>,
}

/// The connection in use. Its number ensures that a failed call discards only its own connection.
#[derive(Default)]
struct Link {
    number: u64,
    connection: Option<MultiplexedConnection>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("number", &self.number).field("connected", &self.connection.is_some()).finish()
    }
}

impl Remote {
    /// Creates a client that connects at the first call.
    ///
    /// `authorities` is a PEM file with the certificate authorities trusted for TLS; the system's
    /// by default. [`Error::Invalid`] if the file cannot be read or `url` is not a Redis URL. The
    /// message does not repeat the URL, which may hold a password.
    pub(super) fn new(url: &str, authorities: Option<&Path>, prefix: String) -> Result<Self> {
        let root_cert = authorities.map(fs::read).transpose();
        let root_cert = root_cert.map_err(|error| Error::invalid("REDIS_CA", format!("cannot be read: {error}")))?;
        // Check the URL first, so that a bad URL is not reported as a bad certificate.
        let refused =
            |_| Error::invalid("REDIS_URL", "must be a Redis URL such as redis://host:6379/0, or rediss:// for TLS");
        let client = if root_cert.is_some() {
            let address = url.into_connection_info().map_err(refused)?;
            Client::build_with_tls(address, TlsCertificates { client_tls: None, root_cert }).map_err(|_| {
                Error::invalid("REDIS_CA", "must be a file of PEM certificates, and needs a rediss:// URL")
            })?
        } else {
            Client::open(url).map_err(refused)?
        };
        Ok(Self {
            client,
            prefix,
            breaker: Breaker::new(Instant::now()),
            link: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        })
    }

    /// Returns the bytes stored under `key`. More than [`MAX_BYTES`] are a mismatch.
    pub(super) async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
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
    pub(super) async fn put(&self, key: &str, bytes: &[u8], lifetime: Duration) -> Result<(), Failure> {
        self.call(cmd("SET").arg(key).arg(bytes).arg("EX").arg(lifetime.as_secs())).await
    }

    /// Removes every key that matches `pattern`, in steps of [`SCAN_COUNT`].
    pub(super) async fn remove(&self, pattern: &str) -> Result<(), Failure> {
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
    pub(super) async fn ping(&self) -> bool {
        self.call::<String>(&cmd("PING")).await.is_ok()
    }

    /// Returns whether the breaker is open.
    pub(super) fn is_breaker_open(&self) -> bool {
        self.breaker.is_open()
    }

    /// Runs a command unless the breaker is open, and reports the result to the breaker.
    async fn call<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Failure> {
        if !self.breaker.allows(Instant::now()) {
            return Err(Failure::BreakerOpen);
        }
        let mut used = None;
        let result = tokio::time::timeout(TIMEOUT, async {
            let (number, mut connection) = self.connection().await?;
            used = Some(number);
            command.query_async::<T>(&mut connection).await
        })
        .await;
        let (failure, reason) = match result {
            Ok(Ok(value)) => {
                self.answered();
                return Ok(value);
            }
            // The server works, but the value has another type.
            Ok(Err(error)) if error.code() == Some("WRONGTYPE") => {
                self.answered();
                return Err(Failure::Mismatch);
            }
            Ok(Err(error)) if is_refusal(&error) => (Failure::Refused, error.to_string()),
            Ok(Err(error)) => {
                self.discard(used);
                (Failure::Connection, error.to_string())
            }
            Err(_) => {
                self.discard(used);
                (Failure::Timeout, format!("no answer within {} ms", TIMEOUT.as_millis()))
            }
        };
        if self.breaker.failed(Instant::now()) {
            let (prefix, pause_ms) = (&self.prefix, PAUSE.as_millis());
            tracing::warn!(
                %prefix, failures = MAX_FAILURES, pause_ms = u64::try_from(pause_ms).unwrap_or(u64::MAX), %reason,
                "cache {prefix}: Redis failed {MAX_FAILURES} times in a row; skipping it, with a retry every {pause_ms} ms"
            );
        }
        Err(failure)
    }

    fn answered(&self) {
        if self.breaker.succeeded() {
            let prefix = &self.prefix;
            tracing::info!(%prefix, "cache {prefix}: Redis answers again");
        }
    }

    /// Returns the connection in use, or opens one.
    async fn connection(&self) -> Result<(u64, MultiplexedConnection), RedisError> {
        if let Some(found) = self.current() {
            return Ok(found);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(found) = self.current() {
            return Ok(found);
        }
        // No timeouts here: `call` has one for everything.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        link.number += 1;
        link.connection = Some(connection.clone());
        Ok((link.number, connection))
    }

    fn current(&self) -> Option<(u64, MultiplexedConnection)> {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        link.connection.clone().map(|connection| (link.number, connection))
    }

    /// Stops using the connection with this number. It closes when the last call on it ends.
    fn discard(&self, number: Option<u64>) {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if number == Some(link.number) {
            link.connection = None;
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
            let error = Remote::new(url, None, "p".to_owned()).map(|_| ()).map_err(|error| error.to_string());
            assert!(error.as_ref().is_err_and(|text| text.starts_with("REDIS_URL: ")), "{url}: {error:?}");
            assert!(error.is_err_and(|text| !text.contains("sesame")), "{url}");
        }
    }
}
