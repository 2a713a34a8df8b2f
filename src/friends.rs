//! Friends of players.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    Error, Resource, Result,
    model::{
        friend::{FRIENDS_MAX, Friend, FriendsChange, FriendsChanged, FriendsOf},
        user::UserId,
    },
    store::{Administrator, Reader},
    users::Editor,
};

/// Changes a player's friends by a list of players. Adding creates unknown players.
///
/// Returns [`Error::Invalid`] for `user_ids` if there are too many or one is the player. Returns
/// [`Error::Conflict`] when the player would have too many friends, or somebody was erased. Returns
/// [`Error::Forbidden`] as [`crate::users::put`] does.
pub(crate) async fn change(
    admin: &Administrator,
    user_id: &UserId,
    change: FriendsChange,
    friends: &[UserId],
    editor: Editor<'_>,
) -> Result<FriendsChanged> {
    if friends.len() > FRIENDS_MAX {
        return Err(Error::invalid("user_ids", format!("must have at most {FRIENDS_MAX} ids, not {}", friends.len())));
    }
    if let Some(place) = friends.iter().position(|friend| friend == user_id)
        && change != FriendsChange::Remove
    {
        return Err(Error::invalid(format!("user_ids[{place}]"), "must be another player"));
    }
    let friends: Vec<String> = friends.iter().map(ToString::to_string).collect();
    let boards: Vec<String> = editor.boards.iter().map(ToString::to_string).collect();
    admin.change_friends(user_id.as_str(), change, &friends, editor.actor, &boards).await
}

/// Returns a page of a player's friends, in the order in which their players were created, and the
/// cursor of the next page. Returns [`Error::NotFound`] if the player does not exist.
pub(crate) async fn page(
    reader: &Reader,
    friends: &FriendsOf,
    limit: usize,
    cursor: Option<&str>,
) -> Result<(Vec<Friend>, Option<String>)> {
    let after = cursor.map_or(Ok(0), parse_cursor)?;
    let one_more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let found = reader.friends(friends, after, one_more).await?;
    let mut found = found.ok_or_else(|| Error::not_found(Resource::User, friends.user_id.as_str()))?;
    let is_last = found.len() <= limit;
    found.truncate(limit);
    let next = found.last().filter(|_| !is_last).map(|(id, _)| URL_SAFE_NO_PAD.encode(id.to_string()));
    Ok((found.into_iter().map(|(_, friend)| friend).collect(), next))
}

/// Returns the internal id of the last friend of a page from the page's cursor.
fn parse_cursor(text: &str) -> Result<i64> {
    let plain = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let id = plain.and_then(|plain| plain.parse().ok()).filter(|id| *id > 0);
    id.ok_or_else(|| Error::invalid("cursor", "is not the `next_cursor` of an earlier page"))
}
