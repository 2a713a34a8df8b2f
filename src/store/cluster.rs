//! The servers of the database: which of them answer and, on a cluster, which lanes each has.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::future::join_all;
use sqlx::{ConnectOptions as _, Connection as _, FromRow, PgConnection, postgres::PgConnectOptions};
use tokio::time::{sleep, timeout};

use crate::{
    Code, Error, Result,
    model::{id::Lane, user::lane_hash},
    single_flight::SingleFlight,
    store::{Administrator, IndexReader, ScoreWriter, SessionSettings, Store, check_primary, hosts::Hosts, pool::Pool},
};

/// The lane of a user, by the internal id.
pub(super) const LANE_OF_USER: &str =
    "SELECT (u.lane_hash % (SELECT sum(cardinality(g.lanes)) FROM centile_lanes.groups g))::smallint
     FROM centile_store.users u WHERE u.id = $1";

pub(super) const LANE_OF_TRANSACTION: &str = "SELECT lane FROM centile_store.score_transactions WHERE id = $1";

/// The lane of an event in quarantine.
pub(super) const LANE_OF_QUARANTINED: &str = "SELECT lane FROM centile_store.quarantine WHERE id = $1";

/// Interval of looking for lanes that have moved, and for servers that have failed over.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum wait for a server's answer when looking for these. The next look finds changes that this one
/// missed.
const ANSWER_WAIT: Duration = Duration::from_secs(1);

/// The number and the timeline of a server.
const TIMELINE: &str = "SELECT l.groupid, centile_lanes.timeline() FROM pg_dist_local_group l";

/// The timeline of each server when the epoch began, by the server's number. Only the coordinator's copy
/// counts, because a restored worker has an old one.
const TIMELINES: &str = "SELECT e.timelines FROM centile_store.cluster_epoch e";

/// Whether Citus has moved a group that is not attached to its new worker, and the workers that lack
/// periods opened while they were down.
const PENDING: &str = "
    SELECT EXISTS (SELECT FROM centile_lanes.groups g JOIN pg_dist_placement p ON p.shardid = g.shard
                   WHERE p.placementid IS DISTINCT FROM g.placement),
           ARRAY(SELECT DISTINCT m.node FROM centile_lanes.uncopied_periods m)";

/// Whether the worker of lane `$2` lacks periods of board `$1`.
const LACKS_PERIODS: &str = "
    SELECT EXISTS (SELECT FROM centile_lanes.uncopied_periods m
                   JOIN centile_lanes.groups g USING (node)
                   JOIN centile_store.periods p ON p.id = m.period_id
                   WHERE p.board_id = $1 AND $2 = ANY (g.lanes))";

/// A server of a cluster: the coordinator or a worker.
#[derive(Debug, FromRow)]
pub(crate) struct Server {
    /// Host, as Citus knows it.
    host: String,
    port: i32,
    answers: bool,
    /// Numbers of the groups of lanes that it has; none for the coordinator.
    groups: Vec<i16>,
    lanes: i64,
    /// Size of its database, if it answers.
    bytes: Option<i64>,
    /// Bytes of WAL that the slowest of its replicas has not replayed; `None` without replicas.
    lag: Option<i64>,
}

impl Server {
    /// Returns whether its lanes cannot be read.
    pub(crate) fn hides_lanes(&self) -> bool {
        !self.answers && self.lanes > 0
    }

    /// Returns the address, state, number of lanes, size, lag of replicas, and groups as text.
    pub(crate) fn cells(&self) -> [String; 6] {
        let size = self.bytes.map_or_else(|| "unknown".to_owned(), |bytes| format!("{} MB", bytes >> 20));
        let no_lag = if self.answers { "no replica" } else { "unknown" };
        let lag = self.lag.map_or_else(|| no_lag.to_owned(), |bytes| format!("{} kB", bytes >> 10));
        let groups: Vec<String> = self.groups.iter().map(ToString::to_string).collect();
        let state = if self.answers { "up" } else { "down" };
        let address = format!("{}:{}", self.host, self.port);
        [address, state.to_owned(), self.lanes.to_string(), size, lag, groups.join(" ")]
    }
}

/// Ids and names of users, and the connections that create them.
type UsersOfServer = (Pool, Vec<String>, Vec<Option<String>>);

type OpenPool = Box<dyn Fn(PgConnectOptions) -> Result<Pool> + Send + Sync>;

