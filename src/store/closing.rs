//! SQL that closes periods, in steps of one transaction each, on its own connection.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sqlx::{Connection as _, PgConnection};
use tokio::time::sleep;

use crate::{
    Error, Result,
    model::{
        act::Act,
        period::{PeriodSelector, PeriodState},
        score::Correction,
    },
    store::{
        Administrator,
        error::written,
        period::{self, ArchiveRef},
    },
};

/// Timeout for the closing lock. The server releases a killed process's lock within a moment.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// A period that has ended and is not closed.
#[derive(Debug, Clone)]
pub(crate) struct DuePeriod {
    pub(crate) period_id: i64,
    pub(crate) board: String,
    /// The period's name as a selector.
    pub(crate) period: String,
    pub(crate) is_segment: bool,
    pub(crate) ends_at: DateTime<Utc>,
    /// Source of the import that keeps the period open.
    pub(crate) import_source: Option<String>,
    /// Whether the process of that import is running.
    pub(crate) import_is_running: Option<bool>,
}

/// A period in any state, as a command names it.
#[derive(Debug, Clone)]
pub(crate) struct NamedPeriod {
    /// Id of the period; `None` if it was never opened.
    pub(crate) period_id: Option<i64>,
    /// Its name as a selector, with any alias resolved.
    pub(crate) name: String,
    pub(crate) state: PeriodState,
    pub(crate) ends_at: Option<DateTime<Utc>>,
}

/// A frozen top with its period.
#[derive(Debug)]
pub(crate) struct FrozenTop {
    pub(crate) board: String,
    /// Full name of the period.
    pub(crate) period: String,
    /// Version of answers from the archive.
    pub(crate) version: String,
    pub(crate) bytes: Vec<u8>,
}

/// The only closer: an unlimited connection that holds the closing lock.
///
/// If its process is killed, the server notices the lost connection and rolls the current step
/// back.
#[derive(Debug)]
pub(crate) struct Closer(PgConnection);

