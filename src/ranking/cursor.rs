//! Where the next page begins, as callers carry it about.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    Error, Result,
    model::{
        board::Board,
        period::{Period, PeriodSelector},
    },
    store::rank::StoredKey,
};

/// Where the next page of a period begins: after this key.
pub(crate) struct Cursor {
    /// The period it belongs to, by name.
    pub(crate) selector: PeriodSelector,
    /// The last row of the page before.
    pub(crate) key: StoredKey,
}

impl Cursor {
    /// Opaque to callers; says board, period and key.
    pub(crate) fn text(board: &Board, period: &Period, key: StoredKey) -> String {
        let StoredKey { rank_key, tie_key, internal_id } = key;
        URL_SAFE_NO_PAD.encode(format!("{}|{}|{rank_key}|{tie_key}|{internal_id}", board.id, period.name()))
    }

    /// Refuses what is no cursor of this board and kind of period.
    pub(crate) fn parse(text: &str, board: &Board, selector: &PeriodSelector) -> Result<Self> {
        let refused = || Error::invalid("cursor", format!("is not the `next` of an earlier page of {selector}"));
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
        let plain = String::from_utf8(bytes).map_err(|_| refused())?;
        let parts: Vec<&str> = plain.split('|').collect();
        let [board_id, period, rank_key, tie_key, internal_id] = parts[..] else { return Err(refused()) };
        let number = |text: &str| text.parse::<i64>().map_err(|_| refused());
        let named: PeriodSelector = period.parse().map_err(|_| refused())?;
        let is_meant = match selector {
            PeriodSelector::Labelled(..) => *selector == named,
            _ => selector.kind() == named.kind(),
        };
        if board_id != board.id.to_string() || !is_meant {
            return Err(refused());
        }
        let key =
            StoredKey { rank_key: number(rank_key)?, tie_key: number(tie_key)?, internal_id: number(internal_id)? };
        // Internal ids begin at 1, so the user key below it is a number still.
        if key.internal_id < 1 || key.internal_id == i64::MAX {
            return Err(refused());
        }
        Ok(Self { selector: named, key })
    }
}
