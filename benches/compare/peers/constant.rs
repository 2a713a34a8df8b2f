//! A constant body, whatever is asked: what the HTTP server and the load generator cost by themselves.

use std::{fs, path::Path};

use actix_web::web::Bytes;

use super::Answer;

/// The body that is answered: a top 10 of Centile's.
pub fn body(file: &Path) -> Answer<Bytes> {
    Ok(fs::read(file)?.into())
}
