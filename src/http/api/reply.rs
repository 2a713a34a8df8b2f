//! Successful answers.

use actix_web::{
    HttpMessage, HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{self, ETag, EntityTag, IfNoneMatch},
    },
    web::Bytes,
};
use serde::Serialize;

use crate::{
    Error, Result,
    model::{
        board::Reading,
        period::PeriodSelector,
        rank::{AnsweredBy, Header},
    },
};

/// The header that tells whether an answer came from a rank index or from SQL.
const SOURCE: &str = "x-centile-source";

/// Initial size of the buffer for a response, in bytes. Most responses fit; a longer one reallocates.
const INITIAL_BYTES: usize = 2_048;

/// What was read: a cache may keep it, and must ask before using it again.
pub(crate) fn read(body: &impl Serialize) -> HttpResponse {
    HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-cache")).json(body)
}

/// An answer without an entity tag: about an open period, or to a request with a body.
pub(crate) fn untagged(about: &Header, body: &impl Serialize) -> Result<HttpResponse> {
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CACHE_CONTROL, "no-cache")).insert_header((SOURCE, about.answered_by.name()));
    Ok(response.insert_header(header::ContentType::json()).body(json(body)?))
}

fn json(body: &impl Serialize) -> Result<Bytes> {
    let mut text = Vec::with_capacity(INITIAL_BYTES);
    serde_json::to_writer(&mut text, body)
        .map_err(|error| Error::Internal(format!("an answer cannot be written as JSON: {error}")))?;
    Ok(text.into())
}

/// What was read about the period that `selector` means. Of a closed one with its tag, or 304 when `request` names that.
pub(crate) fn ranked(
    request: &HttpRequest,
    reading: Reading,
    selector: &PeriodSelector,
    about: &Header,
    body: &impl Serialize,
) -> Result<HttpResponse> {
    let Some(etag) = &about.etag else {
        return untagged(about, body);
    };
    tagged(request, etag, lifetime(reading, selector, true), about.answered_by, || json(body))
}

/// For how long a cache may use an answer without asking again. What a name means once it is closed changes by a
/// correction only; an alias such as `week:previous` comes to mean another period.
pub(crate) fn lifetime(reading: Reading, selector: &PeriodSelector, is_closed: bool) -> &'static str {
    match (selector, reading) {
        (PeriodSelector::Labelled(..), Reading::Public) if is_closed => "max-age=60, must-revalidate",
        // `must-revalidate` would let a cache that others share keep it all the same (RFC 9111, section 3.5).
        (PeriodSelector::Labelled(..), Reading::Key) if is_closed => "private, max-age=60, must-revalidate",
        _ => "no-cache",
    }
}

/// JSON with an entity tag, or 304 when `request` names that tag.
pub(crate) fn tagged(
    request: &HttpRequest,
    etag: &str,
    cache_control: &'static str,
    answered_by: AnsweredBy,
    body: impl FnOnce() -> Result<Bytes>,
) -> Result<HttpResponse> {
    let tag: EntityTag =
        format!("\"{etag}\"").parse().map_err(|_| Error::Internal(format!("{etag:?} cannot be an entity tag")))?;
    let is_known = knows(request, &tag);
    let mut response = if is_known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    response.insert_header(ETag(tag)).insert_header((header::CACHE_CONTROL, cache_control));
    response.insert_header((SOURCE, answered_by.name()));
    if is_known {
        return Ok(response.finish());
    }
    Ok(response.insert_header(header::ContentType::json()).body(body()?))
}

/// Whether whoever sent `request` has what bears this tag.
pub(crate) fn knows(request: &HttpRequest, tag: &EntityTag) -> bool {
    match request.get_header::<IfNoneMatch>() {
        Some(IfNoneMatch::Any) => true,
        Some(IfNoneMatch::Items(known)) => known.iter().any(|known| known.weak_eq(tag)),
        None => false,
    }
}

/// What came of a write: for this caller alone, this once.
pub(crate) fn written(status: StatusCode, body: &impl Serialize) -> HttpResponse {
    HttpResponse::build(status).insert_header((header::CACHE_CONTROL, "no-store")).json(body)
}

/// A write of which there is nothing to say but that it is done.
pub(crate) fn done() -> HttpResponse {
    HttpResponse::NoContent().insert_header((header::CACHE_CONTROL, "no-store")).finish()
}
