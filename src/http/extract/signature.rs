//! Signed requests: the signature is checked before anything is done with what it covers. A call that takes a body has it checked when the
//! body has come (`body.rs`), before anybody reads it; the others at once, over no body.

use std::sync::Arc;

use actix_web::{
    HttpMessage as _, HttpRequest,
    http::{Method, header::HeaderName},
};
use chrono::Utc;

use crate::{
    Error, Result,
    access::key_cache::CachedKey,
    http::{Api, server::rate},
    instance::Instance,
    model::signing::{Signature, SigningSecret},
};

/// The header that brings a signature.
const CENTILE_SIGNATURE: HeaderName = HeaderName::from_static("centile-signature");

/// Whose signature a request bears.
struct Signer {
    instance: Arc<Instance>,
    known: Arc<CachedKey>,
}

impl Signer {
    /// Refuses what was here before. [`Error::Conflict`] then.
    async fn once(&self, signature: &[u8]) -> Result<()> {
        if self.instance.store.note_signature(&self.known.key.id, signature).await? {
            Ok(())
        } else {
            let refusal =
                "this very request has come before, or its like in the same second: sign it anew, with the time of now";
            Err(Error::Conflict(refusal.to_owned()))
        }
    }
}

/// A signature that waits for its body.
struct PendingSignature(Signer, Signature);

/// A signature that was found right, of a request that has not done anything yet.
struct VerifiedSignature(Signer, Vec<u8>);

/// Demands a signature of a request whose key signs, and notes that the key was used once it is proven. [`Error::Unauthorized`] where the
/// signature is missing or wrong, [`Error::Conflict`] where the request changes something and was here before; both come later where there is a
/// body to wait for.
pub(crate) async fn demand(api: &Api, request: &HttpRequest, known: &Arc<CachedKey>) -> Result<()> {
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
    // To read again what could be read is no harm.
    if *request.method() == Method::DELETE { signer.once(&signature).await } else { Ok(()) }
}

/// Whether a request's signature covers a body, which may be empty.
pub(crate) fn has_body(method: &Method) -> bool {
    ![Method::GET, Method::HEAD, Method::DELETE].contains(method)
}

/// Whether the signature of `request` can be checked only once its body has come: until then its key proves nothing.
pub(crate) fn is_waiting(request: &HttpRequest) -> bool {
    request.extensions().contains::<PendingSignature>()
}

/// Whether `request` has the signature of this key over this body.
pub(crate) fn is_right(request: &HttpRequest, known: &CachedKey, body: &[u8]) -> bool {
    let signed = |secret| read(request, secret).and_then(|signature| signature.over(body));
    known.signing_secret.as_ref().is_some_and(|secret| signed(secret).is_ok())
}

fn read(request: &HttpRequest, secret: &SigningSecret) -> Result<Signature> {
    let mut headers = request.headers().get_all(CENTILE_SIGNATURE);
    let header = headers.next().map(|header| header.to_str().unwrap_or_default());
    // Of two, this and a proxy might each take another.
    let header = if headers.next().is_some() { Some("") } else { header };
    let target = request.uri().path_and_query().map_or("", |target| target.as_str());
    Signature::read(secret, header, request.method().as_str(), target, Utc::now().timestamp())
}

/// Checks the signature of `request` over its body, if its key signs, and counts the request. [`Error::Unauthorized`] when it is not right,
/// [`Error::TooMany`] when whoever it counts for has made too many.
pub(crate) async fn check(request: &HttpRequest, body: &[u8]) -> Result<()> {
    let waiting = request.extensions_mut().remove::<PendingSignature>();
    let Some(PendingSignature(signer, signature)) = waiting else {
        // The call asks for no key.
        return rate::settle(request, |known| is_right(request, known, body));
    };
    let signature = signature.over(body);
    rate::settle(request, |_| signature.is_ok())?;
    let right = VerifiedSignature(signer, signature?.to_vec());
    right.0.known.note_use(&right.0.instance.store).await;
    request.extensions_mut().insert(right);
    Ok(())
}

/// Refuses a signed request that was here before, after [`check`] and before it changes anything: [`Error::Conflict`].
pub(crate) async fn once(request: &HttpRequest) -> Result<()> {
    let right = request.extensions_mut().remove::<VerifiedSignature>();
    match right {
        Some(VerifiedSignature(signer, signature)) => signer.once(&signature).await,
        None => Ok(()),
    }
}
