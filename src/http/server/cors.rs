//! CORS: pages of other origins may read responses in a browser only if the settings name the
//! origin (Fetch standard, 3.3).

use actix_web::{
    Error, HttpResponse,
    body::{EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Method,
        header::{self, HeaderValue},
    },
    middleware::Next,
    web::Data,
};

use crate::{
    Result,
    http::server::{Api, origin::Origin},
};

const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";

/// Request headers that a page may send.
const REQUEST_HEADERS: &str =
    "Authorization, Centile-Min-Version, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, X-Request-Id";

/// Response headers that a page may read.
const RESPONSE_HEADERS: &str = "Age, Allow, ETag, Location, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, X-Request-Id, WWW-Authenticate, \
     Centile-Version, Centile-Players, Centile-Source, Centile-Lag";

/// Seconds that a browser caches a preflight response: two hours, Chromium's maximum.
const REMEMBERED_SECONDS: u64 = 7_200;

/// The value of `Access-Control-Allow-Origin` for a page of this origin; `None` if it may not read
/// responses.
fn allowed(origins: &[Origin], origin: &HeaderValue) -> Option<HeaderValue> {
    origins.iter().find_map(|known| match known {
        Origin::Any => Some(HeaderValue::from_static("*")),
        Origin::One(one) => (origin == one.as_str()).then(|| origin.clone()),
    })
}

/// Answers preflight requests, and adds the CORS headers to responses. Registered only if the
/// settings name an origin.
pub(crate) async fn share(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    let origins = request.app_data::<Data<Api>>().map_or(&[][..], |api| &api.settings.cors_origins);
    let allowed = request.headers().get(header::ORIGIN).and_then(|origin| allowed(origins, origin));
    let is_preflight =
        request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if is_preflight && allowed.is_some() {
        let answer = HttpResponse::NoContent()
            .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, METHODS))
            .insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS))
            .insert_header((header::ACCESS_CONTROL_MAX_AGE, REMEMBERED_SECONDS))
            .finish();
        request.into_response(answer).map_into_right_body()
    } else {
        next.call(request).await?.map_into_left_body()
    };
    let headers = response.headers_mut();
    // A cache must not return the response for one origin to another.
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(allowed) = allowed {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        if !is_preflight {
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(RESPONSE_HEADERS));
        }
    }
    Ok(response)
}
