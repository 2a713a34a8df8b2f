//! Consumes score events from a message queue.
//!
//! A message is acknowledged after the commit of its event. If the consumer is killed in between,
//! the message is delivered again, and the id of the event keeps it from counting twice. The next
//! messages are read once these are written, so a burst waits in the queue.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    Error, Result,
    boards::{self, Boards},
    model::{
        board::BoardSlug,
        metadata::Metadata,
        score::Event,
        user::{UserId, check_text},
    },
    queue::{Consumer, Field, QueueMessage, retry_until_stopped},
    ranking::rankings::Rankings,
    scoring::{self, batch::EventOutcome, writer::Writers},
};

/// Shortest and longest pause before messages are written again after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Parts and settings of a consumer.
#[derive(Debug)]
pub(crate) struct Consuming<'a> {
    pub(crate) boards: &'a Boards,
    pub(crate) writers: &'a Writers,
    pub(crate) rankings: &'a Rankings,
    /// The board of messages that name none.
    pub(crate) board: &'a BoardSlug,
    /// Maximum messages that are written together.
    pub(crate) batch: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Consumed {
    pub(crate) accepted: AtomicU64,
    /// Events that had been written before.
    pub(crate) repeated: AtomicU64,
    pub(crate) quarantined: AtomicU64,
    /// Messages moved to the dead letters.
    pub(crate) dead: AtomicU64,
}

/// Consumes until `stopping` is cancelled. Waits while the queue or PostgreSQL is unavailable,
/// except at the start.
pub(crate) async fn consume_events(
    consuming: &Consuming<'_>,
    from: &mut impl Consumer,
    consumed: &Consumed,
    stopping: &CancellationToken,
) -> Result<()> {
    // An unknown board is more likely a mistake in the command than in the messages.
    boards::find(consuming.boards, consuming.board).await?;
    retry_until_stopped(stopping, async |has_begun: &mut bool| {
        from.join().await?;
        *has_begun = true;
        let mut work = Work { consuming, from: &mut *from, consumed, stopping };
        while !stopping.is_cancelled() {
            let messages = work.from.next(consuming.batch).await?;
            work.write(messages).await?;
        }
        Ok(())
    })
    .await
}

struct Work<'a, 'b, C> {
    consuming: &'a Consuming<'b>,
    from: &'a mut C,
    consumed: &'a Consumed,
    stopping: &'a CancellationToken,
}

impl<C: Consumer> Work<'_, '_, C> {
    /// Writes messages, then acknowledges them. Those that can never be written become dead
    /// letters.
    async fn write(&mut self, messages: Vec<QueueMessage>) -> Result<()> {
        let mut by_board: BTreeMap<BoardSlug, Vec<(QueueMessage, Event)>> = BTreeMap::new();
        for message in messages {
            let id = || format!("{}:{}", self.from.name(), message.id);
            let parsed = message.fields.as_ref().map_err(Error::clone);
            match parsed.and_then(|fields| parse(fields, self.consuming.board, id)) {
                Ok((board, event)) => by_board.entry(board).or_default().push((message, event)),
                Err(error) => self.reject(&message, &error).await?,
            }
        }
        for (board, events) in by_board {
            if !self.write_board(&board, events).await? {
                // All are delivered again; those that are written count once.
                return Ok(());
            }
        }
        self.from.acknowledge().await
    }

    /// Writes events of a board. Waits while they cannot be written, until `stopping` is cancelled.
    /// Returns whether all are written.
    async fn write_board(&mut self, slug: &BoardSlug, mut waiting: Vec<(QueueMessage, Event)>) -> Result<bool> {
        let Consuming { boards, writers, rankings, .. } = self.consuming;
        loop {
            // Submit all events that are not written yet.
            let events: Vec<Event> = waiting.iter().map(|(_, event)| event.clone()).collect();
            let count = events.len();
            let submitted = async {
                let board = boards::find(boards, slug).await?;
                scoring::submit(writers, rankings, &board, events, false).await
            };
            let answers = submitted.await.unwrap_or_else(|error| vec![Err(error); count]);
            // Count written events, reject faulty ones, and keep those that can be written later.
            let mut pause = None;
            let mut later = Vec::new();
            for ((message, event), answer) in waiting.into_iter().zip(answers) {
                let counter = match answer {
                    Ok(EventOutcome::Accepted { repeated: true, .. }) => &self.consumed.repeated,
                    Ok(EventOutcome::Accepted { .. }) => &self.consumed.accepted,
                    Ok(EventOutcome::Quarantined { .. }) => &self.consumed.quarantined,
                    Err(error) if error.is_temporary() => {
                        let after = error.retry_after().unwrap_or_default();
                        pause = Some((error.to_string(), after.clamp(PAUSES.0, PAUSES.1)));
                        later.push((message, event));
                        continue;
                    }
                    // A fault of this program or of the database, rather than of the message.
                    Err(Error::Internal(cause)) => {
                        return Err(Error::Internal(format!("message {} cannot be written: {cause}", message.id)));
                    }
                    Err(error) => {
                        self.reject(&message, &error).await?;
                        continue;
                    }
                };
                counter.fetch_add(1, Ordering::Relaxed);
            }
            waiting = later;
            let Some((cause, pause)) = pause else { return Ok(true) };
            tracing::warn!(messages = waiting.len(), cause, "messages wait because they cannot be written now");
            if timeout(pause, self.stopping.cancelled()).await.is_ok() {
                return Ok(false);
            }
        }
    }

