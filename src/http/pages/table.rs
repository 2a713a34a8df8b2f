//! Tables of players.

use std::{cmp::Ordering, collections::HashMap};

use maud::{Markup, html};

use crate::{
    http::{
        pages::{
            avatar::avatar,
            link::{Among, Link},
            number::{count, for_script, score},
        },
        server::origin::Origin,
    },
    model::{
        period::Period,
        presentation::ScoreFormat,
        rank::{Row, Tiering},
    },
};

/// An earlier ranking, with which a table compares positions.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) snapshot: Period,
    /// Positions of the table's players who were in it.
    pub(crate) positions: HashMap<String, u64>,
}

/// How the rows of a ranking are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowStyle<'a> {
    pub(crate) format: &'a ScoreFormat,
    pub(crate) tiering: Tiering<'a>,
    pub(crate) avatar_origins: &'a [Origin],
    /// Whether rows have second numbers.
    pub(crate) has_tiebreaks: bool,
}

#[derive(Debug)]
pub(crate) struct Table<'a> {
    pub(crate) caption: &'a str,
    /// Name of the table for the script.
    pub(crate) live: &'static str,
    pub(crate) rows: &'a [Row],
    /// The page that the table is part of. Its player is highlighted.
    pub(crate) link: &'a Link,
    pub(crate) before: Option<&'a Before>,
    /// The selected player, who is shown below the others unless among them.
    pub(crate) selected: Option<&'a Row>,
    /// Ranks among the players of the table, if it has them beside the ranks among all players.
    pub(crate) local_ranks: Option<&'a [u64]>,
    pub(crate) style: RowStyle<'a>,
}

pub(crate) fn table(table: &Table<'_>) -> Markup {
    let &Table { caption, live, rows, link, before, selected, local_ranks, style } = table;
    // A name leads to the top of that player's friends.
    let top = link.from(1);
    let link = if link.among == Among::Friends { &top } else { link };
    html! {
        // The script may fill an empty table.
        table data-live=(live) data-format=[for_script(style.format)] data-local[local_ranks.is_some()] data-since=[before.map(|before| before.snapshot.name())]
            aria-describedby=[before.is_some().then_some("since")] hidden[rows.is_empty()] {
            caption { (caption) }
            thead {
                tr {
                    th.rank scope="col" { "Rank" }
                    th.move scope="col" {
                        @if local_ranks.is_some() { "Overall" } @else if before.is_some() { "Change" } @else { span.unseen { "Change" } }
                    }
                    th.name scope="col" { "Player" }
                    th.score scope="col" { "Score" }
                    @if style.has_tiebreaks { th.tiebreak scope="col" { "Tiebreak" } }
                }
            }
            tbody {
                @for (n, row) in rows.iter().enumerate() {
                    (line(row, local_ranks.and_then(|ranks| ranks.get(n)).copied(), link, before, style))
                }
            }
            @if let Some(selected) = selected {
                tfoot hidden[rows.iter().any(|row| row.user_id == selected.user_id)] { (line(selected, None, link, None, style)) }
            }
        }
    }
}

fn line(row: &Row, local_rank: Option<u64>, link: &Link, before: Option<&Before>, style: RowStyle<'_>) -> Markup {
    let is_marked = link.player.as_deref() == Some(row.user_id.as_str());
    let old = before.map(|before| before.positions.get(&row.user_id).copied());
    html! {
        // The script compares with the old position, which is empty for a new player.
        tr data-user=(row.user_id) data-before=[old.map(|old| old.map_or_else(String::new, |old| old.to_string()))]
            aria-current=[is_marked.then_some("true")] {
            td.rank { (count(local_rank.unwrap_or(row.rank))) }
            td.move {
                @if local_rank.is_some() { (count(row.rank)) } @else if let Some(old) = old { (moved(old, row.position)) }
            }
            th.name scope="row" {
                (avatar(row, style.avatar_origins))
                a href=(link.player(Some(&row.user_id)).href()) title=(row.user_id) { bdi { (row.user_name) } }
                (tier(row, style.tiering))
            }
            td.score { (score(style.format, row.score)) }
            (tiebreak(row))
        }
    }
}

/// Renders the cell of a second number, if the row has one.
pub(crate) fn tiebreak(row: &Row) -> Markup {
    html! { @if let Some(tiebreak) = row.tiebreak { td.tiebreak { (score(&ScoreFormat::default(), tiebreak)) } } }
}

/// Renders the tier of a player in one.
pub(crate) fn tier(row: &Row, tiering: Tiering<'_>) -> Markup {
    html! { @if let Some(Some(name)) = tiering.tier(row.score, row.rank) { span.tier { " " (name) } } }
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
