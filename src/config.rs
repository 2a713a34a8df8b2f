//! Settings. Each one is a flag and an environment variable; the flag takes precedence.

use std::{net::SocketAddr, num::NonZero, path::PathBuf, str::FromStr, sync::Arc, thread, time::Duration};

use chrono::{DateTime, Utc};
use clap::{
    Args, ValueEnum,
    builder::{FalseyValueParser, NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser},
};
use strum::VariantNames;
use tracing_subscriber::EnvFilter;

use crate::{
    Error, Result,
    http::{self, Certificate, LogRequests, Origin, Rate, TrustedProxy},
    model::{
        board::{BoardSlug, Reading},
        encryption::MasterKeys,
        hidden::Hidden,
        settings,
    },
    ranking::memory_limit,
};

/// `--help` heading for the settings that every command accepts.
const GLOBAL_HEADING: &str = "Global options";

/// Connections per pool in a one-shot command.
const COMMAND_CONNECTIONS: u32 = 2;

/// Statement timeout in a one-shot command. Long-running maintenance statements have none.
const COMMAND_STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// The settings that every command accepts.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = GLOBAL_HEADING)]
pub struct Config {
    /// PostgreSQL URL, `postgres://USER:PASSWORD@HOST:PORT/DATABASE`
    #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true, global = true)]
    database_url: Option<Hidden>,

    /// Redis URL, `redis://HOST:PORT`, or `rediss://HOST:PORT` for TLS
    ///
    /// Without Redis, each instance caches in its own memory.
    #[arg(long, env = "REDIS_URL", value_name = "URL", hide_env_values = true, global = true)]
    redis_url: Option<Hidden>,

    /// PEM file of trusted certificate authorities for Redis over TLS [default: the system's]
    #[arg(long, env = "REDIS_CA", value_name = "FILE", global = true)]
    redis_ca: Option<PathBuf>,

    /// Prefix of all keys in Redis
    ///
    /// Give each installation its own prefix if several share one Redis.
    #[arg(long, env = "REDIS_PREFIX", value_name = "PREFIX", default_value = "centile", global = true)]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    redis_prefix: String,

    // Parsed in `master_keys`: clap would repeat an invalid value in its error.
    /// Comma-separated master keys, each 32 random bytes in base64
    ///
    /// They encrypt the secrets of webhooks in the database. The first key
    /// encrypts; every key decrypts. Prefer the environment variable: flags are visible in the
    /// process list.
    #[arg(long, env = "CENTILE_MASTER_KEY", value_name = "KEYS", hide_env_values = true, global = true)]
    master_key: Option<Hidden>,

    /// Log level, or levels by module, such as `info,centile::http=debug`
    ///
    /// Defaults to `info` for `serve` and `demo`, and to `warn` for other commands.
    #[arg(long, env = "CENTILE_LOG", value_name = "FILTER", value_parser = log_filter, global = true)]
    log: Option<String>,

    /// Format of log lines
    #[arg(long, env = "CENTILE_LOG_FORMAT", value_name = "FORMAT", default_value = "text", global = true)]
    pub log_format: LogFormat,
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Plain text
    Text,
    /// One JSON object per line
    Json,
}

