//! A board's page: a period of it, a player, and friends.

use std::time::Duration;

use maud::{Markup, html};

use crate::{
    http::pages::{
        figure,
        link::{FRIENDS_MAX, Link},
        number::{self, count, instant, number, percentile, period_title},
        table::table,
    },
    model::{
        board::{Board, Mode, Order, PeriodKind},
        period::{Period, PeriodSelector, PeriodState},
        rank::{Chosen, Distribution, Row, Standing},
        score::HistoryRow,
    },
};

/// What the page shows.
#[derive(Debug)]
pub(crate) struct BoardPage<'a> {
    /// The board.
    pub(crate) board: &'a Board,
    /// Where the page is.
    pub(crate) link: &'a Link,
    /// The period as it was asked for.
    pub(crate) selector: &'a PeriodSelector,
    /// The period that was meant.
    pub(crate) period: &'a Period,
    /// Players in it.
    pub(crate) players: u64,
    /// Rows of a page.
    pub(crate) limit: u32,
    /// The rows.
    pub(crate) rows: &'a [Row],
    /// How long ago they were right, where the database cannot be reached.
    pub(crate) stale_for: Option<Duration>,
    /// Periods there were, newest first.
    pub(crate) periods: &'a [Period],
    /// How scores are spread; absent while the database cannot be reached.
    pub(crate) distribution: Option<&'a Distribution>,
    /// The player who is looked at.
    pub(crate) player: Option<PlayerShown>,
    /// Friends, and their places among each other; absent when there are none, or while the database cannot be reached.
    pub(crate) friends: Option<Chosen>,
}

/// A player who is looked at.
#[derive(Debug)]
pub(crate) enum PlayerShown {
    /// Has a score: where it stands, and the acts that it came from, newest first.
    Standing(Box<Standing>, Vec<HistoryRow>),
    /// Has none.
    Nowhere {
        /// Whether there is a player of this id at all.
        is_known: bool,
    },
    /// Cannot be asked for now.
    Unknown,
}

/// The page.
pub(crate) fn page(page: &BoardPage<'_>) -> Markup {
    let board = page.board;
    let title = period_title(page.period);
    let follow = page.selector.to_string();
    let main = html! {
        div.head {
            h1 { (board.title) }
            p.quiet {
                span data-live="players" { (count(page.players)) } " players · "
                @match board.mode { Mode::Sum => "all points", Mode::Best => "best score", Mode::Latest => "latest score" }
                @match board.order { Order::Desc => ", highest first", Order::Asc => ", lowest first" }
            }
        }
        (periods(page))
        p.when {
            strong data-live="period" { (title) }
            span.state role="status" data-live="state" { (state(page)) }
            (span(page))
        }
        div.columns.chosen[page.link.player.is_some()] {
            section.ranking data-board=(board.slug) data-period=(follow) data-limit=(page.limit) data-from=(page.link.from)
                data-state=[page.stale_for.is_none().then(|| page.period.state.name())] data-over=[crate::http::pages::over(page.period.state)] {
                (find(page))
                @if page.rows.is_empty() {
                    p.empty {
                        @if page.players == 0 { "Nobody has scored in this period yet. The first score shows up here by itself." }
                        @else { "There are " (count(page.players)) " players, none so far down. " a href=(page.link.from(1).href()) { "To the top" } }
                    }
                }
                (table(&format!("{} · {title}", board.title), page.rows, page.link, page.link.player.as_deref(), "top"))
                (pager(page))
            }
            aside {
                (player(page))
                (friends(page))
            }
        }
        div.unseen role="log" data-live="log" {}
    };
    crate::http::pages::document(&format!("{} · {title} · Centile", board.title), &main)
}

