//! `/openapi.json`, `/docs/`: what the API is, for programs and for people. Nothing here needs another host.

use std::{
    borrow::Cow,
    future::{Ready, ready},
    sync::{Arc, LazyLock},
};

use actix_web::{
    HttpResponse,
    http::header::{self, ContentEncoding, ContentType},
    web::{self, Bytes},
};
use utoipa_swagger_ui::Config;

use crate::{
    Error, Result,
    http::api::{endpoint::Endpoint, openapi::openapi, problem::TooManyProblem},
};

/// Where the document is.
const DOCUMENT_PATH: &str = "/openapi.json";

/// What the page may do: run its own scripts, show its own pictures and those within its style sheets, ask this service.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; frame-ancestors 'none'";

/// The document as it is sent; empty, which [`document`] refuses, should it not be possible to write it as JSON.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi().to_json().unwrap_or_default());

/// The pages for people, which are not part of the API.
pub(crate) fn endpoints() -> [Endpoint; 2] {
    [Endpoint::new("/docs").get(to_the_page), Endpoint::new("/docs/{file:.*}").get(page)]
}

/// Get this document
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = "operation",
    responses((status = 200, description = "The OpenAPI document of the service.", body = Object), TooManyProblem),
)]
pub(crate) fn document() -> Ready<Result<HttpResponse>> {
    ready(if DOCUMENT.is_empty() {
        Err(Error::Internal("the OpenAPI document cannot be written as JSON".into()))
    } else {
        Ok(HttpResponse::Ok()
            .insert_header(ContentType::json())
            .insert_header((header::CACHE_CONTROL, "no-cache"))
            .body(DOCUMENT.as_str()))
    })
}

/// Leads `/docs` to `/docs/`: the page asks for its files relative to its own address.
fn to_the_page() -> Ready<HttpResponse> {
    ready(HttpResponse::PermanentRedirect().insert_header((header::LOCATION, "/docs/")).finish())
}

/// A file of the page on which the API can be tried.
fn page(name: web::Path<String>) -> Ready<Result<HttpResponse>> {
    ready(file(&name.into_inner()))
}

fn file(name: &str) -> Result<HttpResponse> {
    // Without `none` the page would send the document's address to a validator on another host.
    let config = Config::from(DOCUMENT_PATH).validator_url("none");
    let file = utoipa_swagger_ui::serve(name, Arc::new(config))
        .map_err(|error| Error::Internal(format!("page {name:?} cannot be made: {error}")))?
        .ok_or_else(|| Error::not_found("page", format!("/docs/{name}")))?;
    let mut response = HttpResponse::Ok();
    response
        .content_type(file.content_type)
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::CONTENT_SECURITY_POLICY, PAGE_POLICY));
    if file.gzpipped {
        response.insert_header(ContentEncoding::Gzip);
    }
    Ok(response.body(match file.bytes {
        // Part of the program, and not to be copied for each.
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    }))
}
