//! Pages of a league: its divisions, and a cohort.

use maud::{Markup, html};

use crate::{
    http::pages::{
        document,
        link::Link,
        mark,
        number::{count, score, span},
    },
    model::{
        board::Board,
        league::{LeagueOverview, LeagueState},
    },
};

/// The path of a board's league.
pub(crate) fn path(board: &Board) -> String {
    format!("/boards/{}/league", board.slug)
}

/// Renders rules, and the divisions with their numbers of players, highest first.
pub(crate) fn overview_page(board: &Board, overview: &LeagueOverview) -> Markup {
    let league = &overview.league;
    let last = overview.cohorts.len().saturating_sub(1);
    let main = html! {
        (head(board, &league.name))
        p.when { strong { (overview.current_period.as_deref().unwrap_or("No scores in this period yet")) } }
        p {
            "Cohorts of up to " (league.size) " players. At the end of each " (league.period) ", the best " (league.promote)
            " of each move up, and the last " (league.relegate) " move down."
        }
        section.ranking {
            table {
                caption { "Divisions" }
                thead { tr { th.name scope="col" { "Division" } th.score scope="col" { "Cohorts" } th.score scope="col" { "Players" } } }
                tbody {
                    @for (n, division) in overview.cohorts.iter().enumerate().rev() {
                        tr {
                            th.name scope="row" { (division.division) @if n == last { span.quiet { " highest" } } }
                            td.score { (count(division.cohorts.unsigned_abs())) }
                            td.score { (count(division.players.unsigned_abs())) }
                        }
                    }
                }
            }
        }
        @if overview.waiting > 0 { p.quiet { (count(overview.waiting.unsigned_abs())) " players wait for the end of this period." } }
    };
    document(&format!("{} · {} · Centile", league.name, board.title), &main)
}

/// Renders a cohort with the lines of promotion and relegation.
pub(crate) fn cohort_page(board: &Board, state: &LeagueState, player: Option<&str>) -> Markup {
    let division = state.division.as_deref().unwrap_or_default();
    let main = html! {
        (head(board, &state.league))
        p.when {
            strong { (division) }
            span.state { @if state.period.state != "open" { (state.period.state) } }
            span.quiet { (span(state.period.starts_at, state.period.ends_at, &board.time_zone)) }
            @if state.period.state == "open" { span.quiet data-ends=(state.period.ends_at.to_rfc3339()) hidden {} }
        }
        section.ranking {
            table {
                caption { (division) }
                thead { tr {
                    th.rank scope="col" { "Rank" }
                    th.move scope="col" { "Moves" }
                    th.name scope="col" { "Player" }
                    th.score scope="col" { "Score" }
                } }
                tbody {
                    @for row in &state.rows {
                        tr aria-current=[(player == Some(&row.user_id)).then_some("true")] {
                            td.rank { @if let Some(rank) = row.rank { (count(rank.unsigned_abs())) } @else { "–" } }
                            td.move { (moves(row.movement)) }
                            th.name scope="row" { a href=(link(board).player(Some(&row.user_id)).href()) title=(row.user_id) { bdi { (row.name) } } }
                            td.score { @if let Some(points) = row.score { (score(&board.presentation.score_format, points)) } @else { "–" } }
                        }
                    }
                }
            }
        }
        p { a href=(path(board)) { "All divisions" } }
    };
    document(&format!("{division} · {} · {} · Centile", state.league, board.title), &main)
}

/// Renders the place of a player beside the player's ranking.
pub(crate) fn place(board: &Board, state: &LeagueState, player: &str) -> Markup {
    let rank = state.rows.iter().find(|row| row.user_id == player).and_then(|row| row.rank);
    html! {
        div {
            dt { "League" }
            dd {
                @match (state.cohort_id, &state.division) {
                    (Some(cohort), Some(division)) => {
                        a href={ (path(board)) "/" (cohort) } { (division) @if let Some(rank) = rank { ", " (count(rank.unsigned_abs())) " of " (state.rows.len()) } }
                    }
                    (_, Some(division)) => (division),
                    _ => "waiting",
                }
            }
        }
    }
}

fn head(board: &Board, name: &str) -> Markup {
    html! {
        div.head {
            h1 { (mark(board)) (name) }
            p.quiet { "League of " a href=(link(board).href()) { (board.title) } }
        }
    }
}

/// Returns a link to the board's page.
fn link(board: &Board) -> Link {
    Link::of_board(board.slug.as_str())
}

fn moves(movement: i16) -> Markup {
    let (kind, sign, word) = match movement {
        1.. => ("up", "▲", "moves up"),
        0 => return html! {},
        _ => ("down", "▼", "moves down"),
    };
    html! { span class=(kind) { span aria-hidden="true" { (sign) } span.unseen { (word) } } }
}
