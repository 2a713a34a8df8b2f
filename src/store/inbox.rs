//! SQL of the inbox: the events that callers of `centile.submit` have committed.

use std::time::{Duration, Instant};

use crate::{
    Error, Result,
    model::score::Event,
    store::{
        error::written,
        pool::{Pool, Session},
        rows::{elements, paired},
    },
};

/// Maximum events of a board that are taken at once.
const EVENTS_AT_ONCE: i32 = 1_000;

/// Minimum interval of asking for the next begin of the inbox.
const ASK_AFTER: Duration = Duration::from_secs(1);

/// Interval of reading the whole inbox.
const READ_WHOLE_AFTER: Duration = Duration::from_mins(1);

/// Reads events from the inbox, and removes those that are written.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    /// The events of a board are in a transaction while the service writes them.
    pub(super) connections: Pool,
}

/// Where the inbox begins: rows before were removed. PostgreSQL may keep them for old snapshots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InboxBegin {
    /// When the whole inbox was last read. A failover may bring removed rows back.
    read_at: Instant,
    /// The first number that may have an event.
    pub(crate) from: i64,
    /// A later number, and a transaction. When all transactions before that one have ended, events up
    /// to the number can no longer appear.
    next: Option<(i64, i64)>,
    /// When `next` was last asked for, which takes a transaction id.
    asked_at: Option<Instant>,
}

impl Default for InboxBegin {
    fn default() -> Self {
        Self { read_at: Instant::now(), from: 0, next: None, asked_at: None }
    }
}

/// The oldest events of a board in the inbox. No other instance takes events of this board until this
/// value is settled or dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) events: Vec<SubmittedEvent>,
    /// Whether the board may have further events.
    pub(crate) may_be_more: bool,
    session: Session,
}

#[derive(Debug)]
pub(crate) struct SubmittedEvent {
    /// Number in the inbox.
    pub(crate) number: i64,
    /// The event, or what is invalid.
    pub(crate) event: Result<Event>,
}

/// An event that was refused or quarantined.
#[derive(Debug)]
pub(crate) struct FailedEvent {
    /// Number in the inbox.
    pub(crate) number: i64,
    /// Code of the error.
    pub(crate) code: &'static str,
    pub(crate) reason: String,
    /// Id in quarantine; `None` if it was refused.
    pub(crate) quarantine_id: Option<i64>,
}

impl FailedEvent {
    pub(crate) fn new(number: i64, error: &Error, quarantine_id: Option<i64>) -> Self {
        Self { number, code: error.code().name(), reason: error.to_string(), quarantine_id }
    }
}

impl Inbox {
    /// Returns id and slug of the boards of the oldest events, or of others if all of these boards are
    /// `busy`.
    pub(crate) async fn boards(&self, begin: &mut InboxBegin, busy: &[i32]) -> Result<Vec<(i32, String)>> {
        if begin.read_at.elapsed() >= READ_WHOLE_AFTER {
            *begin = InboxBegin::default();
        }
        let asks = begin.next.is_none() && begin.asked_at.is_none_or(|at| at.elapsed() >= ASK_AFTER);
        let (next_number, next_xid) = begin.next.unzip();
        let row = sqlx::query!(
            r#"SELECT i.from_number AS "from!", i.next_number, i.next_xid, i.boards, i.slugs
               FROM centile_store.boards_in_inbox($1, $2, $3, $4, $5, $6) i"#,
            busy,
            EVENTS_AT_ONCE,
            begin.from,
            next_number,
            next_xid,
            asks,
        );
        let row = row.fetch_one(&self.connections).await?;
        if row.from > begin.from {
            (begin.from, begin.next) = (row.from, None);
        }
        if asks {
            (begin.next, begin.asked_at) = (row.next_number.zip(row.next_xid), Some(Instant::now()));
        }
        Ok(paired("boards and slugs", elements(row.boards), elements(row.slugs))?.collect())
    }

    /// Takes the oldest events of a board, with numbers at or above `from`. Returns `None` if there are
    /// none, or while another instance has taken some.
    pub(crate) async fn take(&self, board_id: i32, from: i64) -> Result<Option<Taken>> {
        let mut session = self.connections.check_out().await?;
        // Writing them may take longer than a statement.
        session.begin("SET LOCAL idle_in_transaction_session_timeout = '60s'").await?;
        let rows = sqlx::query!(
            r#"SELECT i.number AS "number!", i.user_id AS "user_id!", i.points AS "points!", i.event_id AS "event_id!",
                      i.tiebreak, i.reason, i.metadata::text AS metadata
               FROM centile_store.take_inbox($1, $2, $3) i"#,
            board_id,
            from,
            EVENTS_AT_ONCE
        );
        let rows = rows.fetch_all(&mut session).await?.into_iter().map(|row| {
            let event = || {
                Ok(Event {
                    user_id: row.user_id.parse()?,
                    points: row.points,
                    reason: row.reason,
                    id: Some(row.event_id),
                    tiebreak: row.tiebreak,
                    metadata: row.metadata.as_deref().map(str::parse).transpose()?,
                    occurred_at: None,
                })
            };
            SubmittedEvent { number: row.number, event: event() }
        });
        let events: Vec<_> = rows.collect();
        if events.is_empty() {
            session.roll_back().await?;
            return Ok(None);
        }
        let may_be_more = i32::try_from(events.len()).is_ok_and(|count| count >= EVENTS_AT_ONCE);
        Ok(Some(Taken { events, may_be_more, session }))
    }
}

impl Taken {
    /// Removes events from the inbox: those with these numbers, and those that `failed`, which get a
    /// row of their own. The others stay.
    pub(crate) async fn settle(mut self, numbers: &[i64], failed: &[FailedEvent]) -> Result<()> {
        let failed_numbers: Vec<i64> = failed.iter().map(|event| event.number).collect();
        let codes: Vec<&str> = failed.iter().map(|event| event.code).collect();
        let reasons: Vec<&str> = failed.iter().map(|event| event.reason.as_str()).collect();
        let quarantine_ids: Vec<Option<i64>> = failed.iter().map(|event| event.quarantine_id).collect();
        sqlx::query!(
            "SELECT centile_store.settle_inbox($1, $2, $3, $4, $5)",
            numbers,
            &failed_numbers,
            &codes as &[&str],
            &reasons as &[&str],
            &quarantine_ids as &[Option<i64>],
        )
        .execute(&mut self.session)
        .await?;
        written(self.session.commit().await)
    }
}
