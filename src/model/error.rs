//! The error type of the service, and the public form of each kind of error.

use std::{mem, time::Duration};

use crate::Code;

/// Default time after which clients retry.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// An error. Its text is the detail that the caller receives.
///
/// [`Error::code`] is exhaustive: a new variant does not compile without a public code.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A value of the request is invalid.
    #[error("{field}: {message}")]
    Invalid {
        /// The public code.
        code: Code,
        /// The field, parameter or flag at fault, as the caller wrote it.
        field: String,
        /// The problem, or the valid values.
        message: String,
    },
    /// The request could not be parsed.
    #[error("{0}")]
    Malformed(String),
    /// A board, user, period, score transaction or route does not exist.
    #[error("no {} {name:?}{}", .what.words(), .hint.as_deref().map(|h| format!(": {h}")).unwrap_or_default())]
    NotFound {
        /// The kind of resource.
        what: Resource,
        /// The requested name.
        name: String,
        /// A hint at the cause, or at existing names.
        hint: Option<String>,
    },
    /// The request conflicts with stored data.
    #[error("{message}")]
    Conflict {
        /// The public code.
        code: Code,
        /// Describes the conflict.
        message: String,
    },
    /// The key is missing or invalid.
    #[error("{message}")]
    Unauthorized {
        /// The public code.
        code: Code,
        /// The missing or invalid part.
        message: String,
    },
    /// The key does not permit the request.
    #[error("{0}")]
    Forbidden(String),
    /// The path does not support the method.
    #[error("{0}")]
    MethodNotAllowed(String),
    /// The body is larger than allowed.
    #[error("{0}")]
    TooLarge(String),
    /// The body did not arrive in time.
    #[error("{0}")]
    TooSlow(String),
    /// The caller exceeded a rate limit.
    #[error("{message}")]
    TooMany {
        /// The public code.
        code: Code,
        /// The limit that was exceeded.
        message: String,
        /// Time until the next request is allowed.
        retry_after: Duration,
    },
    /// The media type of the body is not supported.
    #[error("{0}")]
    UnsupportedMediaType(String),
    /// PostgreSQL cannot be reached. Only this error permits stale answers.
    #[error("{0}")]
    Outage(String),
    /// PostgreSQL is reachable but too busy, or this instance is.
    #[error("{message}")]
    Overload {
        /// [`Code::DatabaseBusy`] or [`Code::Overloaded`].
        code: Code,
        /// The part that is too busy.
        message: String,
        /// Time after which a retry makes sense.
        retry_after: Duration,
    },
    /// A write may or may not have been committed.
    #[error("{message}")]
    OutcomeUnknown {
        /// The public code of the cause.
        code: Code,
        /// The cause.
        message: String,
    },
    /// This instance is shutting down.
    #[error("this instance is shutting down")]
    Stopping,
    /// Another cause that may pass, such as a change by another session.
    #[error("{message}")]
    Retry {
        /// The public code.
        code: Code,
        /// The cause.
        message: String,
        /// Time after which a retry makes sense.
        retry_after: Duration,
    },
    /// The ranking or archive of the period was replaced during the read.
    #[error("the period is being replaced; retry")]
    Replaced,
    /// An internal error. It is logged where it is handled; callers do not see its text.
    #[error("{0}")]
    Internal(String),
}

/// A kind of thing that a request can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// A path, page or file of the service.
    Path,
    /// A board.
    Board,
    /// A template of boards.
    Template,
    /// A league.
    League,
    /// A cohort of a league.
    Cohort,
    /// A player.
    User,
    /// The score of a player who exists.
    Score,
    /// A period, season or archive.
    Period,
    /// A score transaction.
    Transaction,
    /// An event in quarantine.
    QuarantinedEvent,
    /// An API key.
    Key,
    /// The webhook of a board.
    Webhook,
    /// A webhook message.
    Message,
}

impl Resource {
    /// Returns the words for the detail of an error.
    fn words(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Board => "board",
            Self::Template => "template",
            Self::League => "league",
            Self::Cohort => "cohort",
            Self::User => "user",
            Self::Score => "score of user",
            Self::Period => "period",
            Self::Transaction => "score transaction",
            Self::QuarantinedEvent => "event in quarantine",
            Self::Key => "key",
            Self::Webhook => "webhook of board",
            Self::Message => "message",
        }
    }

    fn code(self) -> Code {
        match self {
            Self::Path => Code::PathNotFound,
            Self::Board => Code::BoardNotFound,
            Self::User => Code::UserNotFound,
            Self::Score => Code::ScoreNotFound,
            Self::Period => Code::PeriodNotFound,
            Self::Transaction => Code::TransactionNotFound,
            Self::QuarantinedEvent => Code::QuarantinedEventNotFound,
            Self::Key => Code::KeyNotFound,
            Self::Template | Self::League | Self::Cohort | Self::Webhook | Self::Message => Code::NotFound,
        }
    }
}

