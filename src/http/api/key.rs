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
        api::{
            body,
            idempotency::{self, IdempotencyHeader},
            path::KeyPath,
            query::{self, ListQuery},
            reply,
        },
        auth::caller,
        server::{
            Api,
            problem::{ActProblems, AdminListProblems, WriteProblems},
        },
    },
    model::{
        board::BoardPattern,
        key::{Key, KeyState, NewKey, Role},
    },
};

/// A new key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateKey {
    /// Name of the client. At most two keys of a client are active at once, so that one can replace
    /// the other.
    #[schema(example = "match server", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    name: String,
    /// Rights of the key.
    role: Role,
    /// Boards of the key, or patterns of templates, each once. Absent for a key for all boards and for an admin key.
    #[schema(value_type = Option<BTreeSet<BoardName>>, min_items = 1, example = json!(["arena"]))]
    boards: Option<Vec<BoardPattern>>,
    /// Whether the key is for all boards. An admin key always is.
    all_boards: Option<bool>,
    /// When the key expires; never when absent.
    #[schema(value_type = Option<DateTime<Utc>>)]
    expires_at: Option<String>,
}

/// Name of a board, or pattern of a template.
#[derive(Debug, ToSchema)]
#[schema(example = "arena", min_length = 1, max_length = 40, pattern = "^[a-z][a-z0-9_-]*[*]?$")]
#[expect(dead_code, reason = "describes a valid board name")]
struct BoardName(String);

impl TryFrom<CreateKey> for NewKey {
    type Error = Error;

    fn try_from(request: CreateKey) -> Result<Self> {
        let expiry = |text: String| {
            let expiry = DateTime::parse_from_rfc3339(&text);
            expiry.map(|at| at.to_utc()).map_err(|_| {
                Error::invalid("expires_at", "must be a time with its offset, such as 2030-01-31T12:00:00Z")
            })
        };
        Ok(Self {
            boards: Self::boards(request.role, request.boards, request.all_boards.unwrap_or_default())?,
            name: request.name,
            role: request.role,
            expires_at: request.expires_at.map(expiry).transpose()?,
        })
    }
}

/// A key without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyResponse {
    /// Id of the key, which is a part of its text.
    #[schema(example = "0123456789abcdef")]
    key_id: String,
    /// Name of the client.
    #[schema(example = "match server")]
    name: String,
    /// Rights of the key: `reader`, `server` or `admin`.
    #[schema(value_type = String, example = "server")]
    role: Role,
    /// Whether the key is for all boards.
    all_boards: bool,
    /// Boards of the key; empty if it is for all boards.
    #[schema(example = json!(["arena"]))]
    boards: Vec<String>,
    /// `active`, `expired` or `revoked`.
    #[schema(value_type = String, example = "active")]
    state: KeyState,
    /// When the key was created.
    created_at: DateTime<Utc>,
    /// When the key expires.
    #[schema(required = true)]
    expires_at: Option<DateTime<Utc>>,
    /// When the key was revoked.
    #[schema(required = true)]
    revoked_at: Option<DateTime<Utc>>,
    /// When the key was last used, to the minute.
    #[schema(required = true)]
    last_used_at: Option<DateTime<Utc>>,
}

impl From<&Key> for KeyResponse {
    fn from(key: &Key) -> Self {
        Self {
            key_id: key.id.clone(),
            name: key.name.clone(),
            role: key.role,
            all_boards: key.boards.is_empty(),
            boards: key.boards.iter().map(ToString::to_string).collect(),
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
    /// The key's text. Send it as `Authorization: Bearer …`. It is shown only once and not stored.
    #[schema(example = "ctl_0123456789abcdef_…")]
    key: String,
    #[serde(flatten)]
    about: KeyResponse,
}

/// A page of keys.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeysResponse {
    /// The keys, newest first.
    data: Vec<KeyResponse>,
    /// `cursor` of the next page; null after the oldest key.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Create a key
///
/// Needs an admin key. Only this response shows the key's text. With an `Idempotency-Key`, a
/// repeated request gets the same response for seven days.
#[utoipa::path(
    post, path = "/v1/keys", operation_id = "create_key", tag = "keys", security(("key" = [])),
    params(IdempotencyHeader), request_body = CreateKey,
    responses((status = 201, description = "The key was created.", body = NewKeyResponse), WriteProblems),
)]
pub(crate) async fn create(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    query::none(&request)?;
    let new: CreateKey = body::json(&api, &request, payload).await?;
    let (key, text) =
        key::create(&api.instance.store.admin, new.try_into()?, idempotency::key(&request)?.as_ref(), &by).await?;
    Ok(reply::written(StatusCode::CREATED, &NewKeyResponse { key: text, about: KeyResponse::from(&key) }))
}

/// List the keys
///
/// Needs an admin key. The response contains no secrets.
#[utoipa::path(
    get, path = "/v1/keys", operation_id = "list_keys", tag = "keys", security(("key" = [])), params(ListQuery),
    responses((status = 200, description = "The keys, newest first.", body = KeysResponse), AdminListProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    caller::admin(&api, &request).await?;
    let list = ListQuery::parse(&request)?;
    let (keys, next) = list.page(api.instance.store.reader.keys().await?, |key| &key.id)?;
    let data = keys.iter().map(KeyResponse::from).collect();
    Ok(reply::written(StatusCode::OK, &KeysResponse { data, next_cursor: next }))
}

/// Revoke a key
///
/// Needs an admin key. Every instance refuses the key within five seconds. Repeating the call
/// changes nothing.
#[utoipa::path(
    delete, path = "/v1/keys/{key_id}", operation_id = "revoke_key", tag = "keys", security(("key" = [])),
    params(KeyPath), responses((status = 204, description = "The key was revoked."), ActProblems),
)]
pub(crate) async fn revoke(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let KeyPath { key_id } = KeyPath::from_request(&request)?;
    query::none(&request)?;
    key::revoke(&api.instance.store.admin, &api.instance.keys, &key_id, &by).await?;
    Ok(reply::done())
}
