//! A board's page: a period of it, a player, and friends.

use maud::{Markup, html};

use crate::{
    http::pages::{
        RankingView, figure,
        link::{FRIENDS_MAX, Link},
        mark,
        number::{self, count, instant, percentile, period_title, score},
        progress,
        table::{Before, RowStyle, table, tier},
    },
    model::{
        board::{Mode, Order, PeriodKind, WindowLength},
        name::Named as _,
        period::{Period, PeriodSelector, PeriodState, Progress},
        rank::{Chosen, Distribution, Row, Standing},
        score::HistoryRow,
    },
};

/// Content of the page.
#[derive(Debug)]
pub(crate) struct BoardPage<'a> {
    /// The ranking.
    pub(crate) view: RankingView<'a>,
    /// The board's periods, newest first.
    pub(crate) periods: &'a [Period],
    /// Distribution of scores; absent while the database cannot be reached.
    pub(crate) distribution: Option<&'a Distribution>,
    /// Positions in the newest snapshot; absent if the board has none, for other rankings than
    /// `all_time`, and while the database cannot be reached.
    pub(crate) before: Option<Before>,
    /// The selected player.
    pub(crate) player: Option<PlayerShown>,
    /// The selected player in the newest snapshots, newest first; empty if the board takes none, and
    /// while the database cannot be reached.
    pub(crate) progress: Vec<Progress>,
    /// Friends with their ranks among each other; absent without friends, or while the database
    /// cannot be reached.
    pub(crate) friends: Option<Chosen>,
}

/// The selected player.
#[derive(Debug)]
pub(crate) enum PlayerShown {
    /// A player with a score: the standing and the score's transactions, newest first.
    Standing(Box<Standing>, Vec<HistoryRow>),
    /// A player without a score.
    NoScore {
        /// Whether the player exists.
        is_known: bool,
    },
    /// The database cannot be reached.
    Unavailable,
}

