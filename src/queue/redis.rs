//! Redis Streams.

use std::{
    fmt, fs, mem,
    path::Path,
    time::{Duration, Instant},
};

use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, IntoConnectionInfo as _, RedisError, TlsCertificates, Value,
    aio::MultiplexedConnection, cmd, from_redis_value,
};
use percent_encoding::percent_decode_str;
use tokio::time::timeout;

use crate::{
    Code, Error, Result,
    model::{board::BoardSlug, user::check_text},
    queue::{self, Consumer, Field, NAME_MAX_BYTES, Producer, QueueEntry, QueueMessage},
};

/// Timeout of a call, including the connection attempt.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time that a read waits for a new entry.
const BLOCK: Duration = Duration::from_secs(1);

/// Appends entries and stores the cursor after them, if the stored cursor is ARGV[1]. One script
/// does both, so that both happen or neither.
const APPEND: &str = "
    if (redis.call('GET', KEYS[2]) or '') ~= ARGV[1] then return 0 end
    local at = 4
    while at <= #ARGV do
        local count = tonumber(ARGV[at])
        redis.call('XADD', KEYS[1], '*', unpack(ARGV, at + 1, at + count))
        at = at + count + 1
    end
    if ARGV[3] ~= '' then redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', ARGV[3]) end
    redis.call('SET', KEYS[2], ARGV[2])
    return 1";

/// Moves an entry to another stream.
const MOVE: &str = "
    redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
    return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])";

/// Errors that no retry fixes: a wrong account, a key of another type, or an old server.
const LASTING: [&str; 7] = ["NOAUTH", "WRONGPASS", "NOPERM", "WRONGTYPE", "ERR", "NOSCRIPT", "NOPROTO"];

/// Id and fields of a stored entry. Without fields if the entry was deleted after its delivery.
type Stored = (String, Option<Vec<Field>>);

/// A consumer of a Redis Stream.
#[derive(Debug)]
pub(crate) struct RedisConsumer {
    stream: Stream,
    group: String,
    /// Name of the consumer in the group.
    name: String,
    /// Age at which entries of another consumer are taken over.
    claim_after: Duration,
    /// While set, entries that were delivered to this consumer earlier are read, after this id.
    earlier: Option<String>,
    /// Time at which no entries of other consumers were left to take over.
    claimed_at: Option<Instant>,
    /// Ids of the entries that were read last.
    received: Vec<String>,
}

impl RedisConsumer {
    /// Prepares to read the stream at `url` as consumer `name` of `group`. Other arguments and
    /// errors are those of [`Stream::new`].
    pub(crate) fn new(
        url: &str,
        authorities: Option<&Path>,
        group: String,
        name: String,
        claim_after: Duration,
    ) -> Result<Self> {
        let stream = Stream::new(url, authorities)?;
        Ok(Self { stream, group, name, claim_after, earlier: None, claimed_at: None, received: Vec::new() })
    }

    async fn receive(&mut self, count: usize) -> Result<Vec<Stored>> {
        if let Some(after) = self.earlier.take() {
            let entries = self.earlier_entries(&after, count).await?;
            if let Some((last, _)) = entries.last() {
                self.earlier = Some(last.clone());
                return Ok(entries);
            }
        }
        if self.claimed_at.is_none_or(|at| at.elapsed() >= self.claim_after / 2) {
            let entries = self.claim(count).await?;
            // There may be more.
            self.claimed_at = (entries.len() < count).then(Instant::now);
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
        self.new_entries(count).await
    }

    /// Returns entries with ids above `after` that this consumer received and did not acknowledge.
    async fn earlier_entries(&mut self, after: &str, count: usize) -> Result<Vec<Stored>> {
        let mut command = cmd("XREADGROUP");
        command.arg("GROUP").arg(&self.group).arg(&self.name).arg("COUNT").arg(count);
        command.arg("STREAMS").arg(&self.stream.name).arg(after);
        self.stream.entries(&command, TIMEOUT).await
    }

    /// Returns new entries. Waits up to a second for the first one.
    async fn new_entries(&mut self, count: usize) -> Result<Vec<Stored>> {
        let mut command = cmd("XREADGROUP");
        command.arg("GROUP").arg(&self.group).arg(&self.name).arg("COUNT").arg(count);
        command.arg("BLOCK").arg(BLOCK.as_millis().to_string()).arg("STREAMS").arg(&self.stream.name).arg(">");
        self.stream.entries(&command, BLOCK + TIMEOUT).await
    }

    /// Takes over entries that another consumer received long ago and did not acknowledge.
    async fn claim(&mut self, count: usize) -> Result<Vec<Stored>> {
        let mut command = cmd("XAUTOCLAIM");
        command.arg(&self.stream.name).arg(&self.group).arg(&self.name).arg(self.claim_after.as_millis().to_string());
        command.arg("0-0").arg("COUNT").arg(count);
        let mut reply: Vec<Value> = self.stream.call(&command, TIMEOUT).await?;
        let entries = if reply.len() > 1 { reply.swap_remove(1) } else { Value::Nil };
        let entries: Option<Vec<Stored>> = from_redis_value(entries)
            .map_err(|error| Error::Internal(format!("Redis sent an unexpected reply: {error}")))?;
        Ok(entries.unwrap_or_default())
    }
}

impl Consumer for RedisConsumer {
    fn name(&self) -> &str {
        &self.stream.name
    }

