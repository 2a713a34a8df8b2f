//! All SQL of the service, a file per domain noun. No other module calls sqlx.

mod apply;
pub(crate) mod batch;
pub(crate) mod board;
pub(crate) mod closing;
pub(crate) mod cluster;
pub(crate) mod combination;
mod error;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod friend;
mod hosts;
pub(crate) mod import;
pub(crate) mod inbox;
pub(crate) mod index;
pub(crate) mod key;
pub(crate) mod layout;
pub(crate) mod league;
pub(crate) mod ledger;
pub mod migrate;
pub(crate) mod operation;
pub(crate) mod outbox;
pub(crate) mod period;
mod pool;
pub(crate) mod quarantine;
pub(crate) mod rank;
pub(crate) mod rebuild;
pub(crate) mod replica;
pub(crate) mod rows;
pub(crate) mod score;
pub(crate) mod season;
pub(crate) mod small;
pub(crate) mod template;
pub(crate) mod upkeep;
pub(crate) mod user;
pub(crate) mod verification;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{FutureExt as _, future::select_ok};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection, postgres::PgConnectOptions};
use tokio::{runtime::Handle, time::timeout};

use crate::{
    Code, Error, Result,
    model::settings::Settings,
    single_flight::SingleFlight,
    store::{
        cluster::{Owners, Servers},
        hosts::Hosts,
        inbox::Inbox,
        migrate::Edition,
        pool::{Connector, LastTime, Pool, Prepare},
    },
};

/// Connections that apply batches or change a layout. On a cluster, they look for moved lanes.
const LAYOUT_CONNECTIONS: u32 = 2;

/// Connections for rounds of the rank indexes, and for profiles.
const ROUND_CONNECTIONS: u32 = 6;

/// Connections that hold submitted events of a board each, and one that looks for more.
const INBOX_CONNECTIONS: u32 = 3;

/// Interval of asking the servers which of them is the primary.
const PRIMARY_INTERVAL: Duration = Duration::from_millis(250);

/// Time beyond the statement timeout in which a response must arrive. Without one, the server is
/// frozen or unreachable.
const RESPONSE_GRACE: Duration = Duration::from_secs(2);

/// Reads, except those of rank indexes.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    readers: Pool,
    /// For reads that wait for writers, so that they do not delay other reads.
    writers: Pool,
    pub(crate) servers: Arc<Servers>,
}

/// Reads what rank indexes and the user directory hold: rounds, profiles, and whole rankings.
#[derive(Debug, Clone)]
pub(crate) struct IndexReader {
    /// On a cluster, each worker has a pool instead.
    rounds: Pool,
    reader: Reader,
}

/// Writes score batches, and creates the users, periods and ledger months that they need.
#[derive(Debug, Clone)]
pub(crate) struct ScoreWriter {
    /// On a cluster, each worker has a pool for its lanes.
    score_writers: Pool,
    /// For the ledger's partitions.
    writers: Pool,
    reader: Reader,
}

/// Applies logged batches to bucket rows, and changes layouts.
#[derive(Debug, Clone)]
pub(crate) struct BucketWriter {
    /// A connection plans a step's statements on first use, while it holds the bucket lock, so
    /// these connections are reused.
    layout_writers: Pool,
    pub(crate) reader: Reader,
}

/// Writes everything else: acts, settings, profiles, closings, rebuilds, and deliveries.
#[derive(Debug, Clone)]
pub(crate) struct Administrator {
    writers: Pool,
    pub(crate) reader: Reader,
}

/// The connections to PostgreSQL by role. Reads, rounds, scores, other writes, layout steps, and the inbox
/// have separate pools, so that none starves another.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) reader: Reader,
    pub(crate) index_reader: IndexReader,
    pub(crate) score_writer: ScoreWriter,
    pub(crate) bucket_writer: BucketWriter,
    pub(crate) admin: Administrator,
    pub(crate) inbox: Inbox,
    last_switch: LastTime,
}

