//! The only callers of sqlx, a file per domain noun.

pub mod migrate;

pub(crate) mod archive;
pub(crate) mod audit;
pub(crate) mod board;
pub(crate) mod closing;
mod error;
pub(crate) mod explain;
pub(crate) mod import;
pub(crate) mod key;
pub(crate) mod layout;
pub(crate) mod load;
pub(crate) mod outbox;
pub(crate) mod period;
pub(crate) mod rank;
pub(crate) mod rebuild;
pub(crate) mod score;
pub(crate) mod season;
pub(crate) mod upkeep;
pub(crate) mod user;
mod warm;

use std::{str::FromStr, time::Duration};

use sqlx::{
    ConnectOptions as _, Executor as _, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{Error, Result};
use warm::WarmPool;

/// How long a call waits for a connection, or for its turn where a read is shared, before it is told that there is none.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// How long a shared read may go without an answer: longer than PostgreSQL lets a statement run, so that only a server that is frozen or
/// cut off comes to this.
pub(crate) const SILENCE: Duration = Duration::from_secs(35);
/// Connections of whoever keeps layouts: the timer, and whoever is told of a crowded stripe.
const KEEPER_CONNECTIONS: u32 = 2;
/// Connections that ranks and pages use before all others, and as many that scores do: look-ups run two statements at a time, and a board has
/// hardly more lanes.
const WARM_CONNECTIONS: u32 = 2;
/// How long a rank or a page waits for one of these before it takes another: some thirty pages. A page of a random place took four times as
/// long where it was read on any of sixteen.
const READ_SOON: Duration = Duration::from_millis(50);
/// How long a batch does: a board's batch may wait for a lock, and is to keep no other board's waiting.
const WRITE_SOON: Duration = Duration::from_millis(2);
/// No statement of the service runs longer; set on every connection.
const STATEMENT_TIMEOUT: &str = "30s";

/// The connections to PostgreSQL: apart for readers, writers and who keeps layouts, so that none starves the others.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    readers: PgPool,
    /// For what touches bucket tables: ranks and pages.
    lookups: WarmPool,
    writers: PgPool,
    /// For scores.
    recorders: WarmPool,
    /// For the steps that change a layout: what a connection does for the first time is planned while the structure lock is held, 31 ms
    /// in place of 8 for a stripe of 400 rows. Here the plans are there.
    keepers: PgPool,
    /// How to connect for long work: no limit on the time of a statement.
    patient: PgConnectOptions,
}

impl Store {
    /// Prepares the pools; the first connection is made when one is asked for.
    pub(crate) fn new(database_url: &str, read_connections: u32, write_connections: u32) -> Result<Self> {
        let options = PgConnectOptions::from_str(database_url)
            .map_err(|_| Error::invalid("DATABASE_URL", "must look like postgres://user:password@host:5432/database"))?
            .application_name("centile")
            .options([
                // JIT turned a batch of 15 ms into one of 290 ms.
                ("jit", "off"),
                ("timezone", "UTC"),
                // The path of the functions that run with the owner's rights. Under another one a function's plans are made
                // anew whenever it is called from one of those and then from elsewhere: 0.3 ms in place of 0.03.
                ("search_path", "pg_catalog,pg_temp"),
                ("statement_timeout", STATEMENT_TIMEOUT),
                // What is acknowledged must outlive a crash, whatever the server's own default is.
                ("synchronous_commit", "on"),
                // The functions look again after they have waited for a lock.
                ("default_transaction_isolation", "read committed"),
            ]);
        // What is found newest first must be found in the order of its index: a bitmap would gather every version that a snapshot
        // held elsewhere still keeps, and sort them, where the newest is the first. And nothing here takes long enough for another
        // process to be started for it: that alone takes twenty times as long as a rank, and was planned for a count within the
        // few hundred rows of a stripe once its bucket had grown large.
        let quick = options.clone().options([("enable_bitmapscan", "off"), ("max_parallel_workers_per_gather", "0")]);
        // Each statement of a reader is a look-up by key, whose plan no value changes; nor may it stay a scan that was made
        // when the table was small. The functions that write choose for themselves.
        let reading = quick.clone().options([("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off")]);
        let pool = |connections, options| {
            PgPoolOptions::new()
                .max_connections(connections)
                .acquire_timeout(PATIENCE)
                // A test before each use would be a round trip more per request; a broken connection shows soon enough.
                .test_before_acquire(false)
                .after_connect(|connection, _| {
                    Box::pin(async move {
                        // Missing before the first migration, and then asked for by nobody.
                        let known: bool = sqlx::query_scalar("SELECT to_regproc('centile.epoch') IS NOT NULL")
                            .fetch_one(&mut *connection)
                            .await?;
                        if known {
                            connection.execute("SELECT set_config('centile.epoch', centile.epoch(), false)").await?;
                        }
                        Ok(())
                    })
                })
                .connect_lazy_with(options)
        };
        // Long work is not slow work: it tells by itself how far it is.
        let patient = options.clone().options([("statement_timeout", "0")]).disable_statement_logging();
        let warm = |connections, options: PgConnectOptions, soon| {
            let few = WARM_CONNECTIONS.min(connections / 2);
            let others = pool(connections - few, options.clone());
            WarmPool { few: if few > 0 { pool(few, options) } else { others.clone() }, others, soon }
        };
        let keepers = pool(KEEPER_CONNECTIONS, reading.clone());
        let lookups = warm(read_connections, reading, READ_SOON);
        let recorders = warm(write_connections, quick, WRITE_SOON);
        Ok(Self {
            keepers,
            readers: lookups.others.clone(),
            writers: recorders.others.clone(),
            lookups,
            recorders,
            patient,
        })
    }

    /// Whether PostgreSQL answers.
    pub(crate) async fn ping(&self) -> Result<()> {
        sqlx::query("SELECT 1").execute(&self.readers).await.map(|_| ()).map_err(Error::from)
    }

    /// Makes the months of the ledger that hold the times from now to two months ahead.
    pub(crate) async fn ensure_ledger_months(&self) -> Result<()> {
        sqlx::query!("SELECT centile.ensure_ledger_months()").fetch_one(&self.writers).await?;
        Ok(())
    }

    /// Makes the months of the ledger from `from` to `until`.
    pub(crate) async fn ensure_ledger_months_between(
        &self,
        from: chrono::DateTime<chrono::Utc>,
        until: chrono::DateTime<chrono::Utc>,
    ) -> Result<()> {
        sqlx::query!("SELECT centile.ensure_ledger_months($1, $2)", from, until).fetch_one(&self.writers).await?;
        Ok(())
    }

    /// Forgets up to 10,000 ids whose time is over; tells how many.
    pub(crate) async fn forget_expired_ids(&self) -> Result<u64> {
        let forgotten = sqlx::query_scalar!(r#"SELECT centile.forget_expired_ids() AS "forgotten!""#)
            .fetch_one(&self.writers)
            .await?;
        Ok(forgotten.unsigned_abs())
    }

    /// Waits until the connections in use are given back, and closes all.
    pub(crate) async fn close(&self) {
        for pool in [&self.recorders.few, &self.writers, &self.keepers, &self.lookups.few, &self.readers] {
            pool.close().await;
        }
    }
}
