//! Settings: each is a flag and an environment variable, with what it is for. The flag wins.

use std::{net::SocketAddr, num::NonZero, path::PathBuf, sync::Arc, thread, time::Duration};

use clap::{
    Args, ValueEnum,
    builder::{FalseyValueParser, NonEmptyStringValueParser},
};
use tracing_subscriber::EnvFilter;

use crate::{
    Error, Result,
    http::{self, Certificate, Origin, Rate, TrustedProxy},
    model::{board::BoardSlug, hidden::Hidden, seal::MasterKeys, settings},
    ranking::memory,
};

/// Under which heading `--help` shows the settings that every command has.
const EVERYWHERE: &str = "Settings of every command";

/// Connections of a command that does one thing and ends.
const COMMAND_CONNECTIONS: u32 = 2;

/// How long one of its statements may run; what takes long by its nature has no limit.
const COMMAND_STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// The settings of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = EVERYWHERE)]
pub struct Config {
    /// Address of the PostgreSQL database, `postgres://USER:PASSWORD@HOST:PORT/DATABASE`
    #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true, global = true)]
    database_url: Option<Hidden>,

    /// Address of the Redis that caches, `redis://HOST:PORT`, or `rediss://` over TLS; without it each instance caches in its own memory
    #[arg(long, env = "REDIS_URL", value_name = "URL", hide_env_values = true, global = true)]
    redis_url: Option<Hidden>,

    /// File with the certificates (PEM) of the authorities that vouch for Redis over TLS; the machine's own unless given
    #[arg(long, env = "REDIS_CA", value_name = "FILE", global = true)]
    redis_ca: Option<PathBuf>,

    /// What all keys in Redis begin with, so that several installations can share one
    #[arg(long, env = "REDIS_PREFIX", value_name = "PREFIX", default_value = "centile", global = true)]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    redis_prefix: String,

    // Read further down: what clap refuses, it repeats.
    /// Master keys that the secrets of signed keys and of webhooks are sealed with: each 32 random bytes in base64, with commas between.
    /// The first one seals, all of them open. Better by the variable, which the list of processes does not show
    #[arg(long, env = "CENTILE_MASTER_KEY", value_name = "KEYS", hide_env_values = true, global = true)]
    master_key: Option<Hidden>,

    /// What is logged: a level, or levels by module such as `info,centile::http=debug`. Unless given, `serve` and
    /// `demo` log from `info` on, other commands from `warn` on
    #[arg(long, env = "CENTILE_LOG", value_name = "FILTER", value_parser = log_filter, global = true)]
    log: Option<String>,

    /// How log lines are written
    #[arg(long, env = "CENTILE_LOG_FORMAT", value_name = "FORMAT", default_value = "text", global = true)]
    pub log_format: LogFormat,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for programs.
    Json,
}

