//! Why an event is refused.

use crate::{Error, model::board::Board};

/// Why an event is not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No such user exists yet. The writer creates it and sends the event again.
    UnknownUser,
    /// The player is banned.
    Banned,
    /// The event breaks a rule of its board.
    Broken(Violation),
    /// The board breaks no ties by a tiebreak.
    TiebreakNotUsed,
    /// The tiebreak is not −2048 to 2047.
    TiebreakOutOfRange,
    /// An imported event lies in the future.
    TimeInFuture,
    /// An imported event is not from 2000 to 2070.
    TimeOutOfRange,
    /// A period that holds the event is closed.
    PeriodClosed,
    /// The player's score would leave the range of 64 bits.
    Overflow,
    /// The id belongs to an event with other content.
    IdConflict,
    /// The id belongs to an event that is in quarantine.
    IdInQuarantine,
}

/// A rule of a board that an event breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Which.
    pub(crate) rule: Rule,
    /// The limit, and the value that broke it.
    pub(crate) detail: String,
}

/// The rules of a board that an event can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Points below the least or above the most of an event.
    PointsOutOfBounds,
    /// More events of a player in 60 seconds than the board allows.
    TooManyEvents,
    /// A larger gain in a period than the board allows.
    GainTooLarge,
}

impl Rule {
    /// Its name in the database.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PointsOutOfBounds => "points_out_of_bounds",
            Self::TooManyEvents => "too_many_events",
            Self::GainTooLarge => "gain_too_large",
        }
    }

    /// The one of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::PointsOutOfBounds, Self::TooManyEvents, Self::GainTooLarge].into_iter().find(|it| it.name() == name)
    }
}

impl Violation {
    /// Points outside the bounds of a board.
    pub(crate) fn out_of_bounds(points_min: i64, points_max: i64) -> Self {
        Self { rule: Rule::PointsOutOfBounds, detail: format!("{points_min} to {points_max}") }
    }

    /// As an error for the caller.
    pub(crate) fn error(&self, board: &Board) -> Error {
        let (slug, detail) = (&board.slug, &self.detail);
        match self.rule {
            Rule::PointsOutOfBounds => Error::invalid("points", format!("board {slug} takes {detail} per event")),
            // Another time helps here, other points would not.
            Rule::TooManyEvents => Error::Conflict(format!("board {slug} takes {detail} of a player")),
            Rule::GainTooLarge => Error::invalid("points", format!("board {slug} lets a player gain {detail}")),
        }
    }
}

impl Refusal {
    /// As an error for the caller.
    pub(crate) fn error(&self, board: &Board) -> Error {
        match self {
            Self::UnknownUser => Error::unavailable("the player was lost in a failover; send the event again"),
            Self::Banned => Error::Forbidden("the player is banned".to_owned()),
            Self::Broken(violation) => violation.error(board),
            Self::TiebreakNotUsed => {
                Error::invalid("tiebreak", format!("board {} does not break ties by a tiebreak", board.slug))
            }
            Self::TiebreakOutOfRange => Error::invalid("tiebreak", "must be -2048 to 2047"),
            Self::TimeInFuture => Error::invalid("occurred_at", "lies in the future"),
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
