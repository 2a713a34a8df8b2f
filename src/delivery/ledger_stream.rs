//! The event stream of a board: every row of its ledger, once and in order, from any cursor on.
//!
//! A writer draws ids of the ledger only while it holds its lane's lock, which it keeps until its
//! commit. So the rows of a lane are committed in the order of their ids, and the last id that was
//! read in each lane is an exact place in the ledger. Each page is one statement, so it sees each
//! lane in one snapshot.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::{
    Code, Error, Resource, Result,
    model::{
        board::{Board, Mode},
        id::{Batch, Lane},
        score::Transaction,
    },
    single_flight::SingleFlightCache,
    store::Reader,
};

/// Interval between checks for new batches, which all waiting readers of a board share.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Maximum ids that a page reads past in vain, because a lane without new rows is still at an old
/// id.
const MAX_LAG: i64 = 2_000;

/// State that all readers of event streams share.
#[derive(Debug)]
pub(crate) struct LedgerStreams {
    reader: Reader,
    /// Last batches of boards whose readers wait.
    batches: SingleFlightCache<i32, Vec<Batch>>,
    /// Highest id in the ledger when a page was last read.
    ledger_end: AtomicI64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LedgerStart {
    /// At the oldest row of the ledger.
    Oldest,
    /// At the present: after all rows that are committed or being written.
    Now,
    /// After the rows that an earlier reader has read.
    After(LedgerCursor),
}

/// A place in the ledger of a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LedgerCursor {
    epoch: String,
    board_id: i32,
    /// For each lane, the last id that was read, or a later id up to which it has no other rows.
    ids: Vec<i64>,
}

impl LedgerCursor {
    /// Encodes the cursor as text that is opaque to callers.
    pub(crate) fn text(&self) -> String {
        let ids: Vec<String> = self.ids.iter().map(i64::to_string).collect();
        URL_SAFE_NO_PAD.encode(format!("{}|{}|{}", self.epoch, self.board_id, ids.join(",")))
    }

    /// Decodes a cursor. [`Error::Invalid`] unless it belongs to the board.
    pub(crate) fn parse(text: &str, board_id: i32) -> Result<Self> {
        let parsed = || {
            let plain = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
            let [epoch, board, ids] = plain.split('|').collect::<Vec<_>>().try_into().ok()?;
            let ids: Vec<i64> = ids.split(',').map(|id| id.parse().ok()).collect::<Option<_>>()?;
            let cursor = Self { epoch: epoch.to_owned(), board_id: board.parse().ok()?, ids };
            (cursor.board_id == board_id && cursor.ids.iter().all(|id| *id >= 0)).then_some(cursor)
        };
        parsed().ok_or_else(|| Error::invalid("after", "must be now, or a cursor from the transactions of this board"))
    }
}

impl LedgerStart {
    pub(crate) fn parse(after: Option<&str>, board_id: i32) -> Result<Self> {
        match after {
            None => Ok(Self::Oldest),
            Some("now") => Ok(Self::Now),
            Some(text) => LedgerCursor::parse(text, board_id).map(Self::After),
        }
    }
}

impl LedgerStreams {
    /// Prepares reading. `timeout` limits the wait for another reader's check of a board.
    pub(crate) fn new(reader: Reader, timeout: Duration) -> Self {
        let batches = SingleFlightCache::new(timeout, LOOK_EVERY);
        Self { reader, batches, ledger_end: AtomicI64::new(0) }
    }
}

/// A reader of a board's event stream.
#[derive(Debug)]
pub(crate) struct LedgerReader {
    streams: Arc<LedgerStreams>,
    board_id: i32,
    /// Unknown until the first page of a stream from the oldest row.
    epoch: Option<String>,
    /// Whether a page was read, now or by the reader whose cursor this one continues.
    has_begun: bool,
    ids: Vec<i64>,
    /// Last batches of the lanes when the last page was read.
    batches: Vec<Batch>,
}

impl LedgerReader {
    /// Begins to read at `start`. [`Error::Conflict`] for a combined board, which has no ledger.
    pub(crate) async fn begin(streams: &Arc<LedgerStreams>, board: &Board, start: LedgerStart) -> Result<Self> {
        if board.mode == Mode::Combined {
            let message = format!("board {} is computed from other boards: read their transactions", board.slug);
            return Err(Error::conflict(Code::BoardCombined, message));
        }
        if let Some(template) = &board.template {
            let message = format!(
                "board {} shares the lanes of template {template}: boards of templates have no stream",
                board.slug
            );
            return Err(Error::conflict(Code::BoardOfTemplate, message));
        }
        let lanes = usize::try_from(board.limits.lanes).unwrap_or_default();
        let has_begun = matches!(start, LedgerStart::After(_));
        let (epoch, ids) = match start {
            LedgerStart::Oldest => (None, vec![0; lanes]),
            LedgerStart::Now => {
                let settled = streams.reader.settle_lanes(board.id, true).await?;
                (Some(settled.epoch), vec![settled.ledger_end; settled.lanes.len()])
            }
            LedgerStart::After(cursor) => (Some(cursor.epoch), cursor.ids),
        };
        Ok(Self { streams: Arc::clone(streams), board_id: board.id, epoch, has_begun, ids, batches: Vec::new() })
    }

