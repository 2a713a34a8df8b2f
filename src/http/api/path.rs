//! The variable parts of paths.

use std::str::FromStr;

use actix_web::HttpRequest;
use percent_encoding::percent_decode_str;
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Resource, Result,
    http::server::endpoint,
    model::{board::BoardSlug, user::UserId},
};

/// Path below a board.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct BoardPath {
    /// Name of the board.
    #[param(value_type = String, example = "arena", min_length = 1, max_length = 40, pattern = "^[a-z][a-z0-9_-]*$")]
    pub(crate) board: BoardSlug,
}

impl BoardPath {
    /// Reads the board's name from the path of `request`.
    pub(crate) fn from_request(request: &HttpRequest) -> Result<Self> {
        board_slug(segment(request, "board")?).map(|board| Self { board })
    }
}

/// Path of a template.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TemplatePath {
    /// Name of the template.
    #[param(example = "level", min_length = 1, max_length = 40, pattern = "^[a-z][a-z0-9_-]*$")]
    pub(crate) template: String,
}

impl TemplatePath {
    /// Reads the template's name from the path of `request`.
    pub(crate) fn from_request(request: &HttpRequest) -> Result<Self> {
        Ok(Self { template: segment(request, "template")? })
    }
}

/// Path of a league.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct LeaguePath {
    /// Name of the league.
    #[param(example = "arena-league", min_length = 1, max_length = 40, pattern = "^[a-z][a-z0-9_-]*$")]
    pub(crate) league: String,
}

impl LeaguePath {
    /// Reads the league's name from the path of `request`.
    pub(crate) fn from_request(request: &HttpRequest) -> Result<Self> {
        Ok(Self { league: segment(request, "league")? })
    }
}

/// Path of a cohort.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct CohortPath {
    /// Id of the cohort.
    #[param(example = 42, minimum = 1)]
    pub(crate) cohort_id: i64,
}

impl CohortPath {
    /// Reads the cohort's id from the path of `request`.
    pub(crate) fn from_request(request: &HttpRequest) -> Result<Self> {
        Ok(Self { cohort_id: id(request, "cohort_id", "a cohort")? })
    }
}

/// Parses the name of a board. A name that no board can have is reported like an unknown board.
pub(crate) fn board_slug(name: String) -> Result<BoardSlug> {
    BoardSlug::from_str(&name).map_err(|error| Error::NotFound {
        what: Resource::Board,
        name,
        hint: match error {
            Error::Invalid { message, .. } => Some(message),
            _ => None,
        },
    })
}

/// The caller's own id of a player: 1 to 128 bytes of UTF-8 without control characters.
#[derive(Debug, ToSchema)]
#[schema(as = UserId, example = "ada", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
#[expect(dead_code, reason = "describes a valid user id")]
pub(crate) struct UserIdText(String);

/// Path below a player.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct UserPath {
    /// The caller's own id of the player, percent-encoded: 1 to 128 bytes of UTF-8 without control
    /// characters.
    #[param(value_type = UserIdText)]
    pub(crate) user_id: UserId,
}

impl UserPath {
    /// Reads the player's id from the path of `request`.
    pub(crate) fn from_request(request: &HttpRequest) -> Result<Self> {
        Ok(Self { user_id: segment(request, "user_id")?.parse()? })
    }
}

/// Path of a player's friend.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct FriendPath {
    /// The caller's own id of the friend, percent-encoded.
    #[param(value_type = UserIdText, example = "bob")]
    pub(crate) friend_id: UserId,
}

impl FriendPath {
    /// Reads the friend's id from the path of `request`.
    pub(crate) fn from_request(request: &HttpRequest) -> Result<Self> {
        let friend_id = segment(request, "friend_id")?;
        Ok(Self { friend_id: friend_id.parse().map_err(|error: Error| error.in_field("friend_id"))? })
    }
}

/// Path of an API key.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct KeyPath {
    /// Id of the key.
    #[param(example = "0123456789abcdef", pattern = "^[0-9a-f]{16}$")]
    pub(crate) key_id: String,
}

impl KeyPath {
    /// Reads the key's id from the path of `request`.
    pub(crate) fn from_request(request: &HttpRequest) -> Result<Self> {
        let key_id = segment(request, "key_id")?;
        // PostgreSQL would reject some texts, such as one with a NUL byte.
        if key_id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            Ok(Self { key_id })
        } else {
            Err(Error::not_found(Resource::Key, key_id))
        }
    }
}

