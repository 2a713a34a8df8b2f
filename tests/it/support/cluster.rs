//! Clusters for tests: a coordinator and two workers with Citus.

use centile::{
    dev::local::{LocalCluster, PostgresOptions},
    store::migrate::{init_cluster, migrate_url},
};
use sqlx::{Connection as _, PgConnection, PgPool, postgres::PgConnectOptions};
use tokio::sync::Mutex;

use super::{PATIENT, Serve, folder};

/// Settings of each server.
const SETTINGS: [(&str, &str); 3] = [("full_page_writes", "off"), ("checkpoint_timeout", "1h"), ("autovacuum", "off")];

/// Three players of the lowest lane on the worker with port `$1`, for [`players`].
const PLAYERS: &str = "
    SELECT 'p' || n FROM generate_series(1, 100) n
    WHERE centile.lane_hash('p' || n) % 4 = (SELECT min(l) FROM centile_lanes.groups g CROSS JOIN unnest(g.lanes) AS l
                                            JOIN pg_dist_node d ON d.groupid = g.node WHERE d.nodeport = $1)
    LIMIT 3";

/// Starts the servers.
pub fn start() -> LocalCluster {
    let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let options = PostgresOptions { settings, ..PostgresOptions::ephemeral() };
    LocalCluster::start(&folder("cluster"), 2, &options).unwrap()
}

/// Makes a cluster of a new database. Each board has four lanes in four groups. Returns its address on
/// the coordinator.
pub async fn create_database(cluster: &LocalCluster, name: &str) -> String {
    // Roles belong to the whole server: two databases cannot be migrated at once.
    static ONE: Mutex<()> = Mutex::const_new(());
    let _one = ONE.lock().await;
    let url = cluster.create_database(name).unwrap();
    init_cluster(&url, 4, 4, None).await.unwrap();
    url
}

/// Creates a database of a single server on the coordinator's server. Returns its address.
pub async fn create_single(cluster: &LocalCluster) -> String {
    let mut server = PgConnection::connect(&cluster.coordinator.url("postgres")).await.unwrap();
    sqlx::raw_sql("CREATE DATABASE single").execute(&mut server).await.unwrap();
    let url = cluster.coordinator.url("single");
    migrate_url(&url).await.unwrap();
    url
}

/// Starts an instance.
pub async fn serve(url: &str, name: &'static str) -> Serve {
    let (url, flags) = (url.to_owned(), PATIENT.map(ToOwned::to_owned));
    tokio::task::spawn_blocking(move || Serve::spawn(&url, None, name, &flags)).await.expect("an instance")
}

/// Returns connections to the workers of the cluster whose coordinator is at `url`. They may create
/// objects there.
pub async fn workers(url: &str) -> Vec<PgPool> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let ports = "SELECT nodeport FROM pg_dist_node WHERE groupid > 0 ORDER BY nodeport";
    let ports: Vec<i32> = sqlx::query_scalar(ports).fetch_all(&mut connection).await.unwrap();
    ports.into_iter().map(|port| worker(url, port.try_into().unwrap())).collect()
}

/// Returns connections to the worker with this port.
pub fn worker(url: &str, port: u16) -> PgPool {
    let coordinator: PgConnectOptions = url.parse().unwrap();
    PgPool::connect_lazy_with(coordinator.options([("citus.enable_ddl_propagation", "off")]).port(port))
}

/// Returns the names of three players whose lane is on the worker with this port, all in one lane.
/// `pool` is connected to the coordinator of a cluster with four lanes.
pub async fn players(pool: &PgPool, port: u16) -> Vec<String> {
    sqlx::query_scalar(PLAYERS).bind(i32::from(port)).fetch_all(pool).await.unwrap()
}
