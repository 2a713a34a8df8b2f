//! Errors as callers see them: `application/problem+json` (RFC 9457), every 4xx and 5xx.

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

use crate::Error;

/// Media type of problem documents.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Longest `detail` in bytes: a detail may quote what the caller sent, which may be a whole body.
const DETAIL_MAX_BYTES: usize = 512;

/// A problem document (RFC 9457): what went wrong, for programs and for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Stable name of the kind of problem.
    #[serde(rename = "type")]
    #[schema(example = "urn:centile:problem:invalid")]
    kind: String,
    /// Short summary, the same for every problem of the kind.
    #[schema(example = "Invalid value")]
    pub(crate) title: &'static str,
    /// HTTP status code.
    #[schema(example = 422, minimum = 400, maximum = 599)]
    pub(crate) status: u16,
    /// What is wrong in this case.
    #[schema(example = "limit: must be from 1 to 1000, not 0")]
    pub(crate) detail: String,
    /// The field or parameter at fault; `[3].points` is a field of the fourth element of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "limit")]
    field: Option<String>,
    /// Seconds after which a new try is worth it.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

impl Problem {
    /// What a caller is told of `error`. A fault of the service itself is logged here and not shown.
    pub(crate) fn of(error: &Error) -> Self {
        let problem = error.problem();
        let detail = if let Error::Internal(cause) = error {
            tracing::error!(error = %cause, "a request failed");
            "the service failed; the cause is in its log".to_owned()
        } else {
            shortened(error.to_string())
        };
        Self {
            kind: format!("urn:centile:problem:{}", problem.id),
            title: problem.title,
            status: problem.status,
            detail,
            field: match error {
                Error::Invalid { field, .. } => Some(shortened(field.clone())),
                _ => None,
            },
            retry_after: retry_after(error),
        }
    }
}

/// At most [`DETAIL_MAX_BYTES`] of `text`, with an ellipsis where it was cut.
fn shortened(mut text: String) -> String {
    if text.len() > DETAIL_MAX_BYTES {
        text.truncate(text.floor_char_boundary(DETAIL_MAX_BYTES));
        text.push('…');
    }
    text
}

/// Whole seconds to wait, at least one, where waiting helps.
fn retry_after(error: &Error) -> Option<u64> {
    match error {
        Error::Unavailable { retry_after, .. } | Error::TooMany { retry_after, .. } => {
            Some((retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0)).max(1))
        }
        _ => None,
    }
}

impl ResponseError for Error {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.problem().status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        told(&mut builder(self), self)
    }
}

/// An answer that tells of `error`; for whoever tells it otherwise, the problem goes along.
fn told(response: &mut HttpResponseBuilder, error: &Error) -> HttpResponse {
    let problem = Problem::of(error);
    let mut response = response.json(&problem);
    response.extensions_mut().insert(problem);
    response
}

/// The answer to a method that the path does not know; `allow` lists those that it does.
pub(crate) fn method_not_allowed(method: &str, path: &str, allow: &str) -> HttpResponse {
    let error = Error::MethodNotAllowed(format!("{path} answers {allow}, not {method}"));
    told(builder(&error).insert_header((header::ALLOW, allow)), &error)
}

/// Status and headers of the answer to `error`.
pub(crate) fn builder(error: &Error) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(error.status_code());
    response.content_type(MEDIA_TYPE).insert_header((header::CACHE_CONTROL, "no-store"));
    if let Some(seconds) = retry_after(error) {
        response.insert_header((header::RETRY_AFTER, seconds));
    }
    if matches!(error, Error::Unauthorized(_)) {
        response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
    }
    if matches!(error, Error::TooSlow(_)) {
        // What else may come belongs to a request that has been answered.
        response.force_close();
    }
    response
}