    /// Moves a message to the dead letters, with the reason.
    async fn reject(&mut self, message: &QueueMessage, error: &Error) -> Result<()> {
        let text = error.to_string();
        let why = [("error_code", error.code().name()), ("error", text.as_str()), ("entry_id", message.id.as_str())];
        self.from.reject(message, &why).await?;
        self.consumed.dead.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Parses the fields of a message. `fallback` is the id of an event that has none.
fn parse(fields: &[Field], board: &BoardSlug, fallback: impl FnOnce() -> String) -> Result<(BoardSlug, Event)> {
    let mut named: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, value) in fields {
        let name = str::from_utf8(name).map_err(|_| Error::Malformed("the name of a field is not UTF-8".to_owned()))?;
        let value = str::from_utf8(value).map_err(|_| Error::invalid(name, "is not UTF-8"))?;
        if named.insert(name, value).is_some() {
            return Err(Error::invalid(name, "is given twice"));
        }
    }
    let mut take = |name| named.remove(name);
    let missing = |name: &str| Error::invalid(name, "is missing");
    let text = |name: &str, value: Option<&str>, max_bytes| match value {
        Some(value) => check_text(name, value, max_bytes).map(|()| Some(value.to_owned())),
        None => Ok(None),
    };
    let slug = take("board").map_or_else(|| Ok(board.clone()), str::parse)?;
    let user_id: UserId = take("user_id").ok_or_else(|| missing("user_id"))?.parse()?;
    let points = take("points").ok_or_else(|| missing("points"))?;
    let points = points.parse().map_err(|_| Error::invalid("points", "must be a whole number of 64 bits"))?;
    let tiebreak = take("tiebreak")
        .map(|value| value.parse().map_err(|_| Error::invalid("tiebreak", "must be a whole number of 64 bits")));
    let event = Event {
        user_id,
        points,
        reason: text("reason", take("reason"), 256)?,
        id: Some(text("event_id", take("event_id"), 128)?.unwrap_or_else(fallback)),
        tiebreak: tiebreak.transpose()?,
        metadata: take("metadata").map(str::parse::<Metadata>).transpose()?,
        occurred_at: None,
    };
    match named.keys().next() {
        Some(name) => Err(Error::invalid(*name, "is not a field of an event")),
        None => Ok((slug, event)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(fields: &[(&str, &str)]) -> Result<(BoardSlug, Event)> {
        let fields: Vec<Field> =
            fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
        parse(&fields, &"arena".parse()?, || "events:1-0".to_owned())
    }

    #[test]
    fn a_message_is_an_event() -> Result<()> {
        let (board, event) = parsed(&[("user_id", "ada"), ("points", "-5")])?;
        assert_eq!((board.as_str(), event.id.as_deref(), event.points), ("arena", Some("events:1-0"), -5));
        let (board, event) = parsed(&[
            ("metadata", r#"{"a": 1}"#),
            ("board", "laps"),
            ("event_id", "m7"),
            ("user_id", "ada"),
            ("points", "9"),
            ("tiebreak", "-2048"),
            ("reason", "won"),
        ])?;
        assert_eq!((board.as_str(), event.id.as_deref(), event.tiebreak), ("laps", Some("m7"), Some(-2_048)));
        assert_eq!(event.metadata.as_ref().map(Metadata::as_str), Some(r#"{"a":1}"#));
        Ok(())
    }

    #[test]
    fn a_bad_message_is_refused_with_its_field() {
        let good = [("user_id", "ada"), ("points", "5")];
        for (field, value) in [
            ("points", "6"),
            ("event_id", ""),
            ("tiebreak", "1.5"),
            ("reason", "a\nb"),
            ("metadata", "[1]"),
            ("board", "No board"),
            ("colour", "red"),
        ] {
            let refused = parsed(&[good[0], good[1], (field, value)]).map_err(|error| error.to_string());
            assert!(
                refused.as_ref().is_err_and(|text| text.contains(field) || field == "board"),
                "{field}: {refused:?}"
            );
        }
        assert!(parsed(&good[..1]).is_err() && parsed(&good[1..]).is_err());
        assert!(parsed(&[("user_id", "ada"), ("points", "1.5")]).is_err());
    }
}
