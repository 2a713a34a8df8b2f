//! Reasons for refusing an event.

use std::{ops::RangeInclusive, time::Duration};

use crate::{
    Code, Error,
    model::board::{Board, Ties},
};

/// Window of the rule `events_per_minute`.
const EVENTS_WINDOW: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The user does not exist any more. The writer and the import create users before they decide.
    UnknownUser,
    Banned,
    /// The board, one of a template, was deleted after the request had found it.
    BoardDeleted,
    /// The event breaks a rule of its board.
    Broken(Violation),
    TiebreakNotUsed,
    /// The tiebreak is outside the range of the board.
    TiebreakOutOfRange,
    /// The time of an imported event is in the future.
    TimeInFuture,
    /// The time of an event is not from 2000 to 2070.
    TimeOutOfRange,
    /// A period that holds the event is closed.
    PeriodClosed,
    /// The player's score, or the sum of second numbers, would exceed 64 bits.
    Overflow,
    /// The id belongs to an event with other content.
    IdConflict,
    /// The id belongs to an event in quarantine.
    IdInQuarantine,
}

/// A rule of a board that an event breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
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

/// Refuses a tiebreak that a board with these ties does not accept.
pub(crate) fn check_tiebreak(ties: Ties, tiebreak: Option<i64>) -> Result<(), Refusal> {
    match (tiebreak, ties.tiebreaks()) {
        (Some(_), None) => Err(Refusal::TiebreakNotUsed),
        (Some(tiebreak), Some(range)) if !range.contains(&tiebreak) => Err(Refusal::TiebreakOutOfRange),
        _ => Ok(()),
    }
}

fn invalid(code: Code, field: &str, message: String) -> Error {
    Error::Invalid { code, field: field.to_owned(), message }
}

impl Violation {
    /// Creates a violation for points outside the bounds of a board.
    pub(crate) fn out_of_bounds(points_min: i64, points_max: i64) -> Self {
        Self { rule: Rule::PointsOutOfBounds, detail: format!("{points_min} to {points_max}") }
    }

    pub(crate) fn error(&self, board: &Board) -> Error {
        let (slug, detail) = (&board.slug, &self.detail);
        match self.rule {
            Rule::PointsOutOfBounds => {
                invalid(Code::PointsOutOfBounds, "points", format!("board {slug} allows {detail} points per event"))
            }
            Rule::TooManyEvents => Error::TooMany {
                code: Code::TooManyEvents,
                message: format!("board {slug} allows {detail} per player"),
                // After a pause as long as the window, the player has no events in it.
                retry_after: EVENTS_WINDOW,
            },
            Rule::GainTooLarge => {
                invalid(Code::GainTooLarge, "points", format!("board {slug} allows a player to gain {detail}"))
            }
        }
    }
}

impl Refusal {
    pub(crate) fn error(&self, board: &Board) -> Error {
        match self {
            Self::UnknownUser => {
                Error::retry(Code::ConcurrentChange, "the player was lost in a failover; send the event again")
            }
            Self::BoardDeleted => {
                Error::retry(Code::ConcurrentChange, "the board has just been deleted; retry to create it again")
            }
            Self::Banned => Error::conflict(Code::UserBanned, "the player is banned"),
            Self::Broken(violation) => violation.error(board),
            Self::TiebreakNotUsed => Error::invalid("tiebreak", format!("board {} does not use tiebreaks", board.slug)),
            Self::TiebreakOutOfRange => match board.ties.tiebreaks().map(RangeInclusive::into_inner) {
                Some((min, max)) => Error::invalid("tiebreak", format!("must be {min} to {max}")),
                None => Self::TiebreakNotUsed.error(board),
            },
            Self::TimeInFuture => Error::invalid("occurred_at", "must not be in the future"),
            Self::TimeOutOfRange => Error::invalid("occurred_at", "must be from 2000 to 2070"),
            Self::PeriodClosed => Error::conflict(Code::PeriodClosed, "a period that holds this time is closed"),
            Self::Overflow => invalid(
                Code::ScoreOutOfRange,
                "points",
                format!(
                    "the player's score {}would leave the range of 64 bits",
                    if board.ties == Ties::Second { "or second number " } else { "" }
                ),
            ),
            Self::IdConflict => Error::conflict(Code::IdConflict, "this id belongs to an event with other content"),
            Self::IdInQuarantine => {
                Error::conflict(Code::IdConflict, "this id belongs to an event that was put into quarantine")
            }
        }
    }
}
