//! The error type of the service, and the public form of each kind of error.

use std::time::Duration;

/// An error. Its text is the detail that the caller receives.
///
/// [`Error::problem`] is exhaustive: a new variant does not compile without a public identifier and
/// status.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A value of the request is invalid.
    #[error("{field}: {message}")]
    Invalid {
        /// The field, parameter or flag at fault, as the caller wrote it.
        field: String,
        /// The problem, or the valid values.
        message: String,
    },
    /// The request could not be parsed.
    #[error("{0}")]
    Malformed(String),
    /// A board, user, period, score transaction or route does not exist.
    #[error("no {what} {name:?}{}", .hint.as_deref().map(|h| format!(": {h}")).unwrap_or_default())]
    NotFound {
        /// Kind of thing: `board`, `user`, `period`, …
        what: &'static str,
        /// The requested name.
        name: String,
        /// A hint at the cause, or at existing names.
        hint: Option<String>,
    },
    /// The request conflicts with stored data.
    #[error("{0}")]
    Conflict(String),
    /// The key or the signature is missing or invalid.
    #[error("{0}")]
    Unauthorized(String),
    /// The key does not permit the request.
    #[error("{0}")]
    Forbidden(String),
    /// The path does not support the method.
    #[error("{0}")]
    MethodNotAllowed(String),
    /// The body, or a list in it, is larger than allowed.
    #[error("{0}")]
    TooLarge(String),
    /// The body did not arrive in time.
    #[error("{0}")]
    TooSlow(String),
    /// The caller exceeded a rate limit.
    #[error("{message}")]
    TooMany {
        /// The limit that was exceeded.
        message: String,
        /// Time until the next request is allowed.
        retry_after: Duration,
    },
    /// The media type of the body is not supported.
    #[error("{0}")]
    UnsupportedMediaType(String),
    /// PostgreSQL is unreachable, or the service is overloaded. Nothing is known to have been
    /// written.
    #[error("{message}")]
    Unavailable {
        /// The unavailable part, and the reason.
        message: String,
        /// Time after which a retry makes sense.
        retry_after: Duration,
    },
    /// An internal error. It is logged where it is handled; callers do not see its text.
    #[error("{0}")]
    Internal(String),
}

/// The members of an RFC 9457 problem document that depend only on the kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// HTTP status code.
    pub status: u16,
    /// Stable public identifier: the last part of the problem's `type`.
    pub id: &'static str,
    /// Short summary, the same for every occurrence.
    pub title: &'static str,
}

/// Result of the fallible functions of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an [`Error::Invalid`] for `field`.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), message: message.into() }
    }

    /// Replaces the field of an [`Error::Invalid`] by the caller's name for it.
    #[must_use]
    pub fn in_field(self, field: impl Into<String>) -> Self {
        match self {
            Self::Invalid { message, .. } => Self::invalid(field, message),
            other => other,
        }
    }

    /// Creates an [`Error::NotFound`] without a hint.
    pub fn not_found(what: &'static str, name: impl Into<String>) -> Self {
        Self::NotFound { what, name: name.into(), hint: None }
    }

    /// Creates an [`Error::Unavailable`] with a retry after one second.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::Unavailable { message: message.into(), retry_after: Duration::from_secs(1) }
    }

    /// Returns status, public identifier and title of this kind of error.
    #[must_use]
    pub fn problem(&self) -> Problem {
        let (status, id, title) = match self {
            Self::Invalid { .. } => (422, "invalid", "Invalid value"),
            Self::Malformed(_) => (400, "malformed", "Malformed request"),
            Self::NotFound { .. } => (404, "not-found", "Not found"),
            Self::Conflict(_) => (409, "conflict", "Conflict"),
            Self::Unauthorized(_) => (401, "unauthorized", "Authentication required"),
            Self::Forbidden(_) => (403, "forbidden", "Forbidden"),
            Self::MethodNotAllowed(_) => (405, "method-not-allowed", "Method not allowed"),
            Self::TooLarge(_) => (413, "too-large", "Request too large"),
            Self::TooSlow(_) => (408, "too-slow", "Request timeout"),
            Self::TooMany { .. } => (429, "too-many-requests", "Too many requests"),
            Self::UnsupportedMediaType(_) => (415, "unsupported-media-type", "Unsupported media type"),
            Self::Unavailable { .. } => (503, "unavailable", "Service unavailable"),
            Self::Internal(_) => (500, "internal", "Internal error"),
        };
        Problem { status, id, title }
    }
}