/// Checks a log filter, which is made from the text again where it is used: it cannot be cloned.
fn log_filter(text: &str) -> Result<String, String> {
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl Config {
    /// The address of the database. [`Error::Invalid`] when none was given.
    pub fn database_url(&self) -> Result<&str> {
        given(self.database_url.as_ref()).ok_or_else(|| {
            Error::invalid(
                "database_url",
                "is missing: give postgres://USER:PASSWORD@HOST/DATABASE, or set DATABASE_URL",
            )
        })
    }

    /// The address of Redis, if one is to be used.
    #[must_use]
    pub fn redis_url(&self) -> Option<&str> {
        given(self.redis_url.as_ref())
    }

    fn redis_ca(&self) -> Option<PathBuf> {
        self.redis_ca.clone().filter(|file| !file.as_os_str().is_empty())
    }

    /// What secrets are sealed with, if anything. [`Error::Invalid`] when it cannot be read or is an example; the text is not repeated.
    fn master_keys(&self) -> Result<Option<Arc<MasterKeys>>> {
        given(self.master_key.as_ref()).map(|text| text.parse().map(Arc::new)).transpose()
    }

    /// The log filter that was asked for, or `default`.
    #[must_use]
    pub fn log_filter(&self, default: &str) -> EnvFilter {
        let filter = EnvFilter::new(self.log.as_deref().filter(|filter| !filter.is_empty()).unwrap_or(default));
        // sqlx logs what it does not know of a database's address, value and all; a mistyped `password=` would be among that. actix calls it an
        // error of ours when a client sends what is no HTTP, and has a line for each; a filter that names a part of it (`actix_http::h1=debug`)
        // has that part's lines.
        let silences = ["sqlx_postgres::options=off", "actix_http=off"];
        silences.into_iter().filter_map(|silence| silence.parse().ok()).fold(filter, EnvFilter::add_directive)
    }

    /// How a command that does one thing connects: few connections, nothing in the background.
    pub fn for_command(&self) -> Result<settings::Settings> {
        Ok(settings::Settings {
            database_url: self.database_url()?.into(),
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

    /// How an instance that serves connects.
    pub fn for_serving(&self, flags: &InstanceFlags) -> Result<settings::Settings> {
        let (database_url, redis_url) = (self.database_url()?.to_owned(), self.redis_url().map(ToOwned::to_owned));
        Ok(settings::Settings {
            redis_ca: self.redis_ca(),
            master_keys: self.master_keys()?,
            ..flags.settings(database_url, redis_url, &self.redis_prefix)
        })
    }
}

/// The settings of an instance that answers HTTP.
#[derive(Debug, Clone, Args)]
pub struct InstanceFlags {
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, env = "CENTILE_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// Threads that answer HTTP; as many as there are cores unless given
    #[arg(long, env = "CENTILE_WORKERS", value_name = "N")]
    workers: Option<NonZero<u16>>,

    /// The board behind `/v1/scores`, which names none
    #[arg(long, env = "CENTILE_DEFAULT_BOARD", value_name = "SLUG", default_value = "main", value_parser = value::<BoardSlug>)]
    default_board: BoardSlug,

    /// Longest request body, in bytes
    #[arg(long, env = "CENTILE_BODY_LIMIT", value_name = "BYTES", default_value_t = http::Settings::DEFAULT_BODY_LIMIT_BYTES)]
    body_limit: usize,

    /// Most bytes of request bodies at a time, over all connections, and a quarter of it besides for bodies that need no key; beyond it, 503
    #[arg(long, env = "CENTILE_BODIES_LIMIT", value_name = "BYTES", default_value_t = http::Settings::DEFAULT_BODIES_LIMIT_BYTES)]
    bodies_limit: usize,

    /// Most connections of clients at a time; more wait until one of these ends
    #[arg(long, env = "CENTILE_CONNECTIONS", value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,

    /// Most listeners of live events at a time; beyond it, 503
    #[arg(long, env = "CENTILE_LISTENERS", value_name = "N", default_value_t = http::Settings::DEFAULT_LISTENERS)]
    listeners: usize,

    /// Most listeners of live events from one address, of IPv6 from one network of 64 bits; 0 for no limit. Beyond it, 429
    #[arg(long, env = "CENTILE_ADDRESS_LISTENERS", value_name = "N", default_value_t = 1_000)]
    address_listeners: usize,

    /// Seconds that a listener hears nothing before there is a sign of life, so that no proxy closes the connection
    #[arg(long, env = "CENTILE_HEARTBEAT", value_name = "SECONDS", default_value_t = 15)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=300))]
    heartbeat: u32,

    /// Accept avatars with an http address, too; otherwise only https
    #[arg(long, env = "CENTILE_ALLOW_HTTP_AVATARS", value_parser = FalseyValueParser::new())]
    allow_http_avatars: bool,

    /// Seconds that the head of a request may take to arrive, its body, and 32 KiB of its answer to be taken
    #[arg(long, env = "CENTILE_CLIENT_TIMEOUT", value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3_600))]
    client_timeout: u32,

    /// Requests a second that each key may make; 0 for no limit
    #[arg(long, env = "CENTILE_KEY_RATE", value_name = "N", default_value_t = 1_000)]
    key_rate: u32,

    /// Requests that each key may make at once
    #[arg(long, env = "CENTILE_KEY_BURST", value_name = "N", default_value = "2000")]
    key_burst: NonZero<u32>,

    /// Requests a second that come without a key from one address, of IPv6 from one network of 64 bits; 0 for no limit
    #[arg(long, env = "CENTILE_ADDRESS_RATE", value_name = "N", default_value_t = 200)]
    address_rate: u32,

    /// Requests that may come without a key from one address at once
    #[arg(long, env = "CENTILE_ADDRESS_BURST", value_name = "N", default_value = "1000")]
    address_burst: NonZero<u32>,

    /// Proxies before this instance, as networks: what these write into X-Forwarded-For is believed
    #[arg(long, env = "CENTILE_TRUSTED_PROXIES", value_name = "NETWORK,…", value_delimiter = ',', value_parser = value::<TrustedProxy>)]
    trusted_proxies: Vec<TrustedProxy>,

    /// Origins whose pages may read answers in a browser, such as `https://game.example`; `*` for all, none unless given
    #[arg(long, env = "CENTILE_CORS_ORIGINS", value_name = "ORIGIN,…", value_delimiter = ',', value_parser = value::<Origin>)]
    cors_origins: Vec<Origin>,

    /// Origins whose pages may show boards in a frame (`/embed/BOARD`, `<centile-board>`), such as `https://game.example`; `*` for all, none unless
    /// given
    #[arg(long, env = "CENTILE_FRAME_ORIGINS", value_name = "ORIGIN,…", value_delimiter = ',', value_parser = value::<Origin>)]
    frame_origins: Vec<Origin>,

    /// Most connections to PostgreSQL that reading takes
    #[arg(long, env = "CENTILE_READ_CONNECTIONS", value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    read_connections: u32,

    /// Most connections to PostgreSQL that writing takes; each writes one batch at a time
    #[arg(long, env = "CENTILE_WRITE_CONNECTIONS", value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    write_connections: u32,

    /// Seconds that a statement may run; one that is not answered two seconds later is given up, with its connection
    #[arg(long, env = "CENTILE_STATEMENT_TIMEOUT", value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3_600))]
    statement_timeout: u32,

    /// Timeout for a PostgreSQL connection, a late round or a shared read, in milliseconds; then 503
    #[arg(long, env = "CENTILE_POOL_WAIT", value_name = "MILLISECONDS", default_value_t = 2_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pool_wait: u32,

    /// MiB of memory for rank indexes and player names; SQL reads what does not fit. By default a
    /// quarter of the memory available to the process; 0 disables indexes
    #[arg(long, env = "CENTILE_INDEX_MEMORY", value_name = "MIB")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=16_777_216))]
    index_memory: Option<u64>,

    /// Boards whose rankings are loaded at the start; other rankings load on first read
    #[arg(long, env = "CENTILE_INDEX_BOARDS", value_name = "BOARD,…", value_delimiter = ',', value_parser = value::<BoardSlug>)]
    pub index_boards: Vec<BoardSlug>,

    /// After the start, report not ready at `/readyz` until no rank index is loading; refused and
    /// failed loads count as finished. Requires `--index-boards`
    #[arg(long, env = "CENTILE_READY_WHEN_INDEXED", requires = "index_boards", value_parser = FalseyValueParser::new())]
    pub ready_when_indexed: bool,

    /// Milliseconds that scores may have to wait for their turn; while it would be longer, requests with scores are told to come again
    #[arg(long, env = "CENTILE_WRITE_WAIT", value_name = "MILLISECONDS", default_value_t = 400)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=60_000))]
    write_wait: u32,

    /// Seconds between two looks at whether a period is over and to be closed
    #[arg(long, env = "CENTILE_MAINTENANCE_EVERY", value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86_400))]
    maintenance_every: u32,

    /// Seconds that `/readyz` says no before the listener is closed when this ends: what a load balancer takes to notice
    #[arg(long, env = "CENTILE_DRAIN", value_name = "SECONDS", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=600))]
    drain: u32,

    /// Seconds that requests under way then have to be answered
    #[arg(long, env = "CENTILE_STOP_WITHIN", value_name = "SECONDS", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=600))]
    stop_within: u32,

    /// Leaves closing, ledger months, expired ids and whatever else has to be looked after to other instances, or to cron
    #[arg(long, env = "CENTILE_NO_MAINTENANCE", value_parser = FalseyValueParser::new())]
    no_maintenance: bool,
}

impl InstanceFlags {
    /// What the HTTP layer is told; nothing of TLS.
    #[must_use]
    pub fn http(&self) -> http::Settings {
        let cores = || thread::available_parallelism().map_or(1, NonZero::get);
        http::Settings {
            workers: self.workers.map_or_else(cores, |workers| workers.get().into()),
            body_limit_bytes: self.body_limit,
            // One of the longest fits, whatever was said.
            bodies_limit_bytes: self.bodies_limit.max(self.body_limit),
            default_board: self.default_board.clone(),
            stop_within: Duration::from_secs(self.stop_within.into()),
            connections: self.connections as usize,
            listeners: self.listeners,
            address_listeners: NonZero::new(self.address_listeners),
            heartbeat: Duration::from_secs(self.heartbeat.into()),
            allows_http_avatars: self.allow_http_avatars,
            client_timeout: Duration::from_secs(self.client_timeout.into()),
            key_rate: Rate::new(self.key_rate, self.key_burst),
            address_rate: Rate::new(self.address_rate, self.address_burst),
            trusted_proxies: self.trusted_proxies.clone(),
            cors_origins: self.cors_origins.clone(),
            frame_origins: self.frame_origins.clone(),
            certificate: None,
        }
    }

    /// How long to go on serving once it is asked to end.
    #[must_use]
    pub fn drain(&self) -> Duration {
        Duration::from_secs(self.drain.into())
    }

    /// What the service is told, for these servers; no authorities of its own, no master key.
    #[must_use]
    pub fn settings(&self, database_url: String, redis_url: Option<String>, redis_prefix: &str) -> settings::Settings {
        settings::Settings {
            database_url: database_url.into(),
            redis_url: redis_url.map(Hidden::from),
            redis_ca: None,
            redis_prefix: redis_prefix.to_owned(),
            read_connections: self.read_connections,
            write_connections: self.write_connections,
            statement_timeout: Duration::from_secs(self.statement_timeout.into()),
            pool_wait: Duration::from_millis(self.pool_wait.into()),
            write_wait: Duration::from_millis(self.write_wait.into()),
            index_memory: self.index_memory.map_or_else(memory::default_bytes, |mebibytes| mebibytes << 20),
            master_keys: None,
            maintenance_every: (!self.no_maintenance).then(|| Duration::from_secs(self.maintenance_every.into())),
        }
    }
}

/// The settings of an instance that serves whoever can reach it.
#[derive(Debug, Clone, Args)]
pub struct Serve {
    /// What every instance has.
    #[command(flatten)]
    pub instance: InstanceFlags,

    /// File with the certificate (PEM) to serve HTTPS with, and after it those that lead to its authority; in clear unless given.
    /// Read again every 2 seconds, so that a renewed one is taken up
    #[arg(long, env = "CENTILE_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<PathBuf>,

    /// File with that certificate's private key (PEM, not encrypted)
    #[arg(long, env = "CENTILE_TLS_KEY", value_name = "FILE")]
    tls_key: Option<PathBuf>,
}

impl Serve {
    /// What the HTTP layer is told. [`Error::Invalid`] when the certificate or its key cannot be taken.
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

/// The settings of a demo.
#[derive(Debug, Clone, Args)]
pub struct Demo {
    /// Folder that keeps the demo's data; the next start finds them again
    #[arg(long, env = "CENTILE_DEMO_DIR", value_name = "FOLDER", default_value = ".centile/demo")]
    pub dir: PathBuf,

    /// How many games are played each second once everything runs; 0 for none
    #[arg(long, env = "CENTILE_GAMES_PER_SECOND", value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub games_per_second: u32,

    /// Makes the games come out the same again; any number, chosen anew unless given
    #[arg(long, env = "CENTILE_DEMO_SEED", value_name = "N")]
    pub seed: Option<u64>,

    /// The instance that it serves with.
    #[command(flatten)]
    pub instance: InstanceFlags,
}

/// The text of a setting that was given. A variable that is set to nothing is how some tools leave it out.
fn given(setting: Option<&Hidden>) -> Option<&str> {
    setting.map(Hidden::as_str).filter(|text| !text.is_empty())
}

/// Reads a value of the domain for clap, which names the flag at fault itself.
pub fn value<T: std::str::FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| match error {
        Error::Invalid { message, .. } => message,
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use clap::FromArgMatches as _;
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::instance::Instance;

    #[tokio::test]
    async fn what_is_shown_of_settings_and_service_holds_no_secret() -> Result<()> {
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
