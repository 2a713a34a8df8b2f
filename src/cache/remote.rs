//! The cache in Redis: the only place that talks to it.
//!
//! One multiplexed connection serves all callers. A pool would serve them worse: deadpool-redis pings a connection each
//! time it lends it, a second round trip for every call, and cannot be told not to. Requests are written in order,
//! answers are matched in order, and the answer to a request whose caller has gone is read and dropped: a call that was
//! given up cannot shift its answer to the next one. Even so, a connection that let a call time out is not used again:
//! it may lead nowhere.

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
        breaker::{Breaker, FAILURES, PAUSE},
    },
};

/// A call takes no longer than this, with connecting and everything.
const PATIENCE: Duration = Duration::from_millis(50);

/// Keys that one call looks at when some are to be removed: less than a millisecond of the server's time.
const SCANNED_AT_ONCE: u32 = 1_000;

/// A Redis that may be there or not.
#[derive(Debug)]
pub(super) struct Remote {
    client: Client,
    prefix: String,
    breaker: Breaker,
    link: Mutex<Link>,
    /// Held by whoever is connecting, so that the others wait for that connection and do not make their own.
    connecting: tokio::sync::Mutex<()>,
}

/// The connection in use, numbered so that only the one that failed is thrown away.
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
    /// A Redis that is connected to when it is first asked for something.
    ///
    /// Over TLS its certificate must be vouched for by an authority of those in the file `authorities`, or, without one, of the
    /// machine's. [`Error::Invalid`] when that cannot be read, or `url` is none; the message does not repeat it, for it may hold a password.
    pub(super) fn new(url: &str, authorities: Option<&Path>, prefix: String) -> Result<Self> {
        let root_cert = authorities.map(fs::read).transpose();
        let root_cert = root_cert.map_err(|error| Error::invalid("REDIS_CA", format!("cannot be read: {error}")))?;
        // What is no URL at all must not be called a bad certificate.
        let refused =
            |_| Error::invalid("REDIS_URL", "not a Redis URL such as redis://host:6379/0, or rediss:// over TLS");
        let client = if root_cert.is_some() {
            let address = url.into_connection_info().map_err(refused)?;
            Client::build_with_tls(address, TlsCertificates { client_tls: None, root_cert }).map_err(|_| {
                Error::invalid("REDIS_CA", "is for a rediss:// address, and must hold certificates as PEM")
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

    /// The bytes stored under `key`, at most [`MAX_BYTES`]; more of them is a mismatch.
    pub(super) async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        // Not GET: whatever somebody put there, no more of it is sent than a value of ours can have. An absent key
        // gives the empty string, which is no value of ours either.
        let bytes: Vec<u8> = self.call(cmd("GETRANGE").arg(key).arg(0).arg(MAX_BYTES)).await?;
        match bytes.len() {
            0 => Ok(None),
            length if length > MAX_BYTES => Err(Failure::Mismatch),
            _ => Ok(Some(bytes)),
        }
    }

    /// Stores `bytes` under `key`, over whatever is there, for `lifetime`.
    pub(super) async fn put(&self, key: &str, bytes: &[u8], lifetime: Duration) -> Result<(), Failure> {
        self.call(cmd("SET").arg(key).arg(bytes).arg("EX").arg(lifetime.as_secs())).await
    }

    /// Removes every key that `pattern` matches, however many others there are.
    pub(super) async fn remove(&self, pattern: &str) -> Result<(), Failure> {
        let mut cursor = 0;
        loop {
            let mut scan = cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SCANNED_AT_ONCE);
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

    /// Whether it answers now.
    pub(super) async fn ping(&self) -> bool {
        self.call::<String>(&cmd("PING")).await.is_ok()
    }

    /// Whether the breaker keeps requests away from it.
    pub(super) fn is_left_alone(&self) -> bool {
        self.breaker.is_open()
    }

    /// Runs one command, unless the breaker is open, and tells the breaker what became of it.
    async fn call<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Failure> {
        if !self.breaker.allows(Instant::now()) {
            return Err(Failure::LeftAlone);
        }
        let mut used = None;
        let result = tokio::time::timeout(PATIENCE, async {
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
            // The server is well; it is the value that is not ours.
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
                (Failure::Timeout, format!("no answer within {} ms", PATIENCE.as_millis()))
            }
        };
        if self.breaker.failed(Instant::now()) {
            let (prefix, pause_ms) = (&self.prefix, PAUSE.as_millis());
            tracing::warn!(
                %prefix, failures = FAILURES, pause_ms = u64::try_from(pause_ms).unwrap_or(u64::MAX), %reason,
                "cache {prefix}: Redis failed {FAILURES} times in a row and is left alone, tried every {pause_ms} ms"
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

    /// The connection in use, or a new one.
    async fn connection(&self) -> Result<(u64, MultiplexedConnection), RedisError> {
        if let Some(found) = self.current() {
            return Ok(found);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(found) = self.current() {
            return Ok(found);
        }
        // No time limits of its own: `call` has one for everything.
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

    /// Stops using the connection of this number; it is closed when the last call on it ends.
    fn discard(&self, number: Option<u64>) {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if number == Some(link.number) {
            link.connection = None;
        }
    }
}

/// Whether the server answered, and what it said was no: out of memory, loading, read-only, …
fn is_refusal(error: &RedisError) -> bool {
    error.code().is_some() && !error.is_unrecoverable_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_url_is_refused_without_repeating_it() {
        for url in ["", "nonsense", "http://:sesame@host", "redis://:sesame@host:port", "rediss://:sesame@host:port"] {
            let error = Remote::new(url, None, "p".to_owned()).map(|_| ()).map_err(|error| error.to_string());
            assert!(error.as_ref().is_err_and(|text| text.starts_with("REDIS_URL: ")), "{url}: {error:?}");
            assert!(error.is_err_and(|text| !text.contains("sesame")), "{url}");
        }
    }
}
