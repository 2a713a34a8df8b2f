//! HTTP: the only layer that knows requests and responses. A file per resource, named after the URL; each holds the request,
//! the response, its description for `OpenAPI` and the handler, in that order.
//!
//! Handlers check a request in the order in which it may be refused: key, path, query, body. So a caller without a key never
//! makes the service read a body. Only the load of a board's writers is checked before, and again at the end.
//!
//! A signature that covers a body is checked when the body has come. So each handler checks the key first, and reads the body
//! before it changes anything.

pub(crate) mod api;
mod embed;
pub(crate) mod extract;
mod live;
pub(crate) mod metrics;
mod operation;
mod ops;
mod page;
pub(crate) mod pages;
pub(crate) mod server;

pub use api::openapi::openapi;
pub use server::{address::TrustedProxy, cors::Origin, rate::Rate, tls::Certificate};

pub(crate) use api::top::render as render_top;

use std::{
    future::ready,
    net::{SocketAddr, TcpListener},
    num::NonZero,
    sync::Arc,
    time::Duration,
};

use actix_http::{HttpService, KeepAlive, Protocol};
use actix_service::{IntoServiceFactory as _, ServiceFactoryExt as _, fn_service, map_config};
use actix_web::{
    App, HttpRequest, HttpResponse,
    body::MessageBody,
    dev::{AppConfig, Server, ServiceRequest, ServiceResponse},
    guard::fn_guard,
    http::{
        Method,
        header::{self, HeaderName, HeaderValue},
    },
    middleware::{Next, from_fn},
    rt::net::TcpStream,
    web,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Error, Result,
    http::{
        api::{
            board, classic, distribution, docs, endpoint::Endpoint, export, health, history, key, list, newcomer,
            period, quarantine, season, standing, submit, transaction, user,
        },
        server::{
            address,
            body_memory::BodyMemory,
            chunks,
            connection::{Allowed, Watched},
            cors, observe,
            rate::{self, Rates},
            slots::Slots,
            tls::{self, Stream},
        },
    },
    instance::Instance,
    model::board::BoardSlug,
    telemetry,
};

/// How long a connection without a request stays open. Proxies hold theirs for 60 seconds (the defaults of nginx and of AWS
/// load balancers) and must be the ones to close: a request that crosses with the server's closing is lost.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// Unsent bytes of responses in the system's buffer of a connection.
const UNSENT_BYTES: u32 = 32 << 10;

/// How long a client may go on sending a body that was refused.
const CLOSING: Duration = Duration::from_secs(1);

/// Longest head of a request in actix, in bytes.
const HEAD_BYTES: usize = 131_072;

/// Settings of the HTTP layer.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Worker threads.
    pub workers: usize,
    /// Longest request body, in bytes.
    pub body_limit_bytes: usize,
    /// Most bytes of request bodies at a time, over all connections; a quarter of it besides for those that need no key.
    pub bodies_limit_bytes: usize,
    /// The board behind `/v1/scores`.
    pub default_board: BoardSlug,
    /// How long a stop waits for the requests that are under way.
    pub stop_within: Duration,
    /// Most connections of clients at a time.
    pub connections: usize,
    /// Most listeners at a time.
    pub listeners: usize,
    /// Most of them from one address, if that is limited.
    pub address_listeners: Option<NonZero<usize>>,
    /// How long a listener hears nothing before there is a sign of life.
    pub heartbeat: Duration,
    /// Whether avatars may have an http address.
    pub allows_http_avatars: bool,
    /// How long the head of a request may take to arrive, its body, and its answer to be taken.
    pub client_timeout: Duration,
    /// How many requests a key may make, if that is limited.
    pub key_rate: Option<Rate>,
    /// How many requests an address may make that come without a key, if that is limited.
    pub address_rate: Option<Rate>,
    /// Proxies that are believed when they say for whom they ask.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// Origins whose pages may read answers.
    pub cors_origins: Vec<Origin>,
    /// Origins whose pages may show boards in a frame.
    pub frame_origins: Vec<Origin>,
    /// What is shown to clients, who then come by TLS only; in clear without.
    pub certificate: Option<Arc<Certificate>>,
}

impl Settings {
    /// The longest request body unless configured otherwise: 1 MiB, ample for 1,000 events.
    pub const DEFAULT_BODY_LIMIT_BYTES: usize = 1024 * 1024;
    /// Listeners at a time unless configured otherwise: they leave connections for others.
    pub const DEFAULT_LISTENERS: usize = 8_000;
    /// Bytes of all bodies at a time unless configured otherwise: 64 of the longest.
    pub const DEFAULT_BODIES_LIMIT_BYTES: usize = 64 * 1024 * 1024;

