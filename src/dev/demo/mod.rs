//! The demo: private servers, boards, keys and simulated games over HTTP. It prints nothing.

mod games;
mod players;
mod servers;

pub use games::{Game, Games};
pub use servers::Servers;

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::Arc,
};

use actix_web::dev::ServerHandle;
use tokio::task::JoinHandle;

use crate::{
    Error, Result,
    access::{key, key_cache},
    boards,
    config::InstanceFlags,
    http,
    instance::Instance,
    model::{
        act::Actor,
        board::{BoardSettings, BoardSlug, Mode, Order, PeriodKind, Ties},
        first_layout::FirstLayout,
        key::{NewKey, Role},
    },
    store::migrate,
};

/// The board that sums points.
pub const MAIN_BOARD: &str = "main";

/// The board that keeps best times.
pub const LAPS_BOARD: &str = "laps";

/// Name of the server key, and the actor that creates the keys.
const CLIENT: &str = "demo";

/// Name of the admin key.
const OPERATOR: &str = "demo operator";

/// Prefix of keys in the demo's own Redis.
const REDIS_PREFIX: &str = "centile";

/// A running demo. [`Demo::stop`] stops it cleanly; dropping it stops its servers too.
#[derive(Debug)]
pub struct Demo {
    /// Its URL, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// The text of a server key.
    pub key: String,
    /// The text of an admin key.
    pub admin_key: String,
    instance: Arc<Instance>,
    server: ServerHandle,
    serving: JoinHandle<std::io::Result<()>>,
    /// Its PostgreSQL and Redis. The last field, so that they are dropped after the instance.
    pub servers: Servers,
}

impl Demo {
    /// Migrates the database of `servers`, creates missing boards and keys, and serves on
    /// `listener`.
    ///
    /// Keeps the database's URL and the keys in `dir`; the database stores only hashes of the keys.
    pub async fn start(servers: Servers, dir: &Path, listener: TcpListener, flags: &InstanceFlags) -> Result<Self> {
        let address = listener.local_addr().map_err(|error| failed("read the listen address", &error))?;
        let database_url = servers.database_url();
        migrate::migrate_url(&database_url).await?;
        write_private(&dir.join("database-url"), &database_url)?;
        let instance =
            Instance::connect(&flags.settings(database_url, Some(servers.redis_url()), REDIS_PREFIX)).await?;
        for (slug, rules) in [(MAIN_BOARD, main_board()), (LAPS_BOARD, laps_board()?)] {
            let slug: BoardSlug = slug.parse()?;
            if let Err(Error::NotFound { .. }) = boards::find(&instance.boards, &slug).await {
                boards::create(&instance.store.admin, &instance.boards, slug, rules, &actor()?).await?;
            }
        }
        let key = ready_key(&instance, &dir.join("server-key"), CLIENT, Role::Server).await?;
        let admin_key = ready_key(&instance, &dir.join("admin-key"), OPERATOR, Role::Admin).await?;
        // All simulated players share one address and key, so rate limits are off.
        let settings = http::Settings {
            key_rate: None,
            key_boards: None,
            address_rate: None,
            address_subscribers: None,
            ..flags.http()
        };
        let server = http::serve(Arc::clone(&instance), listener, settings)?;
        instance.write_submitted_scores();
        let handle = server.handle();
        Ok(Self {
            url: format!("http://{}", reachable(address)),
            key,
            admin_key,
            instance,
            server: handle,
            serving: tokio::spawn(server),
            servers,
        })
    }

    /// Finishes in-flight requests, then stops everything.
    pub async fn stop(self) -> Result<()> {
        self.server.stop(true).await;
        let served = self.serving.await;
        self.instance.shut_down().await;
        self.servers.stop().await?;
        match served {
            Ok(Ok(())) => Ok(()),
            ended => Err(Error::Internal(format!("the HTTP server failed: {ended:?}"))),
        }
    }
}

fn main_board() -> BoardSettings {
    BoardSettings {
        title: Some("Demo board".to_owned()),
        mode: Some(Mode::Sum),
        points_min: Some(0),
        points_max: Some(1_000_000),
        first_layout: Some(FirstLayout::ExpectedPoints(5_000)),
        // Like the month boards of many games.
        default_period: Some(PeriodKind::Month),
        ..BoardSettings::default()
    }
}

fn laps_board() -> Result<BoardSettings> {
    Ok(BoardSettings {
        title: Some("Best laps".to_owned()),
        mode: Some(Mode::Best),
        order: Some(Order::Asc),
        ties: Some(Ties::First),
        points_min: Some(1),
        first_layout: Some(FirstLayout::ExpectedPoints(100_000)),
        score_format: Some("duration:ms".parse()?),
        default_period: None,
        ..main_board()
    })
}

/// Returns the key in `file` while it is valid, otherwise a new key.
async fn ready_key(instance: &Instance, file: &Path, name: &str, role: Role) -> Result<String> {
    if let Ok(text) = fs::read_to_string(file) {
        let text = text.trim();
        match key_cache::find(&instance.keys, Some(&format!("Bearer {text}"))).await {
            Ok(_) => return Ok(text.to_owned()),
            Err(Error::Unauthorized { .. } | Error::Invalid { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    // Revoke keys whose file was lost, because a client may have at most two.
    let by = actor()?;
    for old in instance.store.reader.keys().await?.into_iter().filter(|key| key.name == name) {
        key::revoke(&instance.store.admin, &instance.keys, &old.id, &by).await?;
    }
    let new = NewKey { name: name.to_owned(), role, boards: Vec::new(), expires_at: None };
    let (_, text) = key::create(&instance.store.admin, new, None, &by).await?;
    write_private(file, &text)?;
    Ok(text)
}

/// Returns the actor that creates boards and keys.
fn actor() -> Result<Actor> {
    CLIENT.parse()
}

/// Writes a line to a file that only its owner can read.
fn write_private(file: &Path, line: &str) -> Result<()> {
    // Create a new file, because an existing one would keep its permissions.
    fs::remove_file(file).ok();
    let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    open.and_then(|mut open| writeln!(open, "{line}"))
        .map_err(|error| failed(&format!("write {}", file.display()), &error))
}

/// Replaces an unspecified address by the loopback address, so that clients can connect to it.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, v6.port()).into(),
        other => other,
    }
}

fn failed(what: &str, error: &std::io::Error) -> Error {
    Error::Internal(format!("cannot {what}: {error}"))
}