/// Path of one score transaction.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TransactionPath {
    /// Id of the score transaction in the ledger, from the response to its event.
    #[param(example = 1042, minimum = 1)]
    pub(crate) transaction_id: i64,
}

impl TransactionPath {
    /// Reads the score transaction's id from the path of `request`.
    pub(crate) fn from_request(request: &HttpRequest) -> Result<Self> {
        Ok(Self { transaction_id: id(request, "transaction_id", "a score transaction")? })
    }
}

/// Path of an event in a board's quarantine.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct QuarantinePath {
    /// Id of the event in quarantine, from the response to the event.
    #[param(example = 7, minimum = 1)]
    pub(crate) quarantine_id: i64,
}

impl QuarantinePath {
    /// Reads the event's id from the path of `request`.
    pub(crate) fn from_request(request: &HttpRequest) -> Result<Self> {
        Ok(Self { quarantine_id: id(request, "quarantine_id", "an event in quarantine")? })
    }
}

/// Parses the path parameter `name`, the id of `what`.
fn id(request: &HttpRequest, name: &str, what: &str) -> Result<i64> {
    let text = segment(request, name)?;
    text.parse().map_err(|_| Error::invalid(name, format!("{text:?} is not the id of {what}")))
}

/// Returns the path segment in the place of `{name}` in the route, percent-decoded once.
///
/// Reads the raw path. actix's own decoding keeps `%25`, `%2F` and `%2B` and replaces invalid UTF-8
/// by U+FFFD, so different ids would become one user.
fn segment(request: &HttpRequest, name: &str) -> Result<String> {
    let route = endpoint::route(request).unwrap_or_default();
    let is_wanted = |part: &str| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) == Some(name);
    let raw = route
        .split('/')
        .zip(request.uri().path().split('/'))
        .find_map(|(part, raw)| is_wanted(part).then_some(raw))
        .ok_or_else(|| Error::Internal(format!("route {route:?} has no segment {name:?}")))?;
    match percent_decode_str(raw).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(Error::invalid(name, "is not UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::{App, HttpResponse, http::StatusCode, test};

    use super::*;
    use crate::http::server::endpoint::Endpoint;

    /// Responds with the user id of the path.
    async fn echo(request: HttpRequest) -> Result<HttpResponse> {
        Ok(HttpResponse::Ok().body(UserPath::from_request(&request)?.user_id.to_string()))
    }

    #[actix_web::test]
    async fn a_user_id_is_decoded_exactly_once() {
        let endpoint = Endpoint::new("/v1/boards/{board}/scores/{user_id}").get(echo);
        let app = test::init_service(App::new().configure(|config| endpoint.register(config))).await;
        let cases = [
            ("ada", "ada"),
            ("a%20b", "a b"),
            ("a+b", "a+b"),
            ("a%2Bb", "a+b"),
            ("guild%2Fada", "guild/ada"),
            ("guild%2fada", "guild/ada"),
            ("100%25", "100%"),
            ("%2541", "%41"),
            ("%252F", "%2F"),
            ("%F0%9F%8F%86", "🏆"),
            ("%EF%BF%BD", "\u{FFFD}"),
            ("a%3Fb%23c", "a?b#c"),
            ("%2E%2E%2E", "..."),
        ];
        for (sent, wanted) in cases {
            let request = test::TestRequest::get().uri(&format!("/v1/boards/b/scores/{sent}")).to_request();
            let body = test::call_and_read_body(&app, request).await;
            assert_eq!(body, wanted, "{sent}");
        }
    }

    #[actix_web::test]
    async fn an_invalid_user_id_is_refused() {
        let endpoint = Endpoint::new("/{user_id}").get(echo);
        let app = test::init_service(App::new().configure(|config| endpoint.register(config))).await;
        for sent in ["%FF", "%C3", "a%00b", "a%0Ab", "%2E", "%2E%2E", &"x".repeat(129)] {
            let request = test::TestRequest::get().uri(&format!("/{sent}")).to_request();
            let response = test::call_service(&app, request).await;
            assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY, "{sent}");
        }
    }
}
