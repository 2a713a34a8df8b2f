//! The only callers of sqlx, a file per domain noun.

pub(crate) mod archive;
pub(crate) mod audit;
pub(crate) mod batch;
pub(crate) mod board;
pub(crate) mod closing;
mod error;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod index;
pub(crate) mod key;
pub(crate) mod layout;
pub mod migrate;
pub(crate) mod operation;
pub(crate) mod outbox;
pub(crate) mod period;
mod pool;
pub(crate) mod quarantine;
pub(crate) mod rank;
pub(crate) mod rebuild;
pub(crate) mod score;
pub(crate) mod season;
pub(crate) mod secret;
pub(crate) mod upkeep;
pub(crate) mod user;

use std::{
    fmt,
    str::FromStr,
    sync::{Arc, Mutex},
    time::Duration,
};

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Executor as _, PgConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{
    Error, Result,
    model::settings::Settings,
    store::{
        index::RoundConnection,
        migrate::Edition,
        pool::{LastLoss, Pool},
    },
};

/// Connections for the steps that change a layout: those of the timer, and of an import that ends.
const KEEPER_CONNECTIONS: u32 = 2;

/// Connections for rounds of the rank indexes, and for names.
const ROUND_CONNECTIONS: u32 = 6;

/// Connections that scores use before all others: a board has hardly more lanes.
const WARM_CONNECTIONS: u32 = 2;

/// How long a batch waits for one of these: a board's batch may wait for a lock, and is to keep no other board's waiting.
const WRITE_SOON: Duration = Duration::from_millis(2);

/// How much longer than it may run a statement may take to be answered: past that the server is frozen, or cut off.
const WAY_BACK: Duration = Duration::from_secs(2);

/// The connections to PostgreSQL: apart for readers, writers and who keeps layouts, so that none starves the others.
#[derive(Clone)]
pub(crate) struct Store {
    readers: Pool,
    /// For rounds of the rank indexes, and names.
    rounds: Pool,
    /// Connections of `rounds` for the next rounds; `None` once they are closed.
    kept: Arc<Mutex<Option<Vec<RoundConnection>>>>,
    writers: Pool,
    /// For scores.
    recorders: Pool,
    /// For the steps that change a layout. A connection makes its plans at the first step, while it
    /// holds the structure lock; here they are kept.
    keepers: Pool,
    /// How to connect for long work, whose statements have no timeout.
    patient: (PgConnectOptions, SessionSettings),
    /// How long a call waits for a connection.
    patience: Duration,
}

