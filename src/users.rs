//! Players: profiles, bans, and erasure.

use hyper::Uri;

use crate::{
    Error, Result, boards,
    model::{
        act::{Act, Actor},
        board::BoardSlug,
        user::{METADATA_MAX_BYTES, Profile, User, UserId, check_text},
    },
    ranking::Rankings,
    store::Store,
};

/// Frozen tops that are changed in one transaction when a player is forgotten: a tenth of a second or two.
const TOPS_AT_ONCE: i32 = 100;

/// The editor of a profile.
#[derive(Debug, Clone, Copy)]
pub struct Editor<'a> {
    /// Named in the audit log; needed where boards are.
    pub actor: Option<&'a Actor>,
    /// Boards whose players may be changed; none for all boards.
    pub boards: &'a [BoardSlug],
    /// Whether avatars may have an http address.
    pub allows_http_avatars: bool,
}

/// Makes or changes a user. Returns whether it was made.
///
/// [`Error::Forbidden`] if the user has scores, and none on the boards of an editor who is limited to
/// some. [`Error::Conflict`] if the user was erased.
pub async fn put(store: &Store, user_id: &UserId, profile: Profile, editor: Editor<'_>) -> Result<(User, bool)> {
    if let Some(name) = &profile.name {
        check_text("name", name, 128)?;
    }
    if let Some(avatar) = profile.avatar.as_deref().filter(|avatar| !avatar.is_empty()) {
        check_text("avatar", avatar, 1_024)?;
        check_avatar(avatar, editor.allows_http_avatars)?;
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
    let boards: Vec<String> = editor.boards.iter().map(ToString::to_string).collect();
    let made = store.put_user(user_id.as_str(), &profile, editor.actor, &boards).await?;
    Ok((find(store, user_id).await?, made))
}

/// Refuses an avatar that is not an address of a web server.
fn check_avatar(avatar: &str, allows_http: bool) -> Result<()> {
    let uri = avatar.parse::<Uri>().ok().filter(|uri| uri.authority().is_some_and(|host| !host.host().is_empty()));
    match uri.as_ref().and_then(Uri::scheme_str) {
        Some("https") => Ok(()),
        Some("http") if allows_http => Ok(()),
        _ => Err(Error::invalid("avatar", "must be an https address, such as https://example.com/ada.png")),
    }
}

/// The user of this id. [`Error::NotFound`] when there is none.
pub async fn find(store: &Store, user_id: &UserId) -> Result<User> {
    let user = store.user(user_id.as_str()).await?;
    user.ok_or_else(|| Error::not_found("user", user_id.as_str()))
}

/// Takes a player out of every open ranking until unbanned; an act in the ledger of every board the player has played.
///
/// May be run again when it was cut short: the mark on the user, set first, already keeps scores out. [`Error::Conflict`] when a later
/// ban or unban has begun meanwhile, which counts.
pub async fn ban(rankings: &Rankings, user_id: &UserId, act: &Act) -> Result<User> {
    set_banned(rankings, user_id, true, act).await
}

/// Puts a banned player back where the ledger says. May be run again when it was cut short: the mark goes last. [`Error::Conflict`]
/// as for [`ban`].
pub async fn unban(rankings: &Rankings, user_id: &UserId, act: &Act) -> Result<User> {
    set_banned(rankings, user_id, false, act).await
}

/// Forgets who a player was: id, name, avatar and metadata are replaced wherever they are kept, frozen tops included; scores stay.
/// Gives the new id, by which it may be run again. There is no way back.
///
/// The old id is not kept anywhere, so that nobody can ask by it what became of it. A `request_id`, of 1 to 128 bytes, leads to the
/// same answer for seven days.
///
/// [`Error::Unavailable`] when it is done in PostgreSQL and Redis, which still has tops with the name, did not answer.
pub async fn erase(rankings: &Rankings, user_id: &UserId, request_id: Option<&str>, by: &Actor) -> Result<String> {
    request_id.map_or(Ok(()), |id| check_text("id", id, 128))?;
    let erased = rankings.store.erase_user(user_id.as_str(), request_id, by).await?;
    if erase_from_tops(rankings, &erased).await? {
        Ok(erased)
    } else {
        Err(Error::unavailable(format!(
            "the player is {erased} now; Redis did not answer and may have the name in tops of closed periods for a day: erase {erased} \
             once it does"
        )))
    }
}

/// Goes on with erasures that were cut short, with each for itself; the last failure, if there is one.
pub(crate) async fn finish_erasures(rankings: &Rankings) -> Result<()> {
    let mut ended = Ok(());
    for erased in rankings.store.unfinished_erasures().await? {
        if let Err(error) = erase_from_tops(rankings, &erased).await {
            tracing::error!(player = erased, %error, "an erasure could not be ended");
            ended = Err(error);
        }
    }
    ended
}

/// Takes the old name out of frozen tops, events and caches, some at a time: those who write to them wait for no more than a step. Gives
/// whether Redis has none of those tops any more.
async fn erase_from_tops(rankings: &Rankings, erased: &str) -> Result<bool> {
    let mut redis_answers = true;
    // Lists with the name are shown by this instance no more, also while PostgreSQL cannot be reached.
    rankings.forget_frozen_tops();
    loop {
        let (periods, is_done) = rankings.store.erase_from_tops(erased, TOPS_AT_ONCE).await?;
        redis_answers &= rankings.cache.forget_closed(&periods).await;
        if is_done {
            rankings.forget_frozen_tops();
            return Ok(redis_answers);
        }
    }
}

async fn set_banned(rankings: &Rankings, user_id: &UserId, banned: bool, act: &Act) -> Result<User> {
    let ban = rankings.store.begin_ban(user_id.as_str(), banned, act).await?;
    // A board that cannot be changed now does not hold up the others.
    let mut failed = None;
    for board in boards::list(&rankings.store).await? {
        match rankings.store.ban_on_board(board.slug.as_str(), ban, act).await {
            Ok(()) => rankings.acknowledge_all(board.id).await?,
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
    // A user erased meanwhile has a new id.
    let user_id = rankings.store.end_ban(ban, act).await?;
    find(&rankings.store, &user_id.parse()?).await
}
