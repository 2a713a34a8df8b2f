//! Secrets that are kept to be read again, in the database.

use crate::{Result, model::secret::Kept, store::Store};

impl Store {
    /// Every secret that may still be needed.
    pub(crate) async fn kept_secrets(&self) -> Result<Vec<Kept>> {
        let kept = sqlx::query_file_as!(Kept, "sql/queries/kept_secrets.sql").fetch_all(&self.readers).await?;
        Ok(kept)
    }

    /// Puts `sealed` in the place of a secret; false when that has changed since it was read.
    pub(crate) async fn reseal(&self, was: &Kept, sealed: &[u8]) -> Result<bool> {
        let is_done = sqlx::query_scalar!(
            r#"SELECT centile_store.reseal($1, $2, $3, $4) AS "is_done!""#,
            was.kind,
            was.name,
            was.secret,
            sealed
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(is_done)
    }
}
