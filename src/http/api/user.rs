//! `/v1/users/{user_id}`: players, whom all boards share.

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Payload},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Result,
    http::{
        Api,
        api::{
            problem::{ActProblems, ReadProblems, WriteProblems},
            reply,
        },
        extract::{body, caller, path::UserPath, query},
    },
    model::{
        act::{Act, Actor},
        user::{Profile, User},
    },
    users::{self, Editor},
};

/// What is to be known of a player; what is absent stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutUser {
    /// Name shown in lists, up to 128 bytes; a new player's is the id.
    #[schema(example = "Ada", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    name: Option<String>,
    /// Address of a picture, up to 1,024 bytes; null removes it.
    #[serde(default, deserialize_with = "body::present")]
    #[expect(clippy::option_option, reason = "absent, null and given are three different wishes")]
    #[schema(value_type = Option<String>, example = "https://example.com/ada.png", max_length = 1024, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    avatar: Option<Option<String>>,
    /// Whatever the game keeps with a player, up to 8,192 bytes.
    #[schema(value_type = Option<Object>, example = json!({"clan": "Lovelace"}))]
    metadata: Option<Map<String, Value>>,
}

impl From<PutUser> for Profile {
    fn from(request: PutUser) -> Self {
        Self {
            name: request.name,
            avatar: request.avatar.map(Option::unwrap_or_default),
            metadata: request.metadata.map(Value::Object),
        }
    }
}

/// Why an administrator acts. The whole body may be left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActRequest {
    /// Kept in the ledger and the audit log, up to 256 bytes.
    #[schema(example = "cheated", min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    reason: Option<String>,
}

impl ActRequest {
    /// The act that the body of `request` describes.
    pub(crate) async fn read(api: &Api, request: &HttpRequest, payload: Payload, by: Actor) -> Result<Act> {
        let Self { reason } = body::optional_json(api, request, payload).await?;
        Act::new(by, reason)
    }
}

/// A player.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserResponse {
    /// The caller's own id.
    #[schema(example = "ada")]
    user_id: String,
    /// Name shown in lists.
    #[schema(example = "Ada")]
    name: String,
    /// Address of a picture.
    #[schema(required = true)]
    avatar: Option<String>,
    /// Whatever the game keeps with a player.
    #[schema(value_type = Object, example = json!({"clan": "Lovelace"}))]
    metadata: Value,
    /// Whether the player is banned, and so in no ranking.
    banned: bool,
}

impl From<User> for UserResponse {
    fn from(user: User) -> Self {
        Self {
            user_id: user.user_id,
            name: user.name,
            avatar: user.avatar,
            metadata: user.metadata,
            banned: user.banned,
        }
    }
}

/// Make or change a player
///
/// Needs a server key or an admin key. A key that is for some boards changes players without scores and
/// players of these boards. An avatar is an https address.
#[utoipa::path(
    put, path = "/v1/users/{user_id}", operation_id = "put_user", tag = "players", security(("key" = [])),
    params(UserPath), request_body = PutUser,
    responses(
        (status = 200, description = "The player was changed.", body = UserResponse),
        (status = 201, description = "The player was made.", body = UserResponse),
        WriteProblems,
    ),
)]
pub(crate) async fn put(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let key = caller::server(&api, &request).await?;
    let UserPath { user_id } = UserPath::of(&request)?;
    query::none(&request)?;
    let profile: PutUser = body::json(&api, &request, payload).await?;
    let editor = Editor {
        actor: Some(&Actor::from(&*key)),
        boards: &key.boards,
        allows_http_avatars: api.settings.allows_http_avatars,
    };
    let (user, is_new) = users::put(&api.instance.store, &user_id, profile.into(), editor).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(reply::written(status, &UserResponse::from(user)))
}

/// Show a player
///
/// Needs a key once every board asks its readers for one.
#[utoipa::path(
    get, path = "/v1/users/{user_id}", operation_id = "show_user", tag = "players", params(UserPath),
    responses((status = 200, description = "The player.", body = UserResponse), ReadProblems),
)]
pub(crate) async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    caller::profile_reader(&api, &request).await?;
    let UserPath { user_id } = UserPath::of(&request)?;
    query::none(&request)?;
    let user = users::find(&api.instance.store, &user_id).await?;
    Ok(reply::read(&UserResponse::from(user)))
}

/// The id of a player who was forgotten.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErasedResponse {
    /// The id from now on, which says nothing.
    #[schema(example = "erased-5a0ab5dc-3a39-4a66-8a1b-6d2a4f2c1f3e")]
    user_id: String,
}

/// Under which id.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EraseQuery {
    /// An id of the request, 1 to 128 bytes that say nothing of the player. The same again gives the same answer, for seven days.
    #[param(example = "5f0c1b7e", min_length = 1, max_length = 128)]
    id: Option<String>,
}

/// Forget a player
///
/// Needs an admin key. Id, name, avatar and metadata are replaced wherever they are kept, the frozen tops of closed periods included, and there
/// is no way back. Scores stay under the new id. Whoever comes with the old id from now on is a new player: to be able to ask once more where an
/// answer was lost, give the request an id.
#[utoipa::path(
    delete, path = "/v1/users/{user_id}", operation_id = "erase_user", tag = "administration", security(("key" = [])),
    params(UserPath, EraseQuery),
    responses((status = 200, description = "The player is forgotten.", body = ErasedResponse), ActProblems),
)]
pub(crate) async fn erase(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let UserPath { user_id } = UserPath::of(&request)?;
    let EraseQuery { id } = query::parse(&request)?;
    let user_id = users::erase(&api.instance.rankings, &user_id, id.as_deref(), &by).await?;
    Ok(reply::written(StatusCode::OK, &ErasedResponse { user_id }))
}

/// Ban a player
///
/// Needs an admin key. Takes the player out of every open ranking, and refuses the player's events, until unbanned.
#[utoipa::path(
    post, path = "/v1/users/{user_id}/ban", operation_id = "ban_user", tag = "administration", security(("key" = [])),
    params(UserPath), request_body = Option<ActRequest>,
    responses((status = 200, description = "The player is banned.", body = UserResponse), WriteProblems),
)]
pub(crate) async fn ban(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let UserPath { user_id } = UserPath::of(&request)?;
    query::none(&request)?;
    let act = ActRequest::read(&api, &request, payload, by).await?;
    let user = users::ban(&api.instance.rankings, &user_id, &act).await?;
    Ok(reply::written(StatusCode::OK, &UserResponse::from(user)))
}

/// Unban a player
///
/// Needs an admin key. Puts the player back where the ledger says.
#[utoipa::path(
    post, path = "/v1/users/{user_id}/unban", operation_id = "unban_user", tag = "administration",
    security(("key" = [])), params(UserPath), request_body = Option<ActRequest>,
    responses((status = 200, description = "The player is not banned.", body = UserResponse), WriteProblems),
)]
pub(crate) async fn unban(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let UserPath { user_id } = UserPath::of(&request)?;
    query::none(&request)?;
    let act = ActRequest::read(&api, &request, payload, by).await?;
    let user = users::unban(&api.instance.rankings, &user_id, &act).await?;
    Ok(reply::written(StatusCode::OK, &UserResponse::from(user)))
}
