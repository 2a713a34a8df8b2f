//! HTTP: the one place that knows of requests and responses. A file per resource, after the URL; each holds the request,
//! the response, its description for `OpenAPI` and the handler, in that order.
//!
//! Handlers take what they need step by step, in the order in which a request may be refused: key, path, query, body.
//! So a caller without a key never makes the service read a body. A signed request's signature is checked with the key, and once more
//! with the body, which nobody sees before: so each handler asks for the key, and whoever takes a body reads it before anything is done.

use std::{future::ready, net::TcpListener, sync::Arc, time::Duration};

use actix_web::{
    App, HttpRequest, HttpResponse, HttpServer,
    dev::Server,
    http::{Method, header},
    middleware::{DefaultHeaders, from_fn},
    web,
};

use crate::{Error, Result, board::BoardSlug, service::Service, telemetry};

mod body;
mod caller;
mod endpoint;
mod observe;
mod openapi;
mod path;
mod problem;
mod query;
mod reply;
mod signature;

mod board;
mod classic;
mod distribution;
mod docs;
mod health;
mod history;
mod key;
mod list;
mod newcomer;
mod period;
mod quarantine;
mod season;
mod standing;
mod submit;
mod top;
mod transaction;
mod user;

pub use openapi::openapi;
pub(crate) use top::render as render_top;

use endpoint::Endpoint;

/// How long a connection without a request stays open. Proxies hold theirs for 60 seconds (the defaults of nginx and of AWS
/// load balancers) and must be the ones to close: a request that crosses with the server's closing is lost.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// What the HTTP layer is told from outside.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Worker threads.
    pub workers: usize,
    /// Longest request body, in bytes.
    pub body_limit_bytes: usize,
    /// The board behind `/v1/scores`.
    pub default_board: BoardSlug,
    /// How long a stop waits for the requests that are under way.
    pub stop_within: Duration,
}

impl Settings {
    /// The longest request body unless configured otherwise: 1 MiB, ample for 1,000 events.
    pub const DEFAULT_BODY_LIMIT_BYTES: usize = 1024 * 1024;
}

/// What every handler is given.
#[derive(Debug)]
struct Api {
    service: Arc<Service>,
    settings: Settings,
}

/// The paths of the API. Where two fit a request, the first one answers.
fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new("/v1/scores").get(classic::list).on(Method::POST, classic::submit),
        Endpoint::new("/v1/scores/{user_id}").get(classic::standing),
        Endpoint::new("/v1/boards").get(board::list).on(Method::POST, board::create),
        Endpoint::new("/v1/boards/{board}").get(board::show).on(Method::PATCH, board::update),
        Endpoint::new("/v1/boards/{board}/scores").get(list::list).on(Method::POST, submit::submit),
        // A player may be called `query`: only POST is taken from the path of a player.
        Endpoint::only("/v1/boards/{board}/scores/query", Method::POST, list::query),
        Endpoint::new("/v1/boards/{board}/scores/{user_id}").get(standing::show).on(Method::DELETE, standing::reset),
        Endpoint::new("/v1/boards/{board}/scores/{user_id}/history").get(history::list),
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

/// Makes the API part of an application: `App::new().configure(http::configure(service, settings))`.
pub fn configure(service: Arc<Service>, settings: Settings) -> impl FnOnce(&mut web::ServiceConfig) {
    let api = web::Data::new(Api { service, settings });
    move |config| routes(config.app_data(api))
}

/// Every path, and the answer to all others.
fn routes(config: &mut web::ServiceConfig) {
    for endpoint in endpoints().into_iter().chain(docs::endpoints()) {
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

/// What a browser is told about every answer: to take it for what it says it is, to run nothing in it, to show it in no frame of others.
/// The pages under `/docs` say for themselves what they run.
fn security_headers() -> DefaultHeaders {
    DefaultHeaders::new()
        .add((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .add((header::X_FRAME_OPTIONS, "DENY"))
        .add((header::REFERRER_POLICY, "no-referrer"))
        .add((header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"))
}

/// Starts to serve the API on `listener`, which the caller has bound (port 0 works). The server runs once it is awaited
/// or spawned; it stops by its handle and leaves signals alone, which belong to the command line.
pub fn serve(service: Arc<Service>, listener: TcpListener, settings: Settings) -> Result<Server> {
    telemetry::install();
    let (workers, stop_within) = (settings.workers.max(1), settings.stop_within);
    let app = move || {
        App::new()
            .configure(configure(Arc::clone(&service), settings.clone()))
            .wrap(security_headers())
            .wrap(from_fn(observe::observe))
    };
    let server = HttpServer::new(app)
        .workers(workers)
        .disable_signals()
        .keep_alive(KEEP_ALIVE)
        .shutdown_timeout(stop_within.as_secs())
        .listen(listener)
        .map_err(|error| Error::Internal(format!("cannot serve on the listening socket: {error}")))?;
    Ok(server.run())
}

#[cfg(test)]
mod tests {
    use actix_web::{
        dev::ServiceResponse,
        http::{StatusCode, header},
        test,
    };

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
        for uri in ["/", "/v1", "/v1/boards/", "/v1/boards/arena/scores/", "/v1/boards/arena/scores/a/b", "/docs/none"]
        {
            let response = answer(Method::GET, uri).await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{uri}");
            assert_eq!(header_of(&response, header::CONTENT_TYPE), problem::MEDIA_TYPE, "{uri}");
        }
    }

    #[actix_web::test]
    async fn a_method_that_a_path_does_not_have_is_a_problem_that_names_those_it_has() {
        for endpoint in endpoints() {
            let wanted = match endpoint.path() {
                // What `query` leaves goes on to the player of that name.
                "/v1/boards/{board}/scores/query" => "GET, HEAD, DELETE".to_owned(),
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
