//! A board's page: a period of it, a player, and friends.

use chrono::SecondsFormat;
use maud::{Markup, html};

use crate::{
    http::pages::{
        RankingView, figure, league,
        link::{Among, FRIENDS_MAX, Link},
        mark,
        number::{self, count, instant, percentile, period_title, score},
        progress,
        table::{Before, Table, table, tier},
    },
    model::{
        board::{Mode, Order, PeriodKind, WindowLength},
        league::LeagueState,
        name::Named as _,
        period::{Period, PeriodSelector, PeriodState, Progress},
        presentation::ScoreFormat,
        rank::{Chosen, Distribution, Header, LocalPage, PlayerStanding, Row},
        score::HistoryRow,
        segment::Segment,
    },
    ranking::search::CANDIDATES_MAX,
};

/// Maximum players of a search that are shown.
const FOUND_MAX: usize = 10;

/// From this number of players on, columns of ranks are wider.
const WIDE_RANKS: u64 = 100_000;

#[derive(Debug)]
pub(crate) struct BoardPage<'a> {
    pub(crate) view: RankingView<'a>,
    /// The board's periods, newest first.
    pub(crate) periods: &'a [Period],
    /// Opened segments of the period; empty while the database cannot be reached.
    pub(crate) segments: &'a [String],
    /// Distribution of scores; absent while the database cannot be reached.
    pub(crate) distribution: Option<&'a Distribution>,
    /// Positions in the newest snapshot; absent if the board has none, for other rankings than
    /// `all_time`, and while the database cannot be reached.
    pub(crate) before: Option<Before>,
    pub(crate) player: Option<PlayerShown>,
    /// The selected player in the newest snapshots, newest first; empty if the board takes none, and
    /// while the database cannot be reached.
    pub(crate) progress: Vec<Progress>,
    /// The selected player's place in the board's league; absent without a league, and while the
    /// database cannot be reached.
    pub(crate) league: Option<Option<LeagueState>>,
    pub(crate) found: Option<PlayersFound>,
    /// The selected player and the player's friends, in place of the ranking.
    pub(crate) local: Option<LocalPage>,
    /// Friends with their ranks among each other; absent without friends, or while the database
    /// cannot be reached.
    pub(crate) friends: Option<Chosen>,
}

impl BoardPage<'_> {
    fn standing(&self) -> Option<&PlayerStanding> {
        match &self.player {
            Some(PlayerShown::Standing(standing, _)) => Some(standing),
            _ => None,
        }
    }
}

/// Players of the ranking whose name or id begins with a text.
#[derive(Debug)]
pub(crate) struct PlayersFound {
    pub(crate) text: String,
    /// The players; absent while the database cannot be reached.
    pub(crate) chosen: Option<Chosen>,
    /// Whether there may be more.
    pub(crate) is_cut: bool,
}

#[derive(Debug)]
pub(crate) enum PlayerShown {
    /// A player with a score: the standing and the score's transactions, newest first.
    Standing(Box<PlayerStanding>, Vec<HistoryRow>),
    /// A player without a score.
    NoScore { is_known: bool },
    /// PostgreSQL is unreachable or too busy.
    Unavailable,
}

