//! SQL of the operator's page: rows of the public views.

use crate::{
    Result,
    model::operation::{AuditEntry, BucketStatus, LedgerAhead, PeriodStatus},
    store::Reader,
};

impl Reader {
    /// Returns up to `limit` periods that are open or need attention, most urgent first.
    pub(crate) async fn period_status(&self, limit: i64) -> Result<Vec<PeriodStatus>> {
        let rows = sqlx::query_file_as!(PeriodStatus, "sql/queries/period_status.sql", limit).fetch_all(&self.readers);
        Ok(rows.await?)
    }

    /// Returns how far ahead ledger partitions exist, and how many have to be frozen; `None` on a cluster, which needs none.
    pub(crate) async fn ledger_ahead(&self) -> Result<Option<LedgerAhead>> {
        if self.servers.is_cluster() {
            return Ok(None);
        }
        let row = sqlx::query_file_as!(LedgerAhead, "sql/queries/ledger_ahead.sql").fetch_one(&self.readers).await?;
        Ok(Some(row))
    }

    /// Returns up to `limit` buckets of a board's open rankings, by ranking and in bucket order.
    pub(crate) async fn bucket_occupancy(&self, board: &str, limit: i64) -> Result<Vec<BucketStatus>> {
        let rows = sqlx::query_file_as!(BucketStatus, "sql/queries/bucket_occupancy.sql", board, limit);
        Ok(rows.fetch_all(&self.readers).await?)
    }

    /// Returns the last acts of administrators, newest first.
    pub(crate) async fn last_acts(&self, limit: i64) -> Result<Vec<AuditEntry>> {
        let rows =
            sqlx::query_file_as!(AuditEntry, "sql/queries/audit_log.sql", limit).fetch_all(&self.readers).await?;
        Ok(rows)
    }
}
