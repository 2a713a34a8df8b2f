//! What is told of each request: an id by which it can be found, a line in the log, numbers at `/metrics`.

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
use tracing::Instrument as _;

use crate::{
    http::{
        Api,
        server::{address, connection::Activity},
    },
    telemetry,
};

/// The header in which a request brings its id, and the answer gives it back.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id that is taken from a caller.
const REQUEST_ID_MAX_BYTES: usize = 128;

/// What requests are called whose path leads nowhere: a label for each would let anybody fill the memory.
const NOWHERE: &str = "none";

/// Most of a path that is logged: what anybody sends is not to fill the log.
const PATH_MAX_BYTES: usize = 256;

/// The longest head, in bytes, of a request after which its connection goes on: actix keeps the memory of a longer one as long as that is open.
const LARGE_HEAD_BYTES: usize = 16 << 10;

/// The status of a request that was given up before it was answered, because its client went away as a rule: the one by which nginx calls it.
const CLIENT_GONE: u16 = 499;

/// A request of which nothing has been told yet. One that is dropped so was given up with its connection, but may have acted.
struct Untold {
    begin: Instant,
    id: HeaderValue,
    method: &'static str,
    path: String,
    address: Option<IpAddr>,
    is_told: bool,
}

impl Untold {
    fn of(request: &ServiceRequest) -> Self {
        Self {
            begin: Instant::now(),
            id: request_id(request),
            method: known(request.method()),
            path: shortened(request.path()),
            address: request.app_data::<Data<Api>>().and_then(|api| address::of(api, request.request())),
            is_told: false,
        }
    }

    fn id_text(&self) -> &str {
        self.id.to_str().unwrap_or_default()
    }

    fn tell(&mut self, route: &str, status: u16) {
        self.is_told = true;
        let time = self.begin.elapsed();
        let (request_id, method, path) = (self.id_text(), self.method, &*self.path);
        let (address, duration_ms) = (self.address.map(tracing::field::display), time.as_secs_f64() * 1_000.0);
        let what = if status == CLIENT_GONE { "given up" } else { "answered" };
        tracing::info!(target: "centile::request", %request_id, %method, path, address, status, duration_ms, "{what}");
        telemetry::count_request(method, route, status, time);
    }
}

impl Drop for Untold {
    fn drop(&mut self) {
        if !self.is_told {
            self.tell(NOWHERE, CLIENT_GONE);
        }
    }
}

/// Gives each request an id, and tells what became of it.
pub(crate) async fn observe(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let mut untold = Untold::of(&request);
    let answering = request.conn_data::<Rc<Activity>>().map(Activity::answering);
    let is_large = has_large_head(&request);
    let span = tracing::info_span!("request", request_id = %untold.id_text());
    let _requests = telemetry::one_more_request();
    let mut response = next.call(request).instrument(span).await?;
    let route = response.request().match_pattern();
    // Outside of the span: a line within it takes twice as long.
    untold.tell(route.as_deref().unwrap_or(NOWHERE), response.status().as_u16());
    response.headers_mut().insert(REQUEST_ID, untold.id.clone());
    if is_large {
        response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    if let Some(answering) = answering
        && response.status() == StatusCode::REQUEST_TIMEOUT
    {
        answering.end();
    }
    Ok(response)
}

/// The id that the caller gave, if it may be repeated as it is, or else a new one.
fn request_id(request: &ServiceRequest) -> HeaderValue {
    let given = request.headers().get(REQUEST_ID).filter(|id| {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
        (1..=REQUEST_ID_MAX_BYTES).contains(&id.len()) && id.as_bytes().iter().all(is_plain)
    });
    let made = || HeaderValue::from_str(&format!("{:032x}", rand::rng().random::<u128>()));
    given.cloned().or_else(|| made().ok()).unwrap_or_else(|| HeaderValue::from_static(""))
}

/// Whether the head is so long that the connection ends after it.
fn has_large_head(request: &ServiceRequest) -> bool {
    let headers: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    headers + request.path().len() + request.query_string().len() > LARGE_HEAD_BYTES
}

/// The path as it is logged, with an ellipsis where it was cut.
fn shortened(path: &str) -> String {
    let end = path.floor_char_boundary(PATH_MAX_BYTES);
    if end < path.len() { format!("{}…", &path[..end]) } else { path.to_owned() }
}

/// The method as a label; anybody may make up others.
fn known(method: &Method) -> &'static str {
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    methods.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}
