//! `/v1/keys`: API keys.

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Payload},
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    Error, Result,
    access::key,
    http::{
        Api,
        api::{
            problem::{ActProblems, WriteProblems},
            reply,
        },
        extract::{body, caller, path::KeyPath, query},
    },
    model::{
        board::BoardSlug,
        key::{Key, KeyState, NewKey, Role},
        signing::SigningSecret,
    },
};

/// What a new key is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateKey {
    /// Whom it is for; of each name two keys work at most, so that one can take the other's place.
    #[schema(example = "match server", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    name: String,
    /// What it is for.
    role: Role,
    /// Boards of the key, each once. Absent for a key for all boards, and for an admin key.
    #[schema(value_type = Option<Vec<BoardName>>, min_items = 1, example = json!(["arena"]))]
    boards: Option<Vec<String>>,
    /// Whether the key is for all boards. An admin key always is.
    #[serde(default)]
    all_boards: bool,
    /// Whether its requests have to be signed. Refused where the service has no master key to keep the signing secret under.
    #[serde(default)]
    signed: bool,
    /// When it stops working; never when absent.
    expires_at: Option<DateTime<Utc>>,
}

/// Name of a board.
#[derive(Debug, ToSchema)]
#[schema(example = "arena", min_length = 1, max_length = 40, pattern = "^[a-z][a-z0-9_-]*$")]
#[expect(dead_code, reason = "describes what a board may be called")]
struct BoardName(String);

impl TryFrom<CreateKey> for NewKey {
    type Error = Error;

    fn try_from(request: CreateKey) -> Result<Self> {
        let slugs = |boards: Vec<String>| {
            let slug = |(index, slug): (usize, &String)| {
                slug.parse::<BoardSlug>().map_err(|error| error.in_field(format!("boards[{index}]")))
            };
            boards.iter().enumerate().map(slug).collect::<Result<_>>()
        };
        let boards = request.boards.map(slugs).transpose()?;
        Ok(Self {
            boards: Self::boards(request.role, boards, request.all_boards)?,
            name: request.name,
            role: request.role,
            signed: request.signed,
            expires_at: request.expires_at,
        })
    }
}

/// A key, without anything secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyResponse {
    /// Its id, which is part of its text.
    #[schema(example = "0123456789abcdef")]
    id: String,
    /// Whom it is for.
    #[schema(example = "match server")]
    name: String,
    /// What it is for.
    role: Role,
    /// Boards that it is for; all when empty.
    #[schema(example = json!(["arena"]))]
    boards: Vec<String>,
    /// Whether its requests have to be signed.
    signed: bool,
    /// Whether it works.
    state: KeyState,
    /// When it was made.
    created_at: DateTime<Utc>,
    /// When it stops working.
    #[schema(required = true)]
    expires_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    #[schema(required = true)]
    revoked_at: Option<DateTime<Utc>>,
    /// When it was last used, to the minute.
    #[schema(required = true)]
    last_used_at: Option<DateTime<Utc>>,
}

impl From<&Key> for KeyResponse {
    fn from(key: &Key) -> Self {
        Self {
            id: key.id.clone(),
            name: key.name.clone(),
            role: key.role,
            boards: key.boards.iter().map(ToString::to_string).collect(),
            signed: key.signed,
            state: key.state(),
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            last_used_at: key.last_used_at,
        }
    }
}

/// A new key.
#[derive(Serialize, ToSchema)]
pub(crate) struct NewKeyResponse {
    /// Its text, to be sent as `Authorization: Bearer …`. Shown this once and stored nowhere.
    #[schema(example = "ctl_0123456789abcdef_…")]
    key: String,
    /// What its requests are signed with, if they have to be. Shown this once, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "ctls_…")]
    signing_secret: Option<String>,
    #[serde(flatten)]
    about: KeyResponse,
}

/// All keys.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeysResponse {
    /// The keys, newest first.
    keys: Vec<KeyResponse>,
}

/// Make a key
///
/// Needs an admin key. The answer shows the new key's text this once, and what it signs with, if it does.
#[utoipa::path(
    post, path = "/v1/keys", operation_id = "create_key", tag = "keys", security(("key" = [])),
    request_body = CreateKey,
    responses((status = 201, description = "The key was made.", body = NewKeyResponse), WriteProblems),
)]
pub(crate) async fn create(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    query::none(&request)?;
    let new: CreateKey = body::json(&api, &request, payload).await?;
    let (key, secrets) = key::create(&api.instance.keys, new.try_into()?, &by).await?;
    let answer = NewKeyResponse {
        key: secrets.key,
        signing_secret: secrets.signing_secret.as_ref().map(SigningSecret::text),
        about: KeyResponse::from(&key),
    };
    Ok(reply::written(StatusCode::CREATED, &answer))
}

/// List the keys
///
/// Needs an admin key. Secrets are not among what is shown: nobody has them but the holders.
#[utoipa::path(
    get, path = "/v1/keys", operation_id = "list_keys", tag = "keys", security(("key" = [])),
    responses((status = 200, description = "All keys, newest first.", body = KeysResponse), ActProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    caller::admin(&api, &request).await?;
    query::none(&request)?;
    let keys = key::list(&api.instance.store).await?;
    Ok(reply::written(StatusCode::OK, &KeysResponse { keys: keys.iter().map(KeyResponse::from).collect() }))
}

/// Revoke a key
///
/// Needs an admin key. Every instance refuses the key within five seconds. Revoking it again changes nothing.
#[utoipa::path(
    delete, path = "/v1/keys/{key_id}", operation_id = "revoke_key", tag = "keys", security(("key" = [])),
    params(KeyPath), responses((status = 204, description = "The key works no more."), ActProblems),
)]
pub(crate) async fn revoke(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let KeyPath { key_id } = KeyPath::of(&request)?;
    query::none(&request)?;
    key::revoke(&api.instance.keys, &key_id, &by).await?;
    Ok(reply::done())
}
