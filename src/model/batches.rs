//! Batches that a board has reached, as callers see them.

use std::{fmt, str::FromStr};

use crate::{Error, Result, model::id::Batch};

/// Maximum lanes of a board.
const LANES_MAX: usize = 64;

/// For each lane, the last batch that a state of the board must contain; 0 if none is required.
///
/// Responses to writes name it, and reads may ask for it. Its text is opaque to callers:
/// `7:105.0.77`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoardBatches {
    pub(crate) board_id: i32,
    pub(crate) batches: Vec<Batch>,
}

impl BoardBatches {
    /// Parses the text of one or more boards, separated by commas.
    ///
    /// Returns [`Error::Invalid`] if it is malformed.
    pub(crate) fn parse_all(text: &str) -> Result<Vec<Self>> {
        text.split(',').map(|one| one.trim().parse()).collect()
    }
}

impl FromStr for BoardBatches {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // `parse` would accept a sign.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b":.".contains(&byte));
        let (board, batches) = text.split_once(':').filter(|_| is_plain).ok_or_else(malformed)?;
        let board_id = board.parse().map_err(|_| malformed())?;
        let batches: std::result::Result<Vec<_>, _> =
            batches.split('.').map(|number| number.parse().map(Batch)).collect();
        match batches {
            Ok(batches) if batches.len() <= LANES_MAX => Ok(Self { board_id, batches }),
            _ => Err(malformed()),
        }
    }
}

impl fmt::Display for BoardBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.board_id)?;
        for (lane, Batch(number)) in self.batches.iter().enumerate() {
            write!(f, "{}{number}", if lane == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

fn malformed() -> Error {
    Error::invalid("Centile-Min-Version", "must be the Centile-Version of a response to a write")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_parsed_and_written() -> Result<()> {
        let both = BoardBatches::parse_all("7:105.0.77, 8:1")?;
        assert_eq!(both[0], BoardBatches { board_id: 7, batches: Batch::from_numbers(vec![105, 0, 77]) });
        assert_eq!(both.iter().map(ToString::to_string).collect::<Vec<_>>(), ["7:105.0.77", "8:1"]);
        for text in ["", "7", "7:", "7:1.", ":1", "7:-1", "+7:1", "7:1;2", "7:99999999999999999999", "1:1,"] {
            assert!(text.parse::<BoardBatches>().is_err() || BoardBatches::parse_all(text).is_err(), "{text}");
        }
        assert!(format!("7:{}0", "0.".repeat(64)).parse::<BoardBatches>().is_err());
        Ok(())
    }
}