/// Connections to a server, and which lanes it has; `None` for all.
pub(super) type LanesOfPool = (Pool, Option<Arc<[bool]>>);

/// The writers of each lane's server.
pub(super) struct Owners {
    /// A pool per worker, by host and port.
    pools: HashMap<(String, i32), Pool>,
    /// The pool of each lane.
    lanes: Vec<Pool>,
    /// The pools that have lanes, and which.
    rounds: Vec<LanesOfPool>,
    /// The groups from which all this follows.
    groups: Vec<Group>,
    /// Start of the last [`Store::find_owners`] that succeeded.
    answered_at: Instant,
    /// Whether the coordinator accepted no connection after a failed read. The next
    /// [`Store::find_owners`] that succeeds ends this.
    is_coordinator_down: bool,
    open: OpenPool,
}

impl Owners {
    /// Creates the owners of no lanes. On a cluster, `open` creates a pool for each worker.
    pub(super) fn new(open: impl Fn(PgConnectOptions) -> Result<Pool> + Send + Sync + 'static) -> Self {
        Self {
            pools: HashMap::new(),
            lanes: Vec::new(),
            rounds: Vec::new(),
            groups: Vec::new(),
            answered_at: Instant::now(),
            is_coordinator_down: false,
            open: Box::new(open),
        }
    }

    /// Returns the lane of a player on all boards of a cluster: users are placed by lane, too.
    fn lane_of(&self, user_id: &str) -> usize {
        usize::from(lane_hash(user_id)) % self.lanes.len()
    }

    /// Returns the connections that change a player; `None` on a single server.
    fn pool_of(&self, user_id: &str) -> Option<&Pool> {
        (!self.lanes.is_empty()).then(|| &self.lanes[self.lane_of(user_id)])
    }

    /// Sets the servers of the lanes.
    fn set(&mut self, options: &PgConnectOptions, groups: Vec<Group>) -> Result<()> {
        if self.groups == groups {
            return Ok(());
        }
        let mut servers: HashMap<(String, i32), Vec<i16>> = HashMap::new();
        for Group { lanes, host, port } in &groups {
            servers.entry((host.clone(), *port)).or_default().extend(lanes);
        }
        let count = servers.values().map(Vec::len).sum();
        let mut numbered: Vec<(i16, Pool)> = Vec::with_capacity(count);
        let mut rounds = Vec::with_capacity(servers.len());
        for ((host, port), lanes) in servers {
            let options = options_for(options, &host, port);
            let pool = match self.pools.entry((host, port)) {
                Entry::Occupied(pool) => pool.get().clone(),
                Entry::Vacant(place) => place.insert((self.open)(options)?).clone(),
            };
            numbered.extend(lanes.iter().map(|lane| (*lane, pool.clone())));
            let has: Arc<[bool]> =
                (0..count).map(|lane| lanes.iter().any(|one| usize::try_from(*one) == Ok(lane))).collect();
            rounds.push((pool, Some(has)));
        }
        numbered.sort_by_key(|(lane, _)| *lane);
        self.lanes = numbered.into_iter().map(|(_, pool)| pool).collect();
        (self.rounds, self.groups) = (rounds, groups);
        Ok(())
    }
}

/// A group of lanes and its worker.
#[derive(Debug, PartialEq, Eq, FromRow)]
struct Group {
    lanes: Vec<i16>,
    host: String,
    port: i32,
}

/// State that all roles share: how to reach the servers, and whether they are reachable.
pub(crate) struct Servers {
    pub(super) hosts: Arc<Hosts>,
    pub(super) owners: Mutex<Owners>,
    /// The connections of [`crate::store::Reader`], which show whether PostgreSQL is reachable.
    pub(super) readers: Pool,
    /// Settings of connections for long work, whose statements have no timeout.
    pub(super) unlimited: SessionSettings,
    /// Shares checks of whether the coordinator is down.
    pub(super) coordinator_checks: SingleFlight<(), ()>,
    /// Maximum wait of a call for a connection.
    pub(super) pool_wait: Duration,
}

impl fmt::Debug for Servers {
    /// Omits the connection options, which hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Servers")
    }
}

impl Servers {
    /// Opens a connection for long work, without a limit on statement time.
    pub(super) async fn unlimited_connection(&self) -> Result<PgConnection> {
        // Its statements are not logged as slow.
        let options = self.hosts.primary().disable_statement_logging();
        let mut connection = PgConnection::connect_with(&options).await?;
        if self.hosts.are_several() {
            check_primary(&mut connection, &self.hosts).await?;
        }
        self.unlimited.apply(&mut connection).await?;
        Ok(connection)
    }

