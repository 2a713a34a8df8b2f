//! SQL of maintenance: pending work, limits that the database approaches, and rows that expire.

use chrono::{DateTime, Utc};
use sqlx::AssertSqlSafe;

use crate::{
    Result,
    store::{Administrator, Reader, ScoreWriter},
};

/// The row of `centile.upkeep`.
#[derive(Debug)]
pub(crate) struct StoredUpkeep {
    pub(crate) periods_due: i64,
    pub(crate) oldest_due_age_seconds: f64,
    pub(crate) windows_missing: i64,
    pub(crate) combinations_failing: i64,
    pub(crate) closings_unfinished: i64,
    pub(crate) archive_differences: i64,
    pub(crate) archives_to_refresh: i64,
    pub(crate) imports_open: i64,
    pub(crate) imports_cut_short: i64,
    pub(crate) released_rankings: i64,
    pub(crate) outbox_waiting: i64,
    pub(crate) outbox_oldest_age_seconds: f64,
    pub(crate) quarantine_waiting: i64,
    pub(crate) rankings_damaged: i64,
    pub(crate) unapplied_age_seconds: f64,
    pub(crate) inbox_age_seconds: f64,
}

/// The row of `centile.database_limits`.
#[derive(Debug, Default)]
pub(crate) struct StoredLimits {
    pub(crate) clock_behind_seconds: f64,
    pub(crate) xid_age: i64,
    pub(crate) xid_age_max: i64,
    pub(crate) dead_rows: i64,
    pub(crate) live_rows: i64,
    pub(crate) oldest_snapshot_age_seconds: f64,
    pub(crate) relations: i64,
    pub(crate) relations_max: i64,
    pub(crate) user_id: i64,
    pub(crate) user_id_max: i64,
}

impl Reader {
    pub(crate) async fn upkeep(&self) -> Result<StoredUpkeep> {
        let upkeep = sqlx::query_file_as!(StoredUpkeep, "sql/queries/upkeep.sql").fetch_one(&self.readers).await?;
        Ok(upkeep)
    }

    /// Returns how near the database is to its limits.
    pub(crate) async fn database_limits(&self) -> Result<StoredLimits> {
        let limits = sqlx::query_file_as!(StoredLimits, "sql/queries/database_limits.sql");
        Ok(limits.fetch_one(&self.readers).await?)
    }
}

impl ScoreWriter {
    /// Creates the ledger's partitions from the current month to two months ahead.
    pub(crate) async fn ensure_ledger_months(&self) -> Result<()> {
        sqlx::query!("SELECT centile.ensure_ledger_months()").fetch_one(&self.writers).await?;
        Ok(())
    }

    /// Creates the ledger's partitions for the times from `from` to `until`.
    pub(crate) async fn ensure_ledger_months_between(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> Result<()> {
        sqlx::query!("SELECT centile.ensure_ledger_months($1, $2)", from, until).fetch_one(&self.writers).await?;
        Ok(())
    }
}

impl Administrator {
    /// Deletes up to 10,000 each of expired ids, finished erasures and idempotency keys of API keys;
    /// returns how many.
    pub(crate) async fn forget_expired_ids(&self) -> Result<u64> {
        let mut forgotten = 0;
        for pool in self.reader.servers.worker_pools().iter().chain([&self.writers]) {
            let query = sqlx::query_scalar!(r#"SELECT centile_store.forget_expired_ids() AS "forgotten!""#);
            forgotten += query.fetch_one(pool).await?;
        }
        Ok(forgotten.unsigned_abs())
    }

    /// Deletes up to 10,000 batches older than 20 minutes from the log of each server, except
    /// unapplied ones and the newest of each lane; returns how many.
    pub(crate) async fn forget_batches(&self) -> Result<u64> {
        let mut forgotten = 0;
        for pool in self.lane_pools() {
            let query = sqlx::query_scalar!(r#"SELECT centile_store.forget_batches() AS "forgotten!""#);
            forgotten += query.fetch_one(&pool).await?;
        }
        Ok(forgotten.unsigned_abs())
    }

    /// Freezes the rows of the ledger's months that are over, if this role may; returns the number
    /// of months. Skips those that another session is vacuuming.
    ///
    /// Otherwise, autovacuum would have to rewrite each month when its transaction ids are old.
    pub(crate) async fn freeze_ledger_months(&self) -> Result<usize> {
        if self.reader.servers.is_cluster() {
            return Ok(0);
        }
        // Before PostgreSQL 17, only the owner of a table may vacuum it.
        let statements = sqlx::query_scalar!(
            r#"SELECT format('VACUUM (FREEZE, SKIP_LOCKED, TRUNCATE false) %s', c.oid::regclass) AS "statement!"
               FROM centile.ledger_months m JOIN pg_catalog.pg_class c ON c.oid = m.table_name::regclass
               WHERE m.freeze_due
                 AND (pg_has_role(c.relowner, 'USAGE')
                      OR EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = 'pg_maintain' AND pg_has_role(r.oid, 'USAGE')))
               ORDER BY m.month"#
        )
        .fetch_all(&self.reader.readers)
        .await?;
        if statements.is_empty() {
            return Ok(0);
        }
        let mut connection = self.reader.servers.unlimited_connection().await?;
        // As autovacuum does, so that scores are not delayed.
        sqlx::raw_sql("SET vacuum_cost_delay = '2ms'").execute(&mut connection).await?;
        let count = statements.len();
        for statement in statements {
            // The server quotes the name of each month.
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
        }
        Ok(count)
    }
}
