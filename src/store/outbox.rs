//! SQL of webhooks and the outbox.

use crate::{
    Result,
    model::{
        act::Actor,
        board::BoardSlug,
        outbox::{Claimed, Event, EventFilter},
        secret::StoredSecret,
        webhook::Webhook,
    },
    store::Store,
};

impl Store {
    /// Sets the webhook of a board and the secret that signs its events.
    pub(crate) async fn set_webhook(&self, board: &str, url: &str, secret: &StoredSecret, by: &Actor) -> Result<()> {
        sqlx::query!(
            "SELECT centile.set_webhook($1, $2, $3, $4, $5)",
            board,
            url,
            secret.bytes,
            by.as_str(),
            secret.encrypted
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(())
    }

    /// Returns the webhook of a board.
    pub(crate) async fn webhook(&self, board: &str) -> Result<Option<Webhook>> {
        let row = sqlx::query_file_as!(Webhook, "sql/queries/webhook.sql", board).fetch_optional(&self.readers).await?;
        Ok(row)
    }

    /// Removes the webhook of a board.
    pub(crate) async fn remove_webhook(&self, board: &str, by: &Actor) -> Result<()> {
        sqlx::query!("SELECT centile.remove_webhook($1, $2)", board, by.as_str()).fetch_one(&self.writers).await?;
        Ok(())
    }

    /// Leases up to `limit` due events, at most one per board and none of the boards in `except`.
    pub(crate) async fn claim_deliveries(&self, limit: i32, except: &[String]) -> Result<Vec<Claimed>> {
        let rows = sqlx::query!(
            r#"SELECT event_id AS "event_id!", board AS "board!", url AS "url!", secret AS "secret!", encrypted AS "encrypted!", body AS "body!", attempt AS "attempt!"
               FROM centile_store.claim_deliveries($1, $2)"#,
            limit,
            except
        )
        .fetch_all(&self.writers)
        .await?;
        let claimed = rows.into_iter().map(|row| Claimed {
            event_id: row.event_id,
            board: row.board,
            url: row.url,
            secret: StoredSecret { bytes: row.secret, encrypted: row.encrypted },
            body: row.body,
            attempt: row.attempt,
        });
        Ok(claimed.collect())
    }

    /// Records the result of an attempt: the response status, or why there was no response.
    pub(crate) async fn note_delivery(&self, event_id: i64, status: Option<i32>, error: Option<&str>) -> Result<()> {
        sqlx::query!("SELECT centile_store.note_delivery($1, $2, $3)", event_id, status, error)
            .fetch_one(&self.writers)
            .await?;
        Ok(())
    }

    /// Makes an event due now.
    pub(crate) async fn resend(&self, event_id: i64, by: &Actor) -> Result<()> {
        sqlx::query!("SELECT centile.resend($1, $2)", event_id, by.as_str()).fetch_one(&self.writers).await?;
        Ok(())
    }

    /// Returns the event with this id, or the matching events, newest first.
    pub(crate) async fn events(&self, event_id: Option<i64>, filter: &EventFilter) -> Result<Vec<Event>> {
        let events = sqlx::query_file_as!(
            Event,
            "sql/queries/outbox.sql",
            event_id,
            filter.board.as_ref().map(BoardSlug::as_str),
            filter.waiting,
            i64::from(filter.limit)
        )
        .fetch_all(&self.readers)
        .await?;
        Ok(events)
    }
}
