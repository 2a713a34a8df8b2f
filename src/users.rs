//! Players: profiles, bans, and erasure.

use hyper::Uri;

use crate::{
    Code, Error, Resource, Result,
    model::{
        act::{Act, Actor},
        board::BoardPattern,
        segment::check_value,
        user::{Profile, User, UserId, check_text},
    },
    ranking::{frozen, rankings::Rankings},
    store::{Administrator, Reader, user::PendingMove},
};

/// Frozen tops changed in one transaction of an erasure: a tenth of a second or two.
const TOPS_PER_STEP: i32 = 100;

/// Maximum attempts to move a player on one board.
const MOVE_ATTEMPTS: u32 = 4;

#[derive(Debug, Clone, Copy)]
pub struct Editor<'a> {
    /// Recorded in the audit log; required if `boards` is not empty.
    pub actor: Option<&'a Actor>,
    /// Boards whose players the editor may change; empty for all boards.
    pub boards: &'a [BoardPattern],
    pub allows_http_avatars: bool,
}

/// Creates or updates a user; returns whether it was created. Changed attributes move the player to
/// other segments on all boards.
///
/// Returns [`Error::Forbidden`] when the editor is limited to boards and the user has scores on
/// other boards only. Returns [`Error::Conflict`] if the user was erased. If it fails because the player
/// cannot be moved on a board now, a repeated call or the next maintenance moves the player.
pub async fn put(
    admin: &Administrator,
    rankings: &Rankings,
    user_id: &UserId,
    profile: Profile,
    editor: Editor<'_>,
) -> Result<(User, bool)> {
    if let Some(name) = &profile.name {
        check_text("name", name, 128)?;
    }
    if let Some(avatar) = profile.avatar.as_deref().filter(|avatar| !avatar.is_empty()) {
        check_text("avatar_url", avatar, 1_024)?;
        check_avatar(avatar, editor.allows_http_avatars)?;
    }
    for (attribute, value) in &profile.attributes {
        value.as_ref().map_or(Ok(()), |value| check_value(&format!("attributes.{attribute}"), value))?;
    }
    let boards: Vec<String> = editor.boards.iter().map(ToString::to_string).collect();
    let made = admin.put_user(user_id.as_str(), &profile, editor.actor, &boards).await?;
    if !profile.attributes.is_empty() {
        finish_move(admin, rankings, user_id.as_str()).await.map_err(Error::after_write)?;
    }
    Ok((find(&admin.reader, user_id).await.map_err(Error::after_write)?, made))
}

/// Rejects an avatar that is not a web URL.
fn check_avatar(avatar: &str, allows_http: bool) -> Result<()> {
    let uri = avatar.parse::<Uri>().ok().filter(|uri| uri.authority().is_some_and(|host| !host.host().is_empty()));
    match uri.as_ref().and_then(Uri::scheme_str) {
        Some("https") => Ok(()),
        Some("http") if allows_http => Ok(()),
        _ => Err(Error::invalid("avatar_url", "must be an https URL, such as https://example.com/ada.png")),
    }
}

/// Returns the user with this id. Returns [`Error::NotFound`] when there is none.
pub async fn find(reader: &Reader, user_id: &UserId) -> Result<User> {
    let user = reader.user(user_id.as_str()).await?;
    user.ok_or_else(|| Error::not_found(Resource::User, user_id.as_str()))
}

/// Erases a player's identity; returns the new id.
///
/// Replaces id, name, avatar and metadata in all stored data, including frozen tops. Scores stay.
/// Erasure cannot be undone.
///
/// The old id is stored nowhere, so a repeated call needs the new id. A repeated call with the same
/// `request_id`, of 1 to 128 bytes, returns the same new id for seven days.
///
/// Returns [`Error::Retry`] when PostgreSQL is done but Redis, which may still have tops with
/// the name, did not answer.
pub async fn erase(
    admin: &Administrator,
    rankings: &Rankings,
    user_id: &UserId,
    request_id: Option<&str>,
    by: &Actor,
) -> Result<String> {
    request_id.map_or(Ok(()), |id| check_text("id", id, 128))?;
    let erased = admin.erase_user(user_id.as_str(), request_id, by).await?;
    let moved = finish_move(admin, rankings, &erased).await;
    // Without a request id, the caller needs the new id to repeat the call.
    let unfinished = |error: Error| {
        error.with_message(|cause| format!("the player's id is now {erased}; {cause}; erase {erased} to finish"))
    };
    if !erase_from_tops(admin, rankings, &erased).await.map_err(unfinished)? {
        let message =
            "Redis did not answer and may keep the name in tops of closed periods until maintenance removes them";
        return Err(unfinished(Error::retry(Code::Unavailable, message)));
    }
    moved.map_err(unfinished)?;
    Ok(erased)
}

