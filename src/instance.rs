//! One instance: pools, caches and writers that all requests share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{
    Error, Result,
    access::ApiKeys,
    background::Background,
    boards::{self, Boards},
    cache::Cache,
    delivery::live::Live,
    maintenance::scheduler::Scheduler,
    model::{board::BoardSlug, seal::MasterKeys, settings::Settings},
    ranking::Rankings,
    scoring::{accepted::AcceptedScores, writer::Writers},
    single_flight::{SingleFlight, SingleFlightCache},
    store::Store,
    telemetry,
};

/// Bytes of the in-process cache that stands in for Redis.
const CACHE_BYTES: u64 = 64 << 20;

/// How long one successful connection counts as proof that PostgreSQL accepts connections.
const CONNECTED_FOR: Duration = Duration::from_secs(2);

/// How often what is counted is put into its histograms.
const NUMBERS_KEPT_EVERY: Duration = Duration::from_secs(5);

/// Result of a readiness check.
#[derive(Debug, Clone, Copy)]
pub struct Readiness {
    /// Whether the database's schema is a newer one than this program's.
    pub has_newer_schema: bool,
    /// Whether the cache answers; always, when it is in this process.
    pub cache_is_reachable: bool,
}

/// One instance: its connections, caches, writers and background work.
#[derive(Debug)]
pub struct Instance {
    pub(crate) store: Store,
    pub(crate) cache: Cache,
    pub(crate) boards: Arc<Boards>,
    pub(crate) rankings: Arc<Rankings>,
    pub(crate) writers: Writers,
    pub(crate) keys: ApiKeys,
    pub(crate) master_keys: Option<Arc<MasterKeys>>,
    pub(crate) live: Arc<Live>,
    pub(crate) background: Background,
    /// `None` without background maintenance.
    pub(crate) maintenance: Option<Arc<Scheduler>>,
    readiness: SingleFlight<(), Readiness>,
    /// Whether PostgreSQL accepts new connections.
    connects: SingleFlightCache<(), ()>,
    leaving: AtomicBool,
    /// Whether the instance is not ready before the indexes that it loads at its start are there.
    awaits_indexes: AtomicBool,
}

impl Instance {
    /// Prepares an instance and starts its background work on the current runtime. PostgreSQL and
    /// Redis are connected to when first needed.
    #[expect(clippy::unused_async, reason = "must be called within a runtime, on which the writers will run")]
    pub async fn connect(settings: &Settings) -> Result<Arc<Self>> {
        let store = Store::new(settings)?;
        let cache = match &settings.redis_url {
            Some(url) => Cache::redis(url.as_str(), settings.redis_ca.as_deref(), &settings.redis_prefix)?,
            None => Cache::in_process(&settings.redis_prefix, CACHE_BYTES),
        };
        let (background, master_keys) = (Background::default(), settings.master_keys.clone());
        let boards = Arc::new(Boards::new(store.clone()));
        let rankings = Arc::new(Rankings::new(
            store.clone(),
            cache.clone(),
            settings.index_memory,
            settings.pool_wait,
            &background,
        ));
        let accepted = Arc::new(AcceptedScores::default());
        let (acknowledged, wait) = (Arc::clone(&rankings.acknowledged), settings.write_wait);
        let writers = Writers::new(store.clone(), acknowledged, Arc::clone(&accepted), wait);
        background.repeat(NUMBERS_KEPT_EVERY, telemetry::run_upkeep);
        let maintenance = settings.maintenance_every.map(|every| {
            let scheduler = Scheduler::new(Arc::clone(&rankings), master_keys.clone(), accepted);
            scheduler.start(every, &background);
            scheduler
        });
        Ok(Arc::new(Self {
            keys: ApiKeys::new(store.clone(), master_keys.clone(), settings.pool_wait),
            live: Arc::new(Live::new(Arc::clone(&boards), Arc::clone(&rankings), background.clone())),
            readiness: SingleFlight::new(settings.pool_wait),
            connects: SingleFlightCache::new(settings.pool_wait, CONNECTED_FOR),
            leaving: AtomicBool::new(false),
            awaits_indexes: AtomicBool::new(false),
            store,
            cache,
            boards,
            rankings,
            writers,
            master_keys,
            background,
            maintenance,
        }))
    }

    /// Whether requests can be answered, and with what. [`Error::Unavailable`] while PostgreSQL does not answer, or has not the
    /// schema that this program needs, and once [`Instance::leave`] was called.
    pub async fn ready(&self) -> Result<Readiness> {
        if self.leaving.load(Ordering::Relaxed) {
            return Err(Error::unavailable("this instance is about to stop"));
        }
        if self.awaits_indexes.load(Ordering::Relaxed) {
            if self.rankings.indexes.is_loading() {
                return Err(Error::unavailable("rank indexes are being loaded"));
            }
            self.awaits_indexes.store(false, Ordering::Relaxed);
        }
        let read = async || {
            let connects = self.connects.read((), || self.store.try_connect());
            let (has_newer_schema, cache_is_reachable, connects) =
                tokio::join!(self.store.has_newer_schema(), self.cache.is_reachable(), connects);
            connects?;
            Ok(Readiness { has_newer_schema: has_newer_schema?, cache_is_reachable })
        };
        // However many ask, without a key and without limit, the database is asked once at a time.
        self.readiness.read((), read).await
    }

    /// Loads the rankings that these boards have now into memory. With `awaits` this instance is not ready before that is done.
    /// [`Error::NotFound`] when there is no such board.
    pub async fn load_indexes(&self, boards: &[BoardSlug], awaits: bool) -> Result<()> {
        for slug in boards {
            let board = boards::find(&self.boards, slug).await?;
            self.rankings.indexes.load_board(slug.as_str(), board.id).await?;
        }
        self.awaits_indexes.store(awaits, Ordering::Relaxed);
        Ok(())
    }

    /// From now on no more requests are to be sent here; those that come are answered.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Writes what was accepted, ends the background work and closes the connections.
    pub async fn shut_down(&self) {
        self.background.stop().await;
        self.writers.shut_down().await;
        self.store.close().await;
    }
}