/// Validates a log filter but keeps its text, because [`EnvFilter`] cannot be cloned.
fn log_filter(text: &str) -> Result<String, String> {
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl Config {
    /// Returns the URL of the database.
    ///
    /// [`Error::Invalid`] without a database URL.
    pub fn database_url(&self) -> Result<&str> {
        non_empty(self.database_url.as_ref()).ok_or_else(|| {
            Error::invalid(
                "database_url",
                "is missing: give postgres://USER:PASSWORD@HOST/DATABASE, or set DATABASE_URL",
            )
        })
    }

    /// Returns the URL of Redis, if one is configured.
    pub fn redis_url(&self) -> Option<&str> {
        non_empty(self.redis_url.as_ref())
    }

    /// Returns the file of certificate authorities for Redis, if one is configured.
    pub fn redis_ca(&self) -> Option<PathBuf> {
        self.redis_ca.clone().filter(|file| !file.as_os_str().is_empty())
    }

    /// Returns the master keys, if any.
    ///
    /// [`Error::Invalid`] for a malformed or example key. The error does not contain the key.
    fn master_keys(&self) -> Result<Option<Arc<MasterKeys>>> {
        non_empty(self.master_key.as_ref()).map(|text| text.parse().map(Arc::new)).transpose()
    }

    /// Returns the configured log filter, or `default`.
    pub fn log_filter(&self, default: &str) -> EnvFilter {
        let filter = EnvFilter::new(self.log.as_deref().filter(|filter| !filter.is_empty()).unwrap_or(default));
        // sqlx logs unknown URL parameters with their values, so a mistyped `password=` would be
        // logged. actix logs an error for each client that does not send HTTP. A filter that names
        // one of its modules (`actix_http::h1=debug`) still shows that module's lines.
        let silences = ["sqlx_postgres::options=off", "actix_http=off"];
        silences.into_iter().filter_map(|silence| silence.parse().ok()).fold(filter, EnvFilter::add_directive)
    }

    /// Returns the settings of a one-shot command: few connections, no background tasks.
    pub fn for_command(&self) -> Result<settings::Settings> {
        Ok(settings::Settings {
            database_url: self.database_url()?.into(),
            replica: None,
            redis_url: self.redis_url().map(Hidden::from),
            redis_ca: self.redis_ca(),
            redis_prefix: self.redis_prefix.clone(),
            read_connections: COMMAND_CONNECTIONS,
            write_connections: COMMAND_CONNECTIONS,
            statement_timeout: COMMAND_STATEMENT_TIMEOUT,
            pool_wait: settings::Settings::DEFAULT_POOL_WAIT,
            write_wait: settings::Settings::DEFAULT_WRITE_WAIT,
            index_memory: 0,
            master_keys: self.master_keys()?,
            maintenance_every: None,
        })
    }

    /// Returns the settings of an instance that serves HTTP.
    pub fn for_serving(&self, flags: &InstanceFlags) -> Result<settings::Settings> {
        let (database_url, redis_url) = (self.database_url()?.to_owned(), self.redis_url().map(ToOwned::to_owned));
        Ok(settings::Settings {
            redis_ca: self.redis_ca(),
            master_keys: self.master_keys()?,
            ..flags.settings(database_url, redis_url, &self.redis_prefix)
        })
    }
}

/// The settings of an instance that serves HTTP.
#[derive(Debug, Clone, Args)]
pub struct InstanceFlags {
    /// Address and port to listen on; port 0 picks a free port
    #[arg(long, env = "CENTILE_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// Number of HTTP worker threads [default: number of cores]
    #[arg(long, env = "CENTILE_WORKERS", value_name = "N")]
    workers: Option<NonZero<u16>>,

    /// Board that `/v1/scores` reads and writes
    #[arg(long, env = "CENTILE_DEFAULT_BOARD", value_name = "SLUG", default_value = "main", value_parser = value::<BoardSlug>)]
    default_board: BoardSlug,

    /// Maximum size of a request body, in bytes
    #[arg(long, env = "CENTILE_BODY_LIMIT", value_name = "BYTES", default_value_t = http::Settings::DEFAULT_BODY_LIMIT_BYTES)]
    body_limit: usize,

    /// Maximum total size of request bodies in memory, in bytes
    ///
    /// A further quarter of it is reserved for bodies of requests that need no key. A request
    /// beyond the limit receives 503.
    #[arg(long, env = "CENTILE_BODIES_LIMIT", value_name = "BYTES", default_value_t = http::Settings::DEFAULT_BODIES_LIMIT_BYTES)]
    bodies_limit: usize,

    /// Maximum number of client connections
    ///
    /// Further connections wait until one closes.
    #[arg(long, env = "CENTILE_CONNECTIONS", value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,

    /// Maximum number of subscribers to live updates
    ///
    /// A subscription beyond the limit receives 503.
    #[arg(long, env = "CENTILE_SUBSCRIBERS", value_name = "N", default_value_t = http::Settings::DEFAULT_SUBSCRIBERS)]
    subscribers: usize,

    /// Maximum number of subscribers to live updates per address; 0 for no limit
    ///
    /// IPv6 addresses count by /64 network. A subscription beyond the limit receives 429.
    #[arg(long, env = "CENTILE_ADDRESS_SUBSCRIBERS", value_name = "N", default_value_t = 1_000)]
    address_subscribers: usize,

    /// Seconds of silence before a live stream sends a heartbeat
    ///
    /// Heartbeats keep proxies from closing idle connections.
    #[arg(long, env = "CENTILE_HEARTBEAT", value_name = "SECONDS", default_value_t = 15)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=300))]
    heartbeat: u32,

    /// Accept http avatar URLs in addition to https
    #[arg(long, env = "CENTILE_ALLOW_HTTP_AVATARS", value_parser = FalseyValueParser::new())]
    allow_http_avatars: bool,

    /// Readers of the profiles without a `reading` of their own; `key` requires any key
    #[arg(long, env = "CENTILE_PROFILES", value_name = "READERS", default_value = "public", value_parser = named::<Reading>())]
    profiles: Reading,

    /// Comma-separated members of the players' metadata that everyone may read, such as `clan,title`
    ///
    /// Responses show them with `profile=true`, up to 1,024 bytes per player; earlier names take
    /// precedence.
    #[arg(long, env = "CENTILE_PUBLIC_PROFILE", value_name = "MEMBER,…", value_delimiter = ',', value_parser = member)]
    public_profile: Vec<String>,

    /// Timeout for slow clients, in seconds
    ///
    /// Applies separately to receiving a request's head, to receiving its body, and to sending each
    /// 32 KiB of the response.
    #[arg(long, env = "CENTILE_CLIENT_TIMEOUT", value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3_600))]
    client_timeout: u32,

    /// Maximum requests per second per key; 0 for no limit
    #[arg(long, env = "CENTILE_KEY_RATE", value_name = "N", default_value_t = 1_000)]
    key_rate: u32,

    /// Maximum burst of requests per key
    #[arg(long, env = "CENTILE_KEY_BURST", value_name = "N", default_value = "2000")]
    key_burst: NonZero<u32>,

    /// Maximum new boards of templates per minute per key; 0 for no limit
    #[arg(long, env = "CENTILE_KEY_BOARDS", value_name = "N", default_value_t = 6_000)]
    key_boards: u32,

    /// Maximum requests per second per address, without a key; 0 for no limit
    ///
    /// IPv6 addresses count by /64 network.
    #[arg(long, env = "CENTILE_ADDRESS_RATE", value_name = "N", default_value_t = 200)]
    address_rate: u32,

    /// Maximum burst of requests per address, without a key
    #[arg(long, env = "CENTILE_ADDRESS_BURST", value_name = "N", default_value = "1000")]
    address_burst: NonZero<u32>,

    /// Comma-separated networks of trusted proxies
    ///
    /// The instance takes client addresses from the X-Forwarded-For header of these proxies only.
    #[arg(long, env = "CENTILE_TRUSTED_PROXIES", value_name = "NETWORK,…", value_delimiter = ',', value_parser = value::<TrustedProxy>)]
    trusted_proxies: Vec<TrustedProxy>,

    /// Comma-separated origins allowed by CORS, such as `https://game.example`; `*` for all
    ///
    /// Pages of these origins may read responses in a browser. By default no origin may.
    #[arg(long, env = "CENTILE_CORS_ORIGINS", value_name = "ORIGIN,…", value_delimiter = ',', value_parser = value::<Origin>)]
    cors_origins: Vec<Origin>,

    /// Comma-separated origins that may frame boards, such as `https://game.example`; `*` for all
    ///
    /// Pages of these origins may embed `/embed/BOARD` and `<centile-board>`. By default no origin
    /// may.
    #[arg(long, env = "CENTILE_FRAME_ORIGINS", value_name = "ORIGIN,…", value_delimiter = ',', value_parser = value::<Origin>)]
    frame_origins: Vec<Origin>,

    /// Comma-separated origins from which pages load avatars, such as `https://cdn.example`; `*` for
    /// all
    ///
    /// Readers' browsers send requests to these origins. By default pages show initials.
    #[arg(long, env = "CENTILE_AVATAR_ORIGINS", value_name = "ORIGIN,…", value_delimiter = ',', value_parser = value::<Origin>)]
    avatar_origins: Vec<Origin>,

    /// Maximum number of PostgreSQL connections for reads
    #[arg(long, env = "CENTILE_READ_CONNECTIONS", value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    read_connections: u32,

    /// PostgreSQL URL of a streaming replica that answers reads of rankings
    ///
    /// Writes, closings and audits use the primary at `DATABASE_URL`.
    #[arg(long, env = "CENTILE_READ_URL", value_name = "URL", hide_env_values = true)]
    read_url: Option<Hidden>,

    /// Lag of the replica in seconds, beyond which the primary answers reads
    #[arg(long, env = "CENTILE_READ_MAX_LAG", value_name = "SECONDS", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3_600))]
    read_max_lag: u32,

    /// Maximum number of PostgreSQL connections for writes
    ///
    /// A quarter, at least one, is reserved for writes other than scores. Each of the rest writes one
    /// batch of scores at a time.
    #[arg(long, env = "CENTILE_WRITE_CONNECTIONS", value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    write_connections: u32,

    /// Statement timeout, in seconds
    ///
    /// If PostgreSQL has not answered 2 s after the timeout, the instance drops the connection.
    #[arg(long, env = "CENTILE_STATEMENT_TIMEOUT", value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3_600))]
    statement_timeout: u32,

    /// Timeout for a PostgreSQL connection, in milliseconds
    ///
    /// Also limits the wait for the rank index and for a shared read. A request that times
    /// out receives 503.
    #[arg(long, env = "CENTILE_POOL_WAIT", value_name = "MILLISECONDS", default_value_t = 2_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pool_wait: u32,

    /// Memory for rank indexes and player names, in MiB; 0 disables rank indexes
    ///
    /// Defaults to a quarter of the memory available to the process. SQL answers reads of rankings
    /// that do not fit.
    #[arg(long, env = "CENTILE_INDEX_MEMORY", value_name = "MIB")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=16_777_216))]
    index_memory: Option<u64>,

    /// Comma-separated boards whose rankings are loaded at startup
    ///
    /// Other rankings are loaded when they are first read.
    #[arg(long, env = "CENTILE_INDEX_BOARDS", value_name = "BOARD,…", value_delimiter = ',', value_parser = value::<BoardSlug>)]
    pub index_boards: Vec<BoardSlug>,

    /// Report not ready at `/readyz` until rank indexes have loaded at startup
    ///
    /// Refused and failed loads count as finished. Requires `--index-boards`.
    #[arg(long, env = "CENTILE_READY_WHEN_INDEXED", requires = "index_boards", value_parser = FalseyValueParser::new())]
    pub ready_when_indexed: bool,

    /// Maximum expected queueing time of a score, in milliseconds
    ///
    /// While the expected wait is longer, score submissions receive 503 with Retry-After.
    #[arg(long, env = "CENTILE_WRITE_WAIT", value_name = "MILLISECONDS", default_value_t = 400)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=60_000))]
    write_wait: u32,

    /// Requests to log
    ///
    /// `errors`: those with a status of 400 or above. `slow`: these, and those that take 100 ms or
    /// longer.
    #[arg(long, env = "CENTILE_LOG_REQUESTS", value_name = "REQUESTS", default_value = "all", value_parser = named::<LogRequests>())]
    log_requests: LogRequests,

    /// Seconds between checks for periods to close
    #[arg(long, env = "CENTILE_MAINTENANCE_EVERY", value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86_400))]
    maintenance_every: u32,

    /// Seconds to keep serving after a stop signal
    ///
    /// Meanwhile `/readyz` reports not ready. Set this to the time your load balancer needs to
    /// notice.
    #[arg(long, env = "CENTILE_DRAIN", value_name = "SECONDS", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=600))]
    drain: u32,

    /// Timeout for in-flight requests at shutdown, in seconds
    ///
    /// Starts when the instance stops accepting connections, after `--drain`.
    #[arg(long, env = "CENTILE_STOP_WITHIN", value_name = "SECONDS", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=600))]
    stop_within: u32,

    /// Disable background maintenance
    ///
    /// Other instances or cron must then close periods, create ledger months, delete expired ids
    /// and so on.
    #[arg(long, env = "CENTILE_NO_MAINTENANCE", value_parser = FalseyValueParser::new())]
    no_maintenance: bool,
}

/// Parses the name of a member of the players' metadata.
fn member(text: &str) -> Result<String, String> {
    let name = text.trim();
    if name.is_empty() { Err("must not be empty".to_owned()) } else { Ok(name.to_owned()) }
}

impl InstanceFlags {
    /// Returns the settings of the HTTP layer, without TLS.
    pub fn http(&self) -> http::Settings {
        let cores = || thread::available_parallelism().map_or(1, NonZero::get);
        http::Settings {
            workers: self.workers.map_or_else(cores, |workers| workers.get().into()),
            body_limit_bytes: self.body_limit,
            // A body of the maximum size must fit.
            bodies_limit_bytes: self.bodies_limit.max(self.body_limit),
            default_board: self.default_board.clone(),
            stop_within: Duration::from_secs(self.stop_within.into()),
            connections: self.connections as usize,
            subscribers: self.subscribers,
            address_subscribers: NonZero::new(self.address_subscribers),
            heartbeat: Duration::from_secs(self.heartbeat.into()),
            allows_http_avatars: self.allow_http_avatars,
            profiles: self.profiles,
            public_profile: self.public_profile.clone(),
            client_timeout: Duration::from_secs(self.client_timeout.into()),
            key_rate: Rate::new(self.key_rate, self.key_burst),
            key_boards: NonZero::new(self.key_boards),
            address_rate: Rate::new(self.address_rate, self.address_burst),
            trusted_proxies: self.trusted_proxies.clone(),
            cors_origins: self.cors_origins.clone(),
            frame_origins: self.frame_origins.clone(),
            avatar_origins: self.avatar_origins.clone(),
            log_requests: self.log_requests,
            certificate: None,
        }
    }

    /// Returns how long to keep serving after a stop signal.
    pub fn drain(&self) -> Duration {
        Duration::from_secs(self.drain.into())
    }

    /// Returns the settings of an instance on the given servers, without a Redis CA or
    /// master key.
    pub fn settings(&self, database_url: String, redis_url: Option<String>, redis_prefix: &str) -> settings::Settings {
        settings::Settings {
            database_url: database_url.into(),
            replica: non_empty(self.read_url.as_ref()).map(|url| settings::ReplicaSettings {
                url: url.into(),
                max_lag: Duration::from_secs(self.read_max_lag.into()),
            }),
            redis_url: redis_url.map(Hidden::from),
            redis_ca: None,
            redis_prefix: redis_prefix.to_owned(),
            read_connections: self.read_connections,
            write_connections: self.write_connections,
            statement_timeout: Duration::from_secs(self.statement_timeout.into()),
            pool_wait: Duration::from_millis(self.pool_wait.into()),
            write_wait: Duration::from_millis(self.write_wait.into()),
            index_memory: self.index_memory.map_or_else(memory_limit::default_bytes, |mebibytes| mebibytes << 20),
            master_keys: None,
            maintenance_every: (!self.no_maintenance).then(|| Duration::from_secs(self.maintenance_every.into())),
        }
    }
}

/// The settings of `centile serve`.
#[derive(Debug, Clone, Args)]
pub struct Serve {
    /// Settings shared with the demo.
    #[command(flatten)]
    pub instance: InstanceFlags,

    /// PEM file of the TLS certificate, followed by its intermediate certificates
    ///
    /// Without a certificate, the instance serves plain HTTP. The file is read again every 2
    /// seconds, so that a renewed certificate takes effect without a restart.
    #[arg(long, env = "CENTILE_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<PathBuf>,

    /// PEM file of the certificate's private key, not encrypted
    #[arg(long, env = "CENTILE_TLS_KEY", value_name = "FILE")]
    tls_key: Option<PathBuf>,
}

impl Serve {
    /// Returns the settings of the HTTP layer.
    ///
    /// [`Error::Invalid`] for an unusable certificate or private key.
    pub fn http(&self) -> Result<http::Settings> {
        let file = |setting: &Option<PathBuf>| setting.clone().filter(|file| !file.as_os_str().is_empty());
        let certificate = match (file(&self.tls_cert), file(&self.tls_key)) {
            (Some(chain), Some(key)) => Some(Arc::new(Certificate::read(chain, key)?)),
            (None, None) => None,
            (Some(_), None) => {
                return Err(Error::invalid("tls_key", "is missing: the certificate needs its private key"));
            }
            (None, Some(_)) => {
                return Err(Error::invalid("tls_cert", "is missing: the private key needs its certificate"));
            }
        };
        Ok(http::Settings { certificate, ..self.instance.http() })
    }
}

/// The settings of `centile demo`.
#[derive(Debug, Clone, Args)]
pub struct Demo {
    /// Data folder; the next start reuses its data
    #[arg(long, env = "CENTILE_DEMO_DIR", value_name = "FOLDER", default_value = ".centile/demo")]
    pub dir: PathBuf,

    /// Simulated games per second after startup; 0 for none
    #[arg(long, env = "CENTILE_GAMES_PER_SECOND", value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub games_per_second: u32,

    /// Random seed, for reproducible games [default: random]
    #[arg(long, env = "CENTILE_DEMO_SEED", value_name = "N")]
    pub seed: Option<u64>,

    /// Settings of its instance.
    #[command(flatten)]
    pub instance: InstanceFlags,
}

/// Returns the text of a setting. Some tools leave a variable out by setting it to an empty string.
fn non_empty(setting: Option<&Hidden>) -> Option<&str> {
    setting.map(Hidden::as_str).filter(|text| !text.is_empty())
}

/// Parses a domain value for clap, which adds the name of the flag to the error.
pub fn value<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(Error::without_field)
}