    /// Returns whether PostgreSQL accepts connections. Callers share an attempt.
    pub(crate) async fn is_reachable(&self) -> bool {
        let pools = self.readiness_pools();
        join_all(pools.iter().map(Pool::is_reachable)).await.contains(&true)
    }

    /// Returns whether an error means that PostgreSQL is unreachable. A wait for a permit or a
    /// shared read may time out because of an outage or of load.
    pub(crate) async fn is_outage(&self, error: &Error) -> bool {
        match error {
            Error::Outage(_) => true,
            Error::Overload { code: Code::Overloaded, .. } => !self.is_reachable().await,
            _ => false,
        }
    }

    /// Returns the pools that a readiness check tries: the readers or, while the coordinator is down,
    /// those of the workers.
    pub(super) fn readiness_pools(&self) -> Vec<Pool> {
        let owners = self.owners();
        if !owners.is_coordinator_down {
            return vec![self.readers.clone()];
        }
        owners.rounds.iter().map(|(pool, _)| pool.clone()).collect()
    }

    /// Returns whether the lanes are on several servers.
    pub(crate) fn is_cluster(&self) -> bool {
        !self.owners().lanes.is_empty()
    }

    /// Returns the connections to the workers; none on a single server.
    pub(super) fn worker_pools(&self) -> Vec<Pool> {
        self.owners().pools.values().cloned().collect()
    }

    /// Returns the connections to the worker that has a lane; `None` on a single server.
    pub(super) fn pool_of_lane(&self, lane: Lane) -> Option<Pool> {
        usize::try_from(lane.0).ok().and_then(|lane| self.owners().lanes.get(lane).cloned())
    }

    fn owners(&self) -> MutexGuard<'_, Owners> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reference time for the age of cached rows: now or, while the coordinator is down, the
    /// start of the last look-up that it answered.
    pub(crate) fn cache_reference_time(&self) -> Instant {
        let owners = self.owners();
        if owners.is_coordinator_down { owners.answered_at } else { Instant::now() }
    }

    /// Fails while the coordinator is down, so that callers need not wait for it.
    pub(super) fn require_coordinator(&self) -> Result<()> {
        if self.owners().is_coordinator_down { Err(coordinator_is_silent()) } else { Ok(()) }
    }

    /// Runs `read` on the coordinator, for callers with a cache. On a cluster, fails at once while the
    /// coordinator is down, and after a timeout if it does not answer.
    pub(super) async fn read_coordinator<T>(&self, read: impl Future<Output = sqlx::Result<T>>) -> Result<T> {
        if !self.is_cluster() {
            return Ok(read.await?);
        }
        self.require_coordinator()?;
        let read = timeout(self.pool_wait + ANSWER_WAIT, read).await;
        read.map_or_else(|_| Err(coordinator_is_silent()), |result| result.map_err(Error::from))
    }

    /// Tries to connect to the coordinator, and records whether it is down. Call this after a failed
    /// read. Concurrent calls share a connection.
    pub(crate) async fn check_coordinator(&self) {
        if !self.is_cluster() || self.owners().is_coordinator_down {
            return;
        }
        let check = async || {
            if self.owners().is_coordinator_down {
                return Ok(());
            }
            let began_at = Instant::now();
            let is_down = self.readers.try_connect().await.is_err();
            let mut owners = self.owners();
            owners.is_coordinator_down = is_down && owners.answered_at < began_at;
            Ok(())
        };
        self.coordinator_checks.read((), check).await.ok();
    }
}

impl IndexReader {
    /// Returns the pools for rounds with the lanes that each has; `None` for all.
    pub(super) fn round_pools(&self) -> Vec<LanesOfPool> {
        let owners = self.reader.servers.owners();
        if owners.rounds.is_empty() { vec![(self.rounds.clone(), None)] } else { owners.rounds.clone() }
    }
}

impl ScoreWriter {
    /// Divides users by lane; returns each part with the connections to the lane's server.
    pub(super) fn by_server(&self, users: &[String], names: &[Option<String>]) -> Vec<UsersOfServer> {
        let owners = self.reader.servers.owners();
        if owners.lanes.is_empty() {
            return vec![(self.score_writers.clone(), users.to_vec(), names.to_vec())];
        }
        let mut lanes: HashMap<usize, UsersOfServer> = HashMap::new();
        for (user, name) in users.iter().zip(names) {
            let lane = owners.lane_of(user);
            let (_, users, names) =
                lanes.entry(lane).or_insert_with(|| (owners.lanes[lane].clone(), Vec::new(), Vec::new()));
            users.push(user.clone());
            names.push(name.clone());
        }
        lanes.into_values().collect()
    }

