//! The caller of a request: its API key and what the key allows.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

use actix_web::{HttpMessage as _, HttpRequest, http::header};
use base64::{Engine as _, prelude::BASE64_STANDARD};

use crate::{
    Code, Error, Resource, Result,
    access::key_cache::{self, CachedKey},
    boards,
    http::server::Api,
    instance::Instance,
    model::{
        act::Actor,
        board::{Board, BoardSlug, Reading},
        key::Key,
        user::{User, UserId},
    },
    users,
};

/// Path at which a browser may send the key as a password.
pub(crate) const PASSWORD_PATH: &str = "/ops/";

/// Age of a key check after which the key is checked again once the body has arrived.
///
/// It adds to the age of the cached key, so it is short. A body may take far longer to arrive.
const RECHECK_AFTER: Duration = Duration::from_millis(500);

/// A valid key of a request. The rate limit checks it first, so that its secret is hashed once.
pub(crate) struct CheckedKey {
    pub(crate) known: Arc<CachedKey>,
    /// Time of the check.
    pub(crate) at: Instant,
}

impl CheckedKey {
    /// Returns the key of `request` if it was checked recently, and the time of that check.
    pub(crate) fn from_request(request: &HttpRequest) -> Option<(Arc<CachedKey>, Instant)> {
        let extensions = request.extensions();
        let checked = extensions.get::<Self>().filter(|checked| checked.at.elapsed() <= RECHECK_AFTER);
        checked.map(|checked| (Arc::clone(&checked.known), checked.at))
    }
}

/// When and where a request's key was checked.
struct KeyCheck {
    instance: Arc<Instance>,
    checked_at: Instant,
}

/// Returns the key of `request`, and records its use. [`Error::Unauthorized`] if it is missing or
/// invalid.
pub(crate) async fn authenticated(api: &Api, request: &HttpRequest) -> Result<Arc<Key>> {
    let (known, checked_at) = match CheckedKey::from_request(request) {
        Some(checked) => checked,
        None => (key_cache::find(&api.instance.keys, authorization(request)?.as_deref()).await?, Instant::now()),
    };
    request.extensions_mut().insert(KeyCheck { instance: Arc::clone(&api.instance), checked_at });
    known.record_use(&api.instance.store.admin).await;
    Ok(Arc::clone(&known.key))
}

/// Checks the key of an [`authenticated`] request again if its body was slow to arrive.
///
/// [`Error::Unauthorized`] if the key was revoked or has expired meanwhile.
pub(crate) async fn recheck(request: &HttpRequest) -> Result<()> {
    let check = request.extensions_mut().remove::<KeyCheck>();
    if let Some(check) = check.filter(|check| check.checked_at.elapsed() > RECHECK_AFTER) {
        key_cache::find(&check.instance.keys, authorization(request)?.as_deref()).await?;
    }
    Ok(())
}

/// Returns the `Authorization` header in the form that programs send.
///
/// [`Error::Unauthorized`] if there are several: proxies disagree about which of them counts.
pub(crate) fn authorization(request: &HttpRequest) -> Result<Option<Cow<'_, str>>> {
    let mut headers = request.headers().get_all(header::AUTHORIZATION);
    let header = headers.next();
    if headers.next().is_some() {
        return Err(Error::unauthorized(Code::KeyInvalid, "the request has several Authorization headers"));
    }
    let not_ascii = |_| Error::unauthorized(Code::KeyInvalid, "the Authorization header is not ASCII");
    header.map(|value| value.to_str().map(|text| as_sent(request.path(), text)).map_err(not_ascii)).transpose()
}

/// Returns an `Authorization` header for `path` in the form that programs send.
///
/// On the `/ops/` page, a browser sends the key as a password (`Basic`, RFC 7617). Other paths
/// ignore passwords: browsers resend them automatically, even for requests that another site's page
/// makes.
pub(crate) fn as_sent<'a>(path: &str, text: &'a str) -> Cow<'a, str> {
    let password = (path == PASSWORD_PATH).then(|| password(text)).flatten();
    password.map_or(Cow::Borrowed(text), |password| Cow::Owned(format!("Bearer {password}")))
}

fn password(text: &str) -> Option<String> {
    let (scheme, credentials) = text.split_once(' ')?;
    let credentials = scheme.eq_ignore_ascii_case("basic").then(|| BASE64_STANDARD.decode(credentials.trim()))?.ok()?;
    let (_, password) = std::str::from_utf8(&credentials).ok()?.split_once(':')?;
    Some(password.trim().to_owned())
}

