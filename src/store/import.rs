//! SQL of imports. Periods of a board stay open until its imports have ended.

use sqlx::{Connection as _, PgConnection};

use crate::{
    Code, Error, Result,
    model::act::Actor,
    store::{Administrator, error::written},
};

/// An import in progress. Its connection shows other processes that the import is running.
#[derive(Debug)]
pub(crate) struct OpenImport {
    import_id: i64,
    connection: PgConnection,
}

impl OpenImport {
    /// Checks that the import still counts as running.
    ///
    /// Returns [`Error::Retry`] when its connection was lost: other processes may then treat
    /// it as interrupted.
    pub(crate) async fn check(&mut self) -> Result<()> {
        let lost = |_| {
            Error::retry(
                Code::Unavailable,
                "the connection that announces the import was lost; periods may be closed before it ends",
            )
        };
        self.connection.ping().await.map_err(lost)
    }
}

impl Administrator {
    /// Registers an import of a board.
    pub(crate) async fn begin_import(&self, board_id: i32, source: &str, by: &Actor) -> Result<OpenImport> {
        let mut connection = self.reader.servers.unlimited_connection().await?;
        let query = sqlx::query_scalar!(
            r#"SELECT centile_store.begin_import($1, $2, $3) AS "id!""#,
            board_id,
            source,
            by.as_str()
        );
        let import_id = written(query.fetch_one(&mut connection).await)?;
        Ok(OpenImport { import_id, connection })
    }

    /// Marks an import as ended.
    ///
    /// Returns [`Error::Conflict`] when it was abandoned meanwhile.
    pub(crate) async fn end_import(&self, mut import: OpenImport) -> Result<()> {
        import.check().await?;
        let query = sqlx::query_scalar!(r#"SELECT centile_store.end_import($1) AS "has_ended!""#, import.import_id);
        if written(query.fetch_one(&self.writers).await)? {
            Ok(())
        } else {
            Err(Error::other_conflict("the import was abandoned while it ran"))
        }
    }

    /// Abandons a board's interrupted imports, so that its periods can be closed; returns how many.
    ///
    /// Returns [`Error::Conflict`] when one is running.
    pub(crate) async fn abandon_imports(&self, board: &str, by: &Actor) -> Result<u64> {
        let query =
            sqlx::query_scalar!(r#"SELECT centile.abandon_imports($1, $2) AS "abandoned!""#, board, by.as_str());
        let abandoned = written(query.fetch_one(&self.writers).await)?;
        Ok(u64::from(abandoned.unsigned_abs()))
    }
}