    /// Fails if the worker of a lane lacks periods of a board that the coordinator has opened. The
    /// caller must not open them again, which would delay the board's other lanes.
    pub(crate) async fn require_periods(&self, board_id: i32, lane: Lane) -> Result<()> {
        if !self.reader.servers.is_cluster() {
            return Ok(());
        }
        self.reader.servers.require_coordinator()?;
        let lacks_periods =
            sqlx::query_scalar(LACKS_PERIODS).bind(board_id).bind(lane.0).fetch_one(&self.reader.readers).await?;
        if lacks_periods {
            return Err(Error::retry(Code::ConcurrentChange, "the lane's worker lacks a period of the board; retry"));
        }
        Ok(())
    }
}

impl Administrator {
    /// Returns the connections that change a player.
    pub(super) fn writers_of_user(&self, user_id: &str) -> Pool {
        let owners = self.reader.servers.owners();
        owners.pool_of(user_id).unwrap_or(&self.writers).clone()
    }

    /// Returns the connections that change the player of a row. `query` reads the row's lane by its id.
    pub(super) async fn writers_of_row(&self, query: &'static str, id: i64) -> Result<Pool> {
        let servers = &self.reader.servers;
        if !servers.is_cluster() {
            return Ok(self.writers.clone());
        }
        let lane: Option<i16> = sqlx::query_scalar(query).bind(id).fetch_optional(&self.reader.readers).await?;
        Ok(lane.and_then(|lane| servers.pool_of_lane(Lane(lane))).unwrap_or_else(|| self.writers.clone()))
    }

    /// Returns the connections to the servers that have lanes.
    pub(super) fn lane_pools(&self) -> Vec<Pool> {
        let workers = self.reader.servers.worker_pools();
        if workers.is_empty() { vec![self.writers.clone()] } else { workers }
    }
}

impl Store {
    /// Reads which servers have which lanes.
    pub(crate) async fn find_owners(&self) -> Result<()> {
        let (asked_at, is_cluster) = (Instant::now(), self.reader.servers.is_cluster());
        let wait = if is_cluster { ANSWER_WAIT } else { Duration::MAX };
        let groups = timeout(wait, self.groups()).await.unwrap_or_else(|_| Err(coordinator_is_silent()));
        if groups.is_err() {
            self.reader.servers.check_coordinator().await;
        }
        if let Some(groups) = groups? {
            let mut owners = self.reader.servers.owners();
            (owners.answered_at, owners.is_coordinator_down) = (asked_at, false);
            owners.set(&self.reader.servers.hosts.primary(), groups)?;
        }
        Ok(())
    }

    /// Reads the groups of lanes; `None` on a single server.
    async fn groups(&self) -> Result<Option<Vec<Group>>> {
        if !self.reader.servers.is_cluster() {
            let is_cluster: bool = sqlx::query_scalar("SELECT to_regclass('centile_lanes.groups') IS NOT NULL")
                .fetch_one(&self.reader.readers)
                .await?;
            if !is_cluster {
                return Ok(None);
            }
        }
        let groups = sqlx::query_as(
            "SELECT g.lanes, n.nodename AS host, n.nodeport AS port
             FROM centile_lanes.groups g JOIN pg_dist_node n ON n.groupid = g.node AND n.noderole = 'primary' ORDER BY g.number",
        )
        .fetch_all(&self.bucket_writer.layout_writers)
        .await?;
        Ok(Some(groups))
    }

    /// Returns the servers, the coordinator first; none on a single server.
    pub(crate) async fn cluster_status(&self) -> Result<Vec<Server>> {
        if !self.reader.servers.is_cluster() {
            return Ok(Vec::new());
        }
        let mut session = self.reader.readers.check_out().await?;
        // Citus would wait for half a minute if a server's host is off.
        session.begin("SET LOCAL citus.node_connection_timeout = '3s'").await?;
        let servers =
            sqlx::query_as(include_str!("../../sql/queries/cluster_status.sql")).fetch_all(&mut session).await?;
        session.commit().await?;
        Ok(servers)
    }

