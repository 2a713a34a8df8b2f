//! Successful responses.

use actix_web::{
    HttpMessage, HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{self, ETag, EntityTag, HeaderValue, IfNoneMatch},
    },
    web::Bytes,
};
use serde::Serialize;

use crate::{
    Error, Result,
    model::{
        board::Reading,
        name::Named as _,
        period::PeriodSelector,
        rank::{AnsweredBy, Header},
    },
};

/// Header that tells whether a response came from the rank index or from SQL.
const SOURCE: &str = "centile-source";

/// Initial size of the buffer for a response, in bytes. Most responses fit; a longer one
/// reallocates.
const INITIAL_BYTES: usize = 2_048;

/// Responds to a read. A cache may store the response but must revalidate it.
pub(crate) fn read_response(body: &impl Serialize) -> HttpResponse {
    HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-cache")).json(body)
}

/// Responds without an entity tag: about an open period or several boards, or to a request with a body.
pub(crate) fn untagged(answered_by: AnsweredBy, body: &impl Serialize) -> Result<HttpResponse> {
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CACHE_CONTROL, "no-cache")).insert_header((SOURCE, answered_by.name()));
    Ok(response.insert_header(header::ContentType::json()).body(json(body)?))
}

fn json(body: &impl Serialize) -> Result<Bytes> {
    let mut text = Vec::with_capacity(INITIAL_BYTES);
    serde_json::to_writer(&mut text, body)
        .map_err(|error| Error::Internal(format!("cannot write a response as JSON: {error}")))?;
    Ok(text.into())
}

/// Responds to a read of a ranking. A closed period gets its entity tag, or 304 if `request` names
/// the tag.
pub(crate) fn ranked(
    request: &HttpRequest,
    reading: Reading,
    selector: &PeriodSelector,
    about: &Header,
    body: &impl Serialize,
) -> Result<HttpResponse> {
    let Some(etag) = &about.etag else {
        return untagged(about.answered_by, body);
    };
    tagged(request, etag, lifetime(reading, selector, true), about.answered_by, || json(body))
}

/// Returns how long a cache may use a response without revalidation. A closed period named by its
/// label changes only by a correction; an alias such as `week:previous` moves on to another period.
pub(crate) fn lifetime(reading: Reading, selector: &PeriodSelector, is_closed: bool) -> &'static str {
    match (selector.whole(), reading) {
        (PeriodSelector::Labelled(..), Reading::Public) if is_closed => "max-age=60, must-revalidate",
        // With `must-revalidate` alone a shared cache could store the response (RFC 9111, section
        // 3.5).
        (PeriodSelector::Labelled(..), Reading::Key) if is_closed => "private, max-age=60, must-revalidate",
        _ => "no-cache",
    }
}

/// Responds with JSON and an entity tag, or with 304 if `request` names the tag.
pub(crate) fn tagged(
    request: &HttpRequest,
    etag: &str,
    cache_control: &'static str,
    answered_by: AnsweredBy,
    body: impl FnOnce() -> Result<Bytes>,
) -> Result<HttpResponse> {
    let tag: EntityTag =
        format!("\"{etag}\"").parse().map_err(|_| Error::Internal(format!("{etag:?} is not a valid entity tag")))?;
    let is_known = has_tag(request, &tag);
    let mut response = if is_known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    response.insert_header(ETag(tag)).insert_header((header::CACHE_CONTROL, cache_control));
    response.insert_header((SOURCE, answered_by.name()));
    if is_known {
        return Ok(response.finish());
    }
    Ok(response.insert_header(header::ContentType::json()).body(body()?))
}

/// Returns whether `request` names this tag in `If-None-Match`.
pub(crate) fn has_tag(request: &HttpRequest, tag: &EntityTag) -> bool {
    match request.get_header::<IfNoneMatch>() {
        Some(IfNoneMatch::Any) => true,
        Some(IfNoneMatch::Items(known)) => known.iter().any(|known| known.weak_eq(tag)),
        None => false,
    }
}

/// Responds to a write. Caches must not store the response.
pub(crate) fn written(status: StatusCode, body: &impl Serialize) -> HttpResponse {
    HttpResponse::build(status).insert_header((header::CACHE_CONTROL, "no-store")).json(body)
}

/// Responds to a write that has created what `path` reads.
pub(crate) fn created(path: &str, body: &impl Serialize) -> Result<HttpResponse> {
    let location =
        HeaderValue::try_from(path).map_err(|error| Error::Internal(format!("{path} cannot be a header: {error}")))?;
    let mut response = written(StatusCode::CREATED, body);
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

/// Responds to a write without a result.
pub(crate) fn done() -> HttpResponse {
    HttpResponse::NoContent().insert_header((header::CACHE_CONTROL, "no-store")).finish()
}
