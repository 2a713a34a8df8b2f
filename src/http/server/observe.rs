//! Observes each request: its id, a line in the log, and metrics.

use std::{net::IpAddr, rc::Rc, time::Instant};

use actix_http::ConnectionType;
use actix_web::{
    Error,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Method, StatusCode,
        header::{HeaderName, HeaderValue},
    },
    middleware::Next,
    web::Data,
};
use rand::RngExt as _;
use tracing::Span;

use crate::{
    http::server::{
        Api,
        access_log::{AccessLogLine, LogRequests},
        activity::Activity,
        address, endpoint,
    },
    telemetry,
};

/// The header of a request's id, which the response repeats.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id accepted from a caller.
const REQUEST_ID_MAX_BYTES: usize = 128;

/// Route label of all unknown paths. With a label for each, callers could fill the memory.
const NOWHERE: &str = "none";

/// Bytes of a path that are logged, so that callers cannot fill the log.
const PATH_MAX_BYTES: usize = 256;

/// Longest head, in bytes, of a request whose connection stays open. actix would keep the memory of
/// a longer one.
const LARGE_HEAD_BYTES: usize = 16 << 10;

/// Status of a request whose client disconnected before the response, as in nginx.
const CLIENT_GONE: u16 = 499;

tokio::task_local! {
    /// Id of the request that the current task answers.
    static CURRENT_ID: HeaderValue;
}

/// Returns a span with the id of the request that the current task answers, if any.
///
/// Only the log calls it, for the lines within a request. A span for each request would cost more
/// than the request's own line.
pub(crate) fn current_span() -> Span {
    let span = |id: &HeaderValue| tracing::error_span!("request", request_id = %text(id));
    CURRENT_ID.try_with(span).unwrap_or_else(|_| Span::none())
}

/// A request that is not logged yet. If it is dropped unlogged, its connection ended; it may have
/// changed something.
struct Unlogged {
    begin: Instant,
    id: HeaderValue,
    method: &'static str,
    path: String,
    address: Option<IpAddr>,
    log_requests: LogRequests,
    is_logged: bool,
}

impl Unlogged {
    fn from_request(request: &ServiceRequest) -> Self {
        let api = request.app_data::<Data<Api>>();
        Self {
            begin: Instant::now(),
            id: request_id(request),
            method: method_label(request.method()),
            path: shortened(request.path()),
            address: api.and_then(|api| address::client_address(&api.settings.trusted_proxies, request.request())),
            log_requests: api.map(|api| api.settings.log_requests).unwrap_or_default(),
            is_logged: false,
        }
    }

    fn log(&mut self, route: &'static str, status: u16) {
        self.is_logged = true;
        let time = self.begin.elapsed();
        if self.log_requests.includes(status, time) {
            let line = AccessLogLine {
                message: if status == CLIENT_GONE { "client disconnected" } else { "answered" },
                request_id: text(&self.id),
                method: self.method,
                path: &self.path,
                address: self.address,
                status,
                duration_ms: time.as_secs_f64() * 1_000.0,
            };
            line.log();
        }
        telemetry::count_request(self.method, route, status, time);
    }
}

impl Drop for Unlogged {
    fn drop(&mut self) {
        if !self.is_logged {
            self.log(NOWHERE, CLIENT_GONE);
        }
    }
}

/// Gives each request an id, and logs and counts its result.
pub(crate) async fn observe(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let mut unlogged = Unlogged::from_request(&request);
    let activity = request.conn_data::<Rc<Activity>>().cloned();
    let answering = activity.as_ref().map(Activity::answering);
    let is_large = has_large_head(&request);
    let _requests = telemetry::GaugeGuard::count(telemetry::REQUESTS_NOW);
    let response = CURRENT_ID.scope(unlogged.id.clone(), next.call(request)).await;
    // Only a broken body is an error here.
    let mut response =
        response.inspect_err(|error| unlogged.log(NOWHERE, error.as_response_error().status_code().as_u16()))?;
    unlogged.log(endpoint::route(response.request()).unwrap_or(NOWHERE), response.status().as_u16());
    response.headers_mut().insert(REQUEST_ID, unlogged.id.clone());
    // Otherwise the body, which the client may still send, would be read as the next request.
    let is_body_unread = activity.is_some_and(|activity| activity.awaits_continue());
    if is_large || is_body_unread {
        response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    if let Some(answering) = answering
        && response.status() == StatusCode::REQUEST_TIMEOUT
    {
        answering.end();
    }
    Ok(response)
}

/// The caller's id if it is safe to repeat, otherwise a new one.
fn request_id(request: &ServiceRequest) -> HeaderValue {
    let given = request.headers().get(REQUEST_ID).filter(|id| {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
        (1..=REQUEST_ID_MAX_BYTES).contains(&id.len()) && id.as_bytes().iter().all(is_plain)
    });
    let made = || HeaderValue::from_str(&format!("{:032x}", rand::rng().random::<u128>()));
    given.cloned().or_else(|| made().ok()).unwrap_or_else(|| HeaderValue::from_static(""))
}

fn text(id: &HeaderValue) -> &str {
    id.to_str().unwrap_or_default()
}

/// Whether the connection must end because of the size of the head.
fn has_large_head(request: &ServiceRequest) -> bool {
    let headers: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    headers + request.path().len() + request.query_string().len() > LARGE_HEAD_BYTES
}

/// The path for the log, truncated with an ellipsis.
fn shortened(path: &str) -> String {
    let end = path.floor_char_boundary(PATH_MAX_BYTES);
    if end < path.len() { format!("{}…", &path[..end]) } else { path.to_owned() }
}

/// The method as a label; `other` for methods that callers invent.
fn method_label(method: &Method) -> &'static str {
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    methods.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}
