//! What every request shares: pools, caches and writers of one instance.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Error, Result,
    acknowledged::Acknowledged,
    audit::Lookout,
    board::{self, BoardSlug},
    cache::Cache,
    config::Hidden,
    counts::CountsCache,
    known_board::BoardCache,
    known_key::KeyCache,
    layout::Keeper,
    live::Live,
    overview::Overviews,
    period::PeriodCache,
    ranking::Indexes,
    seal::MasterKeys,
    shared_reads::SharedReads,
    store::Store,
    telemetry,
    top::TopCache,
    upkeep,
    writer::Writers,
};

/// Bytes of the in-process cache that stands in for Redis.
const CACHE_BYTES: u64 = 64 << 20;

/// How often what is counted is put into its histograms.
const NUMBERS_KEPT_EVERY: Duration = Duration::from_secs(5);

/// How to reach the servers.
#[derive(Debug, Clone)]
pub struct Settings {
    /// PostgreSQL, as a URL.
    pub database_url: Hidden,
    /// A pooler before it that shares sessions, as a URL: what is short goes through it.
    pub pooler_url: Option<Hidden>,
    /// Redis, as a URL; an in-process cache without.
    pub redis_url: Option<Hidden>,
    /// Certificates of the authorities that vouch for it over TLS; the machine's own without.
    pub redis_ca: Option<PathBuf>,
    /// What every key in Redis begins with.
    pub redis_prefix: String,
    /// Connections for reading.
    pub read_connections: u32,
    /// Connections for writing: at least one per lane that is busy at the same time.
    pub write_connections: u32,
    /// How long a statement may run.
    pub statement_timeout: Duration,
    /// How long a call waits for a connection, or for its turn where a read is shared, before it is told that there is none.
    pub pool_wait: Duration,
    /// Bytes that rank indexes and the user directory may take; 0 turns them off.
    pub index_memory: u64,
    /// How long scores may have to wait for their turn before those that come are refused.
    pub write_wait: Duration,
    /// What secrets are sealed with in the database; without, there are no keys that sign, and secrets of webhooks are in clear.
    pub master_keys: Option<Arc<MasterKeys>>,
    /// How often to look in the background whether a period is to be closed; nothing is done in the background without.
    pub maintenance_every: Option<Duration>,
}

impl Settings {
    /// How long a call waits for a connection unless configured otherwise.
    pub const DEFAULT_POOL_WAIT: Duration = Duration::from_secs(2);
    /// How long scores may have to wait unless configured otherwise.
    pub const DEFAULT_WRITE_WAIT: Duration = Duration::from_millis(400);
}

/// That requests can be answered, and with what.
#[derive(Debug, Clone, Copy)]
pub struct Readiness {
    /// Whether the database's schema is a newer one than this program's.
    pub has_newer_schema: bool,
    /// Whether the cache answers; always, when it is in this process.
    pub cache_is_reachable: bool,
}

/// Pools, caches and writers of one instance.
#[derive(Debug)]
pub struct Service {
    pub(crate) store: Store,
    pub(crate) cache: Cache,
    pub(crate) boards: BoardCache,
    pub(crate) periods: PeriodCache,
    pub(crate) keys: KeyCache,
    pub(crate) master_keys: Option<Arc<MasterKeys>>,
    pub(crate) counts: CountsCache,
    pub(crate) overviews: Overviews,
    pub(crate) live: Live,
    pub(crate) indexes: Arc<Indexes>,
    pub(crate) tops: TopCache,
    pub(crate) acknowledged: Arc<Acknowledged>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) lookout: Lookout,
    pub(crate) writers: Writers,
    readiness: SharedReads<(), Readiness>,
    leaving: AtomicBool,
    /// Whether this instance is not ready before the indexes that it loads at its start are there.
    awaits_indexes: AtomicBool,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

