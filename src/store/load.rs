//! Loading a board as a whole: everything through one connection, whose session holds the tables that it needs.

use chrono::{DateTime, Utc};
use futures::TryStreamExt as _;
use sqlx::{Connection as _, PgConnection, Postgres, Transaction};

use super::Store;
use crate::{Error, Result, act::Actor};

/// Players that are made or renamed in one transaction: those who make the same ones wait for it.
const PLAYERS_AT_ONCE: i32 = 50_000;

/// A board that is marked as being loaded: as long as this connection lives, nothing else is written there.
#[derive(Debug)]
pub(crate) struct OpenLoad {
    board_id: i32,
    import_id: i64,
    connection: PgConnection,
}

/// The transaction that writes a load.
#[derive(Debug)]
pub(crate) struct Writing<'a> {
    board_id: i32,
    import_id: i64,
    transaction: Transaction<'a, Postgres>,
}

/// A line that cannot be taken.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Its number in the file.
    pub(crate) line: i64,
    /// Why, by its name in `refuse_load_lines`.
    pub(crate) outcome: String,
    /// As it stands in the file.
    pub(crate) raw: String,
}

impl Store {
    /// Announces a load of a board. [`Error::Conflict`] when the board has events already, or when it is imported into.
    pub(crate) async fn begin_load(&self, board_id: i32, source: &str, by: &Actor) -> Result<OpenLoad> {
        let mut connection = self.patient_connection().await?;
        let import_id = sqlx::query_scalar!(
            r#"SELECT centile_store.begin_load($1, $2, $3) AS "id!""#,
            board_id,
            source,
            by.as_str()
        )
        .fetch_one(&mut connection)
        .await?;
        let mut load = OpenLoad { board_id, import_id, connection };
        match sqlx::query!("SELECT centile_store.make_load_tables()").fetch_one(&mut load.connection).await {
            Ok(_) => Ok(load),
            Err(error) => {
                load.give_up().await;
                Err(error.into())
            }
        }
    }
}

impl OpenLoad {
    /// Takes lines in, as `COPY` reads them: [`Copying::send`] them, then [`Copying::finish`].
    pub(crate) async fn copy(&mut self) -> Result<Copying<'_>> {
        let copy = "COPY pg_temp.load_line (line, user_id, user_name, points, tiebreak, reason, id, occurred_at, raw) FROM STDIN";
        Ok(Copying(self.connection.copy_in_raw(copy).await?))
    }

    /// Makes the players of the lines who do not exist yet, a part after the other; names them, and also those who exist with
    /// `update_names`. Gives how many players the lines have; `tell` is told how many are done.
    pub(crate) async fn make_players(&mut self, update_names: bool, tell: impl Fn(u64)) -> Result<u64> {
        let players = sqlx::query_scalar!(r#"SELECT centile_store.list_load_players($1) AS "players!""#, update_names)
            .fetch_one(&mut self.connection)
            .await?;
        let mut after = 0;
        while after < players {
            sqlx::query!("SELECT centile_store.make_load_players($1, $2)", after, PLAYERS_AT_ONCE)
                .fetch_one(&mut self.connection)
                .await?;
            if update_names {
                sqlx::query!("SELECT centile_store.rename_load_players($1, $2)", after, PLAYERS_AT_ONCE)
                    .fetch_one(&mut self.connection)
                    .await?;
            }
            after += i64::from(PLAYERS_AT_ONCE);
            tell(after.min(players).unsigned_abs());
        }
        Ok(players.unsigned_abs())
    }

    /// Begins the transaction that writes all of it, or nothing.
    pub(crate) async fn begin(&mut self) -> Result<Writing<'_>> {
        let transaction = self.connection.begin().await?;
        Ok(Writing { board_id: self.board_id, import_id: self.import_id, transaction })
    }

    /// Says that nothing will come of it. Where that cannot be said any more, the end of the session says it.
    pub(crate) async fn give_up(mut self) {
        // What is under way is rolled back first.
        let said = sqlx::query!("SELECT centile_store.end_load($1, false)", self.import_id)
            .fetch_one(&mut self.connection)
            .await;
        if let Err(error) = said {
            tracing::debug!(%error, "a load could not be ended by itself; its session is over");
        }
        self.connection.close().await.ok();
    }
}

/// Lines on their way.
pub(crate) struct Copying<'a>(sqlx::postgres::PgCopyIn<&'a mut PgConnection>);

