//! Reasons for refusing an event.

use crate::{Error, model::board::Board};

/// Reason for refusing an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The user does not exist yet. The writer creates it and submits the event again.
    UnknownUser,
    /// The player is banned.
    Banned,
    /// The event breaks a rule of its board.
    Broken(Violation),
    /// The board does not use tiebreaks.
    TiebreakNotUsed,
    /// The tiebreak is not from −2048 to 2047.
    TiebreakOutOfRange,
    /// The time of an imported event is in the future.
    TimeInFuture,
    /// The time of an event is not from 2000 to 2070.
    TimeOutOfRange,
    /// A period that holds the event is closed.
    PeriodClosed,
    /// The player's score would exceed 64 bits.
    Overflow,
    /// The id belongs to an event with other content.
    IdConflict,
    /// The id belongs to an event in quarantine.
    IdInQuarantine,
}

/// A rule of a board that an event breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// The rule.
    pub(crate) rule: Rule,
    /// The limit, and the value that broke it.
    pub(crate) detail: String,
}

/// The rules of a board that an event can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Rule {
    /// Points below the minimum or above the maximum of an event.
    PointsOutOfBounds,
    /// More events of a player in 60 seconds than the board allows.
    TooManyEvents,
    /// A larger gain in a period than the board allows.
    GainTooLarge,
}

impl Violation {
    /// Creates a violation for points outside the bounds of a board.
    pub(crate) fn out_of_bounds(points_min: i64, points_max: i64) -> Self {
        Self { rule: Rule::PointsOutOfBounds, detail: format!("{points_min} to {points_max}") }
    }

    /// Returns the error for the caller.
    pub(crate) fn error(&self, board: &Board) -> Error {
        let (slug, detail) = (&board.slug, &self.detail);
        match self.rule {
            Rule::PointsOutOfBounds => {
                Error::invalid("points", format!("board {slug} allows {detail} points per event"))
            }
            // A conflict, because a later event may succeed; other points would not help.
            Rule::TooManyEvents => Error::Conflict(format!("board {slug} allows {detail} per player")),
            Rule::GainTooLarge => Error::invalid("points", format!("board {slug} allows a player to gain {detail}")),
        }
    }
}

impl Refusal {
    /// Returns the error for the caller.
    pub(crate) fn error(&self, board: &Board) -> Error {
        match self {
            Self::UnknownUser => Error::unavailable("the player was lost in a failover; send the event again"),
            Self::Banned => Error::Forbidden("the player is banned".to_owned()),
            Self::Broken(violation) => violation.error(board),
            Self::TiebreakNotUsed => Error::invalid("tiebreak", format!("board {} does not use tiebreaks", board.slug)),
            Self::TiebreakOutOfRange => Error::invalid("tiebreak", "must be -2048 to 2047"),
            Self::TimeInFuture => Error::invalid("occurred_at", "must not be in the future"),
            Self::TimeOutOfRange => Error::invalid("occurred_at", "must be from 2000 to 2070"),
            Self::PeriodClosed => Error::Conflict("a period that holds this time is closed".to_owned()),
            Self::Overflow => Error::invalid("points", "the player's score would leave the range of 64 bits"),
            Self::IdConflict => Error::Conflict("this id belongs to an event with other content".to_owned()),
            Self::IdInQuarantine => {
                Error::Conflict("this id belongs to an event that was put into quarantine".to_owned())
            }
        }
    }
}
