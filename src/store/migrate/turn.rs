//! Exclusive locks, a moment at a time: whoever waits for one has everybody else wait behind it.
//!
//! So each step is tried with a limit on what it waits for any lock, and is tried again after a pause in which the others go on. A
//! transaction that was left open makes `migrate` wait, then, and nobody else.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use sqlx::PgConnection;

use crate::{Error, Result, store::migrate::failed};

/// How long a step waits for a lock, and others behind it.
pub(super) const LOCK_TIMEOUT: &str = "SET lock_timeout = '500ms'";

/// How long it is left alone then: for all that has waited to be done.
const PAUSE: Duration = Duration::from_secs(1);

/// SQLSTATE of a lock that was not had in time.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// How long to go on trying, for all steps together.
#[derive(Debug)]
pub(super) struct Patience {
    until: Instant,
    within: Duration,
    tries: u32,
}

impl Patience {
    /// From now on.
    pub(super) fn new(within: Duration) -> Self {
        Self { until: Instant::now() + within, within, tries: 0 }
    }

    /// Waits until the step whose try has just failed may be tried again. Says in the log whose transaction is in the way.
    ///
    /// [`Error::Unavailable`], with the same words, when that has gone on for too long.
    pub(super) async fn wait(&mut self, connection: &mut PgConnection) -> Result<()> {
        let before = transactions(connection).await?;
        tokio::time::sleep(PAUSE).await;
        let after = transactions(connection).await?;
        let mut in_the_way: Vec<&str> = before.intersection(&after).map(|(holder, _)| holder.as_str()).collect();
        in_the_way.dedup();
        let whose = if in_the_way.is_empty() { "short ones, all the time".to_owned() } else { in_the_way.join(", ") };
        self.tries += 1;
        let tries = self.tries;
        if Instant::now() >= self.until {
            let seconds = self.within.as_secs();
            return Err(Error::unavailable(format!(
                "nothing is changed by this step: for {seconds} s other transactions have kept a lock that it needs ({whose}); end them, and \
                 migrate again"
            )));
        }
        tracing::warn!(tries, in_the_way = %whose, "migrate waits for a lock that other transactions have ({whose}), and keeps nobody waiting");
        Ok(())
    }
}

/// Whether a step found a lock taken.
pub(super) fn is_locked(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref() == Some(LOCK_NOT_AVAILABLE)
}

/// Transactions of others that have locks on what is ours: whose, with which lock, and their number, which no other transaction has.
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
    .map_err(failed("look for whoever has locks"))?;
    Ok(found.into_iter().collect())
}
