//! `/v1/users/{user_id}`: players, shared by all boards.

use std::collections::BTreeMap;

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Payload},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    Error, Result,
    http::{
        api::{
            body,
            idempotency::{self, IdempotencyHeader},
            path::UserPath,
            query, reply,
        },
        auth::caller,
        server::{
            Api,
            problem::{ActProblems, ReadProblems, WriteProblems},
        },
    },
    model::{
        act::{Act, Actor},
        board::Reading,
        idempotency::IdempotencyKey,
        json::{self, Object},
        metadata::Metadata,
        segment::Attribute,
        user::{Profile, User},
    },
    users::{self, Editor},
};

/// Profile of a player. An absent field stays unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutUser {
    /// Name shown in lists, up to 128 bytes. The name of a new player is the id by default.
    #[schema(example = "Ada", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    name: Option<String>,
    /// URL of the player's avatar, up to 1,024 bytes; null removes it.
    #[serde(default, deserialize_with = "json::nullable")]
    #[schema(value_type = Option<String>, example = "https://example.com/ada.png", max_length = 1024, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    avatar_url: Option<Option<String>>,
    /// Any data that the game keeps with the player, up to 8,192 bytes of JSON; `{}` removes it.
    #[schema(value_type = Option<Object>, example = json!({"clan": "Lovelace"}))]
    metadata: Option<Object>,
    /// Values of attributes by which boards have segments, each of 1 to 64 characters; null removes an
    /// attribute. Other attributes stay unchanged. The player moves to the new segments in all open
    /// rankings before the call returns.
    #[schema(value_type = Option<BTreeMap<String, Option<String>>>, example = json!({"country": "DE"}))]
    attributes: Option<BTreeMap<String, Option<String>>>,
    /// Readers of the profile: `public` for everyone, `key` for holders of any key, or null for the
    /// default of the service.
    #[serde(default, deserialize_with = "json::nullable")]
    #[schema(value_type = Option<Reading>)]
    reading: Option<Option<Reading>>,
}

impl TryFrom<PutUser> for Profile {
    type Error = Error;

    fn try_from(request: PutUser) -> Result<Self> {
        let attribute = |(name, value): (String, Option<String>)| {
            let name: Attribute = name.parse().map_err(|error: Error| error.in_field(format!("attributes.{name}")))?;
            Ok((name, value))
        };
        Ok(Self {
            name: request.name,
            avatar: request.avatar_url.map(Option::unwrap_or_default),
            metadata: request.metadata.as_ref().map(Metadata::of_player).transpose()?,
            attributes: request.attributes.into_iter().flatten().map(attribute).collect::<Result<_>>()?,
            reading: request.reading,
        })
    }
}

/// Reason for an administrator's act. The body may be absent.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActRequest {
    /// Reason for the ledger and the audit log, up to 256 bytes.
    #[schema(example = "cheated", min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    reason: Option<String>,
}

impl ActRequest {
    /// Reads the act from the body of `request`.
    pub(crate) async fn read(api: &Api, request: &HttpRequest, payload: Payload, by: Actor) -> Result<Act> {
        let Self { reason } = body::optional_json(api, request, payload).await?;
        Act::new(by, reason)
    }
}

/// A player.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserResponse {
    /// The caller's own id of the player.
    #[schema(example = "ada")]
    user_id: String,
    /// Name shown in lists.
    #[schema(example = "Ada")]
    name: String,
    /// URL of the player's avatar.
    #[schema(required = true)]
    avatar_url: Option<String>,
    /// Data that the game keeps with the player. Only holders of a server or admin key see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>, example = json!({"clan": "Lovelace"}))]
    metadata: Option<Metadata>,
    /// Values of attributes by which boards have segments. Only holders of a server or admin key see
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<BTreeMap<String, String>>, example = json!({"country": "DE"}))]
    attributes: Option<BTreeMap<String, String>>,
    /// Whether the player is banned. A banned player is in no ranking. Only holders of a server or
    /// admin key see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    banned: Option<bool>,
    /// Readers of the profile: `public` for everyone, `key` for holders of any key, null for the default
    /// of the service. Only holders of a server or admin key see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Reading>)]
    reading: Option<Option<Reading>>,
}

impl UserResponse {
    /// Describes `user` to everyone.
    fn public(user: User) -> Self {
        Self {
            user_id: user.user_id,
            name: user.name,
            avatar_url: user.avatar,
            metadata: None,
            attributes: None,
            banned: None,
            reading: None,
        }
    }
}

impl From<User> for UserResponse {
    /// Describes `user` to a holder of a server or admin key.
    fn from(user: User) -> Self {
        Self {
            metadata: Some(user.metadata.clone()),
            attributes: Some(user.attributes.clone()),
            banned: Some(user.banned),
            reading: Some(user.reading),
            ..Self::public(user)
        }
    }
}