/// Renders the page.
pub(crate) fn page(page: &BoardPage<'_>) -> Markup {
    let board = page.view.board;
    let title = period_title(page.view.rows.period());
    let follow = page.view.selector.to_string();
    let main = html! {
        div.head {
            h1 { (mark(board)) (board.title) }
            @if let Some(description) = &board.presentation.description { p.about { (description) } }
            p.quiet {
                span data-live="players" { (count(page.view.rows.players())) } " players · "
                @match board.mode { Mode::Sum => "all points", Mode::Best => "best score", Mode::Latest => "latest score", Mode::Combined => "computed from other boards" }
                @match board.order { Order::Desc => ", highest first", Order::Asc => ", lowest first" }
            }
        }
        (periods(page))
        p.when {
            strong data-live="period" { (title) }
            span.state role="status" data-live="state" { (state(page)) }
            (span(page))
        }
        div.columns.chosen[page.view.link.player.is_some()] {
            section.ranking data-board=(board.slug) data-period=(follow) data-limit=(page.view.limit) data-from=(page.view.link.from)
                data-state=[page.view.rows.stale_for.is_none().then(|| page.view.rows.period().state.name())] data-over=[page.view.rows.over()] {
                (find(page))
                @if page.view.rows.rows().is_empty() {
                    p.empty {
                        @if page.view.rows.players() == 0 && page.view.rows.period().state != PeriodState::Open { "No scores in this period." }
                        @else if page.view.rows.players() == 0 { "No scores in this period yet. The first score will appear here automatically." }
                        @else { "There are " (count(page.view.rows.players())) " players, none at this position. " a href=(page.view.link.from(1).href()) { "Go to the top" } }
                    }
                }
                (table(&format!("{} · {title}", board.title), page.view.rows.rows(), page.view.link, page.view.link.player.as_deref(), "top", page.before.as_ref(), RowStyle::of(board, &page.view.rows.page.header)))
                (since(page))
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

/// Renders the links to the board's periods.
fn periods(page: &BoardPage<'_>) -> Markup {
    let kinds = &page.view.board.periods;
    let current = |kind: PeriodKind| *page.view.selector == PeriodSelector::Current(kind);
    let is_named = matches!(page.view.selector, PeriodSelector::Labelled(..));
    let past: Vec<_> = page.periods.iter().filter(|period| period.kind != PeriodKind::AllTime).collect();
    html! {
        nav.periods aria-label="Period" {
            ul {
                @for kind in kinds {
                    li { a href=(page.view.link.period(kind.name()).href()) aria-current=[current(*kind).then_some("page")] { (kind_title(*kind)) } }
                }
                @for length in &page.view.board.rolling {
                    @let selector = PeriodSelector::Window(*length);
                    li { a href=(page.view.link.period(&selector.to_string()).href()) aria-current=[(*page.view.selector == selector).then_some("page")] { (window_title(*length)) } }
                }
            }
            @if !past.is_empty() {
                details.chosen[is_named] {
                    summary { "By name" }
                    ul {
                        @for period in past {
                            li {
                                a href=(page.view.link.period(&period.name()).href())
                                    aria-current=[(page.view.selector.to_string() == period.name()).then_some("page")] { (period_title(period)) }
                                @if period.state == PeriodState::Closed { " " span.quiet { "closed" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn window_title(length: WindowLength) -> String {
    match length {
        WindowLength::DayOfHours => "Last 24 hours".to_owned(),
        WindowLength::Days(days) => format!("Last {days} days"),
    }
}

fn kind_title(kind: PeriodKind) -> &'static str {
    match kind {
        PeriodKind::AllTime => "All time",
        PeriodKind::Hour => "This hour",
        PeriodKind::Day => "Today",
        PeriodKind::Week => "This week",
        PeriodKind::Month => "This month",
        PeriodKind::Quarter => "This quarter",
        PeriodKind::Year => "This year",
        PeriodKind::Season => "Season",
        PeriodKind::Snapshot => "Snapshot",
        PeriodKind::Rolling => "Window",
    }
}

/// Renders start and end of the period.
fn span(page: &BoardPage<'_>) -> Markup {
    html! {
        @if let (Some(starts_at), Some(ends_at)) = (page.view.rows.period().starts_at, page.view.rows.period().ends_at) {
            span.quiet { (number::span(starts_at, ends_at, &page.view.board.time_zone)) }
        }
        @if let Some(combined) = &page.view.rows.page.header.combined {
            span.quiet { "as of " (instant(combined.as_of, &page.view.board.time_zone)) }
        }
    }
}

/// Renders the state of the period, or the age of stale rows.
fn state(page: &BoardPage<'_>) -> Markup {
    html! {
        @if let Some(age) = page.view.rows.stale_for {
            span.warning { "The database cannot be reached. Shown as of " (age.as_secs()) " s ago." }
        } @else {
            // The script does not update rows further down.
            (page.view.rows.over().unwrap_or(if page.view.link.from > 1 { "as of page load" } else { "" }))
        }
    }
}

/// Renders the forms to find a player and to go to a position.
fn find(page: &BoardPage<'_>) -> Markup {
    html! {
        div.find {
            form action=(page.view.link.path()) role="search" {
                (kept(&page.view.link.player(None)))
                label for="player" { "Player ID" }
                input #player name="player" required maxlength="128" autocomplete="off" autocapitalize="off" spellcheck="false"
                    value=[page.view.link.player.as_deref()];
                button { "Find" }
            }
            form action=(page.view.link.path()) {
                (kept(&page.view.link.from(1)))
                label for="from" { "Position" }
                input #from name="from" type="number" required min="1" max=(page.view.rows.players().max(1)) inputmode="numeric"
                    value=[(page.view.link.from > 1).then_some(page.view.link.from)];
                button { "Go" }
            }
        }
    }
}

/// Renders the current parameters as hidden fields of a form.
fn kept(link: &Link) -> Markup {
    html! { @for (name, value) in link.parameters() { input type="hidden" name=(name) value=(value); } }
}

/// Renders what the changes of position in the table refer to.
fn since(page: &BoardPage<'_>) -> Markup {
    html! {
        @if let Some(ends_at) = page.before.as_ref().and_then(|before| before.snapshot.ends_at) {
            p.quiet.since #since { "Change: positions gained or lost since " (instant(ends_at, &page.view.board.time_zone)) }
        }
    }
}

/// Renders the links between pages of rows.
fn pager(page: &BoardPage<'_>) -> Markup {
    let (from, limit) = (page.view.link.from, u64::from(page.view.limit));
    let last = page.view.rows.players().saturating_sub(1) / limit * limit + 1;
    let to = |from: u64, text: &str, is_of_use: bool| {
        html! { @if is_of_use { a href=(page.view.link.from(from).href()) { (text) } } @else { span aria-hidden="true" { (text) } } }
    };
    if page.view.rows.players() <= limit && from == 1 {
        return html! {};
    }
    html! {
        nav.pager aria-label="Pages" {
            (to(1, "First", from > 1))
            (to(from.saturating_sub(limit).max(1), "Previous", from > 1))
            (to(from + limit, "Next", from + limit <= page.view.rows.players()))
            (to(last, "Last", from < last))
        }
    }
}

/// Renders the selected player, or the distribution of all scores without one.
fn player(page: &BoardPage<'_>) -> Markup {
    let spread = |score| {
        html! {
            @match page.distribution {
                Some(spread) if spread.histogram.is_empty() => p.empty { "No scores yet." }
                Some(spread) => (figure::histogram(&spread.histogram, page.view.board, score))
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
                Some(PlayerShown::Unavailable) => {
                    h2 #player-title { bdi { (page.view.link.player.as_deref().unwrap_or_default()) } }
                    p.warning { "The player cannot be looked up now: the database cannot be reached." }
                }
                Some(PlayerShown::NoScore { is_known }) => {
                    h2 #player-title { bdi { (page.view.link.player.as_deref().unwrap_or_default()) } }
                    p.empty { @if *is_known { "No score in this period." } @else { "Unknown player." } }
                    p { a href=(page.view.link.player(None).href()) { "Clear the selection" } }
                    (spread(None))
                }
                Some(PlayerShown::Standing(standing, transactions)) => {
                    (card(page, standing))
                    (spread(Some(standing.player.score)))
                    (table("Players around", &around(standing), page.view.link, Some(&standing.player.user_id), "around", None, RowStyle::of(page.view.board, &standing.header)))
                    (figure::curve(transactions, page.view.board, page.view.rows.period(), standing.player.score))
                }
            }
            (progress::chart(&page.progress, page.view.board))
        }
    }
}

/// Renders rank, score and percentile, with links.
fn card(page: &BoardPage<'_>, standing: &Standing) -> Markup {
    let player = &standing.player;
    let there = player.position.saturating_sub(u64::from(page.view.limit) / 2).max(1);
    let is_friend = page.view.link.friends.contains(&player.user_id);
    html! {
        h2 #player-title data-player=(player.user_id) { bdi { (player.user_name) } span data-live="tier" { (tier(player, standing.header.tiering(page.view.board))) } }
        p.quiet.id { bdi { (player.user_id) } }
        dl {
            div { dt { "Rank" } dd data-live="rank" { (count(player.rank)) } }
            div { dt { "Score" } dd data-live="score" { (score(&page.view.board.presentation.score_format, player.score)) } }
            div { dt { "Better than" } dd { span data-live="percentile" { (percentile(standing.percentile)) } " %" } }
        }
        p.quiet { "Reached " (instant(player.reached_at, &page.view.board.time_zone)) }
        p.actions {
            a href=(page.view.link.from(there).href()) { "Show in the ranking" }
            @if is_friend { a href=(page.view.link.without_friend(&player.user_id).href()) { "Remove from friends" } }
            @else if page.view.link.friends.len() < FRIENDS_MAX { a href=(page.view.link.with_friend(&player.user_id).href()) { "Add to friends" } }
        }
    }
}

/// Returns the player with the neighbours on each side.
fn around(standing: &Standing) -> Vec<Row> {
    let mut rows = standing.above.clone();
    rows.push(standing.player.clone());
    rows.extend(standing.below.iter().cloned());
    rows
}

/// Renders the friends, ranked among each other.
fn friends(page: &BoardPage<'_>) -> Markup {
    html! {
        section.friends aria-labelledby="friends-title" {
            h2 #friends-title { "Friends" }
            @if let Some(friends) = &page.friends {
                (table("Friends among each other", &friends.rows, page.view.link, page.view.link.player.as_deref(), "friends", None, RowStyle::of(page.view.board, &friends.header)))
                @if !friends.missing.is_empty() {
                    p.empty { "Without a score: " @for (n, id) in friends.missing.iter().enumerate() { @if n > 0 { ", " } bdi { (id) } } }
                }
            }
            @if page.view.link.friends.len() < FRIENDS_MAX { form action=(page.view.link.path()) {
                (kept(page.view.link))
                label for="friend" { "Add by id" }
                input #friend name="friends" required maxlength="128" autocomplete="off" autocapitalize="off" spellcheck="false";
                button { "Add" }
            } }
            @else { p.quiet { "The list is full." } }
            @if page.view.link.friends.is_empty() { p.quiet { "Friends are saved in this page's address." } }
        }
    }
}
