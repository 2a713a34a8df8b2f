//! HTTP: the only module that knows requests and responses. Each file covers a resource and follows
//! its URL. It holds the request, the response, its `OpenAPI` description and the handler, in that
//! order.
//!
//! Handlers check a request step by step, in the order of possible refusals: key, path, query,
//! body. So the service never reads the body of a caller without a key. Only the admission of
//! scores comes earlier, so that an overloaded instance refuses them at once; it is checked again
//! before the write.

// Layers from the lowest to the highest. None imports from a higher one, or from `http/mod.rs`.
pub(crate) mod server;

pub(crate) mod auth;

pub(crate) mod api;

pub(crate) mod pages;

pub use api::openapi::openapi;
pub use server::{
    Settings, access_log::LogRequests, address::TrustedProxy, origin::Origin, rate::Rate, tls::Certificate,
};

pub(crate) use api::top::render as render_top;

use std::{
    future::ready,
    net::{SocketAddr, TcpListener},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use actix_http::{HttpService, KeepAlive, Protocol, Request};
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
    middleware::{Condition, Next, from_fn},
    rt::net::TcpStream,
    web,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Error, Resource, Result,
    http::{
        api::{
            board, classic, distribution, docs, export, friend, health, history, key, league, list, live, newcomer,
            openapi, period, progress, quarantine, season, standing, standings, submit, template, tier, transactions,
            user,
        },
        pages::{embed, ops, site},
        server::{
            Api,
            activity::{Activity, ConnectionLimits},
            address,
            body_memory::BodyMemory,
            broken_body, chunks,
            connection::WatchedStream,
            cors,
            endpoint::Endpoint,
            observe,
            rate::{self, Rates},
            slots::{DownloadSlots, Slots},
            tls::{self, Stream},
            version,
        },
    },
    instance::Instance,
    telemetry,
};

/// How long an idle connection stays open. Proxies keep theirs for 60 seconds (the defaults of
/// nginx and of AWS load balancers). The proxy must close first: a request that crosses with the
/// server's closing is lost.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// Maximum unsent bytes of responses in the system's buffer of a connection.
const UNSENT_MAX_BYTES: u32 = 32 << 10;

/// How long a client may keep sending its body after an early response.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum head of a request, in bytes: the limit of actix.
const HEAD_MAX_BYTES: usize = 131_072;

