//! The demo: private servers, boards, a key, and games that are played through the HTTP API. It prints nothing.

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
        board::{
            BoardSlug, DEFAULT_FROZEN_TOP_SIZE, FirstLayout, GainMax, KeptArchives, Mode, NewBoard, OnViolation, Order,
            PeriodKind, Reading, Ties,
        },
        key::{NewKey, Role},
    },
    store::migrate,
};

/// The board whose points add up.
pub const MAIN_BOARD: &str = "main";

/// The board that keeps best times.
pub const LAPS_BOARD: &str = "laps";

/// Whom the demo's server key is for, and who makes its keys.
const CLIENT: &str = "demo";

/// Whom its admin key is for.
const OPERATOR: &str = "demo operator";

/// What the service says of keys in Redis; the demo's Redis is its own.
const REDIS_PREFIX: &str = "centile";

/// A running demo. [`Demo::stop`] ends it well; dropping it ends its servers too.
#[derive(Debug)]
pub struct Demo {
    /// Where it can be reached, `http://127.0.0.1:8080`.
    pub url: String,
    /// The text of a server key.
    pub key: String,
    /// The text of an admin key.
    pub admin_key: String,
    instance: Arc<Instance>,
    server: ServerHandle,
    serving: JoinHandle<std::io::Result<()>>,
    /// Its PostgreSQL and its Redis. Last, so that they outlive the service where this value is dropped.
    pub servers: Servers,
}

impl Demo {
    /// Migrates the database of `servers`, makes what is missing of boards and keys, and serves on `listener`. The keys'
    /// texts are kept in `dir`, because the database knows them hashed only; so is the database's address.
    pub async fn start(servers: Servers, dir: &Path, listener: TcpListener, flags: &InstanceFlags) -> Result<Self> {
        let address = listener.local_addr().map_err(|error| failed("read the address listened on", &error))?;
        let database_url = servers.database_url();
        migrate::migrate_url(&database_url).await?;
        keep(&dir.join("database-url"), &database_url)?;
        let instance =
            Instance::connect(&flags.settings(database_url, Some(servers.redis_url()), REDIS_PREFIX)).await?;
        for board in [main_board()?, laps_board()?] {
            if let Err(Error::NotFound { .. }) = boards::find(&instance.boards, &board.slug).await {
                boards::create(&instance.boards, board, &actor()?).await?;
            }
        }
        let key = ready_key(&instance, &dir.join("server-key"), CLIENT, Role::Server).await?;
        let admin_key = ready_key(&instance, &dir.join("admin-key"), OPERATOR, Role::Admin).await?;
        // All its players come from one address.
        let settings = http::Settings { key_rate: None, address_rate: None, address_listeners: None, ..flags.http() };
        let server = http::serve(Arc::clone(&instance), listener, settings)?;
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

    /// Answers what is under way, then stops everything.
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

fn main_board() -> Result<NewBoard> {
    Ok(NewBoard {
        slug: MAIN_BOARD.parse()?,
        title: Some("Demo board".to_owned()),
        mode: Mode::Sum,
        order: Order::Desc,
        ties: Ties::Shared,
        periods: vec![PeriodKind::AllTime, PeriodKind::Day, PeriodKind::Week, PeriodKind::Month],
        lanes: None,
        time_zone: "UTC".to_owned(),
        points_min: 0,
        points_max: 1_000_000,
        frozen_top_size: DEFAULT_FROZEN_TOP_SIZE,
        kept_archives: KeptArchives::new(),
        first_layout: Some(FirstLayout::ExpectedPoints(5_000)),
        reading: Reading::Public,
        events_per_minute: None,
        gain_max: GainMax::new(),
        on_violation: OnViolation::Refuse,
    })
}

fn laps_board() -> Result<NewBoard> {
    let slug: BoardSlug = LAPS_BOARD.parse()?;
    Ok(NewBoard {
        slug,
        title: Some("Best laps, in milliseconds".to_owned()),
        mode: Mode::Best,
        order: Order::Asc,
        ties: Ties::First,
        points_min: 1,
        first_layout: Some(FirstLayout::ExpectedPoints(100_000)),
        ..main_board()?
    })
}

/// The text of a key of the demo's own: the one kept in `file` while it works, else a new one.
async fn ready_key(instance: &Instance, file: &Path, name: &str, role: Role) -> Result<String> {
    if let Ok(text) = fs::read_to_string(file) {
        let text = text.trim();
        match key_cache::find(&instance.keys, Some(&format!("Bearer {text}"))).await {
            Ok(_) => return Ok(text.to_owned()),
            Err(Error::Unauthorized(_) | Error::Invalid { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    // What is left of demos whose file was lost: a client has two keys at most.
    let by = actor()?;
    for old in key::list(&instance.store).await?.into_iter().filter(|key| key.name == name) {
        key::revoke(&instance.keys, &old.id, &by).await?;
    }
    let new = NewKey { name: name.to_owned(), role, boards: Vec::new(), signed: false, expires_at: None };
    let (_, secrets) = key::create(&instance.keys, new, &by).await?;
    keep(file, &secrets.key)?;
    Ok(secrets.key)
}

/// Who makes what the demo needs.
fn actor() -> Result<Actor> {
    CLIENT.parse()
}

/// Writes a line that is nobody else's business.
fn keep(file: &Path, line: &str) -> Result<()> {
    // A new file, so that an old one's permissions do not stay.
    fs::remove_file(file).ok();
    let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    open.and_then(|mut open| writeln!(open, "{line}"))
        .map_err(|error| failed(&format!("write {}", file.display()), &error))
}

/// An address that can be connected to: a server that listens on all of them is reached on loopback.
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