impl Administrator {
    /// Takes the closing lock; returns `None` while another process holds it.
    pub(crate) async fn closer(&self) -> Result<Option<Closer>> {
        let mut connection = self.reader.servers.unlimited_connection().await?;
        let begin = tokio::time::Instant::now();
        loop {
            let is_ours = sqlx::query_scalar!(r#"SELECT centile_store.try_closing_lock() AS "is_ours!""#)
                .fetch_one(&mut connection)
                .await?;
            if is_ours {
                return Ok(Some(Closer(connection)));
            }
            if begin.elapsed() >= LOCK_TIMEOUT {
                return Ok(None);
            }
            sleep(LOCK_RETRY_INTERVAL).await;
        }
    }

    /// Opens the snapshots whose time has come.
    pub(crate) async fn open_snapshots(&self) -> Result<()> {
        sqlx::query!("SELECT centile_store.open_snapshots()").fetch_one(&self.writers).await?;
        Ok(())
    }

    /// Returns the periods that have ended and are not closed, in closing order; all, or one.
    pub(crate) async fn due_periods(&self, period_id: Option<i64>) -> Result<Vec<DuePeriod>> {
        let query = sqlx::query_as!(
            DuePeriod,
            r#"SELECT period_id AS "period_id!", board AS "board!", period AS "period!", period LIKE '%@%' AS "is_segment!",
                      ends_at AS "ends_at!", import_source, import_is_running
               FROM centile_store.due_periods($1)"#,
            period_id
        );
        Ok(query.fetch_all(&self.writers).await?)
    }

    /// Returns the period that a selector means on a board; `None` when it cannot exist.
    pub(crate) async fn named_period(&self, board_id: i32, selector: &PeriodSelector) -> Result<Option<NamedPeriod>> {
        let named = sqlx::query!(
            r#"SELECT period_id, centile_store.period_name(kind, label, $3) AS "name!", state AS "state!",
                      nullif(ends_at, 'infinity') AS ends_at
               FROM centile.resolve_period($1, $2)"#,
            board_id,
            selector.to_string(),
            selector.segment().map(ToString::to_string).unwrap_or_default()
        )
        .fetch_optional(&self.writers)
        .await?;
        named
            .map(|row| {
                let state = period::state(&row.state)?;
                Ok(NamedPeriod { period_id: row.period_id, name: row.name, state, ends_at: row.ends_at })
            })
            .transpose()
    }

    /// Returns the segments of a closed period whose archives lack a correction, or a later ban or
    /// unban of one of their players.
    pub(crate) async fn outdated_segments(&self, period_id: i64) -> Result<Vec<i64>> {
        let query = sqlx::query_scalar!(
            r#"SELECT s.id AS "id!" FROM centile_store.outdated_segments($1) AS s (id)"#,
            period_id
        );
        Ok(query.fetch_all(&self.writers).await?)
    }

    /// Returns the archives that have lacked a correction for this time, on boards that refresh these:
    /// period id, board and period name. A segment comes with its whole period.
    pub(crate) async fn corrected_archives(&self, age: Duration) -> Result<Vec<(i64, String, String)>> {
        let corrected = sqlx::query!(
            r#"SELECT period_id AS "period_id!", board AS "board!", period AS "period!"
               FROM centile_store.corrected_archives(make_interval(secs => $1))"#,
            age.as_secs_f64()
        )
        .fetch_all(&self.writers)
        .await?;
        Ok(corrected.into_iter().map(|row| (row.period_id, row.board, row.period)).collect())
    }

    /// Makes an archive that still lacks a correction count as just corrected.
    pub(crate) async fn defer_refresh(&self, period_id: i64) -> Result<()> {
        sqlx::query!(
            "UPDATE centile_store.periods SET corrected_at = clock_timestamp() WHERE id = $1 AND corrected_at IS NOT NULL",
            period_id
        )
        .execute(&self.writers)
        .await?;
        Ok(())
    }

    /// Returns the frozen top of a closed period; `None` when the period is not closed or its
    /// archive was dropped.
    pub(crate) async fn closed_top(&self, period_id: i64) -> Result<Option<FrozenTop>> {
        let stored = sqlx::query!(
            r#"SELECT centile.epoch() AS "epoch!", p.board_id, b.slug,
                      centile_store.period_name(p.kind, p.label, p.segment) AS "period!", p.archive_revision,
                      p.frozen_top AS "bytes!"
               FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
               WHERE p.id = $1 AND p.frozen_top IS NOT NULL"#,
            period_id
        )
        .fetch_optional(&self.writers)
        .await?;
        Ok(stored.map(|row| {
            let archive =
                ArchiveRef { board: row.board_id, period_id, revision: row.archive_revision, has_frozen_top: true };
            let version = archive.version(&row.epoch);
            FrozenTop { board: row.slug, period: row.period, version, bytes: row.bytes }
        }))
    }

    /// Returns board and name of these closed periods. Without periods, returns those whose frozen
    /// tops have lost an erased player or their archive within a day.
    pub(crate) async fn outdated_tops(&self, periods: Option<&[i64]>) -> Result<Vec<(String, String)>> {
        let rows = sqlx::query_file!("sql/queries/outdated_tops.sql", periods).fetch_all(&self.writers).await?;
        Ok(rows.into_iter().map(|row| (row.board, row.period)).collect())
    }

    /// Returns the archives that exceed their boards' retention: period id, board and period name.
    pub(crate) async fn expired_archives(&self) -> Result<Vec<(i64, String, String)>> {
        let expired = sqlx::query!(
            r#"SELECT period_id AS "period_id!", board AS "board!", period AS "period!" FROM centile_store.expired_archives()"#
        )
        .fetch_all(&self.writers)
        .await?;
        Ok(expired.into_iter().map(|row| (row.period_id, row.board, row.period)).collect())
    }

    /// Deletes some rows of released rankings and of deleted boards; returns 0 when none are left.
    pub(crate) async fn remove_released(&self) -> Result<u64> {
        let query = sqlx::query_scalar!(
            r#"SELECT centile_store.remove_released() + centile_store.remove_deleted() AS "removed!""#
        );
        let removed = written(query.fetch_one(&self.writers).await)?;
        Ok(removed.unsigned_abs())
    }

    /// Adds a past score, also to closed periods.
    ///
    /// Returns the transaction id, and the closed periods whose archives need a refresh.
    pub(crate) async fn correct_score(&self, board: &str, correction: &Correction) -> Result<(i64, Vec<String>)> {
        let query = sqlx::query!(
            r#"SELECT transaction_id AS "transaction_id!", to_refresh FROM centile.correct_score($1, $2, $3, $4, $5, $6, $7)"#,
            board,
            correction.user_id.as_str(),
            correction.points,
            correction.at,
            correction.act.reason(),
            correction.act.by.as_str(),
            correction.tiebreak
        );
        let row = written(query.fetch_one(&self.writers_of_user(correction.user_id.as_str())).await)?;
        Ok((row.transaction_id, row.to_refresh.unwrap_or_default()))
    }
}

impl Closer {
    /// Takes the cut-off, after which no score enters the period; returns its time.
    ///
    /// Returns `None` when an import keeps the board open.
    pub(crate) async fn cut_off(&mut self, period_id: i64) -> Result<Option<DateTime<Utc>>> {
        let query = sqlx::query_scalar!("SELECT centile_store.cut_off_period($1)", period_id);
        written(query.fetch_one(&mut self.0).await)
    }

