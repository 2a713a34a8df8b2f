//! Clusters for tests: a coordinator and two workers with Citus.

use centile::{
    dev::local::{LocalCluster, PostgresOptions},
    store::migrate::{init_cluster, migrate_url},
};
use sqlx::{Connection as _, PgConnection};
use tokio::sync::Mutex;

use super::{PATIENT, Serve, folder};

/// Settings of each server.
const SETTINGS: [(&str, &str); 4] = [
    // Completes transactions that a crash has left prepared.
    ("citus.recover_2pc_interval", "500ms"),
    ("full_page_writes", "off"),
    ("checkpoint_timeout", "1h"),
    ("autovacuum", "off"),
];

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