/// Returns the paths of the API. The first match handles a request. The most frequent paths come
/// first, because routes are tried in order.
fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new("/v1/boards/{board}/scores").get(list::list).on(Method::POST, submit::submit),
        // A player's id may be `batch`: reads on this path belong to that player.
        Endpoint::leaving("/v1/boards/{board}/scores/batch", &[Method::GET, Method::HEAD])
            .on(Method::POST, submit::submit_batch),
        Endpoint::new("/v1/boards/{board}/scores/query").get(list::chosen).on(Method::POST, list::query),
        Endpoint::new("/v1/boards/{board}/scores/{user_id}").get(standing::show),
        Endpoint::new("/v1/scores").get(classic::list).on(Method::POST, classic::submit),
        Endpoint::leaving("/v1/scores/batch", &[Method::GET, Method::HEAD]).on(Method::POST, submit::submit_boards),
        Endpoint::new("/v1/scores/{user_id}").get(classic::standing),
        Endpoint::new("/v1/boards").get(board::list).on(Method::POST, board::create),
        Endpoint::new("/v1/boards/{board}")
            .get(board::show)
            .on(Method::PATCH, board::update)
            .on(Method::DELETE, board::delete),
        Endpoint::new("/v1/boards/{board}/scores.csv").get(export::csv),
        Endpoint::new("/v1/boards/{board}/scores.ndjson").get(export::ndjson),
        Endpoint::new("/v1/boards/{board}/scores/{user_id}/history").get(history::list),
        Endpoint::new("/v1/boards/{board}/scores/{user_id}/progress").get(progress::list),
        Endpoint::new("/v1/boards/{board}/scores/{user_id}/reset").on(Method::POST, standing::reset),
        Endpoint::new("/v1/boards/{board}/live").get(live::subscribe),
        Endpoint::new("/v1/boards/{board}/rank").get(newcomer::show),
        Endpoint::new("/v1/boards/{board}/distribution").get(distribution::show),
        Endpoint::new("/v1/boards/{board}/tiers").get(tier::list),
        Endpoint::new("/v1/boards/{board}/periods").get(period::list),
        Endpoint::new("/v1/boards/{board}/seasons").on(Method::POST, season::create),
        Endpoint::new("/v1/boards/{board}/transactions").get(transactions::list),
        Endpoint::new("/v1/boards/{board}/transactions/{transaction_id}/void").on(Method::POST, transactions::void),
        Endpoint::new("/v1/boards/{board}/quarantine").get(quarantine::list),
        Endpoint::new("/v1/boards/{board}/quarantine/{quarantine_id}/accept").on(Method::POST, quarantine::accept),
        Endpoint::new("/v1/boards/{board}/quarantine/{quarantine_id}/reject").on(Method::POST, quarantine::reject),
        Endpoint::new("/v1/boards/{board}/league").get(league::read),
        Endpoint::new("/v1/boards/{board}/league/history").get(league::history),
        Endpoint::new("/v1/boards/{board}/league/cohorts/{cohort_id}").get(league::cohort),
        Endpoint::new("/v1/boards/{board}/league/live").get(live::league::follow),
        Endpoint::new("/v1/leagues").get(league::list),
        Endpoint::new("/v1/leagues/{league}")
            .get(league::show)
            .on(Method::PUT, league::set)
            .on(Method::DELETE, league::delete),
        Endpoint::new("/v1/templates").get(template::list),
        Endpoint::new("/v1/templates/{template}")
            .get(template::show)
            .on(Method::PUT, template::set)
            .on(Method::DELETE, template::delete),
        Endpoint::new("/v1/users/{user_id}")
            .get(user::show)
            .on(Method::PUT, user::put)
            .on_idempotent(Method::DELETE, user::erase),
        Endpoint::new("/v1/users/{user_id}/standings").get(standings::list),
        Endpoint::new("/v1/users/{user_id}/friends").get(friend::list).on(Method::POST, friend::change),
        Endpoint::new("/v1/users/{user_id}/friends/{friend_id}")
            .on(Method::PUT, friend::add)
            .on(Method::DELETE, friend::remove),
        Endpoint::new("/v1/users/{user_id}/ban").on(Method::POST, user::ban),
        Endpoint::new("/v1/users/{user_id}/unban").on(Method::POST, user::unban),
        Endpoint::new("/v1/keys").get(key::list).on_idempotent(Method::POST, key::create),
        Endpoint::new("/v1/keys/{key_id}").on(Method::DELETE, key::revoke),
        Endpoint::new("/healthz").get(health::alive),
        Endpoint::new("/readyz").get(health::ready_to_serve),
        Endpoint::new("/metrics").get(health::metrics),
        Endpoint::new("/openapi.json").get(openapi::document),
    ]
}

/// Registers every path, and the 404 response for all others.
fn routes(config: &mut web::ServiceConfig) {
    let is_page = fn_guard(|context| pages::problem::is_page(context.head().uri.path()));
    let pages = web::scope("").guard(is_page).configure(|config| {
        register(config, site::endpoints().into_iter().chain(ops::endpoints()).chain(embed::endpoints()));
    });
    let api = web::scope("").configure(|config| {
        let assets = embed::assets().into_iter().chain(site::assets());
        register(config, endpoints().into_iter().chain(docs::endpoints()).chain(ops::redirects()).chain(assets));
    });
    config
        .service(pages.wrap(from_fn(auth::rate::limit)).wrap(from_fn(pages::problem::explain)))
        .service(api.wrap(from_fn(auth::rate::limit)));
}

/// Registers these paths, and a 404 for all others.
fn register(config: &mut web::ServiceConfig, endpoints: impl IntoIterator<Item = Endpoint>) {
    for endpoint in endpoints {
        endpoint.register(config);
    }
    config.default_service(web::to(|request: HttpRequest| {
        ready(Err::<HttpResponse, _>(Error::NotFound {
            what: Resource::Path,
            name: request.uri().path().to_owned(),
            hint: Some("/docs lists all paths".into()),
        }))
    }));
}

