//! Redis Streams: events in and transactions out. Besides `cache`, the only caller of Redis.
//!
//! Unlike the cache, a stream must not lose anything, so its calls return errors.

use std::{fmt, fs, path::Path, time::Duration};

use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, IntoConnectionInfo as _, RedisError, TlsCertificates, Value,
    aio::MultiplexedConnection, cmd, from_redis_value,
};
use percent_encoding::percent_decode_str;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{Code, Error, Result, model::user::check_text};

/// Timeout of a call, including the connection attempt.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time that a read waits for a new entry.
const BLOCK: Duration = Duration::from_secs(1);

/// Pause before a retry after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Maximum bytes of a stream's name. The name and an entry's id must fit into an event id together.
const NAME_MAX_BYTES: usize = 64;

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

/// The field and the value of an entry.
pub(crate) type Field = (Vec<u8>, Vec<u8>);

/// An entry of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Id of the entry.
    pub(crate) id: String,
    /// Its fields; `None` if the entry was deleted after it had been delivered.
    pub(crate) fields: Option<Vec<Field>>,
}

/// A consumer of a group.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// The group.
    pub(crate) group: String,
    /// The consumer's name in the group.
    pub(crate) consumer: String,
}

/// A stream in Redis, over one connection.
pub(crate) struct RedisStream {
    client: Client,
    /// Name of the stream.
    name: String,
    connection: Option<MultiplexedConnection>,
}

impl fmt::Debug for RedisStream {
    /// Omits the address, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStream").field("name", &self.name).finish_non_exhaustive()
    }
}

