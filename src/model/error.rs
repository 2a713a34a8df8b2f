//! The one error type of the service, and what each kind of error looks like from outside.

use std::time::Duration;

/// Everything that can go wrong, in the words a caller is told.
///
/// [`Error::problem`] is exhaustive: a new variant does not compile until it has its public identifier and status.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A value of the request cannot be taken; `field` names where it stood.
    #[error("{field}: {message}")]
    Invalid {
        /// The field, parameter or flag at fault, as the caller wrote it.
        field: String,
        /// What is wrong with it and what would be right.
        message: String,
    },
    /// The body could not be read as what the call expects.
    #[error("{0}")]
    Malformed(String),
    /// A board, user, period, score transaction or route that does not exist.
    #[error("no {what} {name:?}{}", .hint.as_deref().map(|h| format!(": {h}")).unwrap_or_default())]
    NotFound {
        /// What was looked for: `board`, `user`, `period`, …
        what: &'static str,
        /// The name it was looked for by.
        name: String,
        /// What would exist, where that can be said.
        hint: Option<String>,
    },
    /// The request contradicts what is stored.
    #[error("{0}")]
    Conflict(String),
    /// No key, or one that is not valid.
    #[error("{0}")]
    Unauthorized(String),
    /// A valid key that may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// The method exists, but not on this path.
    #[error("{0}")]
    MethodNotAllowed(String),
    /// The body or the list in it is larger than allowed.
    #[error("{0}")]
    TooLarge(String),
    /// The body did not arrive in time.
    #[error("{0}")]
    TooSlow(String),
    /// The caller has made more requests than it may.
    #[error("{message}")]
    TooMany {
        /// Who has made too many.
        message: String,
        /// When the next one may be made.
        retry_after: Duration,
    },
    /// The body is of a type that the call does not read.
    #[error("{0}")]
    UnsupportedMediaType(String),
    /// PostgreSQL cannot be reached, or the service is full; nothing is known to have been written.
    #[error("{message}")]
    Unavailable {
        /// What is not available.
        message: String,
        /// When a new try is worth it.
        retry_after: Duration,
    },
    /// A fault of the service itself. Logged where it is handled; callers see only that it happened.
    #[error("{0}")]
    Internal(String),
}

/// What a caller is told of an [`Error`]: the members of an RFC 9457 problem document that depend on its kind only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// HTTP status code.
    pub status: u16,
    /// Stable public identifier, the last part of the problem's `type`.
    pub id: &'static str,
    /// Short summary that is the same for every occurrence.
    pub title: &'static str,
}

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An [`Error::Invalid`] for `field`.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), message: message.into() }
    }

    /// The same refusal, in which the field is called as the caller called it.
    #[must_use]
    pub fn in_field(self, field: impl Into<String>) -> Self {
        match self {
            Self::Invalid { message, .. } => Self::invalid(field, message),
            other => other,
        }
    }

    /// An [`Error::NotFound`] without a hint.
    pub fn not_found(what: &'static str, name: impl Into<String>) -> Self {
        Self::NotFound { what, name: name.into(), hint: None }
    }

    /// An [`Error::Unavailable`] that suggests a new try after one second.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::Unavailable { message: message.into(), retry_after: Duration::from_secs(1) }
    }

    /// Status, public identifier and title of this kind of error.
    #[must_use]
    pub fn problem(&self) -> Problem {
        let (status, id, title) = match self {
            Self::Invalid { .. } => (422, "invalid", "A value cannot be taken"),
            Self::Malformed(_) => (400, "malformed", "The request cannot be read"),
            Self::NotFound { .. } => (404, "not-found", "There is no such thing"),
            Self::Conflict(_) => (409, "conflict", "The request contradicts what is stored"),
            Self::Unauthorized(_) => (401, "unauthorized", "A valid key is needed"),
            Self::Forbidden(_) => (403, "forbidden", "The key may not do this"),
            Self::MethodNotAllowed(_) => (405, "method-not-allowed", "The method is not allowed here"),
            Self::TooLarge(_) => (413, "too-large", "The request is too large"),
            Self::TooSlow(_) => (408, "too-slow", "The request took too long to arrive"),
            Self::TooMany { .. } => (429, "too-many-requests", "Too many requests"),
            Self::UnsupportedMediaType(_) => (415, "unsupported-media-type", "The body's type cannot be read"),
            Self::Unavailable { .. } => (503, "unavailable", "The service cannot answer now"),
            Self::Internal(_) => (500, "internal", "The service failed"),
        };
        Problem { status, id, title }
    }
}