/// Headers of all responses, unless a response sets its own: browsers must not guess media types,
/// run anything, or send the address to other sites. Pages have policies of their own.
const SECURITY_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
];

/// Adds the security headers. `X-Frame-Options` cannot list origins, so a response that some
/// origins may embed has none. Over TLS, browsers must keep using TLS for this host.
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

/// Returns whether to start a TLS handshake with `peer`. Refuses an address with too many recent
/// connections.
fn may_shake_hands(api: &Api, peer: Option<SocketAddr>) -> bool {
    let address = peer.and_then(|peer| address::of_connection(&api.settings.trusted_proxies, peer));
    let may = address.is_none_or(|address| api.rates.may_shake_hands(address));
    if !may {
        telemetry::count_cut_connection("rate");
    }
    may
}

/// Serves the API on `listener`, which the caller has bound (port 0 works).
///
/// The server runs once it is awaited or spawned, and stops by its handle. It leaves signals to the
/// command line.
pub fn serve(instance: Arc<Instance>, listener: TcpListener, settings: Settings) -> Result<Server> {
    telemetry::install();
    let failed = |error| Error::Internal(format!("cannot serve on the listening socket: {error}"));
    let address = listener.local_addr().map_err(failed)?;
    // Once a response fits into the system's buffers, this process no longer sees its progress. So
    // the system itself drops a connection whose client reads too slowly. Connections inherit the
    // option from the listening socket.
    #[cfg(target_os = "linux")]
    {
        let socket = socket2::SockRef::from(&listener);
        socket.set_tcp_user_timeout(Some(settings.client_timeout)).map_err(failed)?;
        // Without this limit megabytes wait in the system's buffer, which reports free space only
        // after a third of them is sent. A slow client needs longer for that than its timeout.
        socket.set_tcp_notsent_lowat(UNSENT_MAX_BYTES).map_err(failed)?;
    }
    // Timeouts and limits of each connection.
    let (workers, stop_within) = (settings.workers.max(1), settings.stop_within);
    let worker_connections = settings.connections.div_ceil(workers);
    let allowed = ConnectionLimits {
        transfer: settings.client_timeout,
        idle: KEEP_ALIVE,
        unread_bytes: settings.body_limit_bytes.saturating_add(HEAD_MAX_BYTES),
    };
    // Rate limits and certificate. Both need regular upkeep.
    let rates = Arc::new(Rates::new(settings.key_rate, settings.address_rate, settings.key_boards));
    let counted = Arc::clone(&rates);
    instance.background.repeat(rate::FORGOTTEN_EVERY, move || counted.forget());
    let acceptor = settings.certificate.clone().map(tls::acceptor).transpose()?;
    if let Some(certificate) = settings.certificate.clone() {
        instance.background.repeat(tls::RENEWED_EVERY, move || certificate.renew());
    }
    // Limits that all workers share.
    let bodies = BodyMemory::new(settings.bodies_limit_bytes);
    let open_bodies = BodyMemory::new((settings.bodies_limit_bytes / 4).max(settings.body_limit_bytes));
    let files = DownloadSlots::new();
    let subscribers = Slots::new("subscribers", settings.subscribers, settings.address_subscribers);
    let ending = CancellationToken::new();

    let builder = Server::build().workers(workers).disable_signals().shutdown_timeout(stop_within.as_secs());
    let builder = builder.max_concurrent_connections(worker_connections);
    // Event streams and waiting readers end as soon as the server begins to stop.
    let stopping = builder.graceful_shutdown_signal();
    let (stop, ended) = (stopping.clone(), ending.clone());
    instance.background.spawn(async move {
        stop.notified().await;
        ended.cancel();
    });
    let api = web::Data::new(Api { instance, settings, rates, bodies, open_bodies, files, subscribers, ending });
    // Like actix's HttpServer, except that the stream is monitored.
    let service = move || {
        let (api, acceptor, stopping) = (api.clone(), acceptor.clone(), stopping.clone());
        let (connected, is_shared) = (api.clone(), !api.settings.cors_origins.is_empty());
        let app = App::new()
            .configure(|config| routes(config.app_data(api)))
            .wrap(from_fn(broken_body::watch))
            .wrap(from_fn(chunks::split))
            .wrap(from_fn(version::name))
            .wrap(Condition::new(is_shared, from_fn(cors::share)))
            .wrap(from_fn(secure))
            .wrap(from_fn(observe::observe));
        let app = app.into_factory().map_err(|error: actix_web::Error| error.error_response());
        let http = HttpService::build()
            // The stream has its own timeouts.
            .keep_alive(KeepAlive::Os)
            .client_request_timeout(Duration::ZERO)
            .client_disconnect_timeout(DISCONNECT_TIMEOUT)
            .local_addr(address)
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .expect(fn_service(|request: Request| {
                if let Some(activity) = request.conn_data::<Rc<Activity>>() {
                    activity.expect_continue();
                }
                ready(Ok::<_, actix_http::Error>(request))
            }))
            .on_connect_ext(|stream: &WatchedStream, data| {
                data.insert(stream.activity());
            })
            // actix would use this configuration for absolute URLs; nothing here does.
            .finish(map_config(app, |()| AppConfig::default()));
        fn_service(move |stream: TcpStream| {
            let peer = stream.peer_addr().ok();
            // Otherwise the end of a large response waits for the client's delayed acknowledgement.
            stream.set_nodelay(true).ok();
            let stream = match &acceptor {
                Some(_) if !may_shake_hands(&connected, peer) => Stream::refused(&stream),
                acceptor => Stream::new(stream, acceptor.as_ref()),
            };
            ready(Ok((WatchedStream::new(stream, allowed), Protocol::Http1, peer)))
        })
        .and_then(http)
    };
    Ok(builder.listen("centile", listener, service).map_err(failed)?.run())
}

