//! Cursors: positions between two pages, as opaque text for callers.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    Error, Result,
    model::{
        board::Board,
        period::{Period, PeriodSelector},
    },
    store::rank::StoredKey,
};

/// The start of a page of a period: right after a key.
pub(crate) struct Cursor {
    pub(crate) selector: PeriodSelector,
    /// Key of the previous page's last row.
    pub(crate) key: StoredKey,
}

impl Cursor {
    /// Encodes board, period and key. The text is opaque to callers.
    pub(crate) fn text(board: &Board, period: &Period, key: StoredKey) -> String {
        let StoredKey { rank_key, tie_key, internal_id } = key;
        let whole = format!("{}|{}|{rank_key}|{tie_key}|{internal_id}", board.id, period.name());
        // A segment may contain any character, so it comes last.
        URL_SAFE_NO_PAD.encode(period.segment.as_ref().map_or(whole.clone(), |segment| format!("{whole}|{segment}")))
    }

    /// Decodes a cursor. [`Error::Invalid`] unless it belongs to this board and this kind of
    /// period.
    pub(crate) fn parse(text: &str, board: &Board, selector: &PeriodSelector) -> Result<Self> {
        let refused =
            || Error::invalid("cursor", format!("must be the `next_cursor` of an earlier page of {selector}"));
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
        let plain = String::from_utf8(bytes).map_err(|_| refused())?;
        let parts: Vec<&str> = plain.splitn(6, '|').collect();
        let [board_id, period, rank_key, tie_key, internal_id, ref segment @ ..] = parts[..] else {
            return Err(refused());
        };
        let number = |text: &str| text.parse::<i64>().map_err(|_| refused());
        let mut named: PeriodSelector = period.parse().map_err(|_| refused())?;
        if let [segment] = segment {
            named = named.in_segment(segment.parse().map_err(|_| refused())?);
        }
        let is_of_selector = match selector.whole() {
            PeriodSelector::Labelled(..) => *selector == named,
            PeriodSelector::Window(_) => named.to_string().starts_with(&format!("{selector}-")),
            _ => selector.kind() == named.kind() && selector.segment() == named.segment(),
        };
        if board_id != board.id.to_string() || !is_of_selector {
            return Err(refused());
        }
        let key =
            StoredKey { rank_key: number(rank_key)?, tie_key: number(tie_key)?, internal_id: number(internal_id)? };
        // Internal ids start at 1. The bounds keep the user key just below this one within 64 bits.
        if key.internal_id < 1 || key.internal_id == i64::MAX {
            return Err(refused());
        }
        Ok(Self { selector: named, key })
    }
}
