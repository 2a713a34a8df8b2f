//! Databases for tests.

use std::{env, fs, io, path::Path, process::Command, thread};

use centile::{
    dev::local::{LocalCluster, LocalPostgres, LocalRedis, PostgresOptions},
    store::migrate::migrate_url,
};
use deadpool_redis::redis::{AsyncConnectionConfig, Client, aio::MultiplexedConnection};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool, postgres::PgPoolOptions};
use tokio::{sync::OnceCell, task::JoinHandle};

use super::{cluster, folder, folder_on_disk, next_number, wait::until};

/// The migrated database from which tests get their copies.
const TEMPLATE: &str = "centile_template";

/// Functions that write scores from SQL.
pub const TESTING: &str = include_str!("testing.sql");

/// Settings of the shared PostgreSQL. No test kills or restores it, so it writes only what queries
/// need.
const SHARED_SETTINGS: [(&str, &str); 7] = [
    ("full_page_writes", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("wal_compression", "off"),
    ("checkpoint_timeout", "1h"),
    ("max_wal_size", "512MB"),
    ("autovacuum", "off"),
];

/// The servers that the tests of this process share.
struct Servers {
    postgres: Postgres,
    redis: LocalRedis,
}

/// The PostgreSQL that tests share.
enum Postgres {
    /// One server. Databases are copies of a migrated one.
    Single(LocalPostgres),
    /// A cluster, if `CENTILE_TEST_CLUSTER` is set.
    Cluster(LocalCluster),
}

impl Postgres {
    /// Returns the server that clients connect to.
    fn server(&self) -> &LocalPostgres {
        match self {
            Self::Single(server) => server,
            Self::Cluster(cluster) => &cluster.coordinator,
        }
    }
}

/// Returns whether the databases of tests are clusters.
pub fn is_cluster() -> bool {
    env::var_os("CENTILE_TEST_CLUSTER").is_some()
}

/// Starts the servers at first use. A static is never dropped; the servers' watchdogs stop them
/// when the process ends.
async fn servers() -> &'static Servers {
    static SERVERS: OnceCell<Servers> = OnceCell::const_new();
    SERVERS
        .get_or_init(|| async {
            let redis = LocalRedis::start(&folder("redis")).unwrap();
            if is_cluster() {
                return Servers { postgres: Postgres::Cluster(cluster::start()), redis };
            }
            let settings = SHARED_SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
            let options = PostgresOptions { settings, ..PostgresOptions::ephemeral() };
            let postgres = LocalPostgres::start(&folder("postgres"), options).unwrap();
            execute(&postgres.url("postgres"), format!("CREATE DATABASE {TEMPLATE}")).await.unwrap();
            migrate_url(&postgres.url(TEMPLATE)).await.unwrap();
            execute(&postgres.url(TEMPLATE), TESTING.to_owned()).await.unwrap();
            Servers { postgres: Postgres::Single(postgres), redis }
        })
        .await
}

/// Returns a connection to the Redis at `url` without timeouts; the client's default is half a
/// second.
pub async fn redis_connection(url: &str) -> MultiplexedConnection {
    let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    let client = Client::open(url).expect("a client");
    client.get_multiplexed_async_connection_with_config(&config).await.expect("a connection")
}

/// Returns the address of the shared Redis. Use it with your own prefix ([`TestDb::redis_prefix`]),
/// and never FLUSHALL it.
pub async fn redis_url() -> String {
    servers().await.redis.url()
}

/// Starts a migrated PostgreSQL (database `postgres`) for one test, which may stop and kill it.
/// With `fsync`, its data are on disk.
pub async fn own_postgres(options: PostgresOptions) -> LocalPostgres {
    let folder = if options.fsync { folder_on_disk("own-postgres") } else { folder("own-postgres") };
    let original = migrated_data().await;
    fs::create_dir_all(&folder).unwrap();
    let copied =
        Command::new("cp").arg("-a").args(["data", "password"].map(|name| original.join(name))).arg(&folder).status();
    assert!(copied.unwrap().success(), "cp of the data folder");
    let server = LocalPostgres::start(&folder, options).unwrap();
    // Has an effect only if PostgreSQL's account cannot reach the folder, so that its data are
    // elsewhere.
    migrate_url(&server.url("postgres")).await.unwrap();
    server
}

/// Returns the folder of a stopped, migrated PostgreSQL. Copying it takes a tenth of the time of
/// creating another.
async fn migrated_data() -> &'static Path {
    // Kept until the process ends, because its watchdog then removes the folder.
    static ORIGINAL: OnceCell<LocalPostgres> = OnceCell::const_new();
    let make = async || {
        let mut server = LocalPostgres::start(&folder("migrated"), PostgresOptions::ephemeral()).unwrap();
        migrate_url(&server.url("postgres")).await.unwrap();
        execute(&server.url("postgres"), TESTING.to_owned()).await.unwrap();
        server.shut_down().unwrap();
        server
    };
    ORIGINAL.get_or_init(make).await.home()
}

/// Starts a Redis for one test, which may pause, kill and empty it.
pub fn own_redis() -> LocalRedis {
    LocalRedis::start(&folder("own-redis")).unwrap()
}

/// The database of one test; dropped with this value.
#[derive(Debug)]
pub struct TestDb {
    name: String,
    url: String,
    admin_url: String,
    pg_dump: std::path::PathBuf,
}

impl TestDb {
    /// Creates a migrated database.
    pub async fn new() -> Self {
        Self::create(TEMPLATE).await
    }

    /// Creates an empty database.
    pub async fn empty() -> Self {
        Self::create("template0").await
    }

    /// Copies a database that has no sessions.
    pub async fn copy(&self) -> Self {
        Self::create(&self.name).await
    }

