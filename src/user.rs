//! Users: the players that boards share.

use std::{fmt, str::FromStr};

use crate::{
    Error, Result,
    act::{Act, Actor},
    board,
    service::Service,
};

/// Most bytes of a user's metadata, as JSON.
const METADATA_MAX_BYTES: usize = 8_192;

/// Frozen tops that are changed in one transaction when a player is forgotten: a tenth of a second or two.
const TOPS_AT_ONCE: i32 = 100;

/// The caller's own id of a player: 1 to 128 bytes of UTF-8 without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserId(String);

impl UserId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        check_text("user_id", text, 128).map(|()| Self(text.to_owned()))
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Refuses text that is empty, longer than `max_bytes`, or holds control characters (which covers what PostgreSQL
/// cannot store, U+0000).
pub(crate) fn check_text(field: &str, text: &str, max_bytes: usize) -> Result<()> {
    if text.is_empty() {
        Err(Error::invalid(field, "must not be empty"))
    } else if text.len() > max_bytes {
        Err(Error::invalid(field, format!("has {} bytes; at most {max_bytes} are allowed", text.len())))
    } else if text.chars().any(char::is_control) {
        Err(Error::invalid(field, "must not hold control characters"))
    } else {
        Ok(())
    }
}

/// A player as other players may see them.
#[derive(Debug, Clone, PartialEq)]
pub struct User {
    /// The caller's own id.
    pub user_id: String,
    /// Name shown in lists.
    pub name: String,
    /// Address of a picture.
    pub avatar: Option<String>,
    /// Whatever the game keeps with a player; a JSON object.
    pub metadata: serde_json::Value,
    /// Whether the player is banned.
    pub banned: bool,
}

/// What `PUT /v1/users/{user_id}` sets; what is absent stays (or takes its default on a new user).
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Name shown in lists, 1 to 128 bytes.
    pub name: Option<String>,
    /// Address of a picture, up to 1,024 bytes; an empty one removes it.
    pub avatar: Option<String>,
    /// A JSON object of up to 8,192 bytes.
    pub metadata: Option<serde_json::Value>,
}

/// Makes or changes a user; tells whether it was made.
pub async fn put(service: &Service, user_id: &UserId, profile: Profile) -> Result<(User, bool)> {
    if let Some(name) = &profile.name {
        check_text("name", name, 128)?;
    }
    if let Some(avatar) = profile.avatar.as_deref().filter(|avatar| !avatar.is_empty()) {
        check_text("avatar", avatar, 1_024)?;
    }
    if let Some(metadata) = &profile.metadata {
        if !metadata.is_object() {
            return Err(Error::invalid("metadata", "must be a JSON object"));
        }
        let text = metadata.to_string();
        if text.len() > METADATA_MAX_BYTES {
            return Err(Error::invalid("metadata", format!("at most {METADATA_MAX_BYTES} bytes are allowed")));
        }
        // PostgreSQL's jsonb cannot hold U+0000, which JSON writes so; a literal backslash before `u0000` is written as two.
        if text.replace("\\\\", "").contains("\\u0000") {
            return Err(Error::invalid("metadata", "must not hold U+0000"));
        }
    }
    let made = service.store.put_user(user_id.as_str(), &profile).await?;
    Ok((find(service, user_id).await?, made))
}

/// The user of this id. [`Error::NotFound`] when there is none.
pub async fn find(service: &Service, user_id: &UserId) -> Result<User> {
    let user = service.store.user(user_id.as_str()).await?;
    user.ok_or_else(|| Error::not_found("user", user_id.as_str()))
}

/// Takes a player out of every open ranking until unbanned; an act in the ledger of every board the player has played.
///
/// May be run again when it was cut short: the mark on the user, set first, already keeps scores out. [`Error::Conflict`] when a later
/// ban or unban has begun meanwhile, which counts.
pub async fn ban(service: &Service, user_id: &UserId, act: &Act) -> Result<User> {
    set_banned(service, user_id, true, act).await
}

/// Puts a banned player back where the ledger says. May be run again when it was cut short: the mark goes last. [`Error::Conflict`]
/// as for [`ban`].
pub async fn unban(service: &Service, user_id: &UserId, act: &Act) -> Result<User> {
    set_banned(service, user_id, false, act).await
}

/// Forgets who a player was: id, name, avatar and metadata are replaced wherever they are kept, frozen tops included; scores stay.
/// Gives the new id, by which it may be run again. There is no way back.
///
/// The old id is not kept anywhere, so that nobody can ask by it what became of it. A `request_id`, of 1 to 128 bytes, leads to the
/// same answer for seven days.
///
/// [`Error::Unavailable`] when it is done in PostgreSQL and Redis, which still has tops with the name, did not answer.
pub async fn erase(service: &Service, user_id: &UserId, request_id: Option<&str>, by: &Actor) -> Result<String> {
    request_id.map_or(Ok(()), |id| check_text("id", id, 128))?;
    let erased = service.store.erase_user(user_id.as_str(), request_id, by).await?;
    if erase_from_tops(service, &erased).await? {
        Ok(erased)
    } else {
        Err(Error::unavailable(format!(
            "the player is {erased} now; Redis did not answer and may have the name in tops of closed periods for a day: erase {erased} \
             once it does"
        )))
    }
}

/// Goes on with erasures that were cut short, with each for itself; the last failure, if there is one.
pub(crate) async fn finish_erasures(service: &Service) -> Result<()> {
    let mut ended = Ok(());
    for erased in service.store.unfinished_erasures().await? {
        if let Err(error) = erase_from_tops(service, &erased).await {
            tracing::error!(player = erased, %error, "an erasure could not be ended");
            ended = Err(error);
        }
    }
    ended
}

/// Takes the old name out of frozen tops, events and caches, some at a time: those who write to them wait for no more than a step. Gives
/// whether Redis has none of those tops any more.
async fn erase_from_tops(service: &Service, erased: &str) -> Result<bool> {
    let mut redis_answers = true;
    // Lists with the name are shown by this instance no more, also while PostgreSQL cannot be reached.
    service.tops.forget_all();
    loop {
        let (periods, is_done) = service.store.erase_from_tops(erased, TOPS_AT_ONCE).await?;
        redis_answers &= service.cache.forget_closed(&periods).await;
        if is_done {
            service.tops.forget_all();
            return Ok(redis_answers);
        }
    }
}

async fn set_banned(service: &Service, user_id: &UserId, banned: bool, act: &Act) -> Result<User> {
    let ban = service.store.begin_ban(user_id.as_str(), banned, act).await?;
    // A board that cannot be changed now does not hold up the others.
    let mut failed = None;
    for board in board::list(service).await? {
        match service.store.ban_on_board(board.slug.as_str(), ban, act).await {
            Ok(()) => service.acknowledged_all(board.id).await?,
            Err(Error::Unavailable { message, retry_after }) => {
                let message = format!("{message}; done on the other boards, run it again for this one");
                failed = Some(Error::Unavailable { message, retry_after });
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    // Who was erased meanwhile is called otherwise.
    let user_id = service.store.end_ban(ban, act).await?;
    find(service, &user_id.parse()?).await
}