impl fmt::Debug for Store {
    /// Not what it connects with: that holds a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    /// Prepares the pools; the first connection is made when one is asked for.
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        let Settings { database_url, read_connections, write_connections, .. } = settings;
        let Settings { statement_timeout, pool_wait, .. } = settings;
        let limit = format!("{}ms", statement_timeout.as_millis());
        let everywhere = [
            // JIT turned a batch of 15 ms into one of 290 ms.
            ("jit", "off"),
            ("timezone", "UTC"),
            // The path of the functions that run with the owner's rights. Under another one a function's plans are made
            // anew whenever it is called from one of those and then from elsewhere: 0.3 ms in place of 0.03.
            ("search_path", "pg_catalog,pg_temp"),
            ("statement_timeout", &limit),
            // An instance that stops in the middle of a batch keeps the lane's lock no longer.
            ("idle_in_transaction_session_timeout", &limit),
            // What is acknowledged must outlive a crash, whatever the server's own default is.
            ("synchronous_commit", "on"),
            // The functions look again after they have waited for a lock.
            ("default_transaction_isolation", "read committed"),
        ];
        // What is found newest first must be found in the order of its index: a bitmap would gather every version that a snapshot
        // held elsewhere still keeps, and sort them, where the newest is the first. And no statement here takes long enough for a
        // parallel worker to pay: starting one takes twenty times as long as a rank, and the planner did so to count the rows of a
        // large bucket.
        let quick =
            [&everywhere[..], &[("enable_bitmapscan", "off"), ("max_parallel_workers_per_gather", "0")]].concat();
        // Each statement of a reader is a look-up by key, whose plan no value changes; nor may it stay a scan that was made
        // when the table was small. The functions that write choose for themselves.
        let reading = [&quick[..], &[("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off")]].concat();
        let options = connect_options(database_url.as_str()).map_err(|_| {
            Error::invalid("database_url", "must look like postgres://user:password@host:5432/database")
        })?;
        let last_loss = LastLoss::default();
        let pool = |connections, settings: &[(&str, &str)]| {
            let settings = SessionSettings::new(settings);
            let pool = pool::tested(PgPoolOptions::new(), &last_loss)
                .max_connections(connections)
                .acquire_timeout(*pool_wait)
                // A ping before each use would cost each request a round trip; a broken connection shows soon enough.
                .test_before_acquire(false)
                .after_connect(move |connection, _| {
                    let settings = settings.clone();
                    Box::pin(async move {
                        settings.apply(connection).await?;
                        keep_epoch(connection).await
                    })
                });
            Pool::new(pool.connect_lazy_with(options.clone()), *statement_timeout + WAY_BACK, last_loss.clone())
        };
        // Long work reports its own progress.
        let unlimited = [("statement_timeout", "0"), ("idle_in_transaction_session_timeout", "0")];
        let patient = SessionSettings::new(&[&everywhere[..], &unlimited].concat());
        let patient = (options.clone().disable_statement_logging(), patient);
        let keepers = pool(KEEPER_CONNECTIONS, &reading);
        let (readers, rounds) = (pool(*read_connections, &reading), pool(ROUND_CONNECTIONS, &reading));
        let few = WARM_CONNECTIONS.min(write_connections / 2);
        let writers = pool(write_connections - few, &quick);
        let recorders = if few > 0 { writers.preferring(pool(few, &quick), WRITE_SOON) } else { writers.clone() };
        let kept = Arc::new(Mutex::new(Some(Vec::new())));
        Ok(Self { readers, rounds, kept, writers, recorders, keepers, patient, patience: *pool_wait })
    }

    /// Makes a connection and closes it. [`Error::Unavailable`] if PostgreSQL accepts none.
    pub(crate) async fn try_connect(&self) -> Result<()> {
        self.readers.try_connect().await.or_else(|error| {
            // Full, but there: pooled connections go on.
            if error.as_database_error().is_some_and(|error| error.code().as_deref() == Some("53300")) {
                return Ok(());
            }
            tracing::warn!(%error, "PostgreSQL accepts no new connection");
            Err(Error::unavailable("PostgreSQL accepts no new connections"))
        })
    }

    /// How long a call waits for a connection, or for its turn where a read is shared, before it is told that there is none.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Whether the database has a newer schema than the one that this program was built for. [`Error::Unavailable`] when it lacks
    /// something that this program needs, or does not answer.
    pub(crate) async fn has_newer_schema(&self) -> Result<bool> {
        match migrate::edition(&self.readers).await? {
            Edition::Same => Ok(false),
            // A release leaves what the one before it needs: docs/operations.md, upgrading. Older it cannot be, for it was
            // the same when this program started.
            Edition::Other | Edition::Newer => Ok(true),
            Edition::Missing | Edition::Older => {
                Err(Error::unavailable("the database lacks migrations: run `centile migrate`"))
            }
        }
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

    /// Forgets up to 10,000 ids and as many signatures whose time is over; tells how many.
    pub(crate) async fn forget_expired_ids(&self) -> Result<u64> {
        let forgotten = sqlx::query_scalar!(r#"SELECT centile.forget_expired_ids() AS "forgotten!""#)
            .fetch_one(&self.writers)
            .await?;
        Ok(forgotten.unsigned_abs())
    }

    /// Deletes up to 10,000 batches from the feed of rank indexes, all older than an hour; returns how many.
    pub(crate) async fn forget_batch_changes(&self) -> Result<u64> {
        let forgotten = sqlx::query_scalar!(r#"SELECT centile.forget_batch_changes() AS "forgotten!""#)
            .fetch_one(&self.writers)
            .await?;
        Ok(forgotten.unsigned_abs())
    }

    /// Connections of each pool, by state: pool, state, number.
    pub(crate) fn connections(&self) -> Vec<(&'static str, &'static str, u32)> {
        [("read", &self.readers), ("index", &self.rounds), ("write", &self.recorders), ("keep", &self.keepers)]
            .into_iter()
            .flat_map(|(name, pool)| {
                let (all, idle) = pool.connections();
                [(name, "idle", idle), (name, "busy", all - idle.min(all))]
            })
            .collect()
    }

    /// Waits until the connections in use are given back, and closes all.
    pub(crate) async fn close(&self) {
        self.kept().take();
        for pool in [&self.recorders, &self.keepers, &self.readers, &self.rounds] {
            pool.close().await;
        }
    }
}

/// How to connect to the database at `url`.
///
/// `PgBouncer` refuses the startup parameters `options` and `extra_float_digits`: see [`SessionSettings`].
fn connect_options(url: &str) -> sqlx::Result<PgConnectOptions> {
    Ok(PgConnectOptions::from_str(url)?.application_name("centile").extra_float_digits(None))
}

/// Settings that a session makes once it is connected. As startup parameters they would not pass a `PgBouncer`.
#[derive(Clone)]
struct SessionSettings(Arc<str>);

impl SessionSettings {
    /// Settings as (name, value), all of this program. Of two with one name the last counts.
    fn new(settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter().map(|(name, value)| format!("set_config('{name}', '{value}', false)"));
        Self(format!("SELECT {}", settings.collect::<Vec<_>>().join(", ")).into())
    }

    async fn apply(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        connection.execute(sqlx::raw_sql(AssertSqlSafe(Arc::clone(&self.0)))).await.map(drop)
    }
}

/// Has the session remember the epoch. One on a standby does not: it may live to see that become the primary.
async fn keep_epoch(connection: &mut PgConnection) -> sqlx::Result<()> {
    // Missing before the first migration, and then asked for by nobody.
    let known: bool = sqlx::query_scalar("SELECT to_regproc('centile.epoch') IS NOT NULL AND NOT pg_is_in_recovery()")
        .fetch_one(&mut *connection)
        .await?;
    if known {
        connection.execute("SELECT set_config('centile.epoch', centile.epoch(), false)").await?;
    }
    Ok(())
}