/// The problems that the document describes: status, name among its components, description.
const DESCRIBED: [(u16, &str, &str); 12] = [
    (400, "Malformed", "The request cannot be read: its body is not JSON."),
    (
        401,
        "Unauthorized",
        "No key, or one that is not valid, or no valid signature of a key that signs; `WWW-Authenticate` names the scheme.",
    ),
    (403, "Forbidden", "The key is valid and may not do this."),
    (404, "NotFound", "There is no such board, user, period or score transaction."),
    (408, "TooSlow", "The body took too long to arrive; the connection is closed."),
    (409, "Conflict", "The request contradicts what is stored."),
    (413, "TooLarge", "The body, or the list in it, is larger than allowed."),
    (415, "UnsupportedMediaType", "The body is not sent as `application/json`, or it is compressed."),
    (422, "Invalid", "A value cannot be taken; `field` names it."),
    (429, "TooMany", "The key, or the address, has made too many requests; `Retry-After` says when to make the next."),
    (500, "Internal", "The service failed; its log has the cause."),
    (
        503,
        "Unavailable",
        "The service cannot answer now and nothing was written; `Retry-After` says when to try again.",
    ),
];

/// The problem answers as components of the document, by name.
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

/// References to the components for `statuses`.
fn references(statuses: &[u16]) -> BTreeMap<String, RefOr<Response>> {
    let named = DESCRIBED.iter().filter(|(status, ..)| statuses.contains(status));
    named.map(|(status, name, _)| (status.to_string(), Ref::from_response_name(*name).into())).collect()
}

/// The problem of a service that cannot answer.
pub(crate) struct UnavailableProblem;

impl IntoResponses for UnavailableProblem {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(&[500, 503])
    }
}

/// The problem of a caller who asks too often, for a call that has no other.
pub(crate) struct TooManyProblem;

impl IntoResponses for TooManyProblem {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(&[429])
    }
}

/// Problems of a call that reads a list of everything.
pub(crate) struct ListProblems;

impl IntoResponses for ListProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(&[401, 422, 429, 500, 503])
    }
}

/// Problems of a call that reads something named.
pub(crate) struct ReadProblems;

impl IntoResponses for ReadProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(&[401, 403, 404, 422, 429, 500, 503])
    }
}

/// Problems of a call that reads something described in its body.
pub(crate) struct QueryProblems;

impl IntoResponses for QueryProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(&[400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503])
    }
}

/// Problems of a call that acts without a body.
pub(crate) struct ActProblems;

impl IntoResponses for ActProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(&[401, 403, 404, 409, 422, 429, 500, 503])
    }
}

/// Problems of a call that writes what is in its body.
pub(crate) struct WriteProblems;

impl IntoResponses for WriteProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(&[400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503])
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_internal_error_is_not_shown() {
        let problem = Problem::of(&Error::Internal("password=hunter2".into()));
        assert_eq!(problem.status, 500);
        assert!(!problem.detail.contains("hunter2"));
    }

    #[test]
    fn waiting_is_told_in_whole_seconds_rounded_up() {
        for (millis, seconds) in [(0, 1), (250, 1), (1_000, 1), (1_001, 2)] {
            let error = Error::Unavailable { message: "full".into(), retry_after: Duration::from_millis(millis) };
            assert_eq!(retry_after(&error), Some(seconds));
            let response = error.error_response();
            assert_eq!(response.headers().get(header::RETRY_AFTER), Some(&seconds.into()));
        }
    }

    #[test]
    fn a_detail_that_quotes_a_whole_body_is_cut() {
        let problem = Problem::of(&Error::invalid("points", "é".repeat(1_000)));
        assert!(problem.detail.len() <= DETAIL_MAX_BYTES + '…'.len_utf8());
        assert!(problem.detail.ends_with('…'));
    }

    #[test]
    fn every_status_that_is_referred_to_is_described() {
        assert_eq!(WriteProblems::responses().len(), DESCRIBED.len());
        for (status, ..) in DESCRIBED {
            assert!(WriteProblems::responses().contains_key(&status.to_string()));
        }
    }
}
