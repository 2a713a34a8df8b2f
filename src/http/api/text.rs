//! Texts for browsers: compressed for those that take it, and not sent again to those that have the very same.

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

/// A text that was made for this request.
///
/// Anybody may read all that it shows, so that its length, compressed together with what the address says, gives nothing away.
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

/// A file.
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

/// Names the text, and makes the answer a 304 for whoever has it.
fn is_known(request: &HttpRequest, response: &mut HttpResponseBuilder, tag: String) -> bool {
    // Weak: the same text, compressed or not.
    let tag = EntityTag::new_weak(tag);
    let is_known = reply::knows(request, &tag);
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
