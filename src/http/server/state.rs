//! Settings of the HTTP layer, and the state that all handlers share.

use std::{num::NonZero, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    http::server::{
        access_log::LogRequests,
        address::TrustedProxy,
        body_memory::BodyMemory,
        origin::Origin,
        rate::{Rate, Rates},
        slots::{DownloadSlots, Slots},
        tls::Certificate,
    },
    instance::Instance,
    model::board::{BoardSlug, Reading},
};

#[derive(Debug, Clone)]
pub struct Settings {
    pub workers: usize,
    pub body_limit_bytes: usize,
    /// Maximum bytes of all request bodies at a time. Calls that need no key have a quarter of it
    /// in addition.
    pub bodies_limit_bytes: usize,
    /// The board behind `/v1/scores`.
    pub default_board: BoardSlug,
    /// How long a shutdown waits for running requests.
    pub stop_within: Duration,
    pub connections: usize,
    /// Maximum concurrent subscribers to live updates.
    pub subscribers: usize,
    /// Maximum concurrent subscribers from one address, if limited.
    pub address_subscribers: Option<NonZero<usize>>,
    /// Time without a message after which a subscriber gets a heartbeat.
    pub heartbeat: Duration,
    pub allows_http_avatars: bool,
    /// Readers of the profiles that do not say.
    pub profiles: Reading,
    /// Members of the players' metadata that everyone may read.
    pub public_profile: Vec<String>,
    /// Timeout for receiving a request's head, receiving its body, and sending 32 KiB of the
    /// response.
    pub client_timeout: Duration,
    /// Rate limit of a key, if any.
    pub key_rate: Option<Rate>,
    /// Maximum new boards of templates per minute per key, if any.
    pub key_boards: Option<NonZero<u32>>,
    /// Rate limit of an address for requests without a key, if any.
    pub address_rate: Option<Rate>,
    /// Proxies whose statements about the client's address are trusted.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// Origins whose pages may read responses.
    pub cors_origins: Vec<Origin>,
    /// Origins whose pages may embed boards in frames.
    pub frame_origins: Vec<Origin>,
    /// Origins from which pages load avatars.
    pub avatar_origins: Vec<Origin>,
    pub log_requests: LogRequests,
    /// TLS certificate. With it clients must use TLS, without it connections are unencrypted.
    pub certificate: Option<Arc<Certificate>>,
}

impl Settings {
    /// Default maximum request body: 1 MiB, ample for 1,000 events.
    pub const DEFAULT_BODY_LIMIT_BYTES: usize = 1024 * 1024;
    /// Default maximum of concurrent subscribers. It leaves connections for other requests.
    pub const DEFAULT_SUBSCRIBERS: usize = 8_000;
    /// Default maximum bytes of all request bodies: 64 of maximum size.
    pub const DEFAULT_BODIES_LIMIT_BYTES: usize = 64 * 1024 * 1024;

    /// Returns the default settings, with one worker and no rate limits.
    pub fn new(default_board: BoardSlug) -> Self {
        Self {
            workers: 1,
            body_limit_bytes: Self::DEFAULT_BODY_LIMIT_BYTES,
            bodies_limit_bytes: Self::DEFAULT_BODIES_LIMIT_BYTES,
            default_board,
            connections: 10_000,
            subscribers: Self::DEFAULT_SUBSCRIBERS,
            address_subscribers: None,
            heartbeat: Duration::from_secs(15),
            allows_http_avatars: false,
            profiles: Reading::Public,
            public_profile: Vec::new(),
            client_timeout: Duration::from_secs(10),
            key_rate: None,
            key_boards: None,
            address_rate: None,
            trusted_proxies: Vec::new(),
            cors_origins: Vec::new(),
            frame_origins: Vec::new(),
            avatar_origins: Vec::new(),
            log_requests: LogRequests::All,
            certificate: None,
            stop_within: Duration::from_secs(20),
        }
    }
}

/// State shared by all handlers.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) instance: Arc<Instance>,
    pub(crate) settings: Settings,
    pub(crate) rates: Arc<Rates>,
    /// Memory for bodies of requests with a key.
    pub(crate) bodies: BodyMemory,
    /// Memory for bodies of calls that need no key.
    pub(crate) open_bodies: BodyMemory,
    pub(crate) files: DownloadSlots,
    pub(crate) subscribers: Arc<Slots>,
    /// Cancelled at shutdown, to end streams that would not end on their own.
    pub(crate) ending: CancellationToken,
}