    /// Creates the group unless it exists, at the start of the stream. If Redis has lost its data,
    /// the group no longer exists.
    async fn join(&mut self) -> Result<()> {
        let mut command = cmd("XGROUP");
        command.arg("CREATE").arg(&self.stream.name).arg(&self.group).arg(0).arg("MKSTREAM");
        match self.stream.run::<()>(&command, TIMEOUT).await {
            Err(Failed::Answered(error)) if error.code() == Some("BUSYGROUP") => {}
            result => result?,
        }
        self.earlier = Some("0".to_owned());
        Ok(())
    }

    async fn next(&mut self, count: usize) -> Result<Vec<QueueMessage>> {
        let entries = self.receive(count).await?;
        self.received = entries.iter().map(|(id, _)| id.clone()).collect();
        let message = |(id, fields): Stored| {
            if fields.is_none() {
                tracing::warn!(entry = id, "the stream was trimmed before this message was consumed");
            }
            fields.map(|fields| QueueMessage { id, fields: Ok(fields) })
        };
        Ok(entries.into_iter().filter_map(message).collect())
    }

    async fn acknowledge(&mut self) -> Result<()> {
        let ids = mem::take(&mut self.received);
        if ids.is_empty() {
            return Ok(());
        }
        self.stream.call::<u64>(cmd("XACK").arg(&self.stream.name).arg(&self.group).arg(ids), TIMEOUT).await.map(drop)
    }

    /// Moves it to the stream `NAME:dead`.
    async fn reject(&mut self, message: &QueueMessage, why: &[(&str, &str)]) -> Result<()> {
        let mut command = cmd("EVAL");
        command.arg(MOVE).arg(2).arg(&self.stream.name).arg(format!("{}:dead", self.stream.name));
        command.arg(&self.group).arg(&message.id);
        for (field, value) in why {
            command.arg(*field).arg(*value);
        }
        for (field, value) in message.fields.iter().flatten() {
            command.arg(&field[..]).arg(&value[..]);
        }
        self.stream.call::<u64>(&command, TIMEOUT).await.map(drop)
    }
}

/// A producer of a Redis Stream.
#[derive(Debug)]
pub(crate) struct RedisProducer {
    stream: Stream,
    /// Minimum number of entries that the stream keeps; all if `None`.
    max_length: Option<u64>,
    /// Key and text of the stored cursor.
    key: String,
    cursor: String,
}

impl RedisProducer {
    /// Prepares to write transactions of a board to the stream at `url`. Other arguments and errors
    /// are those of [`Stream::new`].
    pub(crate) fn new(
        url: &str,
        authorities: Option<&Path>,
        board: &BoardSlug,
        max_length: Option<u64>,
    ) -> Result<Self> {
        let stream = Stream::new(url, authorities)?;
        let key = format!("{}:cursor:{board}", stream.name);
        Ok(Self { stream, max_length, key, cursor: String::new() })
    }
}

impl Producer for RedisProducer {
    fn cursor_location(&self) -> &str {
        &self.key
    }

    async fn begin(&mut self) -> Result<String> {
        let stored: Option<String> = self.stream.call(cmd("GET").arg(&self.key), TIMEOUT).await?;
        self.cursor = stored.unwrap_or_default();
        Ok(self.cursor.clone())
    }