/// Result of the fallible functions of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an [`Error::Invalid`] for `field`.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { code: Code::InvalidValue, field: field.into(), message: message.into() }
    }

    /// Replaces the field of an [`Error::Invalid`] by the caller's name for it.
    #[must_use]
    pub fn in_field(self, field: impl Into<String>) -> Self {
        match self {
            Self::Invalid { code, message, .. } => Self::Invalid { code, field: field.into(), message },
            other => other,
        }
    }

    /// Returns the text of the error without the name of a field, which the caller adds.
    pub(crate) fn without_field(self) -> String {
        match self {
            Self::Invalid { message, .. } => message,
            other => other.to_string(),
        }
    }

    /// Creates an [`Error::NotFound`] without a hint.
    pub fn not_found(what: Resource, name: impl Into<String>) -> Self {
        Self::NotFound { what, name: name.into(), hint: None }
    }

    /// Creates an [`Error::Conflict`].
    pub fn conflict(code: Code, message: impl Into<String>) -> Self {
        Self::Conflict { code, message: message.into() }
    }

    /// Creates an [`Error::Conflict`] whose cause only `message` tells.
    pub fn other_conflict(message: impl Into<String>) -> Self {
        Self::conflict(Code::Conflict, message)
    }

    /// Creates an [`Error::Unauthorized`].
    pub fn unauthorized(code: Code, message: impl Into<String>) -> Self {
        Self::Unauthorized { code, message: message.into() }
    }

    /// Creates the error of a statement that PostgreSQL did not answer in time.
    pub(crate) fn no_answer() -> Self {
        Self::Outage("PostgreSQL does not answer".to_owned())
    }

    /// Creates the error of an overloaded instance.
    pub(crate) fn overload(message: impl Into<String>) -> Self {
        Self::Overload { code: Code::Overloaded, message: message.into(), retry_after: RETRY_AFTER }
    }

    /// Creates the error of events that may or may not be committed.
    pub(crate) fn outcome_unknown() -> Self {
        let message = "the outcome of the events is unknown; send them again with the same ids".to_owned();
        Self::OutcomeUnknown { code: Code::OutcomeUnknown, message }
    }

    /// Creates the error of a rolling window that is not filled yet.
    pub(crate) fn preparing(period: &str) -> Self {
        Self::retry(Code::PeriodPreparing, format!("{period} is being filled from the ledger; retry"))
    }

    /// Creates an [`Error::Retry`] with a retry after one second.
    pub(crate) fn retry(code: Code, message: impl Into<String>) -> Self {
        Self::Retry { code, message: message.into(), retry_after: RETRY_AFTER }
    }

    /// Marks an error after which PostgreSQL may have committed a write: a statement got no answer, or a
    /// read after the write failed.
    pub(crate) fn after_write(self) -> Self {
        let code = self.code();
        match self {
            Self::Outage(message) | Self::Overload { message, .. } => {
                Self::OutcomeUnknown { code, message: message + "; a write may or may not have been committed" }
            }
            other => other,
        }
    }

    /// Returns the error of `results` if all have failed with the same code. If the outcome of one of them
    /// is unknown, returns that error.
    pub(crate) fn of_all<'a, T: 'a>(results: impl IntoIterator<Item = &'a Result<T>>) -> Option<&'a Self> {
        let errors: Vec<&Self> = results.into_iter().map(|result| result.as_ref().err()).collect::<Option<_>>()?;
        let first = *errors.first()?;
        let unknown = errors.iter().copied().find(|error| matches!(error, Self::OutcomeUnknown { .. }));
        errors.iter().all(|error| error.code() == first.code()).then_some(unknown.unwrap_or(first))
    }

    /// Replaces the message of an error that may pass.
    pub(crate) fn with_message(mut self, replace: impl FnOnce(String) -> String) -> Self {
        if let Self::Outage(message)
        | Self::Overload { message, .. }
        | Self::OutcomeUnknown { message, .. }
        | Self::Retry { message, .. } = &mut self
        {
            *message = replace(mem::take(message));
        }
        self
    }

    /// Returns whether the cause may pass without a change of the request or the data.
    pub(crate) fn is_temporary(&self) -> bool {
        !matches!(self, Self::TooMany { .. }) && self.retry_after().is_some()
    }

    /// Returns the time after which a retry makes sense.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Outage(_) | Self::OutcomeUnknown { .. } | Self::Stopping => Some(RETRY_AFTER),
            Self::Overload { retry_after, .. }
            | Self::Retry { retry_after, .. }
            | Self::TooMany { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// Returns the public code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Invalid { code, .. }
            | Self::Conflict { code, .. }
            | Self::Unauthorized { code, .. }
            | Self::TooMany { code, .. }
            | Self::Overload { code, .. }
            | Self::OutcomeUnknown { code, .. }
            | Self::Retry { code, .. } => *code,
            Self::Outage(_) => Code::DatabaseUnavailable,
            Self::Stopping => Code::ShuttingDown,
            Self::Malformed(_) => Code::MalformedBody,
            Self::NotFound { what, .. } => what.code(),
            Self::Forbidden(_) => Code::Forbidden,
            Self::MethodNotAllowed(_) => Code::MethodNotAllowed,
            Self::TooLarge(_) => Code::BodyTooLarge,
            Self::TooSlow(_) => Code::BodyTimeout,
            Self::UnsupportedMediaType(_) => Code::UnsupportedMediaType,
            Self::Replaced => Code::ConcurrentChange,
            Self::Internal(_) => Code::Internal,
        }
    }
}
