//! Long responses are sent in chunks. actix copies a whole body into the connection's memory before
//! the client reads any of it. A thousand clients that read nothing could take a megabyte each. If
//! a body is in chunks, actix copies one chunk at a time, and responses continue to share the body.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use actix_web::{
    Error,
    body::{BodySize, EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    middleware::Next,
    web::Bytes,
};

/// Bytes of a chunk. actix collects this number before it writes.
const CHUNK_BYTES: usize = 32 << 10;

/// The unsent rest of a body.
pub(crate) struct Chunks(Bytes);

impl MessageBody for Chunks {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.0.len() as u64)
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        let left = &mut self.get_mut().0;
        let chunk = left.split_to(left.len().min(CHUNK_BYTES));
        Poll::Ready((!chunk.is_empty()).then_some(Ok(chunk)))
    }
}

/// Splits a long response into chunks.
pub(crate) async fn split<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, Chunks>>, Error> {
    let response = next.call(request).await?;
    Ok(response.map_body(|_, body| match body.size() {
        BodySize::Sized(length) if length > CHUNK_BYTES as u64 => match body.try_into_bytes() {
            Ok(bytes) => EitherBody::right(Chunks(bytes)),
            Err(body) => EitherBody::left(body),
        },
        _ => EitherBody::left(body),
    }))
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;

    use super::*;

    #[actix_web::test]
    async fn the_pieces_make_up_the_body() {
        for length in [CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 100_000] {
            let whole: Bytes = (0..=250_u8).cycle().take(length).collect();
            let chunks = Chunks(whole.clone());
            assert_eq!(chunks.size(), BodySize::Sized(length as u64));
            assert_eq!(to_bytes(chunks).await.ok(), Some(whole));
        }
    }
}
