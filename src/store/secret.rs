//! SQL of stored secrets that can be decrypted.

use crate::{
    Error, Result,
    model::secret::{SecretOwner, StoredSecret},
    store::Store,
};

impl Store {
    /// Returns every secret that may still be needed.
    pub(crate) async fn kept_secrets(&self) -> Result<Vec<(SecretOwner, StoredSecret)>> {
        let rows = sqlx::query_file!("sql/queries/kept_secrets.sql").fetch_all(&self.readers).await?;
        let secrets = rows.into_iter().map(|row| {
            let owner = match &*row.kind {
                "key" => SecretOwner::Key(row.name),
                "webhook" => SecretOwner::Webhook(row.name),
                other => return Err(Error::Internal(format!("unknown kind of secret: {other:?}"))),
            };
            Ok((owner, StoredSecret { bytes: row.secret, encrypted: row.encrypted }))
        });
        secrets.collect()
    }

    /// Replaces a secret with `encrypted`; returns false when the secret has changed since it was
    /// read.
    pub(crate) async fn reencrypt(&self, owner: &SecretOwner, was: &StoredSecret, encrypted: &[u8]) -> Result<bool> {
        let (kind, name) = match owner {
            SecretOwner::Key(id) => ("key", id),
            SecretOwner::Webhook(board) => ("webhook", board),
        };
        let is_done = sqlx::query_scalar!(
            r#"SELECT centile_store.reencrypt($1, $2, $3, $4) AS "is_done!""#,
            kind,
            name,
            was.bytes,
            encrypted
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(is_done)
    }
}
