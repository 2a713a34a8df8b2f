//! Error responses: every 4xx and 5xx is `application/problem+json` (RFC 9457).

use std::collections::BTreeMap;

use actix_web::{
    HttpResponse, HttpResponseBuilder, ResponseError,
    http::{StatusCode, header},
};
use serde::Serialize;
use utoipa::{
    IntoResponses, PartialSchema, ToSchema,
    openapi::{ContentBuilder, Header, Ref, RefOr, Response, ResponseBuilder},
};

use crate::{Code, Error};

/// Media type of problem documents.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Maximum length of `detail`, in bytes. A detail may quote a value from the request, which can be
/// long.
const DETAIL_MAX_BYTES: usize = 512;

/// A problem document (RFC 9457): what went wrong, for programs and for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// `urn:centile:problem:` and the code.
    #[serde(rename = "type")]
    #[schema(example = "urn:centile:problem:invalid_value")]
    kind: String,
    /// The cause, for programs. docs/api.md lists the codes. Later releases may add
    /// codes, and never change the meaning of one.
    #[schema(value_type = String, example = "invalid_value")]
    code: Code,
    /// Short summary for people.
    #[schema(example = "Invalid value")]
    pub(crate) title: &'static str,
    /// HTTP status code.
    #[schema(example = 422, minimum = 400, maximum = 599)]
    pub(crate) status: u16,
    /// Explanation of this problem.
    #[schema(example = "limit: must be from 1 to 1000, not 0")]
    pub(crate) detail: String,
    /// The field or parameter at fault. `events[3].points` is a
    /// member of the fourth event of a batch, `body` the whole body, and `Idempotency-Key` a header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "limit")]
    field: Option<String>,
    /// Seconds to wait before a retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    retry_after: Option<u64>,
}

impl Problem {
    /// Describes `error` to the caller. The cause of an internal error is logged here and not
    /// shown.
    pub(crate) fn from_error(error: &Error) -> Self {
        let code = error.code();
        let detail = if let Error::Internal(cause) = error {
            tracing::error!(error = %cause, "request failed");
            "internal error; the service log has the cause".to_owned()
        } else {
            shortened(error.to_string())
        };
        Self {
            kind: format!("urn:centile:problem:{}", code.name()),
            code,
            title: code.title(),
            status: code.status(),
            detail,
            field: match error {
                Error::Invalid { field, .. } => Some(shortened(field.clone())),
                _ => None,
            },
            retry_after: retry_after(error),
        }
    }
}

/// Cuts `text` to [`DETAIL_MAX_BYTES`], with an ellipsis if anything was cut.
fn shortened(mut text: String) -> String {
    if text.len() > DETAIL_MAX_BYTES {
        text.truncate(text.floor_char_boundary(DETAIL_MAX_BYTES));
        text.push('…');
    }
    text
}

/// Returns the whole seconds to wait, at least one, for an error that a retry may avoid.
fn retry_after(error: &Error) -> Option<u64> {
    let after = error.retry_after()?;
    Some((after.as_secs() + u64::from(after.subsec_nanos() > 0)).max(1))
}

impl ResponseError for Error {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.code().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        problem_response(&mut builder(self), self)
    }
}

/// Writes `error` as a problem document. The response also carries the [`Problem`], so that
/// middleware can render it as a page.
fn problem_response(response: &mut HttpResponseBuilder, error: &Error) -> HttpResponse {
    let problem = Problem::from_error(error);
    let mut response = response.json(&problem);
    response.extensions_mut().insert(problem);
    response
}

/// Returns the response to an invalid request with status 400, as clients of the classic call expect.
pub(crate) fn bad_request(error: &Error) -> HttpResponse {
    let problem = Problem { status: 400, ..Problem::from_error(error) };
    let mut response = builder(error).status(StatusCode::BAD_REQUEST).json(&problem);
    response.extensions_mut().insert(problem);
    response
}

/// Returns the response to a method that the path does not have; `allow` lists the path's methods.
pub(crate) fn method_not_allowed(method: &str, path: &str, allow: &str) -> HttpResponse {
    let error = Error::MethodNotAllowed(format!("{path} supports {allow}, not {method}"));
    problem_response(builder(&error).insert_header((header::ALLOW, allow)), &error)
}

/// Builds the status and headers of the response to `error`.
pub(crate) fn builder(error: &Error) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(error.status_code());
    response.content_type(MEDIA_TYPE).insert_header((header::CACHE_CONTROL, "no-store"));
    if let Some(seconds) = retry_after(error) {
        response.insert_header((header::RETRY_AFTER, seconds));
    }
    if matches!(error, Error::Unauthorized { .. }) {
        response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
    }
    if matches!(error, Error::TooSlow(_)) {
        // The rest of the body may still arrive on this connection.
        response.force_close();
    }
    response
}

