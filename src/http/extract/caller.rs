//! Who calls, and what for: the API key of a request.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

use actix_web::{HttpMessage as _, HttpRequest, http::header};
use base64::{Engine as _, prelude::BASE64_STANDARD};

use crate::{
    Error, Result,
    access::key_cache::{self, CachedKey},
    boards,
    http::{Api, extract::signature, ops},
    instance::Instance,
    model::{
        act::Actor,
        board::{Board, BoardSlug, Reading},
        key::Key,
    },
};

/// How long after it was looked at a key may be acted with: by so much more than what is known of it is old, and a body may take far longer.
const GOOD_FOR: Duration = Duration::from_millis(500);

/// The key of a request, which works. The rate limit checks it first, so that its secret is hashed once.
pub(crate) struct CheckedKey {
    known: Arc<CachedKey>,
    at: Instant,
}

impl CheckedKey {
    /// The key `known`, checked now.
    pub(crate) fn new(known: &Arc<CachedKey>) -> Self {
        Self { known: Arc::clone(known), at: Instant::now() }
    }

    /// The key of `request`, if it was checked just now.
    pub(crate) fn of(request: &HttpRequest) -> Option<Arc<CachedKey>> {
        let extensions = request.extensions();
        let checked = extensions.get::<Self>().filter(|checked| checked.at.elapsed() <= GOOD_FOR);
        checked.map(|checked| Arc::clone(&checked.known))
    }
}

/// When the key of a request was last checked.
struct Seen {
    instance: Arc<Instance>,
    at: Instant,
}

/// The key that `request` was sent with. [`Error::Unauthorized`] when there is none, or one that is not valid, or one that signs while the
/// request's signature is missing or wrong; over a body it is checked when that is read.
pub(crate) async fn authenticated(api: &Api, request: &HttpRequest) -> Result<Arc<Key>> {
    let known = match CheckedKey::of(request) {
        Some(known) => known,
        None => key_cache::find(&api.instance.keys, authorization(request)?.as_deref()).await?,
    };
    request.extensions_mut().insert(Seen { instance: Arc::clone(&api.instance), at: Instant::now() });
    signature::demand(api, request, &known).await?;
    Ok(Arc::clone(&known.key))
}

/// Looks at the key of `request` again, if it was [`authenticated`] and its body has been long in coming. [`Error::Unauthorized`] when the key was
/// revoked meanwhile, or is over.
pub(crate) async fn still(request: &HttpRequest) -> Result<()> {
    let seen = request.extensions_mut().remove::<Seen>();
    if let Some(seen) = seen.filter(|seen| seen.at.elapsed() > GOOD_FOR) {
        key_cache::find(&seen.instance.keys, authorization(request)?.as_deref()).await?;
    }
    Ok(())
}

fn authorization(request: &HttpRequest) -> Result<Option<Cow<'_, str>>> {
    let header = request.headers().get(header::AUTHORIZATION);
    let not_ascii = |_| Error::Unauthorized("the Authorization header is not ASCII".into());
    header.map(|value| value.to_str().map(|text| as_sent(request.path(), text)).map_err(not_ascii)).transpose()
}

/// The text of an `Authorization` header on the way to `path`, as programs send it. Where people look, a browser asks them for the key as a password
/// (`Basic`, RFC 7617). Nowhere else: it sends that along by itself afterwards, also with what other pages have it ask for.
pub(crate) fn as_sent<'a>(path: &str, text: &'a str) -> Cow<'a, str> {
    let password = (path == ops::PATH).then(|| password(text)).flatten();
    password.map_or(Cow::Borrowed(text), |password| Cow::Owned(format!("Bearer {password}")))
}

fn password(text: &str) -> Option<String> {
    let (scheme, credentials) = text.split_once(' ')?;
    let credentials = scheme.eq_ignore_ascii_case("basic").then(|| BASE64_STANDARD.decode(credentials.trim()))?.ok()?;
    let (_, password) = std::str::from_utf8(&credentials).ok()?.split_once(':')?;
    Some(password.trim().to_owned())
}

