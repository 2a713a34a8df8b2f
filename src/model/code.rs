//! The public codes of errors: one for each cause that a client may want to handle.

use serde::Serialize;
use strum::{EnumIter, EnumMessage, EnumString, IntoEnumIterator as _, IntoStaticStr};

/// A public code. Codes never change their meaning or status; later releases only add some.
///
/// The first sentence of each variant is its description in docs/api.md, which a test compares with
/// this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, EnumIter, EnumMessage, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Code {
    /// The body is not valid JSON.
    MalformedBody,
    /// The call needs a key, and the request has none.
    KeyRequired,
    /// The key is unknown, revoked or expired.
    KeyInvalid,
    /// The key does not permit this call on this board or player.
    Forbidden,
    /// The service has no such path.
    PathNotFound,
    /// The board does not exist.
    BoardNotFound,
    /// The player does not exist.
    UserNotFound,
    /// The player exists but has no score in this period.
    ScoreNotFound,
    /// The period does not exist or has not begun, or its archive is no longer kept.
    PeriodNotFound,
    /// The board has no score transaction with this id.
    TransactionNotFound,
    /// The board has no event with this id in quarantine.
    QuarantinedEventNotFound,
    /// The key does not exist.
    KeyNotFound,
    /// Something else that the request names does not exist; `detail` says what.
    NotFound,
    /// The path does not support the method; `Allow` lists those that it supports.
    MethodNotAllowed,
    /// The body did not arrive in time; the service closes the connection.
    BodyTimeout,
    /// Another event of the player used this `id` with other content.
    IdConflict,
    /// The player is banned.
    UserBanned,
    /// The id is that of an erased player, whose profile cannot change.
    UserErased,
    /// A period that holds the time of the event is closed.
    PeriodClosed,
    /// A board with this slug exists.
    BoardExists,
    /// The board has events, so this rule can no longer change.
    BoardHasEvents,
    /// The board has the rules of a template: change the template.
    BoardOfTemplate,
    /// The board has another league, or the league exists with other rules that cannot change.
    LeagueExists,
    /// The template has its maximum number of boards.
    TooManyBoards,
    /// The board is computed from other boards, so nothing can be written to it.
    BoardCombined,
    /// The board has a season with this name.
    SeasonExists,
    /// The board already has scores between the season's start and end.
    SeasonHasScores,
    /// The player would have more than 5,000 friends.
    TooManyFriends,
    /// The client already has two active keys; revoke one of them first.
    TooManyKeys,
    /// An administrator has accepted or rejected the event.
    EventDecided,
    /// Another request has used this `Idempotency-Key`.
    IdempotencyKeyReused,
    /// A later ban or unban of the player has begun.
    BanSuperseded,
    /// The cursor is from before a restore or failover of the database, or a change of lanes.
    CursorOutdated,
    /// The request conflicts with stored data in another way, which `detail` explains.
    Conflict,
    /// The body is larger than the service allows.
    BodyTooLarge,
    /// The body is compressed, or not sent as `application/json`.
    UnsupportedMediaType,
    /// A value is invalid; `field` names it.
    InvalidValue,
    /// The points lie outside the bounds of the board.
    PointsOutOfBounds,
    /// The player would gain more in a period than the board allows.
    GainTooLarge,
    /// The player's score or second number would leave the range of 64 bits.
    ScoreOutOfRange,
    /// The key or network address has made too many requests, or the key has created too many boards.
    RateLimited,
    /// The player has more events in 60 seconds than the board allows.
    TooManyEvents,
    /// The key or network address has too many live streams or downloads open.
    TooManyConnections,
    /// The service met an unexpected error, which its log explains.
    Internal,
    /// PostgreSQL does not answer; a write may or may not have been committed.
    DatabaseUnavailable,
    /// PostgreSQL is reachable, but too busy to answer in time; a write may or may not have been committed.
    DatabaseBusy,
    /// The service has too much to do; it wrote nothing.
    Overloaded,
    /// The period has no bucket rows, and no rank index of it is ready; retry, and raise `--index-memory` if it stays so.
    IndexUnavailable,
    /// The outcome of a write is unknown; send it again with the same ids.
    OutcomeUnknown,
    /// The period, board or player is being changed by another session; nothing was written.
    ConcurrentChange,
    /// The database's clock was ahead and is behind the board's last event; nothing was written.
    ClockBehind,
    /// The rolling window is being filled from the ledger; retry.
    PeriodPreparing,
    /// The instance is stopping and wrote nothing; another one may answer.
    ShuttingDown,
    /// The instance cannot answer now; `detail` explains why and what was done.
    Unavailable,
}

impl Code {
    /// Returns the code as in responses.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the description in docs/api.md.
    #[must_use]
    pub fn description(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }

    /// Returns all codes.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::iter()
    }

    /// Returns the HTTP status code.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::MalformedBody => 400,
            Self::KeyRequired | Self::KeyInvalid => 401,
            Self::Forbidden => 403,
            Self::PathNotFound
            | Self::BoardNotFound
            | Self::UserNotFound
            | Self::ScoreNotFound
            | Self::PeriodNotFound
            | Self::TransactionNotFound
            | Self::QuarantinedEventNotFound
            | Self::KeyNotFound
            | Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::BodyTimeout => 408,
            Self::IdConflict
            | Self::UserBanned
            | Self::UserErased
            | Self::PeriodClosed
            | Self::BoardExists
            | Self::BoardHasEvents
            | Self::BoardOfTemplate
            | Self::LeagueExists
            | Self::TooManyBoards
            | Self::BoardCombined
            | Self::SeasonExists
            | Self::SeasonHasScores
            | Self::TooManyFriends
            | Self::TooManyKeys
            | Self::EventDecided
            | Self::IdempotencyKeyReused
            | Self::BanSuperseded
            | Self::CursorOutdated
            | Self::Conflict => 409,
            Self::BodyTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::InvalidValue | Self::PointsOutOfBounds | Self::GainTooLarge | Self::ScoreOutOfRange => 422,
            Self::RateLimited | Self::TooManyEvents | Self::TooManyConnections => 429,
            Self::Internal => 500,
            Self::DatabaseUnavailable
            | Self::DatabaseBusy
            | Self::Overloaded
            | Self::IndexUnavailable
            | Self::OutcomeUnknown
            | Self::ConcurrentChange
            | Self::ClockBehind
            | Self::PeriodPreparing
            | Self::ShuttingDown
            | Self::Unavailable => 503,
        }
    }

    /// Returns the title: a short summary, the same for all codes of a status.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self.status() {
            400 => "Malformed request",
            401 => "Authentication required",
            403 => "Forbidden",
            404 => "Not found",
            405 => "Method not allowed",
            408 => "Request timeout",
            409 => "Conflict",
            413 => "Request too large",
            415 => "Unsupported media type",
            422 => "Invalid value",
            429 => "Too many requests",
            503 => "Service unavailable",
            _ => "Internal error",
        }
    }
}