    /// What holds unless configured otherwise, with one worker and no limit of requests.
    #[must_use]
    pub fn new(default_board: BoardSlug) -> Self {
        Self {
            workers: 1,
            body_limit_bytes: Self::DEFAULT_BODY_LIMIT_BYTES,
            bodies_limit_bytes: Self::DEFAULT_BODIES_LIMIT_BYTES,
            default_board,
            connections: 10_000,
            listeners: Self::DEFAULT_LISTENERS,
            address_listeners: None,
            heartbeat: Duration::from_secs(15),
            allows_http_avatars: false,
            client_timeout: Duration::from_secs(10),
            key_rate: None,
            address_rate: None,
            trusted_proxies: Vec::new(),
            cors_origins: Vec::new(),
            frame_origins: Vec::new(),
            certificate: None,
            stop_within: Duration::from_secs(20),
        }
    }
}

/// Shared state of the handlers.
#[derive(Debug)]
pub(crate) struct Api {
    instance: Arc<Instance>,
    settings: Settings,
    rates: Arc<Rates>,
    /// For bodies of requests with a key.
    bodies: BodyMemory,
    /// For bodies of requests that need no key.
    open_bodies: BodyMemory,
    files: export::DownloadSlots,
    listeners: Arc<Slots>,
    /// Cancelled when the server stops, which ends event streams.
    ending: CancellationToken,
}

/// The paths of the API. Where two fit a request, the first one answers. Routes are tried in order, so
/// the most requested come first.
fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new("/v1/boards/{board}/scores").get(list::list).on(Method::POST, submit::submit),
        // A player may be called `query`: what a player's path answers is left to it.
        Endpoint::leaving("/v1/boards/{board}/scores/query", &[Method::GET, Method::HEAD, Method::DELETE])
            .on(Method::POST, list::query),
        Endpoint::new("/v1/boards/{board}/scores/{user_id}").get(standing::show).on(Method::DELETE, standing::reset),
        Endpoint::new("/v1/scores").get(classic::list).on(Method::POST, classic::submit),
        Endpoint::new("/v1/scores/{user_id}").get(classic::standing),
        Endpoint::new("/v1/boards").get(board::list).on(Method::POST, board::create),
        Endpoint::new("/v1/boards/{board}").get(board::show).on(Method::PATCH, board::update),
        Endpoint::new("/v1/boards/{board}/scores.csv").get(export::csv),
        Endpoint::new("/v1/boards/{board}/scores.ndjson").get(export::ndjson),
        Endpoint::new("/v1/boards/{board}/scores/{user_id}/history").get(history::list),
        Endpoint::new("/v1/boards/{board}/events").get(live::subscribe),
        Endpoint::new("/v1/boards/{board}/rank").get(newcomer::show),
        Endpoint::new("/v1/boards/{board}/distribution").get(distribution::show),
        Endpoint::new("/v1/boards/{board}/periods").get(period::list),
        Endpoint::new("/v1/boards/{board}/seasons").on(Method::POST, season::create),
        Endpoint::new("/v1/boards/{board}/transactions/{transaction_id}/void").on(Method::POST, transaction::void),
        Endpoint::new("/v1/boards/{board}/quarantine").get(quarantine::list),
        Endpoint::new("/v1/boards/{board}/quarantine/{quarantine_id}/accept").on(Method::POST, quarantine::accept),
        Endpoint::new("/v1/boards/{board}/quarantine/{quarantine_id}/reject").on(Method::POST, quarantine::reject),
        Endpoint::new("/v1/users/{user_id}").get(user::show).on(Method::PUT, user::put).on(Method::DELETE, user::erase),
        Endpoint::new("/v1/users/{user_id}/ban").on(Method::POST, user::ban),
        Endpoint::new("/v1/users/{user_id}/unban").on(Method::POST, user::unban),
        Endpoint::new("/v1/keys").get(key::list).on(Method::POST, key::create),
        Endpoint::new("/v1/keys/{key_id}").on(Method::DELETE, key::revoke),
        Endpoint::new("/healthz").get(health::alive),
        Endpoint::new("/readyz").get(health::ready_to_serve),
        Endpoint::new("/metrics").get(health::metrics),
        Endpoint::new("/openapi.json").get(docs::document),
    ]
}

/// All paths. Requests of pages have their own scope, which answers errors with pages.
fn routes(config: &mut web::ServiceConfig) {
    let is_page = fn_guard(|context| page::is_page(context.head().uri.path()));
    let pages = web::scope("").guard(is_page).configure(|config| {
        register(config, page::endpoints().into_iter().chain(ops::endpoints()).chain(embed::endpoints()));
    });
    let api = web::scope("").configure(|config| {
        let assets = embed::assets().into_iter().chain(page::assets());
        register(config, endpoints().into_iter().chain(docs::endpoints()).chain(ops::redirects()).chain(assets));
    });
    config
        .service(pages.wrap(from_fn(rate::limit)).wrap(from_fn(page::explain)))
        .service(api.wrap(from_fn(rate::limit)));
}

