//! The first page: which boards there are, and who leads them.

use std::time::Duration;

use maud::{Markup, html};

use crate::{
    http::pages::{
        link::Link,
        number::{count, number, period_title},
    },
    model::{board::Board, period::Period, rank::Row},
};

/// A board and the top of its first period.
#[derive(Debug)]
pub(crate) struct Glance<'a> {
    /// The board.
    pub(crate) board: &'a Board,
    /// Its top; absent where there is no time to read them all, or none can be read now.
    pub(crate) top: Option<Leaders>,
}

/// Who leads a period.
#[derive(Debug)]
pub(crate) struct Leaders {
    /// The period.
    pub(crate) period: Period,
    /// How many players it has.
    pub(crate) players: u64,
    /// The first of them.
    pub(crate) rows: Vec<Row>,
    /// How long ago this was right, where the database cannot be reached.
    pub(crate) stale_for: Option<Duration>,
}

/// The page.
pub(crate) fn page(boards: &[Glance<'_>]) -> Markup {
    let main = html! {
        h1 { "Leaderboards" }
        @if boards.is_empty() {
            p.empty { "There is no board yet that everybody may read. An administrator makes one: " code { "centile board create" } "." }
        }
        ul.boards {
            @for Glance { board, top } in boards {
                li {
                    h2 { a href=(link(board).href()) { (board.title) } }
                    @match top {
                        Some(top) => {
                            p.quiet {
                                (period_title(&top.period)) " · " (count(top.players)) " players"
                                @if let Some(age) = top.stale_for { " " span.warning { "as it was " (age.as_secs()) " s ago" } }
                            }
                            ol {
                                @for row in &top.rows {
                                    li { span.rank { (count(row.rank)) } bdi { (row.user_name) } span.score { (number(row.score)) } }
                                }
                            }
                            @if top.rows.is_empty() { p.empty { "Nobody has scored yet." } }
                        }
                        None => { p.quiet { (board.slug) } }
                    }
                }
            }
        }
    };
    crate::http::pages::document("Leaderboards · Centile", &main)
}

fn link(board: &Board) -> Link {
    Link { board: board.slug.to_string(), period: None, from: 1, limit: None, player: None, friends: Vec::new() }
}
