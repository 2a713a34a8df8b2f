//! Signed requests. The signature is checked before the request has any effect.
//!
//! For a call with a body, `body.rs` checks the signature once the body has arrived and before
//! anything else reads it. Other calls are checked at once, over an empty body.

use std::sync::Arc;

use actix_web::{
    HttpMessage as _, HttpRequest,
    http::{Method, header::HeaderName},
};
use chrono::Utc;

use crate::{
    Code, Error, Result,
    access::key_cache::CachedKey,
    http::{Api, server::rate},
    instance::Instance,
    model::signing::{Signature, SigningSecret},
};

/// Header that carries the signature.
const CENTILE_SIGNATURE: HeaderName = HeaderName::from_static("centile-signature");

/// The key that signed a request.
struct Signer {
    instance: Arc<Instance>,
    known: Arc<CachedKey>,
}

impl Signer {
    /// Records the signature. [`Error::Conflict`] if it was recorded before.
    async fn refuse_replay(&self, signature: &[u8]) -> Result<()> {
        if self.instance.store.note_signature(&self.known.key.id, signature).await? {
            Ok(())
        } else {
            let refusal = "this request was already received, or an identical one in the same second; sign it again with the current time";
            Err(Error::conflict(Code::RequestRepeated, refusal))
        }
    }
}

/// A signature that cannot be checked until the body has arrived.
struct PendingSignature(Signer, Signature);

/// A valid signature of a request that has had no effect yet.
struct VerifiedSignature(Signer, Vec<u8>);

/// Requires a signature if the key signs its requests. Records that the key was used, once that is
/// proven.
///
/// [`Error::Unauthorized`] if the signature is missing or invalid. [`Error::Conflict`] if the
/// request changes something and is a repeat. For a request with a body, [`check`] and
/// [`refuse_replay`] return these errors later.
pub(crate) async fn require(api: &Api, request: &HttpRequest, known: &Arc<CachedKey>) -> Result<()> {
    let Some(secret) = &known.signing_secret else {
        known.note_use(&api.instance.store).await;
        return Ok(());
    };
    let signature = read(request, secret)?;
    let signer = Signer { instance: Arc::clone(&api.instance), known: Arc::clone(known) };
    if has_body(request.method()) {
        request.extensions_mut().insert(PendingSignature(signer, signature));
        return Ok(());
    }
    let signature = signature.over(&[])?;
    known.note_use(&api.instance.store).await;
    // Repeating a read does no harm.
    if *request.method() == Method::DELETE { signer.refuse_replay(&signature).await } else { Ok(()) }
}

/// Returns whether a signature of this method covers a body, which may be empty.
pub(crate) fn has_body(method: &Method) -> bool {
    ![Method::GET, Method::HEAD, Method::DELETE].contains(method)
}

/// Returns whether the signature of `request` waits for the body. Until then its key proves
/// nothing.
pub(crate) fn is_pending(request: &HttpRequest) -> bool {
    request.extensions().contains::<PendingSignature>()
}

/// Returns whether `request` has a valid signature of this key over `body`.
pub(crate) fn is_right(request: &HttpRequest, known: &CachedKey, body: &[u8]) -> bool {
    let signed = |secret| read(request, secret).and_then(|signature| signature.over(body));
    known.signing_secret.as_ref().is_some_and(|secret| signed(secret).is_ok())
}

fn read(request: &HttpRequest, secret: &SigningSecret) -> Result<Signature> {
    let mut headers = request.headers().get_all(CENTILE_SIGNATURE);
    let header = headers.next().map(|header| header.to_str().unwrap_or_default());
    // Of two signatures, this service and a proxy might each pick a different one.
    let header = if headers.next().is_some() { Some("") } else { header };
    let target = request.uri().path_and_query().map_or("", |target| target.as_str());
    Signature::read(secret, header, request.method().as_str(), target, Utc::now().timestamp())
}

/// Checks the signature of `request` over its body, if its key signs, and counts the request
/// against the rate limit.
///
/// [`Error::Unauthorized`] if the signature is invalid. [`Error::TooMany`] if the key or address
/// has made too many requests.
pub(crate) async fn check(request: &HttpRequest, body: &[u8]) -> Result<()> {
    let pending = request.extensions_mut().remove::<PendingSignature>();
    let Some(PendingSignature(signer, signature)) = pending else {
        // The call needs no key, or its key does not sign.
        return rate::settle(request, |known| is_right(request, known, body));
    };
    let signature = signature.over(body);
    rate::settle(request, |_| signature.is_ok())?;
    let verified = VerifiedSignature(signer, signature?.to_vec());
    verified.0.known.note_use(&verified.0.instance.store).await;
    request.extensions_mut().insert(verified);
    Ok(())
}

/// Refuses a repeated signed request with [`Error::Conflict`]. Call it after [`check`] and before
/// the request changes anything.
pub(crate) async fn refuse_replay(request: &HttpRequest) -> Result<()> {
    let verified = request.extensions_mut().remove::<VerifiedSignature>();
    match verified {
        Some(VerifiedSignature(signer, signature)) => signer.refuse_replay(&signature).await,
        None => Ok(()),
    }
}