/// Registers these paths, and a 404 for all others.
fn register(config: &mut web::ServiceConfig, endpoints: impl IntoIterator<Item = Endpoint>) {
    for endpoint in endpoints {
        endpoint.register(config);
    }
    config.default_service(web::to(|request: HttpRequest| {
        ready(Err::<HttpResponse, _>(Error::NotFound {
            what: "path",
            name: request.uri().path().to_owned(),
            hint: Some("/docs lists those that there are".into()),
        }))
    }));
}

/// Headers of all responses, unless a response has its own: browsers keep to the content type, run nothing, and tell no other
/// site. Pages have policies of their own.
const SECURITY_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
];

/// Adds the headers that browsers heed. `X-Frame-Options` knows no list of origins, so a response that some may frame has none.
async fn secure(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let is_tls = request.app_data::<web::Data<Api>>().is_some_and(|api| api.settings.certificate.is_some());
    let mut response = next.call(request).await?;
    let headers = response.headers_mut();
    if !embed::may_be_framed(headers) {
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    }
    for (name, value) in SECURITY_HEADERS {
        if !headers.contains_key(&name) {
            headers.insert(name, value);
        }
    }
    if is_tls {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    Ok(response)
}

/// Whether `peer` may make a TLS handshake.
fn may_shake_hands(api: &Api, peer: Option<SocketAddr>) -> bool {
    let address = peer.and_then(|peer| address::of_connection(&api.settings.trusted_proxies, peer));
    let may = address.is_none_or(|address| api.rates.may_shake_hands(address));
    if !may {
        telemetry::count_cut_connection("rate");
    }
    may
}

/// Starts to serve the API on `listener`, which the caller has bound (port 0 works). The server runs once it is awaited
/// or spawned; it stops by its handle and leaves signals alone, which belong to the command line.
pub fn serve(instance: Arc<Instance>, listener: TcpListener, settings: Settings) -> Result<Server> {
    telemetry::install();
    let failed = |error| Error::Internal(format!("cannot serve on the listening socket: {error}"));
    let address = listener.local_addr().map_err(failed)?;
    // The stream no longer sees a response that fits into the system's buffers. The system itself ends the connection of a client that
    // acknowledges none of it in time. Connections inherit both options from the listening socket.
    #[cfg(target_os = "linux")]
    {
        let socket = socket2::SockRef::from(&listener);
        socket.set_tcp_user_timeout(Some(settings.client_timeout)).map_err(failed)?;
        // Otherwise megabytes wait in the system's buffer. It reports room for more only when a third of
        // them is sent, which takes a slow client longer than its timeout.
        socket.set_tcp_notsent_lowat(UNSENT_BYTES).map_err(failed)?;
    }
    let (workers, stop_within) = (settings.workers.max(1), settings.stop_within);
    let connections = settings.connections.div_ceil(workers);
    let allowed = Allowed {
        transfer: settings.client_timeout,
        idle: KEEP_ALIVE,
        unread_bytes: settings.body_limit_bytes.saturating_add(HEAD_BYTES),
    };
    let rates = Arc::new(Rates::new(settings.key_rate, settings.address_rate));
    let counted = Arc::clone(&rates);
    instance.background.repeat(rate::FORGOTTEN_EVERY, move || counted.forget());
    let acceptor = settings.certificate.clone().map(tls::acceptor).transpose()?;
    if let Some(certificate) = settings.certificate.clone() {
        instance.background.repeat(tls::RENEWED_EVERY, move || certificate.renew());
    }
    let bodies = BodyMemory::new(settings.bodies_limit_bytes);
    let open_bodies = BodyMemory::new((settings.bodies_limit_bytes / 4).max(settings.body_limit_bytes));
    let files = export::DownloadSlots::new();
    let listeners = Slots::new("listeners", settings.listeners, settings.address_listeners);
    let ending = CancellationToken::new();

    let builder = Server::build().workers(workers).disable_signals().shutdown_timeout(stop_within.as_secs());
    let builder = builder.max_concurrent_connections(connections);
    let stopping = builder.graceful_shutdown_signal();
    let (stop, ended) = (stopping.clone(), ending.clone());
    instance.background.spawn(async move {
        stop.notified().await;
        ended.cancel();
    });
    let api = web::Data::new(Api { instance, settings, rates, bodies, open_bodies, files, listeners, ending });
    // As actix' own HttpServer, except for the stream.
    let connections = move || {
        let (api, acceptor, stopping) = (api.clone(), acceptor.clone(), stopping.clone());
        let connected = api.clone();
        let app = App::new()
            .configure(|config| routes(config.app_data(api)))
            .wrap(from_fn(chunks::split))
            .wrap(from_fn(cors::share))
            .wrap(from_fn(secure))
            .wrap(from_fn(observe::observe));
        let app = app.into_factory().map_err(|error: actix_web::Error| error.error_response());
        let http = HttpService::build()
            // The stream has timeouts of its own.
            .keep_alive(KeepAlive::Os)
            .client_request_timeout(Duration::ZERO)
            .client_disconnect_timeout(CLOSING)
            .local_addr(address)
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .on_connect_ext(|stream: &Watched, data| {
                data.insert(stream.activity());
            })
            // actix would make absolute addresses from it; nothing here does.
            .finish(map_config(app, |()| AppConfig::default()));
        fn_service(move |stream: TcpStream| {
            let peer = stream.peer_addr().ok();
            let stream = match &acceptor {
                Some(_) if !may_shake_hands(&connected, peer) => Stream::refused(&stream),
                acceptor => Stream::new(stream, acceptor.as_ref()),
            };
            ready(Ok((Watched::new(stream, allowed), Protocol::Http1, peer)))
        })
        .and_then(http)
    };
    Ok(builder.listen("centile", listener, connections).map_err(failed)?.run())
}

#[cfg(test)]
mod tests {
    use actix_web::{
        dev::ServiceResponse,
        http::{StatusCode, header},
        test,
    };

    use crate::http::api::problem;

    use super::*;

    /// The answer to a request that is settled before a handler needs the service.
    async fn answer(method: Method, uri: &str) -> ServiceResponse {
        let app = test::init_service(App::new().configure(routes)).await;
        test::call_service(&app, test::TestRequest::with_uri(uri).method(method).to_request()).await
    }

    fn header_of(response: &ServiceResponse, name: header::HeaderName) -> &str {
        response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    #[actix_web::test]
    async fn what_does_not_exist_is_a_problem() {
        for uri in ["/v1", "/v1/boards/", "/v1/boards/arena/scores/", "/v1/boards/arena/scores/a/b", "/docs/none"] {
            let response = answer(Method::GET, uri).await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{uri}");
            assert_eq!(header_of(&response, header::CONTENT_TYPE), problem::MEDIA_TYPE, "{uri}");
        }
    }

    #[actix_web::test]
    async fn a_method_that_a_path_does_not_have_is_a_problem_that_names_those_it_has() {
        for endpoint in endpoints() {
            let wanted = match endpoint.path() {
                // The player of that name is there, too.
                "/v1/boards/{board}/scores/query" => "GET, HEAD, DELETE, POST".to_owned(),
                _ => endpoint.methods().iter().map(Method::as_str).collect::<Vec<_>>().join(", "),
            };
            let uri = endpoint.path().replace(['{', '}'], "");
            let response = answer(Method::TRACE, &uri).await;
            assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{uri}");
            assert_eq!(header_of(&response, header::ALLOW), wanted, "{uri}");
            assert_eq!(header_of(&response, header::CONTENT_TYPE), problem::MEDIA_TYPE, "{uri}");
        }
    }

    #[actix_web::test]
    async fn the_page_needs_no_other_host() {
        let response = answer(Method::GET, "/docs").await;
        assert_eq!(header_of(&response, header::LOCATION), "/docs/");
        let start = test::read_body(answer(Method::GET, "/docs/swagger-initializer.js").await).await;
        let start = String::from_utf8_lossy(&start);
        assert!(start.contains("\"url\": \"/openapi.json\""), "{start}");
        assert!(start.contains("\"validatorUrl\": \"none\""), "{start}");
        for file in ["", "index.html", "swagger-initializer.js"] {
            let body = test::read_body(answer(Method::GET, &format!("/docs/{file}")).await).await;
            assert!(!String::from_utf8_lossy(&body).contains("//cdn"), "{file} asks another host");
        }
        assert_eq!(answer(Method::GET, "/docs/swagger-ui-bundle.js").await.status(), StatusCode::OK);
    }

    #[actix_web::test]
    async fn life_and_document_are_told_without_the_service() {
        for uri in ["/healthz", "/openapi.json"] {
            assert_eq!(answer(Method::GET, uri).await.status(), StatusCode::OK, "{uri}");
            assert_eq!(answer(Method::HEAD, uri).await.status(), StatusCode::OK, "{uri}");
        }
    }
}
