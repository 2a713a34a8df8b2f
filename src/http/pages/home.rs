//! The home page: the public boards and their leaders.

use maud::{Markup, html};

use crate::{
    http::pages::{
        Rows,
        link::{Among, Link},
        mark,
        number::{count, period_title, score},
    },
    model::board::Board,
};

/// A board and the top of its default period.
#[derive(Debug)]
pub(crate) struct BoardSummary<'a> {
    pub(crate) board: &'a Board,
    /// The top; absent if it cannot be read now, or if too many boards precede this one.
    pub(crate) top: Option<Rows>,
}

/// Renders the page. `next` is the last board, if others follow.
pub(crate) fn page(boards: &[BoardSummary<'_>], next: Option<&str>) -> Markup {
    let main = html! {
        h1 { "Leaderboards" }
        @if boards.is_empty() {
            p.empty { "There are no public boards yet. An administrator can create one: " code { "centile board create" } "." }
        }
        ul.boards {
            @for BoardSummary { board, top } in boards {
                li {
                    h2 { (mark(board)) a href=(link(board).href()) { (board.title) } }
                    @match top {
                        Some(top) => {
                            p.quiet {
                                (period_title(top.period())) " · " (count(top.players())) " players"
                                @if let Some(age) = top.stale_for { " " span.warning { "as of " (age.as_secs()) " s ago" } }
                            }
                            ol {
                                @for row in top.rows() {
                                    li { span.rank { (count(row.rank)) } bdi { (row.user_name) } span.score { (score(&board.presentation.score_format, row.score)) } }
                                }
                            }
                            @if top.rows().is_empty() { p.empty { "No scores yet." } }
                        }
                        None => { p.quiet { (board.slug) } }
                    }
                }
            }
        }
        @if let Some(next) = next { p { a href={ "/?after=" (next) } { "More boards" } } }
    };
    crate::http::pages::document("Leaderboards · Centile", &main)
}

fn link(board: &Board) -> Link {
    Link {
        board: board.slug.to_string(),
        period: None,
        segment: None,
        from: 1,
        limit: None,
        player: None,
        among: Among::All,
        friends: Vec::new(),
    }
}