/// The periods that there are.
fn periods(page: &BoardPage<'_>) -> Markup {
    let kinds = &page.board.periods;
    let current = |kind: PeriodKind| *page.selector == PeriodSelector::Current(kind);
    let is_named = matches!(page.selector, PeriodSelector::Labelled(..));
    let past: Vec<_> = page.periods.iter().filter(|period| period.kind != PeriodKind::AllTime).collect();
    html! {
        nav.periods aria-label="Period" {
            ul {
                @for kind in kinds {
                    li { a href=(page.link.period(kind.name()).href()) aria-current=[current(*kind).then_some("page")] { (kind_title(*kind)) } }
                }
            }
            @if !past.is_empty() {
                details.chosen[is_named] {
                    summary { "By name" }
                    ul {
                        @for period in past {
                            li {
                                a href=(page.link.period(&period.name()).href())
                                    aria-current=[(page.selector.to_string() == period.name()).then_some("page")] { (period_title(period)) }
                                @if period.state == PeriodState::Closed { " " span.quiet { "closed" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn kind_title(kind: PeriodKind) -> &'static str {
    match kind {
        PeriodKind::AllTime => "All time",
        PeriodKind::Day => "Today",
        PeriodKind::Week => "This week",
        PeriodKind::Month => "This month",
        PeriodKind::Season => "Season",
    }
}

/// From when to when the period is.
fn span(page: &BoardPage<'_>) -> Markup {
    html! {
        @if let (Some(starts_at), Some(ends_at)) = (page.period.starts_at, page.period.ends_at) {
            span.quiet { (number::span(starts_at, ends_at, &page.board.time_zone)) }
        }
    }
}

/// How far the period is, and whether what is shown is of now.
fn state(page: &BoardPage<'_>) -> Markup {
    html! {
        @if let Some(age) = page.stale_for {
            span.warning { "The database cannot be reached: this was right " (age.as_secs()) " s ago." }
        } @else {
            // Of rows from further down no script says otherwise.
            (crate::http::pages::over(page.period.state).unwrap_or(if page.link.from > 1 { "as it was when this page came" } else { "" }))
        }
    }
}

/// To look for a player, and to go to a position.
fn find(page: &BoardPage<'_>) -> Markup {
    html! {
        div.find {
            form action=(page.link.path()) role="search" {
                (kept(&page.link.player(None)))
                label for="player" { "Player's id" }
                input #player name="player" required maxlength="128" autocomplete="off" autocapitalize="off" spellcheck="false"
                    value=[page.link.player.as_deref()];
                button { "Find" }
            }
            form action=(page.link.path()) {
                (kept(&page.link.from(1)))
                label for="from" { "Position" }
                input #from name="from" type="number" required min="1" max=(page.players.max(1)) inputmode="numeric"
                    value=[(page.link.from > 1).then_some(page.link.from)];
                button { "Go" }
            }
        }
    }
}

/// What a form keeps of the address that it leads to.
fn kept(link: &Link) -> Markup {
    html! { @for (name, value) in link.parameters() { input type="hidden" name=(name) value=(value); } }
}

/// From page to page.
fn pager(page: &BoardPage<'_>) -> Markup {
    let (from, limit) = (page.link.from, u64::from(page.limit));
    let last = page.players.saturating_sub(1) / limit * limit + 1;
    let to = |from: u64, text: &str, is_of_use: bool| {
        html! { @if is_of_use { a href=(page.link.from(from).href()) { (text) } } @else { span aria-hidden="true" { (text) } } }
    };
    if page.players <= limit && from == 1 {
        return html! {};
    }
    html! {
        nav.pager aria-label="Pages" {
            (to(1, "First", from > 1))
            (to(from.saturating_sub(limit).max(1), "Previous", from > 1))
            (to(from + limit, "Next", from + limit <= page.players))
            (to(last, "Last", from < last))
        }
    }
}

/// The player who is looked at; the spread of all scores where nobody is.
fn player(page: &BoardPage<'_>) -> Markup {
    let spread = |score| {
        html! {
            @match page.distribution {
                Some(spread) if spread.histogram.is_empty() => p.empty { "None yet." }
                Some(spread) => (figure::histogram(&spread.histogram, page.board.order, score))
                None => {}
            }
        }
    };
    html! {
        section.player aria-labelledby="player-title" {
            @match &page.player {
                None => {
                    h2 #player-title { "All scores" }
                    (spread(None))
                }
                Some(PlayerShown::Unknown) => {
                    h2 #player-title { bdi { (page.link.player.as_deref().unwrap_or_default()) } }
                    p.warning { "Cannot be looked up now: the database cannot be reached." }
                }
                Some(PlayerShown::Nowhere { is_known }) => {
                    h2 #player-title { bdi { (page.link.player.as_deref().unwrap_or_default()) } }
                    p.empty { @if *is_known { "No score in this period." } @else { "There is no player of this id." } }
                    p { a href=(page.link.player(None).href()) { "Look for nobody" } }
                    (spread(None))
                }
                Some(PlayerShown::Standing(standing, acts)) => {
                    (card(page, standing))
                    (spread(Some(standing.player.score)))
                    (table("Players around", &around(standing), page.link, Some(&standing.player.user_id), "around"))
                    (figure::curve(acts, page.board, page.period, standing.player.score))
                }
            }
        }
    }
}

/// Rank, score, percentile, and where to go from there.
fn card(page: &BoardPage<'_>, standing: &Standing) -> Markup {
    let player = &standing.player;
    let there = player.position.saturating_sub(u64::from(page.limit) / 2).max(1);
    let is_friend = page.link.friends.contains(&player.user_id);
    html! {
        h2 #player-title data-player=(player.user_id) { bdi { (player.user_name) } }
        p.quiet.id { bdi { (player.user_id) } }
        dl {
            div { dt { "Rank" } dd data-live="rank" { (count(player.rank)) } }
            div { dt { "Score" } dd data-live="score" { (number(player.score)) } }
            div { dt { "Better than" } dd { span data-live="percentile" { (percentile(standing.percentile)) } " %" } }
        }
        p.quiet { "Reached " (instant(player.reached_at, &page.board.time_zone)) }
        p.actions {
            a href=(page.link.from(there).href()) { "Show in the ranking" }
            @if is_friend { a href=(page.link.without_friend(&player.user_id).href()) { "Remove from friends" } }
            @else if page.link.friends.len() < FRIENDS_MAX { a href=(page.link.with_friend(&player.user_id).href()) { "Add to friends" } }
        }
    }
}

/// The player and those just above and below.
fn around(standing: &Standing) -> Vec<Row> {
    let mut rows = standing.above.clone();
    rows.push(standing.player.clone());
    rows.extend(standing.below.iter().cloned());
    rows
}

/// Chosen players among each other.
fn friends(page: &BoardPage<'_>) -> Markup {
    html! {
        section.friends aria-labelledby="friends-title" {
            h2 #friends-title { "Friends" }
            @if let Some(friends) = &page.friends {
                (table("Friends among each other", &friends.rows, page.link, page.link.player.as_deref(), "friends"))
                @if !friends.missing.is_empty() {
                    p.empty { "Without a score: " @for (n, id) in friends.missing.iter().enumerate() { @if n > 0 { ", " } bdi { (id) } } }
                }
            }
            @if page.link.friends.len() < FRIENDS_MAX { form action=(page.link.path()) {
                (kept(page.link))
                label for="friend" { "Add by id" }
                input #friend name="friends" required maxlength="128" autocomplete="off" autocapitalize="off" spellcheck="false";
                button { "Add" }
            } }
            @else { p.quiet { "As many as a page shows." } }
            @if page.link.friends.is_empty() { p.quiet { "They are kept in this page's address." } }
        }
    }
}
