//! Copies the transactions of a board into a Redis Stream.
//!
//! The cursor is stored beside the stream, in one script with the entries that precede it. So a
//! copy that was killed continues where it ended, and the stream gets each transaction once.

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
    delivery::transactions::{Cursor, Reader, Start, Transactions},
    model::{board::Board, score::Transaction},
    redis_stream::{RedisStream, keep_trying},
};

/// Maximum transactions per script, which blocks Redis for some milliseconds.
const PAGE: u16 = 1_000;

/// Maximum wait for transactions.
const WAIT: Duration = Duration::from_secs(30);

/// Pause after a page that was not full. Meanwhile more transactions arrive, and one large page
/// costs far less than several small ones.
const PAUSE: Duration = Duration::from_millis(50);

/// The board to copy, and where to begin.
#[derive(Debug)]
pub(crate) struct Copying<'a> {
    /// The ledger.
    pub(crate) transactions: &'a Arc<Transactions>,
    /// The board.
    pub(crate) board: &'a Board,
    /// Where to begin if no cursor is stored.
    pub(crate) first: Start,
    /// Minimum number of entries that the stream keeps; all if `None`.
    pub(crate) max_length: Option<u64>,
}

/// Copies until `stopping` is cancelled, and counts transactions in `copied`. Waits while Redis or
/// PostgreSQL is unavailable, except at the start.
pub(crate) async fn run(
    copying: &Copying<'_>,
    to: &mut RedisStream,
    copied: &AtomicU64,
    stopping: &CancellationToken,
) -> Result<()> {
    let key = format!("{}:cursor:{}", to.name(), copying.board.slug);
    keep_trying(stopping, async |has_begun: &mut bool| {
        while !stopping.is_cancelled() {
            let mut was = to.stored(&key).await?;
            let mut reader = Reader::begin(copying.transactions, copying.board, start(copying, &key, &was)?).await?;
            *has_begun = true;
            while copy_page(copying, to, (&key, &mut was), &mut reader, copied, stopping).await? {}
        }
        Ok(())
    })
    .await
}

fn start(copying: &Copying<'_>, key: &str, stored: &str) -> Result<Start> {
    if stored.is_empty() {
        return Ok(copying.first.clone());
    }
    let other = |_| Error::conflict(Code::Conflict, format!("the Redis key {key} has no cursor of this board"));
    Cursor::parse(stored, copying.board.id).map(Start::After).map_err(other)
}

/// Copies a page and the cursor after it. Returns whether to go on with the same reader.
async fn copy_page(
    copying: &Copying<'_>,
    to: &mut RedisStream,
    (key, was): (&str, &mut String),
    reader: &mut Reader,
    copied: &AtomicU64,
    stopping: &CancellationToken,
) -> Result<bool> {
    // The first cursor is stored at once: a repeated start at the present would skip transactions.
    let wait = if was.is_empty() { Duration::ZERO } else { WAIT };
    let rows = reader.read_or_wait(PAGE, wait, stopping).await?;
    // Appends an empty page, too, to find out whether Redis has lost the stream.
    let cursor = reader.cursor().text();
    let entries: Vec<_> = rows.iter().map(|row| fields(copying.board, row)).collect();
    if !to.append(&entries, key, was, &cursor, copying.max_length).await? {
        tracing::warn!("Redis has another cursor of this board; continuing there");
        return Ok(false);
    }
    *was = cursor;
    copied.fetch_add(rows.len() as u64, Ordering::Relaxed);
    if rows.len() < usize::from(PAGE) {
        timeout(PAUSE, stopping.cancelled()).await.ok();
    }
    Ok(!stopping.is_cancelled())
}

/// Returns the fields of an entry. A transaction without a value lacks the field.
fn fields<'a>(board: &Board, row: &Transaction) -> Vec<(&'a str, String)> {
    let mut fields = vec![
        ("transaction_id", row.transaction_id.to_string()),
        ("board", board.slug.to_string()),
        ("user_id", row.user_id.clone()),
        ("kind", row.kind.clone()),
        ("occurred_at", row.occurred_at.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
        ("lane", row.lane.to_string()),
        ("batch", row.batch.to_string()),
    ];
    let optional = [
        ("points", row.points.map(|points| points.to_string())),
        ("tiebreak", row.tiebreak.map(|tiebreak| tiebreak.to_string())),
        ("reason", row.reason.clone()),
        ("voids", row.voids.map(|voids| voids.to_string())),
        ("event_id", row.event_id.clone()),
        ("metadata", row.metadata.as_ref().map(|metadata| metadata.as_str().to_owned())),
    ];
    fields.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
    fields
}
