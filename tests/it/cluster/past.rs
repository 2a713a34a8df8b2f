//! A cluster with copies of a board of the past.

use std::sync::atomic::{AtomicUsize, Ordering};

use centile::{dev::local::LocalCluster, store::migrate::init_cluster};
use sqlx::PgPool;

use crate::{
    periods::killed_close::{PAST, digests},
    support::{TESTING, cluster, run_at},
};

/// A cluster, and a single server with a board of the past.
pub struct Past {
    pub cluster: LocalCluster,
    /// Address of the single server.
    single: String,
    /// Digests of the archives that the single server creates.
    pub wanted: Vec<String>,
    /// Number of copies.
    copies: AtomicUsize,
}

impl Past {
    pub async fn new() -> Self {
        let cluster = cluster::start();
        let single = cluster::create_single(&cluster).await;
        let pool = PgPool::connect(&single).await.unwrap();
        for statements in [TESTING, PAST] {
            sqlx::raw_sql(statements).execute(&pool).await.unwrap();
        }
        pool.close().await;
        let admin = PgPool::connect(&cluster.coordinator.url("postgres")).await.unwrap();
        sqlx::raw_sql("CREATE DATABASE closed TEMPLATE single").execute(&admin).await.unwrap();
        let closed = cluster.coordinator.url("closed");
        run_at(&closed, &["close", "--due"]).well();
        let wanted = digests(&PgPool::connect(&closed).await.unwrap()).await;
        Self { cluster, single, wanted, copies: AtomicUsize::new(0) }
    }

    /// Copies the single server's database into the cluster. Returns the address of the copy.
    pub async fn copy(&self) -> String {
        let name = format!("copy_{}", self.copies.fetch_add(1, Ordering::Relaxed));
        let url = self.cluster.create_database(&name).unwrap();
        init_cluster(&url, 4, 4, Some(&self.single)).await.unwrap();
        url
    }
}
