//! `/docs/`: a page to try the API. It loads nothing from another host.

use std::{
    borrow::Cow,
    future::{Ready, ready},
    sync::Arc,
};

use actix_web::{
    HttpResponse,
    http::header::{self, ContentEncoding},
    web::{self, Bytes},
};
use utoipa_swagger_ui::Config;

use crate::{Error, Resource, Result, http::server::endpoint::Endpoint};

/// Content security policy of the page: its own scripts, its own images and those in its style
/// sheets, and requests to this service.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; frame-ancestors 'none'";

/// The documentation pages, which are not part of the API.
pub(crate) fn endpoints() -> [Endpoint; 2] {
    [Endpoint::new("/docs").get(redirect), Endpoint::new("/docs/{file:.*}").get(page)]
}

/// Redirects `/docs` to `/docs/`, because the page loads its files by relative URLs.
fn redirect() -> Ready<HttpResponse> {
    ready(HttpResponse::PermanentRedirect().insert_header((header::LOCATION, "/docs/")).finish())
}

/// Responds with a file of the documentation page.
fn page(name: web::Path<String>) -> Ready<Result<HttpResponse>> {
    ready(file(&name.into_inner()))
}

fn file(name: &str) -> Result<HttpResponse> {
    // Otherwise the page would send the document's URL to a validator on another host.
    let config = Config::from("/openapi.json").validator_url("none");
    let file = utoipa_swagger_ui::serve(name, Arc::new(config))
        .map_err(|error| Error::Internal(format!("cannot render page {name:?}: {error}")))?
        .ok_or_else(|| Error::not_found(Resource::Path, format!("/docs/{name}")))?;
    let mut response = HttpResponse::Ok();
    response
        .content_type(file.content_type)
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::CONTENT_SECURITY_POLICY, PAGE_POLICY));
    if file.gzpipped {
        response.insert_header(ContentEncoding::Gzip);
    }
    Ok(response.body(match file.bytes {
        // Part of the program; not copied per response.
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    }))
}
