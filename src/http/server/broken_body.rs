//! Refuses requests with broken chunks. actix ends such a connection at once, unless the request has
//! its response in the same poll. So this notices the break even while a handler waits for something
//! else than the body.

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use actix_web::{
    Error, HttpMessage as _,
    body::MessageBody,
    dev::{Payload, ServiceRequest, ServiceResponse},
    error::PayloadError,
    http::header::TRANSFER_ENCODING,
    middleware::Next,
    web::Bytes,
};
use futures::{
    Stream, StreamExt as _,
    future::{Either, select},
    stream,
};

/// Bytes to read ahead of the handler. actix itself stops at 32 KiB.
const AHEAD_BYTES: usize = 32 << 10;

/// A body in chunks, read ahead of its handler.
struct Ahead {
    payload: Payload,
    chunks: VecDeque<Bytes>,
    has_ended: bool,
}

impl Ahead {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, PayloadError>>> {
        if let Some(chunk) = self.chunks.pop_front() {
            return Poll::Ready(Some(Ok(chunk)));
        }
        if self.has_ended { Poll::Ready(None) } else { Pin::new(&mut self.payload).poll_next(context) }
    }

    /// Waits until the body breaks off.
    fn poll_break(&mut self, context: &mut Context<'_>) -> Poll<PayloadError> {
        while !self.has_ended && self.chunks.iter().map(Bytes::len).sum::<usize>() < AHEAD_BYTES {
            match Pin::new(&mut self.payload).poll_next(context) {
                Poll::Ready(Some(Ok(chunk))) => self.chunks.push_back(chunk),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(error),
                Poll::Ready(None) => self.has_ended = true,
                Poll::Pending => break,
            }
        }
        Poll::Pending
    }
}

/// Ends a request as soon as its body breaks off.
pub(crate) async fn watch<B: MessageBody>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    if !request.headers().contains_key(TRANSFER_ENCODING) {
        return next.call(request).await;
    }
    let ahead = Ahead { payload: request.take_payload(), chunks: VecDeque::new(), has_ended: false };
    let ahead = Rc::new(RefCell::new(ahead));
    let read = Rc::clone(&ahead);
    let payload = stream::poll_fn(move |context| read.borrow_mut().poll_next(context));
    request.set_payload(Payload::Stream { payload: payload.boxed_local() });
    let breaks = poll_fn(|context| ahead.borrow_mut().poll_break(context));
    match select(Box::pin(next.call(request)), breaks).await {
        Either::Left((response, _)) => response,
        Either::Right((error, _)) => {
            Err(crate::Error::Malformed(format!("the body could not be received: {error}")).into())
        }
    }
}
