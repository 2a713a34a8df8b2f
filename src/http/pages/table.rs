//! Tables of players.

use std::{cmp::Ordering, collections::HashMap};

use maud::{Markup, html};

use crate::{
    http::pages::{
        link::Link,
        number::{count, for_script, score},
    },
    model::{
        board::Board,
        period::Period,
        presentation::ScoreFormat,
        rank::{Header, Row, Tiering},
    },
};

/// An earlier ranking, with which a table compares positions.
#[derive(Debug)]
pub(crate) struct Before {
    /// The snapshot.
    pub(crate) snapshot: Period,
    /// Positions of the table's players who were in it.
    pub(crate) positions: HashMap<String, u64>,
}

/// How the rows of a ranking are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowStyle<'a> {
    /// Format of the scores.
    pub(crate) format: &'a ScoreFormat,
    /// Tiers of the players.
    pub(crate) tiering: Tiering<'a>,
}

impl<'a> RowStyle<'a> {
    /// Returns the style of rows with this header.
    pub(crate) fn of(board: &'a Board, header: &'a Header) -> Self {
        Self { format: &board.presentation.score_format, tiering: header.tiering(board) }
    }
}

/// Renders a table of players. `mark` is the highlighted player; `live` names the table for the
/// script.
pub(crate) fn table(
    caption: &str,
    rows: &[Row],
    link: &Link,
    mark: Option<&str>,
    live: &str,
    before: Option<&Before>,
    style: RowStyle<'_>,
) -> Markup {
    html! {
        // The script may fill an empty table.
        table data-live=(live) data-format=[for_script(style.format)] data-since=[before.map(|before| before.snapshot.name())]
            aria-describedby=[before.is_some().then_some("since")] hidden[rows.is_empty()] {
            caption { (caption) }
            thead {
                tr {
                    th.rank scope="col" { "Rank" }
                    th.move scope="col" { @if before.is_some() { "Change" } @else { span.unseen { "Change" } } }
                    th.name scope="col" { "Player" }
                    th.score scope="col" { "Score" }
                }
            }
            tbody { @for row in rows { (line(row, link, mark, before, style)) } }
        }
    }
}

/// Renders one player's row.
fn line(row: &Row, link: &Link, mark: Option<&str>, before: Option<&Before>, style: RowStyle<'_>) -> Markup {
    let is_marked = mark == Some(row.user_id.as_str());
    let old = before.map(|before| before.positions.get(&row.user_id).copied());
    html! {
        // The script compares with the old position, which is empty for a new player.
        tr data-user=(row.user_id) data-before=[old.map(|old| old.map_or_else(String::new, |old| old.to_string()))]
            aria-current=[is_marked.then_some("true")] {
            td.rank { (count(row.rank)) }
            td.move { @if let Some(old) = old { (moved(old, row.position)) } }
            th.name scope="row" {
                a href=(link.player(Some(&row.user_id)).href()) title=(row.user_id) { bdi { (row.user_name) } }
                (tier(row, style.tiering))
            }
            td.score { (score(style.format, row.score)) }
        }
    }
}

/// Renders the tier of a player in one.
pub(crate) fn tier(row: &Row, tiering: Tiering<'_>) -> Markup {
    html! { @if let Some(Some(name)) = tiering.of(row) { span.tier { " " (name) } } }
}

/// Renders how far a player has moved since an earlier ranking. `old` is the position in it.
fn moved(old: Option<u64>, position: u64) -> Markup {
    let Some(old) = old else { return html! { "new" } };
    let (kind, sign, word) = match old.cmp(&position) {
        Ordering::Greater => ("up", "▲", "up"),
        Ordering::Equal => ("same", "=", "unchanged"),
        Ordering::Less => ("down", "▼", "down"),
    };
    html! {
        span class=(kind) {
            span aria-hidden="true" { (sign) }
            span.unseen { (word) }
            @if old != position { " " (count(old.abs_diff(position))) }
        }
    }
}
