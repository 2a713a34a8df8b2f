//! Imports in the database: closers wait for those that have not ended.

use sqlx::{Connection as _, PgConnection};

use crate::{Error, Result, model::act::Actor, store::Store};

/// An import that closers wait for: as long as this connection lives, others see that the import does.
#[derive(Debug)]
pub(crate) struct OpenImport {
    import_id: i64,
    connection: PgConnection,
}

impl OpenImport {
    /// Shows that it is alive. [`Error::Unavailable`] when others may take it for dead: its connection was lost.
    pub(crate) async fn go_on(&mut self) -> Result<()> {
        let lost =
            |_| Error::unavailable("the connection that announces the import was lost; periods may be closed under it");
        self.connection.ping().await.map_err(lost)
    }
}

impl Store {
    /// Announces an import of a board.
    pub(crate) async fn begin_import(&self, board_id: i32, source: &str, by: &Actor) -> Result<OpenImport> {
        let mut connection = self.patient_connection().await?;
        let import_id = sqlx::query_scalar!(
            r#"SELECT centile_store.begin_import($1, $2, $3) AS "id!""#,
            board_id,
            source,
            by.as_str()
        )
        .fetch_one(&mut connection)
        .await?;
        Ok(OpenImport { import_id, connection })
    }

    /// Says that an import has come to its end. [`Error::Conflict`] when it was given up meanwhile.
    pub(crate) async fn end_import(&self, mut import: OpenImport) -> Result<()> {
        import.go_on().await?;
        let has_ended = sqlx::query_scalar!(r#"SELECT centile_store.end_import($1) AS "has_ended!""#, import.import_id)
            .fetch_one(&self.writers)
            .await?;
        if has_ended {
            Ok(())
        } else {
            Err(Error::Conflict("the import was given up by somebody while it ran".to_owned()))
        }
    }

    /// Gives up imports of a board that were cut short; gives their number. [`Error::Conflict`] when one is running.
    pub(crate) async fn abandon_imports(&self, board: &str, by: &Actor) -> Result<u64> {
        let abandoned =
            sqlx::query_scalar!(r#"SELECT centile.abandon_imports($1, $2) AS "abandoned!""#, board, by.as_str())
                .fetch_one(&self.writers)
                .await?;
        Ok(u64::from(abandoned.unsigned_abs()))
    }
}
