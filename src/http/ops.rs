//! `/ops/`: what whoever runs the service looks at, with an admin key. It reads, and nothing else.
//!
//! A browser asks for the key and sends it along with this path alone, as it does with a password: by the slash at its end, that is all that
//! the key is sent to (RFC 7617, 2.2).

use std::future::{Ready, ready};

use actix_web::{
    HttpRequest, HttpResponse, ResponseError as _,
    http::header::{self, HeaderName, HeaderValue},
    web::Data,
};
use chrono::Utc;
use maud::Markup;
use serde::Deserialize;

use crate::{
    Error, Result,
    http::{
        Api,
        api::endpoint::Endpoint,
        extract::{caller, query},
        operation,
        page::{HTML, POLICY},
        pages::ops::page as ops_page,
    },
};

/// Where the page is.
pub(super) const PATH: &str = "/ops/";

/// Has a browser ask for a name, whatever it may be, and for a password, which is the key.
const CHALLENGE: HeaderValue =
    HeaderValue::from_static("Basic realm=\"Centile: an admin key as password\", charset=\"UTF-8\"");

/// By which a browser tells where a request comes from, and what for.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The page, which is not part of the API.
pub(super) fn endpoints() -> [Endpoint; 2] {
    [Endpoint::new("/ops").get(to_the_page), Endpoint::new(PATH).get(show)]
}

/// What may be chosen.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpsQuery {
    /// The board whose buckets are shown.
    board: Option<String>,
}

/// Leads `/ops` to `/ops/`, where the key is asked for.
fn to_the_page() -> Ready<HttpResponse> {
    ready(HttpResponse::PermanentRedirect().insert_header((header::LOCATION, PATH)).finish())
}

/// The page. Nothing of it is kept on the way, and a browser without a key is told to ask for one.
async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    match page(&api, &request).await {
        Ok(page) => Ok(HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, HTML))
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
            .body(page.into_string())),
        Err(Error::Unauthorized(message)) => {
            let hint = "to a browser give an admin key as the password; the name may be anything";
            let mut response = Error::Unauthorized(format!("{message}; {hint}")).error_response();
            response.headers_mut().insert(header::WWW_AUTHENTICATE, CHALLENGE);
            Ok(response)
        }
        Err(error) => Err(error),
    }
}

/// Whether a page of another site has a browser ask, which would send the key along; but for those where somebody follows a link (Fetch
/// Metadata, 2). Programs do not say.
fn is_asked_for_by_others(request: &HttpRequest) -> bool {
    let said = |name: &HeaderName| request.headers().get(name).map(HeaderValue::as_bytes);
    let is_ours = said(&SEC_FETCH_SITE).is_none_or(|site| [&b"same-origin"[..], b"none"].contains(&site));
    !is_ours && (said(&SEC_FETCH_MODE) != Some(b"navigate") || said(&SEC_FETCH_DEST) != Some(b"document"))
}

async fn page(api: &Api, request: &HttpRequest) -> Result<Markup> {
    if is_asked_for_by_others(request) {
        return Err(Error::Forbidden("a page of another site may not ask for this; open it by itself".to_owned()));
    }
    caller::admin(api, request).await?;
    let query: OpsQuery = query::parse(request)?;
    let chosen = query.board.as_deref().map(str::parse).transpose()?;
    let operation = operation::read(&api.instance, chosen.as_ref()).await?;
    Ok(ops_page(&operation, Utc::now()))
}
