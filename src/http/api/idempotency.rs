//! The header `Idempotency-Key`.

use actix_web::HttpRequest;
use utoipa::IntoParams;

use crate::{
    Error, Result,
    model::idempotency::{HEADER, IdempotencyKey},
};

/// Makes a repeated request harmless.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes a header that `key` reads")]
pub(crate) struct IdempotencyHeader {
    /// Random text for this request, such as a UUID. Send the same text with each retry, with the same
    /// API key: the service recognises it for seven days. Another request of this call with it gets
    /// `idempotency_key_reused`. Keep it secret, because the secret of a new key is derived from it.
    #[param(
        rename = "Idempotency-Key",
        nullable = false,
        min_length = 16,
        max_length = 128,
        pattern = "^[!-~]*$",
        example = "5f0c1b7e-2f0e-4a55-9a76-0c4c6b1e3f1d"
    )]
    idempotency_key: Option<String>,
}

/// Returns the idempotency key of `request`, if it has one.
pub(crate) fn key(request: &HttpRequest) -> Result<Option<IdempotencyKey>> {
    let Some(value) = request.headers().get(HEADER) else { return Ok(None) };
    let text = value.to_str().map_err(|_| Error::invalid(HEADER, "is not ASCII"))?;
    text.parse().map(Some)
}
