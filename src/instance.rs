//! One instance of the service: pools, caches and writers shared by all requests.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    Code, Error, Result,
    access::ApiKeys,
    background::{Background, UPKEEP_EVERY},
    boards::{self, Boards},
    cache::Cache,
    delivery::{followed_leagues::FollowedLeagues, ledger_stream::LedgerStreams, subscriptions::FollowedRankings},
    maintenance::scheduler::Scheduler,
    model::{
        board::BoardSlug,
        encryption::MasterKeys,
        settings::{ReplicaSettings, Settings},
    },
    ranking::{rankings::Rankings, read_router::ReadRouter},
    scoring::{accepted::AcceptedScores, applier, inbox::InboxWriter, writer::Writers},
    single_flight::{SingleFlight, SingleFlightCache},
    store::Store,
    telemetry::{self, recent},
};

/// How long one successful connection counts as proof that PostgreSQL accepts connections.
const CONNECTED_FOR: Duration = Duration::from_secs(2);

/// Interval of flushing recorded metrics into their histograms.
const METRICS_UPKEEP_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub struct Readiness {
    /// Whether the database's schema is newer than this program's.
    pub has_newer_schema: bool,
    /// Whether Redis answers, or is not used.
    pub cache_is_reachable: bool,
}

/// One instance: its connections, caches, writers and background work.
#[derive(Debug)]
pub struct Instance {
    pub(crate) store: Store,
    pub(crate) cache: Cache,
    pub(crate) boards: Arc<Boards>,
    /// Reads from the primary, for writes and maintenance.
    pub(crate) rankings: Arc<Rankings>,
    /// The server that answers reads.
    pub(crate) read_router: Arc<ReadRouter>,
    pub(crate) writers: Arc<Writers>,
    pub(crate) keys: ApiKeys,
    pub(crate) master_keys: Option<Arc<MasterKeys>>,
    pub(crate) followed_rankings: Arc<FollowedRankings>,
    pub(crate) followed_leagues: Arc<FollowedLeagues>,
    pub(crate) ledger_streams: Arc<LedgerStreams>,
    pub(crate) background: Background,
    /// `None` without background maintenance.
    pub(crate) maintenance: Option<Arc<Scheduler>>,
    readiness: SingleFlight<(), Readiness>,
    /// Whether PostgreSQL accepts new connections.
    connects: SingleFlightCache<(), ()>,
    leaving: AtomicBool,
    /// Whether readiness waits for the indexes that load at the start.
    awaits_indexes: AtomicBool,
}

impl Instance {
    /// Creates an instance and starts its background work on the current runtime.
    ///
    /// Connects to PostgreSQL and Redis on first use.
    pub async fn connect(settings: &Settings) -> Result<Arc<Self>> {
        // Find the server that accepts writes, and the servers that have the lanes.
        let store = Store::new(settings)?;
        store.find_primary().await;
        let owners = store.find_owners().await;
        let (background, master_keys) = (Background::default(), settings.master_keys.clone());
        let cache = match &settings.redis_url {
            Some(url) => Cache::redis(url.as_str(), settings.redis_ca.as_deref(), &settings.redis_prefix, &background)?,
            None => Cache::none(),
        };
        let boards = Arc::new(Boards::new(store.reader.clone(), settings.pool_wait));
        let rankings = |Store { reader, index_reader, .. }: &Store| {
            let (reader, index_reader, primary) = (reader.clone(), index_reader.clone(), store.bucket_writer.clone());
            let (memory, timeout) = (settings.index_memory, settings.pool_wait);
            Arc::new(Rankings::new(reader, index_reader, primary, cache.clone(), memory, timeout, &background))
        };
        // Reads go to the replica while it is close enough to the primary.
        let replica = settings.replica.as_ref().map(|ReplicaSettings { url, max_lag }| {
            let on_replica = Settings { database_url: url.clone(), ..settings.clone() };
            let store = Store::new(&on_replica).map_err(|error| error.in_field("read_url"))?;
            if store.names_several_hosts() {
                return Err(Error::invalid("read_url", "must name one server"));
            }
            Ok(((rankings(&store), store), *max_lag))
        });
        let rankings = rankings(&store);
        let read_router = Arc::new(match replica.transpose()? {
            Some((replica, max_lag)) => {
                ReadRouter::with_replica(Arc::clone(&rankings), store.clone(), replica, max_lag, &background)
            }
            None => ReadRouter::primary(Arc::clone(&rankings), store.clone()),
        });
        // Start the writers, and the task that applies their batches.
        let accepted = settings.maintenance_every.map(|_| Arc::<AcceptedScores>::default());
        background.spawn(applier::apply_continuously(store.bucket_writer.clone()));
        let (acknowledged, wait) = (Arc::clone(&rankings.acknowledged), settings.write_wait);
        let (score_writer, bucket_writer) = (store.score_writer.clone(), store.bucket_writer.clone());
        let writers = Arc::new(Writers::new(score_writer, bucket_writer, acknowledged, accepted.clone(), wait));
        let (idle, connected) = (Arc::clone(&writers), Arc::clone(&read_router));
        background.repeat(UPKEEP_EVERY, move || {
            idle.end_idle(Instant::now());
            connected.stores().for_each(Store::close_idle);
        });
        // Follow failovers, and moves of lanes between the servers of a cluster.
        background.spawn(store.clone().follow_primary());
        if owners.is_err() || store.reader.servers.is_cluster() {
            background.spawn(store.clone().follow_lanes());
        }
        // Update the metrics, and the minutes that the operator's page shows.
        background.repeat(METRICS_UPKEEP_EVERY, telemetry::run_upkeep);
        let used = Arc::clone(&read_router);
        background.repeat(recent::EVERY, move || recent::end_minute(used.current().indexes.used_bytes()));
        let maintenance = settings.maintenance_every.zip(accepted).map(|(every, accepted)| {
            // Before the first run, whose results count too.
            telemetry::install();
            let scheduler = Scheduler::new(store.clone(), Arc::clone(&rankings), master_keys.clone(), accepted);
            scheduler.start(every, &background);
            scheduler
        });
        Ok(Arc::new(Self {
            keys: ApiKeys::new(store.reader.clone(), settings.pool_wait),
            followed_rankings: Arc::new(FollowedRankings::new(
                Arc::clone(&boards),
                Arc::clone(&read_router),
                background.clone(),
            )),
            followed_leagues: Arc::new(FollowedLeagues::new(store.reader.clone(), background.clone())),
            ledger_streams: Arc::new(LedgerStreams::new(store.reader.clone(), settings.pool_wait)),
            readiness: SingleFlight::new(settings.pool_wait),
            connects: SingleFlightCache::new(settings.pool_wait, CONNECTED_FOR),
            leaving: AtomicBool::new(false),
            awaits_indexes: AtomicBool::new(false),
            store,
            cache,
            boards,
            rankings,
            read_router,
            writers,
            master_keys,
            background,
            maintenance,
        }))
    }