/// Returns a board that the caller may read. A public board needs no key, and a key sent for it is
/// ignored.
///
/// [`Error::Outage`] if the caller has no valid key for the board and the service cannot tell
/// whether the board needs one.
pub(crate) async fn readable(api: &Api, request: &HttpRequest, slug: &BoardSlug) -> Result<Arc<Board>> {
    let board = boards::find(&api.instance.boards, slug).await?;
    if board.reading == Reading::Key {
        let is_shut = api.instance.boards.requires_key_for_outage(&board);
        let allowed = authenticated(api, request).await.and_then(|key| key.may_read(slug));
        allowed.map_err(|error| match error {
            Error::Unauthorized { .. } | Error::Forbidden(_) if is_shut => Error::Outage(format!(
                "the database cannot be reached now, so access to board {slug} cannot be checked"
            )),
            other => other,
        })?;
    }
    Ok(board)
}

/// Returns whether the request has a valid key.
pub(crate) async fn has_key(api: &Api, request: &HttpRequest) -> bool {
    request.headers().contains_key(header::AUTHORIZATION) && authenticated(api, request).await.is_ok()
}

/// Returns whether the request has a key that may write to `board`, or to some board if `None`.
///
/// [`Error::Unauthorized`] if the request has an invalid key: its sender expects what the key shows.
pub(crate) async fn is_server(api: &Api, request: &HttpRequest, board: Option<&BoardSlug>) -> Result<bool> {
    let key = optional_key(api, request).await?;
    Ok(key.is_some_and(|key| match board {
        Some(board) => key.may_write(board).is_ok(),
        None => key.may_serve().is_ok(),
    }))
}

/// Returns the key of the request, if it has one. [`Error::Unauthorized`] if it is invalid.
pub(crate) async fn optional_key(api: &Api, request: &HttpRequest) -> Result<Option<Arc<Key>>> {
    Ok(if request.headers().contains_key(header::AUTHORIZATION) {
        Some(authenticated(api, request).await?)
    } else {
        None
    })
}

/// Returns the caller's key if it is a server or admin key. [`Error::Forbidden`] for any other.
pub(crate) async fn server(api: &Api, request: &HttpRequest) -> Result<Arc<Key>> {
    let key = authenticated(api, request).await?;
    key.may_serve()?;
    Ok(key)
}

/// Returns the holder of an admin key. [`Error::Forbidden`] for any other key.
pub(crate) async fn admin(api: &Api, request: &HttpRequest) -> Result<Actor> {
    let key = authenticated(api, request).await?;
    key.may_administer()?;
    Ok(Actor::from(&*key))
}

/// Returns a profile that the caller with this key may read. Without a key, a profile that needs one
/// is like that of an unknown player.
pub(crate) async fn readable_profile(api: &Api, key: Option<&Key>, user_id: &UserId) -> Result<User> {
    let found = users::find(&api.instance.store.reader, user_id).await;
    let default = api.settings.profiles;
    match found {
        found if key.is_some() => found,
        Ok(user) if user.reading.unwrap_or(default) == Reading::Public => Ok(user),
        Ok(_) | Err(Error::NotFound { .. }) if default == Reading::Key => Err(key_cache::missing()),
        Ok(_) => Err(Error::not_found(Resource::User, user_id.as_str())),
        Err(error) => Err(error),
    }
}

/// Reads about a player on a board that the caller may read. A player who is not shown there
/// (`is_shown`) and whose profile the caller may not read is like an unknown player.
pub(crate) async fn listed<T>(
    api: &Api,
    request: &HttpRequest,
    user_id: &UserId,
    read: Result<T>,
    is_shown: impl FnOnce(&T) -> bool,
) -> Result<T> {
    let is_hidden = match &read {
        Ok(found) => !is_shown(found),
        Err(error) => matches!(error, Error::NotFound { what: Resource::Score, .. }),
    };
    if !is_hidden {
        return read;
    }
    let has_key = match optional_key(api, request).await {
        // An invalid key is like none.
        Err(Error::Unauthorized { .. }) => false,
        key => key?.is_some(),
    };
    if !has_key {
        match readable_profile(api, None, user_id).await {
            Err(Error::NotFound { .. } | Error::Unauthorized { .. }) => {
                return Err(Error::not_found(Resource::User, user_id.as_str()));
            }
            profile => drop(profile?),
        }
    }
    read
}

/// Refuses a caller who may not read the friends of a player. Server and admin keys may. Any other
/// caller must be allowed to read the profile and every board, because friends may play on any of them.
pub(crate) async fn friends_reader(api: &Api, request: &HttpRequest, user_id: &UserId) -> Result<()> {
    let key = optional_key(api, request).await?;
    if key.as_ref().is_some_and(|key| key.may_serve().is_ok() || key.boards.is_empty()) {
        return Ok(());
    }
    let boards = key.as_ref().map_or(&[][..], |key| &key.boards);
    if let Some(private) = api.instance.store.reader.private_board(boards).await? {
        let key = key.ok_or_else(key_cache::missing)?;
        return Err(Error::Forbidden(format!("key {} may not read board {private}", key.id)));
    }
    readable_profile(api, key.as_deref(), user_id).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ops_page_accepts_the_key_as_a_password() {
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