impl Store {
    /// Creates the pools. Connections are made on first use.
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        let Settings { database_url, read_connections, write_connections, .. } = settings;
        let Settings { statement_timeout, pool_wait, .. } = settings;
        let limit = format!("{}ms", statement_timeout.as_millis());
        let everywhere = [
            // JIT turned a batch of 15 ms into one of 290 ms.
            ("jit", "off"),
            ("timezone", "UTC"),
            // The search path of the SECURITY DEFINER functions. Under another path PostgreSQL
            // replans a function whenever its caller's path differs from the last call's: 0.3 ms
            // instead of 0.03 ms.
            ("search_path", "pg_catalog,pg_temp"),
            ("statement_timeout", &limit),
            // Releases the lane's lock if an instance stops in the middle of a batch.
            ("idle_in_transaction_session_timeout", &limit),
            // Acknowledged scores must survive a crash, whatever the server's default is.
            ("synchronous_commit", "on"),
            // After waiting for a lock, the functions must see what others committed meanwhile.
            ("default_transaction_isolation", "read committed"),
        ];
        // Queries for the newest rows must follow the index order. A bitmap scan would first
        // collect and sort every row version that another session's snapshot keeps alive.
        //
        // No parallel workers: the planner used them to count the rows of a large bucket, and the
        // rank took 24.0 ms instead of 1.8.
        //
        // Statements look rows up by key, so one generic plan fits all values. It must not stay a
        // sequential scan that was planned when the table was small.
        let pooled = [
            ("enable_bitmapscan", "off"),
            ("max_parallel_workers_per_gather", "0"),
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
        ];
        let pooled = SessionSettings::new(&[&everywhere[..], &pooled].concat());
        let hosts = Arc::new(Hosts::parse(database_url.as_str())?);
        let options = hosts.primary();
        let (last_loss, last_switch) = (LastTime::default(), LastTime::default());
        let (pool_wait, statement_limit) = (*pool_wait, *statement_timeout + RESPONSE_GRACE);
        let open = {
            let hosts = Arc::clone(&hosts);
            let last_switch = last_switch.clone();
            move |options: PgConnectOptions, size: u32, settings: SessionSettings, is_worker: bool, runtime| {
                let hosts = Arc::clone(&hosts);
                let prepare: Prepare = Box::new(move |connection| {
                    let (settings, hosts) = (settings.clone(), Arc::clone(&hosts));
                    Box::pin(async move {
                        if hosts.are_several() && !is_worker {
                            check_primary(connection, &hosts).await?;
                        }
                        settings.apply(connection).await?;
                        if is_worker { Ok(()) } else { store_epoch(connection).await }
                    })
                });
                let (last_loss, last_switch) = (last_loss.clone(), last_switch.clone());
                let connector = Connector { options: Mutex::new(options), prepare, last_loss, last_switch, runtime };
                Pool::new(connector, size as usize, pool_wait, statement_limit)
            }
        };
        let runtime = Some(Handle::current());
        let pool = |size| open(options.clone(), size, pooled.clone(), false, runtime.clone());
        // Long work has no statement timeout, and its statements are not logged as slow. It may hold
        // session locks. Keepalives end an idle session soon after the host of this process is gone.
        let unlimited = [
            ("statement_timeout", "0"),
            ("idle_in_transaction_session_timeout", "0"),
            ("tcp_keepalives_idle", "10"),
            ("tcp_keepalives_interval", "5"),
            ("tcp_keepalives_count", "3"),
        ];
        let unlimited = SessionSettings::new(&[&everywhere[..], &unlimited].concat());
        let layout_writers = pool(LAYOUT_CONNECTIONS)?;
        // Rounds run on a runtime of their own, which outlives the HTTP workers.
        let rounds = open(options.clone(), ROUND_CONNECTIONS, pooled.clone(), false, None)?;
        let readers = pool(*read_connections)?;
        // Acts, and changes of players and boards, may wait for each other's locks. Scores must not
        // wait behind them.
        let others = (write_connections / 4).max(1);
        let (writers, score_writers) = (pool(others)?, pool((write_connections - others).max(1))?);
        let inbox = Inbox { connections: pool(INBOX_CONNECTIONS)? };
        let owners = Owners::new({
            let (size, settings) = (write_connections + ROUND_CONNECTIONS, pooled);
            move |options| open(options, size, settings.clone(), true, runtime.clone())
        });
        let servers = Arc::new(Servers {
            hosts,
            owners: Mutex::new(owners),
            readers: readers.clone(),
            unlimited,
            coordinator_checks: SingleFlight::new(pool_wait),
            pool_wait,
        });
        let reader = Reader { readers, writers: writers.clone(), servers };
        Ok(Self {
            index_reader: IndexReader { rounds, reader: reader.clone() },
            score_writer: ScoreWriter { score_writers, writers: writers.clone(), reader: reader.clone() },
            bucket_writer: BucketWriter { layout_writers, reader: reader.clone() },
            admin: Administrator { writers, reader: reader.clone() },
            inbox,
            reader,
            last_switch,
        })
    }

    pub(crate) fn names_several_hosts(&self) -> bool {
        self.reader.servers.hosts.are_several()
    }

    /// Connects to the primary if the URL names several servers.
    pub(crate) async fn find_primary(&self) {
        if self.reader.servers.hosts.are_several() {
            let mut probe = self.reader.servers.hosts.probe();
            if let Some(primary) = probe.new_primary().await {
                self.connect_to(&primary);
            }
            probe.close().await;
        }
    }

    /// Connects to the new primary after each failover. Ends at once if the URL names one server.
    pub(crate) async fn follow_primary(self) {
        if !self.reader.servers.hosts.are_several() {
            return;
        }
        let mut probe = self.reader.servers.hosts.probe();
        let mut ticks = tokio::time::interval(PRIMARY_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Some(primary) = probe.new_primary().await {
                self.connect_to(&primary);
            }
        }
    }

    fn connect_to(&self, primary: &PgConnectOptions) {
        for (_, pool) in self.pools() {
            pool.connect_to(primary);
        }
        // Afterwards, so that it covers connections to the former primary until now.
        self.last_switch.record();
    }

    /// Opens a connection and closes it. Returns [`Error::Outage`] if PostgreSQL accepts none.
    pub(crate) async fn try_connect(&self) -> Result<()> {
        let pools = self.reader.servers.readiness_pools();
        let connecting = select_ok(pools.iter().map(|pool| pool.try_connect().boxed()));
        connecting.await.map(|((), _)| ()).map_err(|error| {
            tracing::warn!(%error, "PostgreSQL accepts no new connection");
            Error::Outage("PostgreSQL accepts no new connections".to_owned())
        })
    }

    /// Returns whether the database's schema is newer than the one that this program was built for.
    ///
    /// Returns [`Error::Retry`] when migrations are missing.
    pub(crate) async fn has_newer_schema(&self) -> Result<bool> {
        let pools = self.reader.servers.readiness_pools();
        let reading = select_ok(pools.iter().map(|pool| migrate::edition(pool).boxed()));
        let read = timeout(self.reader.servers.pool_wait + RESPONSE_GRACE, reading).await;
        let (edition, _) = read.map_err(|_| Error::no_answer())??;
        match edition {
            Edition::Same => Ok(false),
            // A release keeps what the previous one needs (docs/upgrade.md). The schema cannot be
            // older, because it matched when this program started.
            Edition::Other | Edition::Newer => Ok(true),
            Edition::Missing | Edition::Older => {
                Err(Error::retry(Code::Unavailable, "migrations are missing: run `centile migrate`"))
            }
        }
    }

    /// Returns the number of connections by pool and state.
    pub(crate) fn connections(&self) -> Vec<(&'static str, &'static str, u32)> {
        let counts = self.pools().into_iter().flat_map(|(name, pool)| {
            let (all, idle) = pool.connections();
            [(name, "idle", idle), (name, "busy", all - idle.min(all))]
        });
        counts.collect()
    }

    /// Closes connections that were not used for a while.
    pub(crate) fn close_idle(&self) {
        self.reader.servers.worker_pools().iter().for_each(Pool::close_idle);
        self.pools().iter().for_each(|(_, pool)| pool.close_idle());
    }

    /// Closes the idle connections, and each of the others once it is returned.
    pub(crate) fn close(&self) {
        self.reader.servers.worker_pools().iter().for_each(Pool::close);
        self.pools().iter().for_each(|(_, pool)| pool.close());
    }

    /// Returns the pools to the primary, with their names in metrics.
    fn pools(&self) -> [(&'static str, &Pool); 6] {
        [
            ("read", &self.reader.readers),
            ("index", &self.index_reader.rounds),
            ("write", &self.score_writer.score_writers),
            ("other", &self.admin.writers),
            ("keep", &self.bucket_writer.layout_writers),
            ("inbox", &self.inbox.connections),
        ]
    }
}