    async fn create(template: &str) -> Self {
        let name = format!("test_{}", next_number());
        let postgres = &servers().await.postgres;
        let server = postgres.server();
        let admin_url = server.url("postgres");
        match postgres {
            Postgres::Cluster(servers) if template == TEMPLATE => {
                let url = cluster::create_database(servers, &name).await;
                execute(&url, TESTING.to_owned()).await.unwrap();
            }
            _ => {
                let create = format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy");
                execute(&admin_url, create).await.unwrap();
            }
        }
        Self { url: server.url(&name), name, admin_url, pg_dump: server.program("pg_dump") }
    }

    /// Exchanges the contents of two databases like a restore: each address leads to the other's
    /// data. All sessions end.
    pub async fn exchange(&self, other: &Self) {
        let (one, two) = (&self.name, &other.name);
        let statements = [
            format!("ALTER DATABASE {one} ALLOW_CONNECTIONS false"),
            format!("ALTER DATABASE {two} ALLOW_CONNECTIONS false"),
            format!(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname IN ('{one}', '{two}')"
            ),
            format!("ALTER DATABASE {one} RENAME TO {one}_away"),
            format!("ALTER DATABASE {two} RENAME TO {one}"),
            format!("ALTER DATABASE {one}_away RENAME TO {two}"),
            format!("ALTER DATABASE {one} ALLOW_CONNECTIONS true"),
            format!("ALTER DATABASE {two} ALLOW_CONNECTIONS true"),
        ];
        for statement in statements {
            execute(&self.admin_url, statement).await.unwrap();
        }
    }

    /// Returns its address for a superuser.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the port of its server on loopback.
    pub fn port(&self) -> u16 {
        let (_, place) = self.url.split_once('@').unwrap();
        let (host, _) = place.split_once('/').unwrap();
        host.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// Creates a login with these attributes. Returns its name, and its address of the database.
    pub async fn login(&self, attributes: &str) -> (String, String) {
        let name = format!("login_{}", next_number());
        self.execute(&format!("CREATE ROLE {name} LOGIN PASSWORD 'secret' {attributes}")).await;
        let (_, place) = self.url.split_once('@').unwrap();
        let url = format!("postgres://{name}:secret@{place}");
        (name, url)
    }

    /// Returns the prefix of this test's keys in the shared Redis.
    pub fn redis_prefix(&self) -> String {
        format!("{}-{}:", self.name, std::process::id())
    }

    /// Returns a pool of a few connections.
    pub async fn pool(&self) -> PgPool {
        PgPoolOptions::new().max_connections(5).connect(&self.url).await.unwrap()
    }

    /// Runs statements without parameters.
    pub async fn execute(&self, statements: &str) {
        execute(&self.url, statements.to_owned()).await.unwrap();
    }

    /// Returns a session that has run these statements and stays idle. Its locks are held until it
    /// is dropped or continues.
    pub async fn hold(&self, statements: &str) -> PgConnection {
        let mut session = PgConnection::connect(&self.url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("BEGIN; {statements}"))).execute(&mut session).await.unwrap();
        session
    }

    /// Runs these statements in a new session in the background.
    pub fn spawn(&self, statements: &str) -> JoinHandle<sqlx::Result<()>> {
        let (url, statements) = (self.url.clone(), statements.to_owned());
        tokio::spawn(async move { execute(&url, statements).await })
    }

    /// Waits until this many sessions wait for a lock, or `ended` returns true.
    pub async fn until_waiting(&self, sessions: i64, ended: impl Fn() -> bool) {
        let mut asking = PgConnection::connect(&self.url).await.unwrap();
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        until(&format!("{sessions} sessions wait for a lock"), async || {
            ended() || sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut asking).await.unwrap() >= sessions
        })
        .await;
    }

    /// Returns the major version of its server.
    pub async fn server_version(&self) -> i32 {
        let mut connection = PgConnection::connect(&self.url).await.unwrap();
        let version = "SELECT current_setting('server_version_num')::int / 10000";
        sqlx::query_scalar(version).fetch_one(&mut connection).await.unwrap()
    }

    /// Returns the data as `pg_dump` writes them.
    pub fn data_dump(&self) -> String {
        self.pg_dump(&["--data-only"])
    }

    /// Returns the schema as `pg_dump` writes it.
    pub fn dump(&self) -> String {
        let text = self.pg_dump(&["--schema-only", "--exclude-schema=testing"]);
        // Newer versions put a random word in these two lines.
        text.lines()
            .filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Returns the output of `pg_dump` with these arguments.
    pub fn pg_dump(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.pg_dump).args(arguments).arg(&self.url).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        let (url, statement) = (self.admin_url.clone(), format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        // A database that remains is removed with the server.
        execute_blocking(url, statement).ok();
    }
}

/// Creates a key for these boards, or for all boards, and returns its text. SQL takes a tenth of the
/// time of `centile key create`. Each key has a new name, because a name can have two active keys
/// at most.
pub fn make_key(url: &str, role: &str, boards: &[&str]) -> String {
    let (id, secret) =
        (format!("{:016x}", rand::random::<u64>()), format!("{:032x}", rand::random::<u128>()).repeat(2));
    let statement = format!(
        "SELECT centile.create_key('{id}', 'test {}', '{role}', '{{{}}}', NULL, sha256('{secret}'))",
        next_number(),
        boards.join(",")
    );
    execute_blocking(url.to_owned(), statement).unwrap();
    format!("ctl_{id}_{secret}")
}

/// Runs statements in a new session, on a thread: a runtime cannot block inside another one.
fn execute_blocking(url: String, statements: String) -> io::Result<()> {
    let running = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(execute(&url, statements)).map_err(io::Error::other)
    });
    running.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
}

async fn execute(url: &str, statements: String) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut connection).await?;
    connection.close().await
}
