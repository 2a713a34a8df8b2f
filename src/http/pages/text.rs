//! Texts for browsers: compressed where accepted, with `304 Not Modified` for a text that the
//! browser has.

use actix_web::{
    HttpMessage as _, HttpRequest, HttpResponse, HttpResponseBuilder,
    http::{
        StatusCode,
        header::{self, AcceptEncoding, ContentEncoding, ETag, Encoding, EntityTag},
    },
    web::Bytes,
};
use sha2::{Digest as _, Sha256};

use crate::{
    http::{
        api::reply,
        pages::{asset::Asset, gzip},
    },
    model::key,
};

/// Responds with a text made for this request.
///
/// The text must be public. Its compressed length depends on its content and on the URL, and would
/// reveal secrets.
pub(crate) fn made(request: &HttpRequest, mut response: HttpResponseBuilder, text: String) -> HttpResponse {
    let tag = key::hex(&Sha256::digest(&text)[..8]);
    if is_known(request, &mut response, tag) {
        return response.finish();
    }
    match takes_gzip(request).then(|| gzip::soon(text.as_bytes())).flatten() {
        Some(compressed) => response.insert_header(ContentEncoding::Gzip).body(compressed),
        None => response.body(text),
    }
}

pub(crate) fn file(request: &HttpRequest, mut response: HttpResponseBuilder, asset: &'static Asset) -> HttpResponse {
    if is_known(request, &mut response, asset.digest.clone()) {
        return response.finish();
    }
    match &asset.compressed {
        Some(compressed) if takes_gzip(request) => {
            response.insert_header(ContentEncoding::Gzip).body(Bytes::from_static(compressed))
        }
        _ => response.body(Bytes::from_static(asset.text.as_bytes())),
    }
}

/// Adds the text's entity tag and returns whether the request names it. The response is then a 304.
fn is_known(request: &HttpRequest, response: &mut HttpResponseBuilder, tag: String) -> bool {
    // The weak tag is the same for the compressed text.
    let tag = EntityTag::new_weak(tag);
    let is_known = reply::has_tag(request, &tag);
    response.insert_header(ETag(tag)).insert_header((header::VARY, header::ACCEPT_ENCODING.as_str()));
    if is_known {
        response.status(StatusCode::NOT_MODIFIED);
    }
    is_known
}

fn takes_gzip(request: &HttpRequest) -> bool {
    let supported = [Encoding::gzip(), Encoding::identity()];
    let accepted = request.get_header::<AcceptEncoding>();
    accepted.and_then(|accepted| accepted.negotiate(supported.iter())) == Some(Encoding::gzip())
}