pub(crate) fn page(page: &BoardPage<'_>) -> Markup {
    let board = page.view.board;
    let title = page.view.title();
    let selector = page.view.selector;
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
        (segments(page))
        @if page.league.is_some() { p.league { a href=(league::path(board)) { "League" } } }
        p.when {
            strong data-live="period" { (title) }
            span.state role="status" data-live="state" { (state(page)) }
            (span(page))
        }
        div.columns.chosen[page.view.link.player.is_some()].wide[page.view.rows.players() >= WIDE_RANKS] {
            section.ranking data-board=(board.slug) data-period=(selector.whole()) data-segment=[selector.segment().map(Segment::to_string)] data-limit=(page.view.limit) data-from=(if page.local.is_some() { 0 } else { page.view.link.from })
                data-state=[page.view.rows.stale_for.is_none().then(|| page.view.rows.period().state.name())] data-over=[page.view.rows.over()]
                data-avatars=(page.view.avatar_origins.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")) {
                (find(page))
                (search_section(page))
                (tabs(page))
                @if page.local.is_none() && page.view.rows.rows().is_empty() {
                    p.empty {
                        @if page.view.rows.players() == 0 && page.view.rows.period().state != PeriodState::Open { "No scores in this period." }
                        @else if page.view.rows.players() == 0 { "No scores in this period yet. The first score will appear here automatically." }
                        @else { "There are " (count(page.view.rows.players())) " players, none at this position. " a href=(page.view.link.from(1).href()) { "Go to the top" } }
                    }
                }
                (ranking(page, &title))
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

/// Renders the rows of the ranking, or those of a player and the player's friends.
fn ranking(page: &BoardPage<'_>, title: &str) -> Markup {
    let view = &page.view;
    let caption = format!("{} · {title}", view.board.title);
    if let Some(local) = &page.local {
        return html! {
            @if local.local_players == 0 { p.empty { "None of them has a score in this period." } }
            @else if local.rows.is_empty() { p.empty { "None of them is at this position. " a href=(view.link.from(1).href()) { "Go to the top" } } }
            (table(&Table {
                caption: &caption,
                live: "local",
                rows: &local.rows,
                link: view.link,
                before: None,
                selected: None,
                local_ranks: Some(&local.local_ranks),
                style: view.style(&local.header),
            }))
            (pager(view.link, view.limit, local.local_players))
        };
    }
    html! {
        (table(&Table {
            caption: &caption,
            live: "top",
            rows: view.rows.rows(),
            link: view.link,
            before: page.before.as_ref(),
            selected: page.standing().map(|standing| &standing.player),
            local_ranks: None,
            style: view.style(&view.rows.page.header),
        }))
        (since(page))
        (pager(view.link, view.limit, view.rows.players()))
    }
}

/// Renders the links between all players, and the selected player with friends.
fn tabs(page: &BoardPage<'_>) -> Markup {
    let link = page.view.link;
    let name = match &page.player {
        Some(PlayerShown::Standing(standing, _)) => Some(&standing.player.user_name),
        Some(PlayerShown::NoScore { is_known: true }) => link.player.as_ref(),
        _ => None,
    };
    let Some(name) = name else { return html! {} };
    html! {
        nav.tabs aria-label="Players" {
            ul {
                li { a href=(link.among(Among::All).href()) aria-current=[page.local.is_none().then_some("page")] { "All players" } }
                li { a href=(link.among(Among::Friends).href()) aria-current=[page.local.is_some().then_some("page")] { "Friends of " bdi { (name) } } }
            }
        }
    }
}

/// Renders the result of a search.
fn search_section(page: &BoardPage<'_>) -> Markup {
    let Some(PlayersFound { text, chosen, is_cut }) = &page.found else { return html! {} };
    let all = chosen.as_ref().map_or(&[][..], |chosen| &chosen.rows);
    let rows = all.get(..FOUND_MAX).unwrap_or(all);
    html! {
        section.found aria-labelledby="found-title" {
            h2 #found-title {
                @if rows.is_empty() { "No player found for “" bdi { (text) } "”" } @else { "Players found for “" bdi { (text) } "”" }
            }
            @match chosen {
                Some(chosen) => (others(page, "Players found", "found", rows, &chosen.header))
                None => p.warning { "The search is not available now. Try again soon." }
            }
            @if *is_cut { p.quiet { "The search looks at " (CANDIDATES_MAX) " ids and " (CANDIDATES_MAX) " names at most. Type more." } }
            @else if rows.len() < all.len() { p.quiet { "The best " (rows.len()) " of " (count(all.len() as u64)) ". Type more." } }
            @else if rows.is_empty() { p.quiet { "A search compares the beginning of names and ids, in this ranking only." } }
            p { a href=(page.view.link.href()) { "Close the search" } }
        }
    }
}

/// Renders the links to the board's periods.
fn periods(page: &BoardPage<'_>) -> Markup {
    let kinds = &page.view.board.periods;
    let shown = page.view.selector.whole();
    let current = |kind: PeriodKind| *shown == PeriodSelector::Current(kind);
    let is_named = matches!(shown, PeriodSelector::Labelled(..));
    let past: Vec<_> = page.periods.iter().filter(|period| period.kind != PeriodKind::AllTime).collect();
    html! {
        nav.periods aria-label="Period" {
            ul {
                @for kind in kinds {
                    li { a href=(page.view.link.period(kind.name()).href()) aria-current=[current(*kind).then_some("page")] { (kind_title(*kind)) } }
                }
                @for length in &page.view.board.rolling {
                    @let selector = PeriodSelector::Window(*length);
                    li { a href=(page.view.link.period(&selector.to_string()).href()) aria-current=[(*shown == selector).then_some("page")] { (window_title(*length)) } }
                }
            }
            @if !past.is_empty() {
                details.chosen[is_named] {
                    summary { "By name" }
                    ul {
                        @for period in past {
                            li {
                                a href=(page.view.link.period(&period.name()).href())
                                    aria-current=[(shown.to_string() == period.name()).then_some("page")] { (period_title(period)) }
                                @if period.state == PeriodState::Closed { " " span.quiet { "closed" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the form to choose a segment.
fn segments(page: &BoardPage<'_>) -> Markup {
    let link = page.view.link;
    if page.view.board.segments.is_empty() {
        return html! {};
    }
    let chosen = link.segment.as_deref().unwrap_or_default();
    // A segment without players is not in the list.
    let mut segments: Vec<&str> = page.segments.iter().map(String::as_str).collect();
    if let Err(place) = segments.binary_search(&chosen) {
        segments.insert(place, chosen);
    }
    let parts: Vec<(&str, &str)> = segments.iter().filter_map(|segment| segment.split_once(':')).collect();
    html! {
        div.find.segments {
            form action=(link.path()) {
                (hidden_fields(&link.segment(None)))
                label for="segment" { "Players" }
                select #segment name="segment" {
                    option value="" { "All" }
                    @for group in parts.chunk_by(|one, other| one.0 == other.0) {
                        optgroup label=(group[0].0) {
                            @for (attribute, value) in group {
                                @let segment = format!("{attribute}:{value}");
                                option value=(segment) selected[segment == chosen] { (value) }
                            }
                        }
                    }
                }
                button { "Show" }
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
        @if let Some(ends_at) = page.view.rows.period().ends_at.filter(|_| page.view.rows.over().is_none()) {
            // The script counts the time down. The page itself stays the same.
            span.quiet data-ends=(ends_at.to_rfc3339()) hidden {}
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
            (page.view.rows.over().unwrap_or(if page.view.link.from > 1 || page.local.is_some() { "as of page load" } else { "" }))
        }
    }
}

/// Renders the forms to find a player and to go to a position.
fn find(page: &BoardPage<'_>) -> Markup {
    html! {
        div.find {
            form action=(page.view.link.path()) role="search" {
                (hidden_fields(&page.view.link.player(None).among(Among::All)))
                label for="search" { "Player" }
                input #search name="search" type="search" required maxlength="128" placeholder="Name or ID" autocomplete="off" autocapitalize="off"
                    spellcheck="false" value=[page.found.as_ref().map(|found| found.text.as_str())];
                button { "Find" }
            }
            form action=(page.view.link.path()) {
                (hidden_fields(&page.view.link.among(Among::All)))
                label for="from" { "Position" }
                input #from name="from" type="number" required min="1" max=(page.view.rows.players().max(1)) inputmode="numeric"
                    value=[(page.view.link.from > 1).then_some(page.view.link.from)];
                button { "Go" }
            }
        }
    }
}

/// Renders the current parameters as hidden fields of a form.
fn hidden_fields(link: &Link) -> Markup {
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
fn pager(link: &Link, limit: u32, players: u64) -> Markup {
    let (from, limit) = (link.from, u64::from(limit));
    let last = players.saturating_sub(1) / limit * limit + 1;
    let to = |from: u64, text: &str, is_of_use: bool| {
        html! { @if is_of_use { a href=(link.from(from).href()) { (text) } } @else { span aria-hidden="true" { (text) } } }
    };
    if players <= limit && from == 1 {
        return html! {};
    }
    html! {
        nav.pager aria-label="Pages" {
            (to(1, "First", from > 1))
            (to(from.saturating_sub(limit).max(1), "Previous", from > 1))
            (to(from + limit, "Next", from + limit <= players))
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
                    p.warning { "The player cannot be looked up now. Try again soon." }
                }
                Some(PlayerShown::NoScore { is_known }) => {
                    h2 #player-title { bdi { (page.view.link.player.as_deref().unwrap_or_default()) } }
                    p.empty { @if *is_known { "No score in this " (if page.view.link.segment.is_some() { "segment and period." } else { "period." }) } @else { "Unknown player. The search finds players by the beginning of the name or ID." } }
                    p { a href=(page.view.link.player(None).href()) { "Clear the selection" } }
                    (spread(None))
                }
                Some(PlayerShown::Standing(standing, transactions)) => {
                    (card(page, standing))
                    (spread(Some(standing.player.score)))
                    (others(page, "Players around", "around", &around(standing), &standing.header))
                    (figure::curve(transactions, page.view.board, page.view.rows.period(), standing.player.score))
                }
            }
            (progress::chart(&page.progress, page.view.board))
        }
    }
}

/// Renders a table beside the ranking.
fn others(page: &BoardPage<'_>, caption: &str, live: &'static str, rows: &[Row], header: &Header) -> Markup {
    table(&Table {
        caption,
        live,
        rows,
        link: page.view.link,
        before: None,
        selected: None,
        local_ranks: None,
        style: page.view.style(header),
    })
}

/// Renders rank, score and percentile, with links.
fn card(page: &BoardPage<'_>, standing: &PlayerStanding) -> Markup {
    let player = &standing.player;
    let there = player.position.saturating_sub(u64::from(page.view.limit) / 2).max(1);
    let is_friend = page.view.link.friends.contains(&player.user_id);
    html! {
        h2 #player-title data-player=(player.user_id) { bdi { (player.user_name) } span data-live="tier" { (tier(player, standing.header.tiering(page.view.board))) } }
        p.quiet.id { bdi { (player.user_id) } }
        dl {
            div { dt { "Rank" } dd data-live="rank" { (count(player.rank)) } }
            div { dt { "Score" } dd data-live="score" { (score(&page.view.board.presentation.score_format, player.score)) } }
            @if let Some(tiebreak) = player.tiebreak { div { dt { "Tiebreak" } dd data-live="tiebreak" { (score(&ScoreFormat::default(), tiebreak)) } } }
            @if let Some(Some(state)) = &page.league { (league::place(page.view.board, state, &player.user_id)) }
            div { dt { "Better than" } dd { span data-live="percentile" { (percentile(standing.percentile)) } " %" } }
        }
        div data-live="decided" data-by=(deciding_values(player)) {
            @if let Some(at) = player.reached_at { p.quiet { "Reached " (instant(at, &page.view.board.time_zone)) } }
            @if let Some(Some(metadata)) = &player.metadata { p.quiet.id { "Metadata: " code { (metadata) } } }
        }
        p.actions {
            a href=(page.view.link.among(Among::All).from(there).href()) { "Show in the ranking" }
            @if is_friend { a href=(page.view.link.without_friend(&player.user_id).href()) { "Remove from friends" } }
            @else if page.view.link.friends.len() < FRIENDS_MAX { a href=(page.view.link.with_friend(&player.user_id).href()) { "Add to friends" } }
        }
    }
}

/// Returns what changes when another event decides the entry, for comparison by the script.
fn deciding_values(player: &Row) -> String {
    match player.reached_at {
        Some(at) => at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        None => format!("{} {}", player.score, player.tiebreak.unwrap_or(0)),
    }
}

/// Returns the player with the neighbours on each side.
fn around(standing: &PlayerStanding) -> Vec<Row> {
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
                (others(page, "Friends among each other", "friends", &friends.rows, &friends.header))
                @if !friends.missing.is_empty() {
                    p.empty { "Without a score: " @for (n, id) in friends.missing.iter().enumerate() { @if n > 0 { ", " } bdi { (id) } } }
                }
            }
            @if page.view.link.friends.len() < FRIENDS_MAX { form action=(page.view.link.path()) {
                (hidden_fields(page.view.link))
                label for="friend" { "Add by id" }
                input #friend name="friends" required maxlength="128" autocomplete="off" autocapitalize="off" spellcheck="false";
                button { "Add" }
            } }
            @else { p.quiet { "The list is full." } }
            @if page.view.link.friends.is_empty() { p.quiet { "Friends are saved in this page's address." } }
        }
    }
}