/// Create or change a player
///
/// Needs a server key or an admin key. A server key for some boards may change players of these
/// boards and players without scores. The avatar must be an https URL.
#[utoipa::path(
    put, path = "/v1/users/{user_id}", operation_id = "put_user", tag = "players", security(("key" = [])),
    params(UserPath), request_body = PutUser,
    responses(
        (status = 200, description = "The player was changed.", body = UserResponse),
        (status = 201, description = "The player was created.", body = UserResponse),
        WriteProblems,
    ),
)]
pub(crate) async fn put(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let key = caller::server(&api, &request).await?;
    let UserPath { user_id } = UserPath::from_request(&request)?;
    query::none(&request)?;
    let profile: PutUser = body::json(&api, &request, payload).await?;
    let editor = Editor {
        actor: Some(&Actor::from(&*key)),
        boards: &key.boards,
        allows_http_avatars: api.settings.allows_http_avatars,
    };
    let (user, is_new) =
        users::put(&api.instance.store.admin, &api.instance.rankings, &user_id, profile.try_into()?, editor).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(reply::written(status, &UserResponse::from(user)))
}

/// Show a player
///
/// Needs a key if the profile needs one, by its `reading` or by the default of the service. With a
/// server or admin key, the response also has `metadata`, `attributes`, `banned` and `reading`.
#[utoipa::path(
    get, path = "/v1/users/{user_id}", operation_id = "show_user", tag = "players", security((), ("key" = [])),
    params(UserPath),
    responses((status = 200, description = "The player.", body = UserResponse), ReadProblems),
)]
pub(crate) async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let key = caller::optional_key(&api, &request).await?;
    let UserPath { user_id } = UserPath::from_request(&request)?;
    query::none(&request)?;
    let user = caller::readable_profile(&api, key.as_deref(), &user_id).await?;
    let sees_all = key.is_some_and(|key| key.may_serve().is_ok());
    Ok(reply::read_response(&if sees_all { UserResponse::from(user) } else { UserResponse::public(user) }))
}

/// The result of erasing a player.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErasedResponse {
    /// The player's new id, which is random.
    #[schema(example = "erased-5a0ab5dc-3a39-4a66-8a1b-6d2a4f2c1f3e")]
    new_user_id: String,
}

/// Erase a player
///
/// Needs an admin key. Replaces id, name, avatar and metadata everywhere, also in the frozen tops
/// of closed periods. This cannot be undone. Scores stay under the new id.
///
/// The old id is free afterwards: an event with it creates a new player. Send an
/// `Idempotency-Key` to be able to retry: a repeated request then gets the same response for seven
/// days.
#[utoipa::path(
    delete, path = "/v1/users/{user_id}", operation_id = "erase_user", tag = "administration", security(("key" = [])),
    params(UserPath, IdempotencyHeader),
    responses((status = 200, description = "The player was erased.", body = ErasedResponse), ActProblems),
)]
pub(crate) async fn erase(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let UserPath { user_id } = UserPath::from_request(&request)?;
    query::none(&request)?;
    let idempotency_key = idempotency::key(&request)?;
    let request_id = idempotency_key.as_ref().map(IdempotencyKey::as_str);
    let erased = users::erase(&api.instance.store.admin, &api.instance.rankings, &user_id, request_id, &by).await;
    api.instance.read_router.forget_frozen_tops();
    let new_user_id = erased?;
    Ok(reply::written(StatusCode::OK, &ErasedResponse { new_user_id }))
}

/// Ban a player
///
/// Needs an admin key. Removes the player from every open ranking and refuses the player's events
/// until the player is unbanned.
#[utoipa::path(
    post, path = "/v1/users/{user_id}/ban", operation_id = "ban_user", tag = "administration", security(("key" = [])),
    params(UserPath), request_body = Option<ActRequest>,
    responses((status = 200, description = "The player is banned.", body = UserResponse), WriteProblems),
)]
pub(crate) async fn ban(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let UserPath { user_id } = UserPath::from_request(&request)?;
    query::none(&request)?;
    let act = ActRequest::read(&api, &request, payload, by).await?;
    let user = users::set_banned(&api.instance.store.admin, &api.instance.rankings, &user_id, true, &act).await?;
    Ok(reply::written(StatusCode::OK, &UserResponse::from(user)))
}

/// Unban a player
///
/// Needs an admin key. Restores the player's entries from the ledger.
#[utoipa::path(
    post, path = "/v1/users/{user_id}/unban", operation_id = "unban_user", tag = "administration",
    security(("key" = [])), params(UserPath), request_body = Option<ActRequest>,
    responses((status = 200, description = "The player is not banned.", body = UserResponse), WriteProblems),
)]
pub(crate) async fn unban(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let UserPath { user_id } = UserPath::from_request(&request)?;
    query::none(&request)?;
    let act = ActRequest::read(&api, &request, payload, by).await?;
    let user = users::set_banned(&api.instance.store.admin, &api.instance.rankings, &user_id, false, &act).await?;
    Ok(reply::written(StatusCode::OK, &UserResponse::from(user)))
}
