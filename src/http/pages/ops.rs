//! `/ops/`: the page for operators, with an admin key. It is read-only.
//!
//! A browser prompts for the key as for a password. Because the path ends in a slash, the browser
//! sends the key only to paths below it (RFC 7617, 2.2).

mod buckets;
mod operation;
mod view;

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
        api::query,
        auth::caller::{self, PASSWORD_PATH as PATH},
        pages::site::{HTML, POLICY},
        server::{Api, endpoint::Endpoint},
    },
};

/// Makes a browser prompt for a user name, which is ignored, and a password, which is the key.
const CHALLENGE: HeaderValue =
    HeaderValue::from_static("Basic realm=\"Centile: an admin key as password\", charset=\"UTF-8\"");

/// Headers in which a browser names the origin and the purpose of a request.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

pub(crate) fn endpoints() -> [Endpoint; 1] {
    [Endpoint::new(PATH).get(show)]
}

/// The path without the slash.
pub(crate) fn redirects() -> [Endpoint; 1] {
    [Endpoint::new("/ops").get(to_the_page)]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpsQuery {
    /// Board whose buckets are shown.
    board: Option<String>,
}

/// Redirects `/ops` to `/ops/`, which prompts for the key.
fn to_the_page() -> Ready<HttpResponse> {
    ready(HttpResponse::PermanentRedirect().insert_header((header::LOCATION, PATH)).finish())
}

/// The page. It is never cached, and a browser without a key prompts for one.
async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    match page(&api, &request).await {
        Ok(page) => Ok(HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, HTML))
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
            .body(page.into_string())),
        Err(Error::Unauthorized { code, message }) => {
            let hint = "in a browser, enter an admin key as the password and any user name";
            let mut response = Error::unauthorized(code, format!("{message}; {hint}")).error_response();
            response.headers_mut().insert(header::WWW_AUTHENTICATE, CHALLENGE);
            Ok(response)
        }
        Err(error) => Err(error),
    }
}

/// Whether a page of another site caused the request; the browser would add the key to it.
/// Following a link is allowed. Clients other than browsers send no fetch metadata.
fn is_cross_site(request: &HttpRequest) -> bool {
    let value = |name: &HeaderName| request.headers().get(name).map(HeaderValue::as_bytes);
    let is_ours = value(&SEC_FETCH_SITE).is_none_or(|site| [&b"same-origin"[..], b"none"].contains(&site));
    !is_ours && (value(&SEC_FETCH_MODE) != Some(b"navigate") || value(&SEC_FETCH_DEST) != Some(b"document"))
}

async fn page(api: &Api, request: &HttpRequest) -> Result<Markup> {
    if is_cross_site(request) {
        return Err(Error::Forbidden("pages of other sites may not request this page; open it directly".to_owned()));
    }
    caller::admin(api, request).await?;
    let query: OpsQuery = query::parse(request)?;
    let selected = query.board.as_deref().map(str::parse).transpose()?;
    let operation = operation::read_operation(&api.instance, selected.as_ref()).await?;
    Ok(view::page(&operation, Utc::now()))
}
