//! Retries steps that need exclusive locks.
//!
//! A waiting exclusive lock blocks all later lock requests. So each step waits for a lock only
//! briefly, and is retried after a pause in which other sessions proceed. A transaction left open
//! then delays `migrate` only.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use sqlx::PgConnection;

use crate::{Code, Error, Result, store::migrate::failed};

/// How long a step waits for a lock, and blocks others behind it.
pub(super) const LOCK_TIMEOUT: &str = "SET lock_timeout = '500ms'";

/// Pause before a retry, in which the blocked sessions proceed.
const PAUSE: Duration = Duration::from_secs(1);

/// SQLSTATE of a lock timeout.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Retries of all steps together, up to a deadline.
#[derive(Debug)]
pub(super) struct LockRetry {
    until: Instant,
    within: Duration,
    tries: u32,
}

impl LockRetry {
    pub(super) fn new(within: Duration) -> Self {
        Self { until: Instant::now() + within, within, tries: 0 }
    }

    /// Waits before the failed step is retried, and logs the transactions that hold the lock.
    ///
    /// Returns [`Error::Retry`], with the same details, after the deadline.
    pub(super) async fn wait(&mut self, connection: &mut PgConnection) -> Result<()> {
        let before = transactions(connection).await?;
        tokio::time::sleep(PAUSE).await;
        let after = transactions(connection).await?;
        let mut in_the_way: Vec<&str> = before.intersection(&after).map(|(holder, _)| holder.as_str()).collect();
        in_the_way.dedup();
        let whose =
            if in_the_way.is_empty() { "short transactions in succession".to_owned() } else { in_the_way.join(", ") };
        self.tries += 1;
        let tries = self.tries;
        if Instant::now() >= self.until {
            let seconds = self.within.as_secs();
            return Err(Error::retry(
                Code::Unavailable,
                format!(
                    "this step changed nothing: for {seconds} s other transactions have held a lock that it needs ({whose}); end them and \
                 migrate again"
                ),
            ));
        }
        tracing::warn!(tries, in_the_way = %whose, "migrate waits for a lock that other transactions hold ({whose}), without blocking other sessions");
        Ok(())
    }
}

/// Returns whether a step failed because a lock was held.
pub(super) fn is_locked(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref() == Some(LOCK_NOT_AVAILABLE)
}

/// Returns other sessions' transactions with locks on Centile's objects: a description and a unique
/// key of each.
async fn transactions(connection: &mut PgConnection) -> Result<BTreeSet<(String, String)>> {
    let found: Vec<(String, String)> = sqlx::query_as(
        "SELECT DISTINCT ON (l.pid) format('session %s, which has used %s', l.pid, c.oid::regclass), l.pid || ' ' || l.virtualtransaction
         FROM pg_locks l
         JOIN pg_class c ON c.oid = l.relation
         WHERE l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
           AND l.granted AND l.pid <> pg_backend_pid()
           AND c.relnamespace IN (to_regnamespace('centile'), to_regnamespace('centile_store'), to_regnamespace('centile_archive'))
         ORDER BY l.pid, c.relkind = 'i', c.oid",
    )
    .fetch_all(connection)
    .await
    .map_err(failed("list the holders of locks"))?;
    Ok(found.into_iter().collect())
}
