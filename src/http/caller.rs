//! Who calls, and what for: the API key of a request.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use actix_web::{HttpMessage as _, HttpRequest, http::header};

use super::{Api, signature};
use crate::{
    Error, Result,
    act::Actor,
    board::{self, Board, BoardSlug, Reading},
    key::Key,
    known_key,
    service::Service,
};

/// How long after it was looked at a key may be acted with: by so much more than what is known of it is old, and a body may take far longer.
const GOOD_FOR: Duration = Duration::from_millis(500);

/// That a request's key was looked at, and when.
struct Seen {
    service: Arc<Service>,
    at: Instant,
}

/// The key that `request` was sent with. [`Error::Unauthorized`] when there is none, or one that is not valid, or one that signs while the
/// request's signature is missing or wrong; over a body it is checked when that is read.
pub(super) async fn authenticated(api: &Api, request: &HttpRequest) -> Result<Arc<Key>> {
    let known = known_key::find(&api.service, authorization(request)?).await?;
    request.extensions_mut().insert(Seen { service: Arc::clone(&api.service), at: Instant::now() });
    signature::demand(api, request, &known).await?;
    Ok(Arc::clone(&known.key))
}

/// Looks at the key of `request` again, if it was [`authenticated`] and its body has been long in coming. [`Error::Unauthorized`] when the key was
/// revoked meanwhile, or is over.
pub(super) async fn still(request: &HttpRequest) -> Result<()> {
    let seen = request.extensions_mut().remove::<Seen>();
    if let Some(seen) = seen.filter(|seen| seen.at.elapsed() > GOOD_FOR) {
        known_key::find(&seen.service, authorization(request)?).await?;
    }
    Ok(())
}

fn authorization(request: &HttpRequest) -> Result<Option<&str>> {
    let header = request.headers().get(header::AUTHORIZATION);
    let not_ascii = |_| Error::Unauthorized("the Authorization header is not ASCII".into());
    header.map(|value| value.to_str().map_err(not_ascii)).transpose()
}

/// The board of this name, if whoever sent `request` may read it. A board that everybody may read asks for no key, and looks
/// at none.
pub(super) async fn readable(api: &Api, request: &HttpRequest, slug: &BoardSlug) -> Result<Arc<Board>> {
    let board = board::find(&api.service, slug).await?;
    if board.reading == Reading::Key {
        authenticated(api, request).await?.may_read(slug)?;
    }
    Ok(board)
}

/// The boards that whoever sent `request` may read.
pub(super) async fn readable_boards(api: &Api, request: &HttpRequest) -> Result<Vec<Board>> {
    let key = if request.headers().contains_key(header::AUTHORIZATION) {
        Some(authenticated(api, request).await?)
    } else {
        None
    };
    let mut boards = board::list(&api.service).await?;
    boards.retain(|board| {
        board.reading == Reading::Public || key.as_ref().is_some_and(|key| key.may_read(&board.slug).is_ok())
    });
    Ok(boards)
}

/// Refuses a request without a key of a game server, or of an admin.
pub(super) async fn server(api: &Api, request: &HttpRequest) -> Result<()> {
    authenticated(api, request).await?.may_serve()
}

/// Whoever sent `request` with an admin key. [`Error::Forbidden`] when it is another kind of key.
pub(super) async fn admin(api: &Api, request: &HttpRequest) -> Result<Actor> {
    let key = authenticated(api, request).await?;
    key.may_administer()?;
    Ok(Actor::from(&*key))
}

/// Refuses a request without a key to read players' profiles with, once every board asks for one.
pub(super) async fn profile_reader(api: &Api, request: &HttpRequest) -> Result<()> {
    let boards = board::list(&api.service).await?;
    if !boards.is_empty() && boards.iter().all(|board| board.reading == Reading::Key) {
        authenticated(api, request).await?;
    }
    Ok(())
}