/// The problems in the OpenAPI document: status, component name, description.
const DESCRIBED: [(u16, &str, &str); 12] = [
    (400, "Malformed", "The body is not valid JSON. For `POST /v1/scores`: the request is invalid."),
    (401, "Unauthorized", "The key is missing or invalid. `WWW-Authenticate` names the scheme."),
    (403, "Forbidden", "The key is valid but does not allow this call."),
    (404, "NotFound", "The board, user, period or score transaction does not exist."),
    (408, "TooSlow", "The body did not arrive in time. The connection is closed."),
    (409, "Conflict", "The request conflicts with stored data."),
    (413, "TooLarge", "The body is too large."),
    (415, "UnsupportedMediaType", "The body is compressed or not sent as `application/json`."),
    (422, "Invalid", "A value is invalid; `field` names it."),
    (
        429,
        "TooMany",
        "The key or address has made too many requests, or the player has too many events (`too_many_events`). Retry after the seconds in `Retry-After`.",
    ),
    (500, "Internal", "Internal error. The service log has the cause."),
    (
        503,
        "Unavailable",
        "The service is unavailable. Retry after the seconds in `Retry-After`. `code` says whether a write may have been committed.",
    ),
];

/// Returns the problem responses as named components of the OpenAPI document.
pub(crate) fn components() -> impl Iterator<Item = (&'static str, Response)> {
    DESCRIBED.into_iter().map(|(status, name, description)| {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).build();
        let response = ResponseBuilder::new().description(description).content(MEDIA_TYPE, content);
        let response = match status {
            401 => response.header("WWW-Authenticate", Header::new(String::schema())),
            429 | 503 => response.header("Retry-After", Header::new(u64::schema())),
            _ => response,
        };
        (name, response.build())
    })
}

/// Returns references to the components for `statuses`.
fn references(statuses: &[u16]) -> BTreeMap<String, RefOr<Response>> {
    let named = DESCRIBED.iter().filter(|(status, ..)| statuses.contains(status));
    named.map(|(status, name, _)| (status.to_string(), Ref::from_response_name(*name).into())).collect()
}

/// The problems of a call, by its place in [`LISTS`].
pub(crate) struct Problems<const LIST: usize>;

impl<const LIST: usize> IntoResponses for Problems<LIST> {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(LISTS[LIST])
    }
}

const LISTS: [&[u16]; 9] = [
    &[500, 503],
    &[429],
    &[401, 422, 429, 500, 503],
    &[401, 403, 422, 429, 500, 503],
    &[401, 403, 404, 422, 429, 500, 503],
    &[400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503],
    &[401, 403, 404, 409, 422, 429, 500, 503],
    &[400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503],
    &[400, 401, 403, 404, 408, 409, 429, 500, 503],
];

/// Problems of a service that cannot respond.
pub(crate) type UnavailableProblem = Problems<0>;

/// The problem of a caller over its rate limit, for a call that has no other.
pub(crate) type TooManyProblem = Problems<1>;

/// Problems of a call that lists everything.
pub(crate) type ListProblems = Problems<2>;

/// Problems of a call that lists everything and needs an admin key.
pub(crate) type AdminListProblems = Problems<3>;

/// Problems of a call that reads a named resource.
pub(crate) type ReadProblems = Problems<4>;

/// Problems of a call that reads, with parameters in its body.
pub(crate) type QueryProblems = Problems<5>;

/// Problems of the classic call that writes: an invalid request is a 400.
pub(crate) type ClassicWriteProblems = Problems<8>;

/// Problems of a call without a body that may conflict with stored data.
pub(crate) type ActProblems = Problems<6>;

/// Problems of a call that writes the content of its body.
pub(crate) type WriteProblems = Problems<7>;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_internal_error_is_not_shown() {
        let problem = Problem::from_error(&Error::Internal("password=hunter2".into()));
        assert_eq!(problem.status, 500);
        assert!(!problem.detail.contains("hunter2"));
    }

    #[test]
    fn retry_after_is_rounded_up_to_whole_seconds() {
        for (millis, seconds) in [(0, 1), (250, 1), (1_000, 1), (1_001, 2)] {
            let error = Error::Overload {
                code: Code::Overloaded,
                message: "full".into(),
                retry_after: Duration::from_millis(millis),
            };
            assert_eq!(retry_after(&error), Some(seconds));
            let response = error.error_response();
            assert_eq!(response.headers().get(header::RETRY_AFTER), Some(&seconds.into()));
        }
    }

    #[test]
    fn a_long_detail_is_cut() {
        let problem = Problem::from_error(&Error::invalid("points", "é".repeat(1_000)));
        assert!(problem.detail.len() <= DETAIL_MAX_BYTES + '…'.len_utf8());
        assert!(problem.detail.ends_with('…'));
    }

    #[test]
    fn every_referenced_status_has_a_component() {
        assert_eq!(WriteProblems::responses().len(), DESCRIBED.len());
        for (status, ..) in DESCRIBED {
            assert!(WriteProblems::responses().contains_key(&status.to_string()));
        }
    }
}
