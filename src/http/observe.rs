//! What is told of each request: an id by which it can be found, a line in the log, numbers at `/metrics`.

use std::{rc::Rc, time::Instant};

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

use super::{Api, address, connection::Activity};
use crate::telemetry;

/// The header in which a request brings its id, and the answer gives it back.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken from a caller.
const REQUEST_ID_MAX_BYTES: usize = 128;
/// What requests are called whose path leads nowhere: a label for each would let anybody fill the memory.
const NOWHERE: &str = "none";

/// Gives each request an id, and tells what became of it.
pub(super) async fn observe(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let begin = Instant::now();
    let id = request_id(&request);
    let (method, path) = (request.method().clone(), request.path().to_owned());
    let address = request.app_data::<Data<Api>>().and_then(|api| address::of(api, &request));
    let answering = request.conn_data::<Rc<Activity>>().map(Activity::answering);
    let id_text = id.to_str().unwrap_or_default();
    let span = tracing::info_span!("request", request_id = %id_text);
    let _requests = telemetry::one_more_request();
    let mut response = next.call(request).instrument(span).await?;
    let (time, status) = (begin.elapsed(), response.status().as_u16());
    let route = response.request().match_pattern();
    let route = route.as_deref().unwrap_or(NOWHERE);
    let (address, duration_ms) = (address.map(tracing::field::display), time.as_secs_f64() * 1_000.0);
    // Outside of the span: a line within it takes twice as long.
    tracing::info!(target: "centile::request", request_id = %id_text, %method, path, address, status, duration_ms, "answered");
    telemetry::count_request(known(&method), route, status, time);
    response.headers_mut().insert(REQUEST_ID, id);
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

/// The method as a label; anybody may make up others.
fn known(method: &Method) -> &'static str {
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    methods.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}
