//! SQL of pending maintenance work.

use crate::{Result, store::Store};

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
}

impl Store {
    /// Returns the pending maintenance work.
    pub(crate) async fn upkeep(&self) -> Result<StoredUpkeep> {
        let upkeep = sqlx::query_file_as!(StoredUpkeep, "sql/queries/upkeep.sql").fetch_one(&self.readers).await?;
        Ok(upkeep)
    }
}
