//! Message queues: score events in and transactions out. Besides `cache`, the only caller of Redis.
//!
//! Unlike the cache, a queue must not lose anything, so its calls return errors.

#[cfg(feature = "kafka")]
mod kafka;
mod redis;

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "kafka")]
pub(crate) use self::kafka::{KafkaConsumer, KafkaProducer, Topic};
pub(crate) use self::redis::{RedisConsumer, RedisProducer};
use crate::Result;

/// Pause before a retry after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Maximum bytes of the name of a stream or topic. The name and the id of a message must fit into an
/// event id together.
const NAME_MAX_BYTES: usize = 64;

/// A name and its text, as bytes.
pub(crate) type Field = (Vec<u8>, Vec<u8>);

#[derive(Debug)]
pub(crate) struct QueueMessage {
    /// Id of the message in its queue.
    pub(crate) id: String,
    /// Its fields, or the reason why it has none.
    pub(crate) fields: Result<Vec<Field>>,
}

/// Reads messages from a queue as a member of a group.
pub(crate) trait Consumer {
    fn name(&self) -> &str;

    /// Joins the group, at the start and after a failure. All messages that this consumer has
    /// received and not acknowledged are delivered again.
    async fn join(&mut self) -> Result<()>;

    /// Returns at most `count` messages. Waits up to a second for the first one.
    async fn next(&mut self, count: usize) -> Result<Vec<QueueMessage>>;

    /// Acknowledges the messages that the last call of [`next`](Self::next) returned.
    async fn acknowledge(&mut self) -> Result<()>;

    /// Writes one of these messages to the dead letters, with fields that give the reason.
    async fn reject(&mut self, message: &QueueMessage, why: &[(&str, &str)]) -> Result<()>;
}

/// The fields of an entry that is appended.
pub(crate) type QueueEntry = Vec<(&'static str, Value)>;

/// A value of such a field.
#[derive(Debug)]
pub(crate) enum Value {
    Text(String),
    /// A JSON number or object.
    Json(String),
}

/// Appends a board's transactions to a queue, and stores the cursor after them.
pub(crate) trait Producer {
    /// Returns where the cursor is stored, for error texts.
    fn cursor_location(&self) -> &str;

    /// Prepares to append, at the start and after a failure. Returns the stored cursor; empty if
    /// there is none.
    async fn begin(&mut self) -> Result<String>;

    /// Appends entries, and stores the cursor after them.
    ///
    /// Returns `false`, and changes nothing, if the stored cursor is no longer the one that this
    /// producer knows. A producer of Kafka does not check that.
    async fn append(&mut self, entries: &[QueueEntry], cursor: String) -> Result<bool>;
}

/// Runs `job`, and runs it again after failures that a retry may fix, until it ends or `stopping`
/// is cancelled. The job sets its flag once it has begun. A failure before that is returned,
/// because the setup may be wrong.
pub(crate) async fn retry_until_stopped(
    stopping: &CancellationToken,
    mut job: impl AsyncFnMut(&mut bool) -> Result<()>,
) -> Result<()> {
    let mut has_begun = false;
    loop {
        match job(&mut has_begun).await {
            Err(error) if has_begun && error.is_temporary() => {
                tracing::warn!(%error, "interrupted; trying again");
                if timeout(RETRY_AFTER, stopping.cancelled()).await.is_ok() {
                    return Ok(());
                }
            }
            result => return result,
        }
    }
}