    /// Checks whether requests can be answered.
    ///
    /// Returns [`Error::Outage`] while PostgreSQL does not answer, [`Error::Retry`] while it lacks required
    /// migrations or awaited indexes load, and [`Error::Stopping`] after [`Instance::leave`].
    pub async fn ready(&self) -> Result<Readiness> {
        if self.leaving.load(Ordering::Relaxed) {
            return Err(Error::Stopping);
        }
        if self.awaits_indexes.load(Ordering::Relaxed) {
            if self.read_router.current().indexes.is_loading() {
                return Err(Error::retry(Code::Unavailable, "rank indexes are being loaded"));
            }
            self.awaits_indexes.store(false, Ordering::Relaxed);
        }
        let read = async || {
            let connects = self.connects.read((), || self.store.try_connect());
            let cache_is_reachable = async { Ok(self.cache.answers().await != Some(false)) };
            let (has_newer_schema, cache_is_reachable, ()) =
                tokio::try_join!(self.store.has_newer_schema(), cache_is_reachable, connects)?;
            Ok(Readiness { has_newer_schema, cache_is_reachable })
        };
        // Readiness needs no key and has no rate limit, so concurrent checks share one query.
        self.readiness.read((), read).await
    }

    /// Begins to write the scores that are submitted in SQL. Only an instance that serves does this,
    /// not a command.
    pub fn write_submitted_scores(&self) {
        let (boards, writers) = (Arc::clone(&self.boards), Arc::clone(&self.writers));
        let inbox = InboxWriter::new(self.store.inbox.clone(), boards, writers, Arc::clone(&self.rankings));
        self.background.spawn(inbox.run());
    }

    /// Loads the current rankings of these boards into memory.
    ///
    /// With `awaits` the instance is not ready until they are loaded. Returns [`Error::NotFound`]
    /// for an unknown board.
    pub async fn load_indexes(&self, boards: &[BoardSlug], awaits: bool) -> Result<()> {
        self.read_router.compare().await;
        for slug in boards {
            let board = boards::find(&self.boards, slug).await?;
            self.read_router.current().indexes.load_board(slug.as_str(), board.owner).await?;
        }
        self.awaits_indexes.store(awaits, Ordering::Relaxed);
        Ok(())
    }

    /// Marks the instance as not ready before it stops. It still answers requests.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Writes the accepted scores, applies their batches unless another session does, stops the background work and closes the connections.
    pub async fn shut_down(&self) {
        self.background.stop().await;
        self.writers.shut_down().await;
        if let Err(error) = applier::apply_all(&self.store.bucket_writer).await {
            tracing::warn!(%error, "the last batches could not be applied");
        }
        self.read_router.stores().for_each(Store::close);
    }
}