impl Service {
    /// Prepares an instance; PostgreSQL and Redis are connected to when first needed. Starts its background work on the
    /// current runtime.
    #[expect(clippy::unused_async, reason = "must be called within a runtime, on which the writers will run")]
    pub async fn connect(settings: &Settings) -> Result<Arc<Self>> {
        let store = Store::new(settings)?;
        let cache = match &settings.redis_url {
            Some(url) => Cache::redis(url.as_str(), settings.redis_ca.as_deref(), &settings.redis_prefix)?,
            None => Cache::in_process(&settings.redis_prefix, CACHE_BYTES),
        };
        let (tasks, stopping) = (TaskTracker::new(), CancellationToken::new());
        let acknowledged = Arc::new(Acknowledged::default());
        let keeper = Arc::new(Keeper::default());
        let service = Arc::new(Self {
            writers: Writers::new(store.clone(), Arc::clone(&acknowledged), Arc::clone(&keeper), settings.write_wait),
            keeper,
            lookout: Lookout::default(),
            cache,
            boards: BoardCache::default(),
            periods: PeriodCache::default(),
            keys: KeyCache::new(settings.pool_wait),
            master_keys: settings.master_keys.clone(),
            counts: CountsCache::default(),
            overviews: Overviews::new(settings.pool_wait),
            live: Live::default(),
            indexes: Indexes::new(store.clone(), settings.index_memory, &tasks, &stopping),
            tops: TopCache::default(),
            acknowledged,
            store,
            readiness: SharedReads::new(settings.pool_wait),
            leaving: AtomicBool::new(false),
            awaits_indexes: AtomicBool::new(false),
            tasks,
            stopping,
        });
        if settings.index_memory > 0 {
            service.attend(Arc::clone(&service.indexes).keep());
        }
        service.repeat(NUMBERS_KEPT_EVERY, telemetry::keep);
        if let Some(every) = settings.maintenance_every {
            upkeep::start(&service, every, &service.tasks, &service.stopping);
        }
        Ok(service)
    }

    /// Does something short again and again in the background, until the service stops.
    pub(crate) fn repeat(&self, every: Duration, job: impl Fn() + Send + 'static) {
        self.tasks.spawn(self.stopping.clone().run_until_cancelled_owned(async move {
            let mut ticks = tokio::time::interval(every);
            loop {
                ticks.tick().await;
                job();
            }
        }));
    }

    /// Does something in the background, until it ends or the service stops.
    pub(crate) fn attend(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.stopping.clone().run_until_cancelled_owned(work));
    }

    /// Whether requests can be answered, and with what. [`Error::Unavailable`] while PostgreSQL does not answer, or has not the
    /// schema that this program needs, and once [`Service::leave`] was called.
    pub async fn ready(&self) -> Result<Readiness> {
        if self.leaving.load(Ordering::Relaxed) {
            return Err(Error::unavailable("this instance is about to stop"));
        }
        if self.awaits_indexes.load(Ordering::Relaxed) {
            if self.indexes.is_loading() {
                return Err(Error::unavailable("rank indexes are being loaded"));
            }
            self.awaits_indexes.store(false, Ordering::Relaxed);
        }
        let read = async || {
            let (has_newer_schema, cache_is_reachable) =
                tokio::join!(self.store.has_newer_schema(), self.cache.is_reachable());
            Ok(Readiness { has_newer_schema: has_newer_schema?, cache_is_reachable })
        };
        // However many ask, without a key and without limit, the database is asked once at a time.
        self.readiness.read((), read).await
    }

    /// Loads the rankings that these boards have now into memory. With `awaits` this instance is not ready before that is done.
    /// [`Error::NotFound`] when there is no such board.
    pub async fn load_indexes(&self, boards: &[BoardSlug], awaits: bool) -> Result<()> {
        for slug in boards {
            let board = board::find(self, slug).await?;
            self.indexes.load_board(slug.as_str(), board.id).await?;
        }
        self.awaits_indexes.store(awaits, Ordering::Relaxed);
        Ok(())
    }

    /// From now on no more requests are to be sent here; those that come are answered.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Notes that all that stands in the ledger of a board now may have been acknowledged here.
    pub(crate) async fn acknowledged_all(&self, board_id: i32) -> Result<()> {
        for (lane, batch) in self.store.batches(board_id).await?.into_iter().enumerate() {
            self.acknowledged.raise(board_id, lane, batch);
        }
        Ok(())
    }

    /// Writes what was accepted, ends the background work and closes the connections.
    pub async fn shut_down(&self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.writers.shut_down().await;
        self.store.close().await;
    }
}