/// Fails on a replica and on a former primary. The pool then waits for the primary.
async fn check_primary(connection: &mut PgConnection, hosts: &Hosts) -> sqlx::Result<()> {
    match hosts::timeline(connection).await? {
        Some(timeline) if hosts.is_latest(&timeline) => Ok(()),
        _ => Err(sqlx::Error::Protocol("the server is not the primary".to_owned())),
    }
}

/// Settings that a session makes after it has connected. `PgBouncer` refuses them as startup
/// parameters.
#[derive(Clone)]
struct SessionSettings(Arc<str>);

impl SessionSettings {
    /// Creates settings from (name, value) pairs, all constants of this program. The last value of
    /// a name counts.
    fn new(settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter().map(|(name, value)| format!("set_config('{name}', '{value}', false)"));
        Self(format!("SELECT {}", settings.collect::<Vec<_>>().join(", ")).into())
    }

    async fn apply(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        connection.execute(sqlx::raw_sql(AssertSqlSafe(Arc::clone(&self.0)))).await?;
        // PostgreSQL does not support this on every platform. Without it, the statement of a closed
        // connection runs to its end.
        if let Err(error) = connection.execute("SET client_connection_check_interval = '500ms'").await {
            tracing::debug!(%error, "the server does not support client_connection_check_interval");
        }
        Ok(())
    }
}

