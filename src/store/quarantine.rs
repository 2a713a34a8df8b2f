//! SQL of the quarantine.

use crate::{
    Result,
    model::{
        act::Act,
        metadata::Metadata,
        name::Named as _,
        quarantine::{QuarantinedEvent, State},
    },
    store::{Administrator, Reader, cluster::LANE_OF_QUARANTINED, error::written},
};

impl Reader {
    /// Returns a board's quarantined events in one state, oldest first, with ids above `after`.
    pub(crate) async fn quarantine(
        &self,
        board: &str,
        state: State,
        after: i64,
        limit: i64,
    ) -> Result<Vec<QuarantinedEvent>> {
        let query = sqlx::query_file!("sql/queries/quarantine.sql", board, state.name(), after, limit);
        let rows = query.fetch_all(&self.readers).await?;
        let events = rows.into_iter().map(|row| QuarantinedEvent {
            quarantine_id: row.quarantine_id,
            user_id: row.user_id,
            points: row.points,
            tiebreak: row.tiebreak,
            reason: row.reason,
            event_id: row.event_id,
            rule: row.rule,
            detail: row.detail,
            submitted_at: row.submitted_at,
            state,
            decided_at: row.decided_at,
            decided_by: row.decided_by,
            decided_why: row.decided_why,
            transaction_id: row.transaction_id,
            metadata: row.metadata.map(Metadata::stored),
        });
        Ok(events.collect())
    }
}

impl Administrator {
    /// Moves an event from quarantine into the ledger; returns its transaction id.
    pub(crate) async fn accept_event(&self, board: &str, quarantine_id: i64, act: &Act) -> Result<i64> {
        let query = sqlx::query_scalar!(
            r#"SELECT centile.accept_event($1, $2, $3, $4) AS "transaction_id!""#,
            board,
            quarantine_id,
            act.reason(),
            act.by.as_str()
        );
        written(query.fetch_one(&self.writers_of_row(LANE_OF_QUARANTINED, quarantine_id).await?).await)
    }

    /// Rejects an event permanently.
    ///
    /// Returns [`crate::Error::NotFound`] when the board has no such event, and
    /// [`crate::Error::Conflict`] when it was accepted.
    pub(crate) async fn reject_event(&self, board: &str, quarantine_id: i64, act: &Act) -> Result<()> {
        let query = sqlx::query!(
            "SELECT centile.reject_event($1, $2, $3, $4)",
            board,
            quarantine_id,
            act.reason(),
            act.by.as_str()
        );
        written(query.fetch_one(&self.writers_of_row(LANE_OF_QUARANTINED, quarantine_id).await?).await).map(drop)
    }

    /// Deletes a bounded number of events decided long ago; returns how many.
    pub(crate) async fn forget_decided_events(&self) -> Result<u64> {
        let mut gone = 0;
        for pool in self.lane_pools() {
            let query = sqlx::query_scalar!(r#"SELECT centile_store.forget_decided_events() AS "gone!""#);
            gone += query.fetch_one(&pool).await?;
        }
        Ok(gone.unsigned_abs())
    }
}
