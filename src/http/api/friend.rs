//! `/v1/users/{user_id}/friends`: the friends of a player.

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Payload},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Result, friends,
    http::{
        api::{
            body,
            path::{FriendPath, UserIdText, UserPath},
            query::{self, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX},
            reply,
        },
        auth::caller,
        server::{
            Api,
            problem::{ActProblems, ReadProblems, WriteProblems},
        },
    },
    model::{
        act::Actor,
        friend::{Friend, FriendsChange, FriendsChanged, FriendsOf},
        key::Key,
        user::UserId,
    },
    users::Editor,
};

/// Selects a page of friends.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FriendsQuery {
    /// Whether to list only friends who have the player as a friend, too.
    #[serde(default)]
    #[param(value_type = Option<bool>, default = false)]
    mutual: bool,
    /// Maximum rows of the page.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u64>,
    /// `next_cursor` of an earlier page.
    #[param(min_length = 1)]
    cursor: Option<String>,
}

/// A list of players that changes a player's friends.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FriendsRequest {
    /// Whether these players are added to the friends, removed from them, or replace them.
    change: FriendsChange,
    /// Ids of the players. A repeated id counts once. A whole number is read as its
    /// decimal text.
    #[schema(value_type = Vec<UserIdText>, max_items = 5000, example = json!(["bob", "cyd"]))]
    user_ids: Vec<UserId>,
}

/// A request without content.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoMembers {}

/// A page of a player's friends.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FriendsResponse<'a> {
    /// The friends, in the order in which their players were created.
    data: &'a [Friend],
    /// `cursor` of the next page; null after the last friend.
    #[schema(required = true)]
    next_cursor: Option<&'a str>,
}

/// List friends
///
/// Needs a server or admin key, or the right to read the profile and every board: friends may play on
/// any of them.
#[utoipa::path(
    get, path = "/v1/users/{user_id}/friends", operation_id = "list_friends", tag = "players",
    security((), ("key" = [])), params(UserPath, FriendsQuery),
    responses((status = 200, description = "A page of the player's friends.", body = FriendsResponse), ReadProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let UserPath { user_id } = UserPath::from_request(&request)?;
    caller::friends_reader(&api, &request, &user_id).await?;
    let query: FriendsQuery = query::parse(&request)?;
    let limit = query::bounded("limit", query.limit, LIST_LIMIT_DEFAULT, 1, LIST_LIMIT_MAX)?;
    let of = FriendsOf { user_id, mutual: query.mutual };
    let (data, next) = friends::page(&api.instance.store.reader, &of, limit, query.cursor.as_deref()).await?;
    Ok(reply::read_response(&FriendsResponse { data: &data, next_cursor: next.as_deref() }))
}

/// Change friends by a list
///
/// Adds, removes or replaces up to 5,000 friends, all or nothing. Needs a key as `put_user` does.
/// Adding creates unknown players. Only the friends of this player change, not those of the listed
/// players. A player may have at most 5,000 friends (409 `too_many_friends`). A repeated request has
/// no further effect.
#[utoipa::path(
    post, path = "/v1/users/{user_id}/friends", operation_id = "change_friends", tag = "players", security(("key" = [])),
    params(UserPath), request_body = FriendsRequest,
    responses((status = 200, description = "The friends were changed.", body = FriendsChanged), WriteProblems),
)]
pub(crate) async fn change(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let key = caller::server(&api, &request).await?;
    let UserPath { user_id } = UserPath::from_request(&request)?;
    query::none(&request)?;
    let FriendsRequest { change, user_ids } = body::json(&api, &request, payload).await?;
    let changed = change_friends(&api, &key, &user_id, change, &user_ids).await?;
    Ok(reply::written(StatusCode::OK, &changed))
}

/// Add a friend
///
/// Needs a key as `put_user` does. Creates unknown players. The other direction does not change.
#[utoipa::path(
    put, path = "/v1/users/{user_id}/friends/{friend_id}", operation_id = "add_friend", tag = "players",
    security(("key" = [])), params(UserPath, FriendPath),
    responses((status = 204, description = "The player has this friend."), WriteProblems),
)]
pub(crate) async fn add(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let key = caller::server(&api, &request).await?;
    let UserPath { user_id } = UserPath::from_request(&request)?;
    let FriendPath { friend_id } = FriendPath::from_request(&request)?;
    query::none(&request)?;
    let NoMembers {} = body::optional_json(&api, &request, payload).await?;
    let added = change_friends(&api, &key, &user_id, FriendsChange::Add, &[friend_id]).await;
    added.map_err(|error| error.in_field("friend_id"))?;
    Ok(reply::done())
}

/// Remove a friend
///
/// Needs a key as `put_user` does. The other direction does not change.
#[utoipa::path(
    delete, path = "/v1/users/{user_id}/friends/{friend_id}", operation_id = "remove_friend", tag = "players",
    security(("key" = [])), params(UserPath, FriendPath),
    responses((status = 204, description = "The player does not have this friend."), ActProblems),
)]
pub(crate) async fn remove(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let key = caller::server(&api, &request).await?;
    let UserPath { user_id } = UserPath::from_request(&request)?;
    let FriendPath { friend_id } = FriendPath::from_request(&request)?;
    query::none(&request)?;
    change_friends(&api, &key, &user_id, FriendsChange::Remove, &[friend_id]).await?;
    Ok(reply::done())
}

async fn change_friends(
    api: &Api,
    key: &Key,
    user_id: &UserId,
    change: FriendsChange,
    others: &[UserId],
) -> Result<FriendsChanged> {
    let editor = Editor {
        actor: Some(&Actor::from(key)),
        boards: &key.boards,
        allows_http_avatars: api.settings.allows_http_avatars,
    };
    friends::change(&api.instance.store.admin, user_id, change, others, editor).await
}
