//! Successful answers.

use actix_web::{
    HttpResponse,
    http::{StatusCode, header},
};
use serde::Serialize;

/// What was read: a cache may keep it, and must ask before using it again.
pub(super) fn read(body: &impl Serialize) -> HttpResponse {
    HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-cache")).json(body)
}

/// What came of a write: for this caller alone, this once.
pub(super) fn written(status: StatusCode, body: &impl Serialize) -> HttpResponse {
    HttpResponse::build(status).insert_header((header::CACHE_CONTROL, "no-store")).json(body)
}

/// A write of which there is nothing to say but that it is done.
pub(super) fn done() -> HttpResponse {
    HttpResponse::NoContent().insert_header((header::CACHE_CONTROL, "no-store")).finish()
}
