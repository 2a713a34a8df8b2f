//! SQL of webhooks and the outbox.

use crate::{
    Result,
    model::{
        act::Actor,
        encryption::StoredSecret,
        outbox::{ClaimedMessage, Message, MessageFilter},
        webhook::Webhook,
    },
    store::{Administrator, Reader, error::written},
};

impl Reader {
    /// Returns the webhook of a board.
    pub(crate) async fn webhook(&self, board: &str) -> Result<Option<Webhook>> {
        let row = sqlx::query_file_as!(Webhook, "sql/queries/webhook.sql", board).fetch_optional(&self.readers).await?;
        Ok(row)
    }

    /// Returns the stored secret of each board's webhook.
    pub(crate) async fn webhook_secrets(&self) -> Result<Vec<(String, StoredSecret)>> {
        let rows = sqlx::query_file!("sql/queries/webhook_secrets.sql").fetch_all(&self.readers).await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.board, StoredSecret { bytes: row.secret, encrypted: row.encrypted }))
            .collect())
    }

    /// Returns the message with this id, or the matching messages, newest first.
    pub(crate) async fn messages(&self, message_id: Option<i64>, filter: &MessageFilter) -> Result<Vec<Message>> {
        let query = sqlx::query_file_as!(
            Message,
            "sql/queries/outbox.sql",
            message_id,
            filter.board.as_ref().map(ToString::to_string),
            filter.waiting,
            i64::from(filter.limit)
        );
        Ok(query.fetch_all(&self.readers).await?)
    }
}

impl Administrator {
    /// Sets the webhook of a board and the secret that signs its messages.
    pub(crate) async fn set_webhook(&self, board: &str, url: &str, secret: &StoredSecret, by: &Actor) -> Result<()> {
        let query = sqlx::query!(
            "SELECT centile.set_webhook($1, $2, $3, $4, $5)",
            board,
            url,
            secret.bytes,
            by.as_str(),
            secret.encrypted
        );
        written(query.fetch_one(&self.writers).await).map(drop)
    }

    /// Removes the webhook of a board. Returns [`crate::Error::NotFound`] when there is none.
    pub(crate) async fn remove_webhook(&self, board: &str, by: &Actor) -> Result<()> {
        let query = sqlx::query!("SELECT centile.remove_webhook($1, $2)", board, by.as_str());
        written(query.fetch_one(&self.writers).await).map(drop)
    }

    /// Replaces the secret of a board's webhook with `encrypted`; returns false if the secret has
    /// changed since it was read.
    pub(crate) async fn reencrypt_webhook(&self, board: &str, was: &StoredSecret, encrypted: &[u8]) -> Result<bool> {
        let query = sqlx::query_scalar!(
            r#"SELECT centile_store.reencrypt_webhook($1, $2, $3) AS "is_done!""#,
            board,
            was.bytes,
            encrypted
        );
        written(query.fetch_one(&self.writers).await)
    }

    /// Leases up to `limit` due messages, at most one per board and none of the boards in `except`.
    pub(crate) async fn claim_deliveries(&self, limit: i32, except: &[String]) -> Result<Vec<ClaimedMessage>> {
        let rows = sqlx::query!(
            r#"SELECT message_id AS "message_id!", board AS "board!", url AS "url!", secret AS "secret!", encrypted AS "encrypted!", body AS "body!", attempt AS "attempt!"
               FROM centile_store.claim_deliveries($1, $2)"#,
            limit,
            except
        )
        .fetch_all(&self.writers)
        .await?;
        let claimed = rows.into_iter().map(|row| ClaimedMessage {
            message_id: row.message_id,
            board: row.board,
            url: row.url,
            secret: StoredSecret { bytes: row.secret, encrypted: row.encrypted },
            body: row.body,
            attempt: row.attempt,
        });
        Ok(claimed.collect())
    }

    /// Records the result of an attempt: the response status, or why there was no response.
    pub(crate) async fn record_delivery(
        &self,
        message_id: i64,
        status: Option<i32>,
        error: Option<&str>,
    ) -> Result<()> {
        let query = sqlx::query!("SELECT centile_store.note_delivery($1, $2, $3)", message_id, status, error);
        written(query.fetch_one(&self.writers).await).map(drop)
    }

    /// Makes a message due now, even if it was delivered. Returns [`crate::Error::Conflict`] when its
    /// board has no webhook.
    pub(crate) async fn resend(&self, message_id: i64, by: &Actor) -> Result<()> {
        let query = sqlx::query!("SELECT centile.resend($1, $2)", message_id, by.as_str());
        written(query.fetch_one(&self.writers).await).map(drop)
    }
}
