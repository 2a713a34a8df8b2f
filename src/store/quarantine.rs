//! SQL of the quarantine.

use chrono::{DateTime, Utc};

use crate::{
    Result,
    model::{
        act::Act,
        metadata::Metadata,
        name::Named as _,
        quarantine::{QuarantinedEvent, State},
    },
    store::{Store, cluster::LANE_OF_QUARANTINED},
};

/// A row of `centile.quarantine`.
struct StoredEvent {
    quarantine_id: i64,
    user_id: String,
    points: i64,
    tiebreak: Option<i16>,
    reason: Option<String>,
    event_id: Option<String>,
    rule: String,
    detail: String,
    submitted_at: DateTime<Utc>,
    decided_at: Option<DateTime<Utc>>,
    decided_by: Option<String>,
    decided_why: Option<String>,
    transaction_id: Option<i64>,
    metadata: Option<String>,
}

impl StoredEvent {
    fn in_state(self, state: State) -> QuarantinedEvent {
        QuarantinedEvent {
            state,
            quarantine_id: self.quarantine_id,
            user_id: self.user_id,
            points: self.points,
            tiebreak: self.tiebreak,
            reason: self.reason,
            event_id: self.event_id,
            rule: self.rule,
            detail: self.detail,
            submitted_at: self.submitted_at,
            decided_at: self.decided_at,
            decided_by: self.decided_by,
            decided_why: self.decided_why,
            transaction_id: self.transaction_id,
            metadata: self.metadata.map(Metadata::stored),
        }
    }
}

impl Store {
    /// Returns a board's quarantined events in one state, oldest first, with ids above `after`.
    pub(crate) async fn quarantine(
        &self,
        board: &str,
        state: State,
        after: i64,
        limit: i64,
    ) -> Result<Vec<QuarantinedEvent>> {
        let rows = sqlx::query_file_as!(StoredEvent, "sql/queries/quarantine.sql", board, state.name(), after, limit)
            .fetch_all(&self.readers)
            .await?;
        Ok(rows.into_iter().map(|row| row.in_state(state)).collect())
    }

    /// Moves an event from quarantine into the ledger; returns its transaction id.
    pub(crate) async fn accept_event(&self, board: &str, quarantine_id: i64, act: &Act) -> Result<i64> {
        let query = sqlx::query_scalar!(
            r#"SELECT centile.accept_event($1, $2, $3, $4) AS "transaction_id!""#,
            board,
            quarantine_id,
            act.reason(),
            act.by.as_str()
        );
        Ok(query.fetch_one(&self.writers_of_row(LANE_OF_QUARANTINED, quarantine_id).await?).await?)
    }

    pub(crate) async fn reject_event(&self, board: &str, quarantine_id: i64, act: &Act) -> Result<()> {
        let query = sqlx::query!(
            "SELECT centile.reject_event($1, $2, $3, $4)",
            board,
            quarantine_id,
            act.reason(),
            act.by.as_str()
        );
        query.fetch_one(&self.writers_of_row(LANE_OF_QUARANTINED, quarantine_id).await?).await?;
        Ok(())
    }

    /// Deletes a bounded number of events decided long ago; returns how many.
    pub(crate) async fn forget_decided_events(&self) -> Result<u64> {
        let mut gone = 0;
        for pool in self.lane_pools() {
            let query = sqlx::query_scalar!(r#"SELECT centile.forget_decided_events() AS "gone!""#);
            gone += query.fetch_one(&pool).await?;
        }
        Ok(gone.unsigned_abs())
    }
}