/// Parses a time for clap.
///
/// # Errors
/// A message with an example if the text is not a time with its offset (RFC 3339).
pub fn time(text: &str) -> Result<DateTime<Utc>, String> {
    let time = DateTime::parse_from_rfc3339(text);
    time.map(|time| time.to_utc())
        .map_err(|_| "must be a time with its offset, such as 2030-01-31T12:00:00Z".to_owned())
}

/// Parses one of the names of `T` for clap, whose help lists them.
pub fn named<T>() -> impl TypedValueParser<Value = T>
where
    T: VariantNames + FromStr<Err = strum::ParseError> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(T::VARIANTS).try_map(|name| name.parse())
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use clap::FromArgMatches as _;
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::instance::Instance;

    #[tokio::test]
    async fn debug_output_contains_no_secret() -> Result<()> {
        let master_key = BASE64_STANDARD.encode(Sha256::digest("a master key"));
        let matches = Config::augment_args(clap::Command::new("centile")).get_matches_from([
            "centile",
            "--database-url=postgres://u:hunter2@127.0.0.1:1/d",
            "--redis-url=redis://:hunter2@127.0.0.1:1",
            &format!("--master-key={master_key}"),
        ]);
        let config = Config::from_arg_matches(&matches).map_err(|error| Error::Internal(error.to_string()))?;
        let settings = config.for_command()?;
        let instance = Instance::connect(&settings).await?;
        let shown = format!("{config:?} {settings:?} {instance:?}");
        assert!(shown.contains("Store") && !shown.contains("hunter2") && !shown.contains(&master_key), "{shown}");
        Ok(())
    }
}