#[cfg(test)]
mod tests {
    use actix_web::{
        dev::ServiceResponse,
        http::{StatusCode, header},
        test,
    };

    use crate::http::server::problem;

    use super::*;

    /// Returns a response that needs no instance.
    async fn answer(method: Method, uri: &str) -> ServiceResponse {
        let app = test::init_service(App::new().configure(routes)).await;
        test::call_service(&app, test::TestRequest::with_uri(uri).method(method).to_request()).await
    }

    fn header_of(response: &ServiceResponse, name: header::HeaderName) -> &str {
        response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    #[actix_web::test]
    async fn an_unknown_path_is_a_problem() {
        for uri in ["/v1", "/v1/boards/", "/v1/boards/arena/scores/", "/v1/boards/arena/scores/a/b", "/docs/none"] {
            let response = answer(Method::GET, uri).await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{uri}");
            assert_eq!(header_of(&response, header::CONTENT_TYPE), problem::MEDIA_TYPE, "{uri}");
        }
    }

    #[actix_web::test]
    async fn an_unsupported_method_is_a_problem_that_lists_the_methods() {
        for endpoint in endpoints() {
            let wanted = match endpoint.path() {
                // Includes the methods of the player with that id.
                "/v1/boards/{board}/scores/batch" | "/v1/scores/batch" => "GET, HEAD, POST".to_owned(),
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
    async fn the_docs_page_loads_nothing_from_other_hosts() {
        let response = answer(Method::GET, "/docs").await;
        assert_eq!(header_of(&response, header::LOCATION), "/docs/");
        let start = test::read_body(answer(Method::GET, "/docs/swagger-initializer.js").await).await;
        let start = String::from_utf8_lossy(&start);
        assert!(start.contains("\"url\": \"/openapi.json\""), "{start}");
        assert!(start.contains("\"validatorUrl\": \"none\""), "{start}");
        for file in ["", "index.html", "swagger-initializer.js"] {
            let body = test::read_body(answer(Method::GET, &format!("/docs/{file}")).await).await;
            assert!(!String::from_utf8_lossy(&body).contains("//cdn"), "{file} loads from another host");
        }
        assert_eq!(answer(Method::GET, "/docs/swagger-ui-bundle.js").await.status(), StatusCode::OK);
    }

    #[actix_web::test]
    async fn health_and_openapi_need_no_instance() {
        for uri in ["/healthz", "/openapi.json"] {
            assert_eq!(answer(Method::GET, uri).await.status(), StatusCode::OK, "{uri}");
            assert_eq!(answer(Method::HEAD, uri).await.status(), StatusCode::OK, "{uri}");
        }
    }
}