/// The board of this name, if whoever sent `request` may read it. A board that everybody may read asks for no key, and looks
/// at none. [`Error::Unavailable`] for whoever has no key for it while nobody can tell whether one is needed.
pub(crate) async fn readable(api: &Api, request: &HttpRequest, slug: &BoardSlug) -> Result<Arc<Board>> {
    let board = boards::find(&api.instance.boards, slug).await?;
    if board.reading == Reading::Key {
        let is_shut = api.instance.boards.cache.is_shut_for_safety(&board);
        let allowed = authenticated(api, request).await.and_then(|key| key.may_read(slug));
        allowed.map_err(|error| match error {
            Error::Unauthorized(_) | Error::Forbidden(_) if is_shut => Error::unavailable(format!(
                "the database cannot be reached now; who may read board {slug} is not known"
            )),
            other => other,
        })?;
    }
    Ok(board)
}

/// The boards that whoever sent `request` may read.
pub(crate) async fn readable_boards(api: &Api, request: &HttpRequest) -> Result<Vec<Board>> {
    let key = if request.headers().contains_key(header::AUTHORIZATION) {
        Some(authenticated(api, request).await?)
    } else {
        None
    };
    let mut boards = boards::list(&api.instance.store).await?;
    boards.retain(|board| {
        board.reading == Reading::Public || key.as_ref().is_some_and(|key| key.may_read(&board.slug).is_ok())
    });
    Ok(boards)
}

/// Whether the request has a key that works.
pub(crate) async fn has_key(api: &Api, request: &HttpRequest) -> bool {
    request.headers().contains_key(header::AUTHORIZATION) && authenticated(api, request).await.is_ok()
}

/// The key of a game server or of an admin. [`Error::Forbidden`] when it is another kind of key.
pub(crate) async fn server(api: &Api, request: &HttpRequest) -> Result<Arc<Key>> {
    let key = authenticated(api, request).await?;
    key.may_serve()?;
    Ok(key)
}

/// Whoever sent `request` with an admin key. [`Error::Forbidden`] when it is another kind of key.
pub(crate) async fn admin(api: &Api, request: &HttpRequest) -> Result<Actor> {
    let key = authenticated(api, request).await?;
    key.may_administer()?;
    Ok(Actor::from(&*key))
}

/// Refuses a request without a key to read players' profiles with, once every board asks for one.
pub(crate) async fn profile_reader(api: &Api, request: &HttpRequest) -> Result<()> {
    let boards = boards::list(&api.instance.store).await?;
    if !boards.is_empty() && boards.iter().all(|board| board.reading == Reading::Key) {
        authenticated(api, request).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_a_key_where_people_look_and_nowhere_else() {
        let sent = |path: &str, text: &str| as_sent(path, text).into_owned();
        let basic = |pair: &str| format!("Basic {}", BASE64_STANDARD.encode(pair));
        assert_eq!(sent("/ops/", &basic("ada:ctl_1_2")), "Bearer ctl_1_2");
        assert_eq!(sent("/ops/", &basic("ada:ctl_1_2").replace("Basic", "bASIC")), "Bearer ctl_1_2");
        assert_eq!(sent("/ops/", &basic(": ctl_1_2\n")), "Bearer ctl_1_2");
        assert_eq!(sent("/ops/", &basic("ada:a:b")), "Bearer a:b");
        assert_eq!(sent("/ops/", "Bearer ctl_1_2"), "Bearer ctl_1_2");
        for path in ["/ops", "/v1/boards", "/v1/keys", "/ops/x", "/"] {
            assert_eq!(sent(path, &basic("ada:ctl_1_2")), basic("ada:ctl_1_2"), "{path}");
        }
        for text in ["Basic", "Basic ", "Basic !", "Basic Y3Rs", "Basic /w==", "Digest YTpi", ""] {
            assert_eq!(sent("/ops/", text), text);
        }
    }
}