impl Copying<'_> {
    /// Sends lines in the text format of `COPY`.
    pub(crate) async fn send(&mut self, lines: &[u8]) -> Result<()> {
        self.0.send(lines).await?;
        Ok(())
    }

    /// All lines have been sent.
    pub(crate) async fn finish(self) -> Result<()> {
        self.0.finish().await?;
        Ok(())
    }

    /// Nothing will come of it.
    pub(crate) async fn abort(self) {
        self.0.abort("the load was given up").await.ok();
    }
}

impl Writing<'_> {
    /// Refuses what only the database knows to be wrong; gives how many lines were repeated. Lines without a time count for `now`.
    pub(crate) async fn refuse_lines(&mut self, now: DateTime<Utc>) -> Result<u64> {
        let found = sqlx::query!(
            r#"SELECT outcome AS "outcome!", lines AS "lines!" FROM centile_store.refuse_load_lines($1, $2)"#,
            self.board_id,
            now
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        Ok(found.iter().filter(|row| row.outcome == "repeated").map(|row| row.lines.unsigned_abs()).sum())
    }

    /// Hands over the lines that were refused, in the order of the file.
    pub(crate) async fn each_refused(&mut self, mut take: impl FnMut(Refused) -> Result<()>) -> Result<()> {
        let mut rows = sqlx::query_as!(
            Refused,
            r#"SELECT line AS "line!", outcome AS "outcome!", raw AS "raw!" FROM centile_store.load_rejects()"#
        )
        .fetch(&mut *self.transaction);
        while let Some(refused) = rows.try_next().await? {
            take(refused)?;
        }
        Ok(())
    }

    /// Puts what is left into the order in which it is written; gives how many events there are.
    pub(crate) async fn sort_events(&mut self, now: DateTime<Utc>) -> Result<u64> {
        let events =
            sqlx::query_scalar!(r#"SELECT centile_store.sort_load_events($1, $2) AS "events!""#, self.board_id, now)
                .fetch_one(&mut *self.transaction)
                .await?;
        Ok(events.unsigned_abs())
    }

    /// Opens the periods that hold the events; from here on the board's structure lock is held. [`Error::Conflict`] when a
    /// player's sum would leave the range of 64 bits.
    pub(crate) async fn open_periods(&mut self) -> Result<()> {
        sqlx::query!("SELECT centile_store.open_load_periods($1)", self.board_id)
            .fetch_one(&mut *self.transaction)
            .await?;
        Ok(())
    }

    /// Writes the ledger.
    pub(crate) async fn write_ledger(&mut self) -> Result<()> {
        sqlx::query!("SELECT centile_store.write_load_ledger($1)", self.board_id)
            .fetch_one(&mut *self.transaction)
            .await?;
        Ok(())
    }

    /// Keeps the ids of the events; gives how many have one.
    pub(crate) async fn write_ids(&mut self) -> Result<u64> {
        let ids = sqlx::query_scalar!(r#"SELECT centile_store.write_load_ids($1) AS "ids!""#, self.board_id)
            .fetch_one(&mut *self.transaction)
            .await?;
        Ok(ids.unsigned_abs())
    }

    /// Writes the entries of all rankings of a kind, or of a season; gives those rankings that have any.
    pub(crate) async fn fill_entries(&mut self, kind: &str, season: Option<&str>) -> Result<Vec<i64>> {
        let rankings = sqlx::query_scalar!(
            r#"SELECT centile_store.fill_load_entries($1, $2, $3) AS "rankings!""#,
            self.board_id,
            kind,
            season
        )
        .fetch_one(&mut *self.transaction)
        .await?;
        Ok(rankings)
    }

    /// Makes layout, bucket rows and counts of a ranking; gives its players.
    pub(crate) async fn lay_out(&mut self, ranking_id: i64) -> Result<u64> {
        let players = sqlx::query_scalar!(r#"SELECT centile_store.lay_out_load($1) AS "players!""#, ranking_id)
            .fetch_one(&mut *self.transaction)
            .await?;
        Ok(players.unsigned_abs())
    }

    /// Names of the board's seasons that are open.
    pub(crate) async fn seasons(&mut self) -> Result<Vec<String>> {
        let names = sqlx::query_scalar!(
            "SELECT label FROM centile_store.periods WHERE board_id = $1 AND kind = 'season' AND ranking_id IS NOT NULL ORDER BY id",
            self.board_id
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        Ok(names)
    }

    /// Makes all of it visible at once, and lets the board take scores again.
    pub(crate) async fn commit(mut self) -> Result<()> {
        sqlx::query!("SELECT centile_store.end_load($1, true)", self.import_id)
            .fetch_one(&mut *self.transaction)
            .await?;
        self.transaction.commit().await.map_err(Error::from)
    }
}