/// Rows that [`undamaged`] has logged.
static DAMAGED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Leaves damaged rows out of a list, so that they do not hide the others. Logs each once, by its name.
fn undamaged<T>(rows: impl IntoIterator<Item = (String, Result<T>)>) -> Vec<T> {
    let log = |name: String, error: Error| {
        if DAMAGED.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone()) {
            tracing::error!(row = name, %error, "a damaged row is left out of lists");
        }
    };
    rows.into_iter().filter_map(|(name, row)| row.map_err(|error| log(name, error)).ok()).collect()
}

/// Stores the epoch in the session. After a promotion, `centile.epoch` ignores the setting of a
/// session on a replica; on a cluster, it ignores all settings.
async fn store_epoch(connection: &mut PgConnection) -> sqlx::Result<()> {
    // The function is missing before the first migration, when no statement needs the epoch.
    let setting: Option<String> = sqlx::query_scalar(
        "SELECT CASE WHEN pg_is_in_recovery() THEN 'centile.replica_epoch' ELSE 'centile.epoch' END
         WHERE to_regproc('centile.epoch') IS NOT NULL",
    )
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(setting) = setting {
        let epoch: String = sqlx::query_scalar("SELECT centile.epoch()").fetch_one(&mut *connection).await?;
        sqlx::query("SELECT set_config($1, $2, false)").bind(setting).bind(epoch).execute(connection).await?;
    }
    Ok(())
}