    /// Returns the cursor after the rows that were read.
    pub(crate) fn cursor(&self) -> LedgerCursor {
        LedgerCursor { epoch: self.epoch.clone().unwrap_or_default(), board_id: self.board_id, ids: self.ids.clone() }
    }

    /// Returns the next rows, at most `limit`; empty at the end of the ledger.
    ///
    /// [`Error::Conflict`] if the cursor is from another epoch.
    pub(crate) async fn read_page(&mut self, limit: u16) -> Result<Vec<Transaction>> {
        let reader = &self.streams.reader;
        let lag = self.streams.ledger_end.load(Ordering::Relaxed) - self.ids.iter().copied().min().unwrap_or_default();
        // Settles lanes before reading the page, which then contains all settled rows.
        let settled = if lag > MAX_LAG { Some(reader.settle_lanes(self.board_id, false).await?) } else { None };
        let page = reader.transactions_after(self.board_id, &self.ids, limit.into()).await?;
        let page = page.ok_or_else(|| Error::not_found(Resource::Board, self.board_id.to_string()))?;
        let is_other = self.epoch.as_ref().is_some_and(|epoch| *epoch != page.epoch);
        if is_other && !self.has_begun {
            return Err(Error::retry(Code::ConcurrentChange, "the database has just failed over; retry"));
        }
        if is_other || page.batches.len() != self.ids.len() {
            let message = "the cursor is from before the database was restored or failed over, or the board's lanes \
                           were changed: begin without a cursor, and skip the transactions that you know";
            return Err(Error::conflict(Code::CursorOutdated, message));
        }
        let mut raise = |Lane(lane): Lane, to: i64| {
            if let Some(id) = usize::try_from(lane).ok().and_then(|lane| self.ids.get_mut(lane)) {
                *id = to.max(*id);
            }
        };
        for row in &page.rows {
            raise(row.lane, row.transaction_id);
        }
        // Between the two statements, the database may have failed over.
        if let Some(settled) = settled.filter(|settled| settled.epoch == page.epoch) {
            let (is_full, end) = (page.rows.len() >= usize::from(limit), settled.ledger_end);
            let reached = page.rows.last().filter(|_| is_full).map_or(end, |last| end.min(last.transaction_id));
            for lane in settled.lanes {
                raise(lane, reached);
            }
        }
        self.streams.ledger_end.store(page.ledger_end, Ordering::Relaxed);
        (self.epoch, self.has_begun) = (Some(page.epoch), true);
        self.batches = page.batches;
        Ok(page.rows)
    }

    /// Returns the next rows. If there are none, waits for them for up to `wait`, or until
    /// `stopping` is cancelled.
    pub(crate) async fn read_or_wait(
        &mut self,
        limit: u16,
        wait: Duration,
        stopping: &CancellationToken,
    ) -> Result<Vec<Transaction>> {
        let deadline = Instant::now() + wait;
        loop {
            let rows = self.read_page(limit).await?;
            if !rows.is_empty() || wait.is_zero() {
                return Ok(rows);
            }
            tokio::select! {
                changed = timeout_at(deadline, self.changed()) => match changed {
                    Ok(changed) => changed?,
                    Err(_) => return Ok(rows),
                },
                () = stopping.cancelled() => return Ok(rows),
            }
        }
    }

    /// Waits until a lane has a newer batch than at the last page.
    async fn changed(&self) -> Result<()> {
        let LedgerStreams { reader, batches, .. } = &*self.streams;
        loop {
            if batches.read(self.board_id, || reader.batches(self.board_id)).await? != self.batches {
                return Ok(());
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_text_that_belongs_to_a_board() {
        let cursor = LedgerCursor { epoch: "0123456789ab".to_owned(), board_id: 7, ids: vec![0, 12, i64::MAX] };
        let text = cursor.text();
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{text}");
        assert_eq!(LedgerCursor::parse(&text, 7).ok(), Some(cursor));
        let encoded = |plain: &str| URL_SAFE_NO_PAD.encode(plain);
        for (wrong, id) in [
            (text, 8),
            (encoded("e|7"), 7),
            (encoded("e|7|1|2"), 7),
            (encoded("e|7|"), 7),
            (encoded("e|7|-1"), 7),
            (encoded("e|7|1,x"), 7),
            (String::new(), 7),
            ("%".to_owned(), 7),
        ] {
            let refused = LedgerCursor::parse(&wrong, id).map_err(|error| error.to_string());
            assert!(refused.is_err_and(|text| text.starts_with("after: ")), "{wrong}");
        }
    }
}