    /// Follows lanes that Citus moves. Ends at once on a single server.
    pub(crate) async fn follow_lanes(self) {
        let mut ticks = tokio::time::interval(FOLLOW_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while self.find_owners().await.is_err() {
            ticks.tick().await;
        }
        if !self.reader.servers.is_cluster() {
            return;
        }
        let find = async {
            loop {
                ticks.tick().await;
                log_lookup_failure(self.find_owners().await);
            }
        };
        let follow = async {
            loop {
                sleep(FOLLOW_INTERVAL).await;
                match self.follow_moves().await {
                    Ok(true) => log_lookup_failure(self.find_owners().await),
                    followed => log_lookup_failure(followed.map(drop)),
                }
            }
        };
        // A worker that is down delays only `follow`.
        tokio::join!(find, follow);
    }

    /// Attaches moved groups, and begins a new epoch after a failover. Returns whether either was needed.
    /// Also copies periods to workers that were down. Usually, it only reads.
    async fn follow_moves(&self) -> Result<bool> {
        self.reader.servers.require_coordinator()?;
        let workers = self.index_reader.round_pools();
        let asked = workers.iter().map(async |(worker, _)| {
            let timeline = sqlx::query_as(TIMELINE).fetch_one(worker);
            // A worker that fails to answer begins the epoch itself before it writes.
            timeout(ANSWER_WAIT, timeline).await.ok()?.ok()
        });
        let mut servers: Vec<(i32, String)> = join_all(asked).await.into_iter().flatten().collect();
        let coordinator = &self.bucket_writer.layout_writers;
        let read = async {
            let timeline = sqlx::query_as(TIMELINE).fetch_one(coordinator).await?;
            let known: Vec<Option<String>> = sqlx::query_scalar(TIMELINES).fetch_one(coordinator).await?;
            let (has_moved, incomplete): (bool, Vec<i32>) = sqlx::query_as(PENDING).fetch_one(coordinator).await?;
            Ok::<_, Error>((timeline, known, has_moved, incomplete))
        };
        let (timeline, known, has_moved, incomplete) =
            timeout(ANSWER_WAIT, read).await.unwrap_or_else(|_| Err(coordinator_is_silent()))?;
        servers.push(timeline);
        let is_known = |(node, timeline): &(i32, String)| {
            let known = usize::try_from(*node).ok().and_then(|node| known.get(node));
            known.is_some_and(|known| known.as_ref() == Some(timeline))
        };
        for (node, _) in servers.iter().filter(|(node, _)| incomplete.contains(node)) {
            log_lookup_failure(self.copy_periods(*node).await);
        }
        let is_needed = has_moved || !servers.iter().all(is_known);
        if is_needed {
            sqlx::query("CALL centile_lanes.follow_moves()").execute(coordinator).await?;
        }
        Ok(is_needed)
    }

    /// Copies periods that a worker lacks to it, at most 500 in each call.
    async fn copy_periods(&self, node: i32) -> Result<()> {
        let copy = sqlx::query("SELECT centile_lanes.copy_periods($1)").bind(node);
        copy.execute(&self.bucket_writer.layout_writers).await?;
        Ok(())
    }
}

fn coordinator_is_silent() -> Error {
    Error::Outage("the coordinator does not answer".to_owned())
}

/// Logs a failure to find lanes or moves.
fn log_lookup_failure(result: Result<()>) {
    match result {
        Ok(()) => {}
        // Another instance follows the same move, or a server is down.
        Err(error) if error.is_temporary() => tracing::debug!(%error, "cannot find the servers of the lanes"),
        Err(error) => tracing::warn!(%error, "cannot find the servers of the lanes"),
    }
}

/// Returns options like `options` for another server.
pub(super) fn options_for(options: &PgConnectOptions, host: &str, port: i32) -> PgConnectOptions {
    options.clone().host(host).port(u16::try_from(port).unwrap_or_default())
}

/// Returns how to connect to each worker.
pub(super) async fn workers(
    coordinator: &mut PgConnection,
    options: &PgConnectOptions,
) -> sqlx::Result<Vec<PgConnectOptions>> {
    let workers: Vec<(String, i32)> = sqlx::query_as(
        "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid > 0 AND noderole = 'primary' AND isactive ORDER BY 1, 2",
    )
    .fetch_all(coordinator)
    .await?;
    Ok(workers.into_iter().map(|(host, port)| options_for(options, &host, port)).collect())
}