/// Continues interrupted erasures, each independently; returns the last failure, if any.
pub(crate) async fn finish_erasures(admin: &Administrator, rankings: &Rankings) -> Result<()> {
    let mut ended = Ok(());
    for erased in admin.unfinished_erasures().await? {
        if let Err(error) = erase_from_tops(admin, rankings, &erased).await {
            tracing::error!(player = erased, %error, "an erasure could not be completed");
            ended = Err(error);
        }
    }
    ended
}

/// Moves the users whose changed attributes are not yet applied to all boards; returns the last error,
/// if any.
pub(crate) async fn finish_moves(admin: &Administrator, rankings: &Rankings) -> Result<()> {
    let mut ended = Ok(());
    for user_id in admin.unfinished_moves().await? {
        if let Err(error) = finish_move(admin, rankings, &user_id).await {
            tracing::error!(player = user_id, %error, "a player could not be moved to other segments");
            ended = Err(error);
        }
    }
    ended
}

/// Moves a user whose attributes have changed on all boards with segments. May be repeated. If the
/// user cannot be moved on a board, goes on with the others, and returns the last error.
async fn finish_move(admin: &Administrator, rankings: &Rankings, user_id: &str) -> Result<()> {
    let Some(pending) = admin.pending_move(user_id).await? else { return Ok(()) };
    let mut ended = Ok(());
    for (board_id, board) in admin.boards_with_segments().await? {
        match move_on_board(admin, &board, pending).await {
            Ok(()) => rankings.acknowledge_all(board_id).await?,
            Err(error) => ended = Err(error),
        }
    }
    ended?;
    admin.end_move(pending).await
}

async fn move_on_board(admin: &Administrator, board: &str, pending: PendingMove) -> Result<()> {
    let mut attempts = 1;
    // Another session may open a period between two steps of `centile_store.move_player`.
    while let Err(error) = admin.move_on_board(board, pending).await {
        let is_replaced = matches!(error, Error::Retry { code: Code::ConcurrentChange, .. });
        if !is_replaced || attempts == MOVE_ATTEMPTS {
            return Err(error);
        }
        attempts += 1;
    }
    Ok(())
}

/// Replaces the old name in frozen tops, webhook messages and caches, in steps that do not block
/// writers for long.
///
/// Returns whether Redis has dropped all of those tops.
async fn erase_from_tops(admin: &Administrator, rankings: &Rankings, erased: &str) -> Result<bool> {
    let mut redis_answers = true;
    // This instance must not show lists with the name again, even while PostgreSQL is unreachable.
    rankings.forget_frozen_tops();
    loop {
        let (periods, is_done) = admin.erase_from_tops(erased, TOPS_PER_STEP).await?;
        redis_answers &= frozen::remove_shared(admin, &rankings.cache, Some(&periods)).await?;
        if is_done {
            rankings.forget_frozen_tops();
            return Ok(redis_answers);
        }
    }
}

/// Bans or unbans a player. A ban removes the player from every open ranking. An unban restores the
/// entries from the ledger.
///
/// Writes a transaction to the ledger of every board that the player has scored on. Run it again
/// after an interruption: the mark on the user is set first and removed last, so it keeps scores
/// out meanwhile. A later ban or unban wins; this one then returns
/// [`Error::Conflict`].
pub async fn set_banned(
    admin: &Administrator,
    rankings: &Rankings,
    user_id: &UserId,
    banned: bool,
    act: &Act,
) -> Result<User> {
    let ban = admin.begin_ban(user_id.as_str(), banned, act).await?;
    // A board that cannot be changed does not delay the others.
    let (mut failed, mut unchanged) = (None, Vec::new());
    // Templates come before their boards: from then on, no batch gives the player a row on another board.
    for are_of_templates in [false, true] {
        let boards =
            if are_of_templates { admin.template_boards_of(ban).await } else { admin.boards_with_events().await };
        for (owner, board) in boards.map_err(Error::after_write)? {
            let done = async {
                admin.ban_on_board(&board, ban, act).await?;
                rankings.acknowledge_all(owner).await
            };
            match done.await {
                Ok(()) => {}
                // The later ban or unban changes all boards.
                Err(error @ Error::Conflict { code: Code::BanSuperseded, .. }) => return Err(error),
                Err(error) => {
                    tracing::error!(board, %error, "a ban or unban has not reached a board");
                    unchanged.push(board);
                    failed = Some(error);
                }
            }
        }
    }
    if let Some(error) = failed {
        let rest = format!("; run it again to finish the boards {}", unchanged.join(", "));
        // Callers do not see the text of an internal error.
        let other = || Error::retry(Code::Unavailable, "an internal error occurred; see the log of the instance");
        let error = if error.is_temporary() { error } else { other() };
        return Err(error.with_message(|message| message + &rest));
    }
    // A user erased meanwhile has a new id.
    let user_id = admin.end_ban(ban, act).await?;
    find(&admin.reader, &user_id.parse()?).await.map_err(Error::after_write)
}
