//! A PostgreSQL with a streaming replica.

use centile::dev::local::{LocalPostgres, PostgresOptions};
use sqlx::PgPool;

use super::{folder, own_postgres, wait::until};

/// A primary and its replica.
pub struct Cluster {
    pub primary: LocalPostgres,
    pub replica: LocalPostgres,
    /// Sessions of each.
    pub on_primary: PgPool,
    pub on_replica: PgPool,
}

impl Cluster {
    /// Starts both, migrated, with what `setup` creates and the login `app` of a service.
    pub async fn start(setup: &str) -> Self {
        let primary = own_postgres(PostgresOptions::ephemeral()).await;
        let on_primary = PgPool::connect(&primary.url("postgres")).await.expect("the primary");
        let setup = format!("CREATE ROLE app LOGIN PASSWORD 'secret' IN ROLE centile_service; {setup}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(setup)).execute(&on_primary).await.expect("the set-up");
        let replica = LocalPostgres::start_replica(&folder("replica"), PostgresOptions::ephemeral(), &primary);
        let replica = replica.expect("a replica");
        let on_replica = PgPool::connect(&replica.url("postgres")).await.expect("the replica");
        let cluster = Self { primary, replica, on_primary, on_replica };
        cluster.until_state("streaming").await;
        cluster
    }

    /// Makes commits wait until the replica has them on its disk.
    pub async fn synchronize(&self) {
        self.on_primary("ALTER SYSTEM SET synchronous_standby_names = 'replica'").await;
        self.on_primary("SELECT pg_reload_conf()").await;
        let is_synchronous = "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')";
        until("replication is synchronous", async || {
            sqlx::query_scalar(is_synchronous).fetch_one(&self.on_primary).await.expect("a state")
        })
        .await;
    }

    /// Ends the replication. The replica keeps its present state.
    pub async fn cut(&self) {
        self.on_replica("ALTER SYSTEM SET primary_conninfo = ''").await;
        self.on_replica("SELECT pg_reload_conf()").await;
        until("the replica has stopped receiving", async || {
            let receivers = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM pg_stat_wal_receiver");
            receivers.fetch_one(&self.on_replica).await.expect("a number") == 0
        })
        .await;
    }

    async fn until_state(&self, state: &str) {
        until("the replica is streaming", async || {
            let states = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM pg_stat_replication WHERE state = $1");
            states.bind(state).fetch_one(&self.on_primary).await.expect("a number") == 1
        })
        .await;
    }

    /// Waits until the replica has replayed all that the primary has written so far.
    pub async fn until_replayed(&self) {
        let written: String =
            sqlx::query_scalar("SELECT pg_current_wal_lsn()::text").fetch_one(&self.on_primary).await.expect("an LSN");
        until("the replica catches up", async || {
            let replayed = sqlx::query_scalar("SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn");
            replayed.bind(&written).fetch_one(&self.on_replica).await.expect("a comparison")
        })
        .await;
    }

    /// Runs a statement on the primary.
    pub async fn on_primary(&self, statement: &'static str) {
        sqlx::query(statement).execute(&self.on_primary).await.expect("a statement on the primary");
    }

    /// Runs a statement on the replica.
    pub async fn on_replica(&self, statement: &'static str) {
        sqlx::query(statement).execute(&self.on_replica).await.expect("a statement on the replica");
    }

    /// Kills the primary and promotes the replica.
    pub async fn fail_over(&mut self) {
        self.primary.kill_hard().expect("a dead primary");
        self.on_replica("SELECT pg_promote()").await;
    }

    /// Returns a URL that names both servers, the primary first.
    pub fn url(&self) -> String {
        let both = format!("127.0.0.1:{},127.0.0.1:{}/", self.primary.port(), self.replica.port());
        let one = format!("127.0.0.1:{}/", self.primary.port());
        format!("{}?target_session_attrs=read-write", self.primary.url("postgres").replace(&one, &both))
    }
}
