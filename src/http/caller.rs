//! Who calls, and what for: the API key of a request.

use std::sync::Arc;

use actix_web::{HttpRequest, http::header};

use super::{Api, signature};
use crate::{
    Error, Result,
    act::Actor,
    board::{self, Board, BoardSlug, Reading},
    key::Key,
    known_key,
};

/// The key that `request` was sent with. [`Error::Unauthorized`] when there is none, or one that is not valid, or one that signs while the
/// request's signature is missing or wrong; over a body it is checked when that is read.
pub(super) async fn authenticated(api: &Api, request: &HttpRequest) -> Result<Arc<Key>> {
    let authorization = request
        .headers()
        .get(header::AUTHORIZATION)
        .map(|value| value.to_str().map_err(|_| Error::Unauthorized("the Authorization header is not ASCII".into())))
        .transpose()?;
    let known = known_key::find(&api.service, authorization).await?;
    signature::demand(api, request, &known).await?;
    Ok(Arc::clone(&known.key))
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