impl RedisStream {
    /// Prepares the stream at `url`, which is `redis://HOST:PORT/STREAM` or
    /// `redis://HOST:PORT/DATABASE/STREAM`.
    ///
    /// `authorities` is a PEM file with the certificate authorities trusted for TLS; by default,
    /// the system's are. [`Error::Invalid`] if the file cannot be read or `url` is not of this
    /// form. The message does not repeat the URL.
    pub(crate) fn new(url: &str, authorities: Option<&Path>) -> Result<Self> {
        let refused = || {
            Error::invalid("url", "must be the URL of a stream, such as redis://host:6379/events, or rediss:// for TLS")
        };
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

    /// Returns the name of the stream.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text stored under `key`; empty if there is none.
    pub(crate) async fn stored(&mut self, key: &str) -> Result<String> {
        Ok(self.call::<Option<String>>(cmd("GET").arg(key), TIMEOUT).await?.unwrap_or_default())
    }

    /// Appends entries, and replaces the text `was` under `key` by `is`. Trims the stream to about
    /// `max_length` entries, if given.
    ///
    /// Returns `false`, and changes nothing, if the stored text is not `was`.
    pub(crate) async fn append(
        &mut self,
        entries: &[Vec<(&str, String)>],
        key: &str,
        was: &str,
        is: &str,
        max_length: Option<u64>,
    ) -> Result<bool> {
        let mut command = cmd("EVAL");
        command.arg(APPEND).arg(2).arg(&self.name).arg(key).arg(was).arg(is);
        command.arg(max_length.map(|length| length.to_string()).unwrap_or_default());
        for fields in entries {
            command.arg(2 * fields.len());
            for (field, value) in fields {
                command.arg(*field).arg(value);
            }
        }
        self.call(&command, TIMEOUT).await
    }

    /// Creates the consumer group unless it exists, at the start of the stream.
    pub(crate) async fn join(&mut self, group: &str) -> Result<()> {
        let mut command = cmd("XGROUP");
        command.arg("CREATE").arg(&self.name).arg(group).arg(0).arg("MKSTREAM");
        match self.run::<()>(&command, TIMEOUT).await {
            Err(Failed::Answered(error)) if error.code() == Some("BUSYGROUP") => Ok(()),
            result => result.map_err(Into::into),
        }
    }

    /// Returns entries with ids above `after` that this consumer received and did not acknowledge.
    pub(crate) async fn own(&mut self, member: &Member, after: &str, count: usize) -> Result<Vec<Entry>> {
        let mut command = cmd("XREADGROUP");
        command.arg("GROUP").arg(&member.group).arg(&member.consumer).arg("COUNT").arg(count);
        command.arg("STREAMS").arg(&self.name).arg(after);
        self.entries(&command, TIMEOUT).await
    }

    /// Returns new entries. Waits up to a second for the first one.
    pub(crate) async fn new_entries(&mut self, member: &Member, count: usize) -> Result<Vec<Entry>> {
        let mut command = cmd("XREADGROUP");
        command.arg("GROUP").arg(&member.group).arg(&member.consumer).arg("COUNT").arg(count);
        command.arg("BLOCK").arg(BLOCK.as_millis().to_string()).arg("STREAMS").arg(&self.name).arg(">");
        self.entries(&command, BLOCK + TIMEOUT).await
    }

    /// Takes over entries that another consumer received at least `idle` ago and did not
    /// acknowledge.
    pub(crate) async fn claim(&mut self, member: &Member, idle: Duration, count: usize) -> Result<Vec<Entry>> {
        let mut command = cmd("XAUTOCLAIM");
        command.arg(&self.name).arg(&member.group).arg(&member.consumer).arg(idle.as_millis().to_string());
        command.arg("0-0").arg("COUNT").arg(count);
        let mut reply: Vec<Value> = self.call(&command, TIMEOUT).await?;
        let entries = if reply.len() > 1 { reply.swap_remove(1) } else { Value::Nil };
        Ok(of_reply(parsed::<Option<StoredEntries>>(entries)?.unwrap_or_default()))
    }

    /// Acknowledges entries.
    pub(crate) async fn acknowledge(&mut self, group: &str, ids: &[String]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        self.call::<u64>(cmd("XACK").arg(&self.name).arg(group).arg(ids), TIMEOUT).await.map(drop)
    }

    /// Moves an entry to the stream `NAME:dead`, with fields that give the reason, and acknowledges
    /// it.
    pub(crate) async fn move_to_dead_letters(
        &mut self,
        group: &str,
        entry: &Entry,
        why: &[(&str, &str)],
    ) -> Result<()> {
        let mut command = cmd("EVAL");
        command.arg(MOVE).arg(2).arg(&self.name).arg(format!("{}:dead", self.name)).arg(group).arg(&entry.id);
        for (field, value) in why {
            command.arg(*field).arg(*value);
        }
        for (field, value) in entry.fields.iter().flatten() {
            command.arg(&field[..]).arg(&value[..]);
        }
        self.call::<u64>(&command, TIMEOUT).await.map(drop)
    }

    async fn entries(&mut self, command: &Cmd, limit: Duration) -> Result<Vec<Entry>> {
        let reply: Option<Vec<(String, StoredEntries)>> = self.call(command, limit).await?;
        Ok(reply.into_iter().flatten().flat_map(|(_, entries)| of_reply(entries)).collect())
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

/// Repeats `job` after failures that a retry may fix, until it ends or `stopping` is cancelled. The
/// job sets its flag once it has begun. An earlier failure is returned, because it may be a mistake
/// in the setup.
pub(crate) async fn keep_trying(
    stopping: &CancellationToken,
    mut job: impl AsyncFnMut(&mut bool) -> Result<()>,
) -> Result<()> {
    let mut has_begun = false;
    loop {
        match job(&mut has_begun).await {
            Err(error @ Error::Unavailable { .. }) if has_begun => {
                tracing::warn!(%error, "interrupted; trying again");
                if timeout(RETRY_AFTER, stopping.cancelled()).await.is_ok() {
                    return Ok(());
                }
            }
            result => return result,
        }
    }
}

/// The ids and fields of entries, as Redis returns them.
type StoredEntries = Vec<(String, Option<Vec<Field>>)>;

fn of_reply(entries: StoredEntries) -> Vec<Entry> {
    entries.into_iter().map(|(id, fields)| Entry { id, fields }).collect()
}

fn parsed<T: FromRedisValue>(value: Value) -> Result<T> {
    from_redis_value(value).map_err(|error| Error::Internal(format!("Redis sent an unexpected reply: {error}")))
}

/// Why a call failed.
enum Failed {
    /// The server, or the connection to it.
    Answered(RedisError),
    /// No response came in time.
    Timeout,
}

impl From<Failed> for Error {
    /// A retry may fix every error except those of the setup.
    fn from(failed: Failed) -> Self {
        let error = match failed {
            Failed::Answered(error) => error,
            Failed::Timeout => return Self::unavailable(Code::Unavailable, "Redis does not answer"),
        };
        if error.code().is_some_and(|code| LASTING.contains(&code)) {
            return Self::invalid("url", format!("Redis refuses the stream: {error}"));
        }
        Self::unavailable(Code::Unavailable, format!("Redis cannot be used now: {error}"))
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
            assert_eq!(RedisStream::new(url, None).map(|stream| stream.name).ok().as_deref(), Some(name), "{url}");
        }
        let long = format!("redis://:sesame@host/{}", "x".repeat(NAME_MAX_BYTES + 1));
        for url in ["", "events", "redis://:sesame@host", "redis://host/", "redis://host/0", "redis://host/a/b", &long]
        {
            let refused = RedisStream::new(url, None).map_err(|error| error.to_string());
            assert!(refused.is_err_and(|text| text.starts_with("url: ") && !text.contains("sesame")), "{url}");
        }
    }
}