    /// Builds the archive as of the cut-off, a period of a template in several steps.
    pub(crate) async fn build(&mut self, period_id: i64) -> Result<()> {
        let step = || sqlx::query_scalar!(r#"SELECT centile_store.build_archive($1) AS "is_complete!""#, period_id);
        loop {
            let began_at = Instant::now();
            if step().fetch_one(&mut self.0).await? {
                return Ok(());
            }
            // Writers share the server's cores with the steps, and catch up between them.
            sleep(began_at.elapsed() / 2).await;
        }
    }

    /// Compares the archive with the live ranking; returns the archive's players and the number of
    /// differences.
    pub(crate) async fn compare(&mut self, period_id: i64) -> Result<(u64, u64)> {
        let differences =
            sqlx::query_scalar!(r#"SELECT centile_store.compare_archive($1) AS "differences!""#, period_id)
                .fetch_one(&mut self.0)
                .await?;
        Ok((self.players(period_id).await?, differences.unsigned_abs()))
    }

    async fn players(&mut self, period_id: i64) -> Result<u64> {
        let players = sqlx::query_scalar!(
            r#"SELECT archive_players AS "players!" FROM centile_store.periods WHERE id = $1"#,
            period_id
        )
        .fetch_one(&mut self.0)
        .await?;
        Ok(players.unsigned_abs())
    }

    /// Closes the period; returns `false` when an import has cancelled the cut-off, or the
    /// tiers of the board have changed meanwhile.
    pub(crate) async fn finish(&mut self, period_id: i64, cut_off_at: DateTime<Utc>) -> Result<bool> {
        let query =
            sqlx::query_scalar!(r#"SELECT centile_store.finish_close($1, $2) AS "is_closed!""#, period_id, cut_off_at);
        written(query.fetch_one(&mut self.0).await)
    }

    /// Refreshes an archive from the current ledger; returns its new revision and number of
    /// players. Without an act, the audit log names the role of the session.
    pub(crate) async fn refresh(&mut self, period_id: i64, act: Option<&Act>) -> Result<(i32, u64)> {
        let query = sqlx::query_scalar!(
            r#"SELECT centile_store.refresh_archive($1, $2, $3) AS "revision!""#,
            period_id,
            act.map(|act| act.by.as_str()),
            act.and_then(Act::reason)
        );
        let revision = written(query.fetch_one(&mut self.0).await)?;
        Ok((revision, self.players(period_id).await.map_err(Error::after_write)?))
    }

    /// Drops an archive: detaches it from its period, then drops the view in a second transaction.
    pub(crate) async fn drop_archive(&mut self, period_id: i64) -> Result<()> {
        for is_second in [false, true] {
            sqlx::query!("SELECT centile_store.drop_archive($1, $2)", period_id, is_second)
                .execute(&mut self.0)
                .await?;
        }
        Ok(())
    }

    /// Closes the connection, which releases the lock.
    pub(crate) async fn end(self) {
        self.0.close().await.ok();
    }
}
