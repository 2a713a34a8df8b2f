//! SQL that compares a replica with the primary.

use crate::{Result, store::Store};

/// The primary, as seen by [`Store::primary_position`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrimaryPosition {
    /// Its epoch, which is recorded for its replicas.
    pub(crate) epoch: String,
    /// Bytes of write-ahead log that it has written.
    pub(crate) wal: i64,
}

impl Store {
    /// Returns the position of the primary. Records its epoch if it is new.
    pub(crate) async fn primary_position(&self) -> Result<PrimaryPosition> {
        let position = sqlx::query_file_as!(PrimaryPosition, "sql/queries/primary_position.sql");
        Ok(position.fetch_one(&self.bucket_writer.layout_writers).await?)
    }

    /// Returns the bytes of write-ahead log that a replica has replayed; `None` if it does not
    /// follow the primary with this epoch. The server may also be the primary itself.
    pub(crate) async fn replayed(&self, primary_epoch: &str) -> Result<Option<i64>> {
        Ok(sqlx::query_file_scalar!("sql/queries/replayed.sql", primary_epoch)
            .fetch_one(&self.bucket_writer.layout_writers)
            .await?)
    }
}
