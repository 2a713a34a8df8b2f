//! SQL of stored secrets that can be decrypted.

use crate::{Result, model::secret::SecretRow, store::Store};

impl Store {
    /// Returns every secret that may still be needed.
    pub(crate) async fn kept_secrets(&self) -> Result<Vec<SecretRow>> {
        let kept = sqlx::query_file_as!(SecretRow, "sql/queries/kept_secrets.sql").fetch_all(&self.readers).await?;
        Ok(kept)
    }

    /// Replaces a secret with `encrypted`; returns false when the secret has changed since it was
    /// read.
    pub(crate) async fn reencrypt(&self, was: &SecretRow, encrypted: &[u8]) -> Result<bool> {
        let is_done = sqlx::query_scalar!(
            r#"SELECT centile_store.reencrypt($1, $2, $3, $4) AS "is_done!""#,
            was.kind,
            was.name,
            was.secret,
            encrypted
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(is_done)
    }
}
