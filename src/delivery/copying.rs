//! Copies the transactions of a board into a message queue.
//!
//! The cursor is stored on the queue's server, never before the entries that precede it. So a copy
//! that was killed loses nothing: in Redis it resumes exactly where it stopped, in Kafka it repeats
//! some entries.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use chrono::SecondsFormat;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    Code, Error, Result,
    delivery::ledger_stream::{LedgerCursor, LedgerReader, LedgerStart, LedgerStreams},
    model::{board::Board, score::Transaction},
    queue::{Producer, QueueEntry, Value, retry_until_stopped},
};

/// Maximum transactions per page. A page blocks Redis for some milliseconds.
const PAGE: u16 = 1_000;

const WAIT: Duration = Duration::from_secs(30);

/// Pause after a page that was not full. Meanwhile more transactions arrive, and one large page
/// costs far less than several small ones.
const PAUSE: Duration = Duration::from_millis(50);

/// The board to copy, and where to begin.
#[derive(Debug)]
pub(crate) struct Copying<'a> {
    pub(crate) streams: &'a Arc<LedgerStreams>,
    pub(crate) board: &'a Board,
    /// Where to begin if no cursor is stored.
    pub(crate) first: LedgerStart,
}

/// Copies until `stopping` is cancelled, and counts transactions in `copied`. Waits while the queue
/// or PostgreSQL is unavailable, except at the start.
pub(crate) async fn copy_transactions(
    copying: &Copying<'_>,
    to: &mut impl Producer,
    copied: &AtomicU64,
    stopping: &CancellationToken,
) -> Result<()> {
    // If the queue loses the cursor later, the copy does not begin at the present again.
    let mut first = copying.first.clone();
    retry_until_stopped(stopping, async |has_begun: &mut bool| {
        while !stopping.is_cancelled() {
            let stored = to.begin().await?;
            let start = start(copying, &first, to.cursor_location(), &stored)?;
            let mut reader = LedgerReader::begin(copying.streams, copying.board, start).await?;
            *has_begun = true;
            // The first cursor is stored at once: a repeated start at the present would skip transactions.
            let mut wait = if stored.is_empty() { Duration::ZERO } else { WAIT };
            while copy_page(copying, to, &mut reader, wait, copied, stopping).await? {
                wait = WAIT;
                if first == LedgerStart::Now {
                    first = LedgerStart::After(reader.cursor());
                }
            }
        }
        Ok(())
    })
    .await
}

fn start(copying: &Copying<'_>, first: &LedgerStart, location: &str, stored: &str) -> Result<LedgerStart> {
    if stored.is_empty() {
        return Ok(first.clone());
    }
    let other = |_| Error::other_conflict(format!("{location} has a cursor that is not of this board"));
    LedgerCursor::parse(stored, copying.board.id).map(LedgerStart::After).map_err(other)
}

/// Copies a page and the cursor after it. Returns whether to go on with the same reader.
async fn copy_page(
    copying: &Copying<'_>,
    to: &mut impl Producer,
    reader: &mut LedgerReader,
    wait: Duration,
    copied: &AtomicU64,
    stopping: &CancellationToken,
) -> Result<bool> {
    let outdated = |error| match error {
        Error::Conflict { code: code @ Code::CursorOutdated, .. } => {
            let (location, lost) =
                (to.cursor_location(), "the database was restored or failed over, or the board's lanes were changed");
            let remedy = format!("delete {location}, and run the command again, which begins a new copy");
            Error::conflict(code, format!("{location} has a cursor from before {lost}: {remedy}"))
        }
        other => other,
    };
    let rows = reader.read_or_wait(PAGE, wait, stopping).await.map_err(outdated)?;
    // Store the cursor after an empty page too: this detects whether Redis has lost its data, and
    // restarts Kafka's retention of the cursor.
    let entries: Vec<_> = rows.iter().map(|row| entry(copying.board, row)).collect();
    if !to.append(&entries, reader.cursor().text()).await? {
        tracing::warn!("the queue has another cursor of this board; continuing there");
        return Ok(false);
    }
    copied.fetch_add(rows.len() as u64, Ordering::Relaxed);
    if rows.len() < usize::from(PAGE) {
        timeout(PAUSE, stopping.cancelled()).await.ok();
    }
    Ok(!stopping.is_cancelled())
}

/// Returns the entry of a transaction, without fields that have no value.
fn entry(board: &Board, row: &Transaction) -> QueueEntry {
    let number = |number: i64| Some(Value::Json(number.to_string()));
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    let fields = [
        ("transaction_id", number(row.transaction_id)),
        ("board", text(board.slug.as_str())),
        ("user_id", text(&row.user_id)),
        ("kind", text(&row.kind)),
        ("occurred_at", text(&row.occurred_at.to_rfc3339_opts(SecondsFormat::AutoSi, true))),
        ("lane", number(row.lane.0.into())),
        ("batch", number(row.batch.0)),
        ("points", row.points.and_then(number)),
        ("tiebreak", row.tiebreak.and_then(number)),
        ("reason", row.reason.as_deref().and_then(text)),
        ("voids", row.voids.and_then(number)),
        ("event_id", row.event_id.as_deref().and_then(text)),
        ("metadata", row.metadata.as_ref().map(|metadata| Value::Json(metadata.as_str().to_owned()))),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