    async fn append(&mut self, entries: &[QueueEntry], cursor: String) -> Result<bool> {
        let mut command = cmd("EVAL");
        command.arg(APPEND).arg(2).arg(&self.stream.name).arg(&self.key).arg(&self.cursor).arg(&cursor);
        command.arg(self.max_length.map(|length| length.to_string()).unwrap_or_default());
        for fields in entries {
            command.arg(2 * fields.len());
            for (field, value) in fields {
                let (queue::Value::Text(text) | queue::Value::Json(text)) = value;
                command.arg(*field).arg(text);
            }
        }
        let is_current = self.stream.call(&command, TIMEOUT).await?;
        if is_current {
            self.cursor = cursor;
        }
        Ok(is_current)
    }
}

/// A stream in Redis, over one connection.
struct Stream {
    client: Client,
    name: String,
    connection: Option<MultiplexedConnection>,
}

impl fmt::Debug for Stream {
    /// Omits the address, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Stream {
    /// Prepares the stream at `url`, which is `redis://HOST:PORT/STREAM` or
    /// `redis://HOST:PORT/DATABASE/STREAM`.
    ///
    /// `authorities` is a PEM file with the certificate authorities trusted for TLS; by default,
    /// the system's are. [`Error::Invalid`] if the file cannot be read or `url` is not of this
    /// form. The message does not repeat the URL.
    fn new(url: &str, authorities: Option<&Path>) -> Result<Self> {
        let refused = || {
            Error::invalid("url", "must be the URL of a stream, such as redis://host:6379/events, or rediss:// for TLS")
        };
        if url.starts_with("kafka:") {
            return Err(Error::invalid("url", "this build has no Kafka; build with `cargo build --features kafka`"));
        }
        let (server, name) = split(url).ok_or_else(refused)?;
        check_text("url", &name, NAME_MAX_BYTES)?;
        let client = match authorities {
            Some(file) if server.starts_with("rediss:") => {
                let failed = |error| Error::invalid("redis_ca", format!("cannot be read: {error}"));
                let root_cert = Some(fs::read(file).map_err(failed)?);
                let address = server.into_connection_info().map_err(|_| refused())?;
                Client::build_with_tls(address, TlsCertificates { client_tls: None, root_cert })
                    .map_err(|_| Error::invalid("redis_ca", "must be a file of PEM certificates"))?
            }
            _ => Client::open(server).map_err(|_| refused())?,
        };
        Ok(Self { client, name, connection: None })
    }

    async fn entries(&mut self, command: &Cmd, limit: Duration) -> Result<Vec<Stored>> {
        let reply: Option<Vec<(String, Vec<Stored>)>> = self.call(command, limit).await?;
        Ok(reply.into_iter().flatten().flat_map(|(_, entries)| entries).collect())
    }

    async fn call<T: FromRedisValue>(&mut self, command: &Cmd, limit: Duration) -> Result<T> {
        self.run(command, limit).await.map_err(Into::into)
    }

    /// Runs a command. After a failure of the connection, the next call opens another one.
    async fn run<T: FromRedisValue>(&mut self, command: &Cmd, limit: Duration) -> Result<T, Failed> {
        let result = timeout(limit, async {
            let mut connection = if let Some(connection) = self.connection.take() {
                connection
            } else {
                let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
                self.client.get_multiplexed_async_connection_with_config(&config).await?
            };
            let value: Value = command.query_async(&mut connection).await?;
            self.connection = Some(connection);
            Ok::<T, RedisError>(from_redis_value(value)?)
        });
        match result.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(Failed::Answered(error)),
            Err(_) => Err(Failed::Timeout),
        }
    }
}

enum Failed {
    /// The server, or the connection to it.
    Answered(RedisError),
    Timeout,
}

impl From<Failed> for Error {
    /// A retry may fix every error except those of the setup.
    fn from(failed: Failed) -> Self {
        let error = match failed {
            Failed::Answered(error) => error,
            Failed::Timeout => return Self::retry(Code::Unavailable, "Redis does not answer"),
        };
        if error.code().is_some_and(|code| LASTING.contains(&code)) {
            return Self::invalid("url", format!("Redis refuses the stream: {error}"));
        }
        Self::retry(Code::Unavailable, format!("Redis cannot be used now: {error}"))
    }
}

/// Splits the URL of a stream into that of the server and the name of the stream.
fn split(url: &str) -> Option<(String, String)> {
    let (scheme, rest) = url.split_once("://")?;
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    let (authority, path) = rest.split_once('/')?;
    let (database, name) = path.rsplit_once('/').map_or((None, path), |(database, name)| (Some(database), name));
    let name = percent_decode_str(name).decode_utf8().ok()?;
    // A number alone names a database, and the stream is missing.
    if name.is_empty() || (database.is_none() && name.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    let mut server = format!("{scheme}://{authority}");
    if let Some(database) = database {
        database.parse::<u16>().ok()?;
        server = format!("{server}/{database}");
    }
    if let Some(query) = query {
        server = format!("{server}?{query}");
    }
    Some((server, name.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_server_and_a_stream() {
        for (url, server, name) in [
            ("redis://host/events", "redis://host", "events"),
            ("redis://:pw@host:1/2/a%20b", "redis://:pw@host:1/2", "a b"),
            ("rediss://host/0/7?protocol=resp3", "rediss://host/0?protocol=resp3", "7"),
        ] {
            assert_eq!(split(url), Some((server.to_owned(), name.to_owned())), "{url}");
            assert_eq!(Stream::new(url, None).map(|stream| stream.name).ok().as_deref(), Some(name), "{url}");
        }
        let long = format!("redis://:sesame@host/{}", "x".repeat(NAME_MAX_BYTES + 1));
        for url in ["", "events", "redis://:sesame@host", "redis://host/", "redis://host/0", "redis://host/a/b", &long]
        {
            let refused = Stream::new(url, None).map_err(|error| error.to_string());
            assert!(refused.is_err_and(|text| text.starts_with("url: ") && !text.contains("sesame")), "{url}");
        }
    }
}
