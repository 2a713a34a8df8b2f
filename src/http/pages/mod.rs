//! Pages for people: HTML about boards. They work without a script; the script adds live updates.
//!
//! Nothing here reads data: each page renders what it is given. The templates escape every name.

pub(crate) mod asset;
mod avatar;
mod axis;
pub(crate) mod board;
pub(crate) mod embed;
mod figure;
pub(crate) mod gzip;
pub(crate) mod home;
pub(crate) mod league;
pub(crate) mod link;
mod number;
pub(crate) mod ops;
pub(crate) mod problem;
mod progress;
pub(crate) mod site;
pub(crate) mod table;
pub(crate) mod text;

use std::{sync::Arc, time::Duration};

use maud::{DOCTYPE, Markup, html};

use crate::{
    http::{
        pages::{asset::Asset, link::Link, number::period_title, table::RowStyle},
        server::origin::Origin,
    },
    model::{
        board::Board,
        period::{Period, PeriodSelector, PeriodState},
        presentation::{IconUrl, Presentation},
        rank::{Header, Page, Row},
    },
};

#[derive(Debug)]
pub(crate) struct Rows {
    /// The rows, with their period.
    pub(crate) page: Arc<Page>,
    /// Age of the rows if the database cannot be reached.
    pub(crate) stale_for: Option<Duration>,
}

impl Rows {
    pub(crate) fn period(&self) -> &Period {
        &self.page.header.period
    }

    /// Returns the number of players in the period.
    pub(crate) fn players(&self) -> u64 {
        self.page.header.players
    }

    /// Returns the label of a ranking that no longer takes scores.
    pub(crate) fn over(&self) -> Option<&'static str> {
        if self.page.header.combined.is_some() { Some("computed") } else { over(self.period().state) }
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.page.rows
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RankingView<'a> {
    pub(crate) board: &'a Board,
    /// Link to the board's own page.
    pub(crate) link: &'a Link,
    pub(crate) selector: &'a PeriodSelector,
    pub(crate) limit: u32,
    pub(crate) rows: &'a Rows,
    pub(crate) avatar_origins: &'a [Origin],
}

impl<'a> RankingView<'a> {
    /// Returns the title of the period, with the segment.
    fn title(&self) -> String {
        let period = self.rows.period();
        let segment = period.segment.as_ref().map(|segment| format!(" · {segment}")).unwrap_or_default();
        format!("{}{segment}", period_title(period))
    }

    /// Returns the style of rows with this header.
    fn style(&self, header: &'a Header) -> RowStyle<'a> {
        RowStyle {
            format: &self.board.presentation.score_format,
            tiering: header.tiering(self.board),
            avatar_origins: self.avatar_origins,
            has_tiebreaks: self.board.tiebreak_order.is_some(),
        }
    }
}

/// Returns the label of a period that no longer takes scores.
fn over(state: PeriodState) -> Option<&'static str> {
    match state {
        PeriodState::Upcoming => Some("not begun"),
        PeriodState::Preparing => Some("preparing"),
        PeriodState::Open => None,
        PeriodState::Due => Some("ended"),
        PeriodState::Closed => Some("closed"),
    }
}

/// Renders the picture and the colour of a board, as decoration. A picture on another host is not
/// shown: readers' browsers would send requests to that host.
fn mark(board: &Board) -> Markup {
    let Presentation { icon_url, colour, .. } = &board.presentation;
    html! {
        @if let Some(path) = icon_url.as_ref().and_then(IconUrl::path) { img.icon src=(path) alt=""; }
        // The policy of the page allows no styles in attributes.
        @if let Some(colour) = colour { svg.colour viewBox="0 0 2 2" aria-hidden="true" { circle cx="1" cy="1" r="1" fill=(colour) {} } }
    }
}

fn document(title: &str, main: &Markup) -> Markup {
    styled(title, &[], main)
}

/// Renders a whole page with additional style sheets.
fn styled(title: &str, styles: &[&Asset], main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) }
                meta name="description" content=(title);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" type="image/svg+xml" href=(asset::ICON.path());
                link rel="stylesheet" href=(asset::STYLE.path());
                @for style in styles { link rel="stylesheet" href=(style.path()); }
                // The script reformats numbers before the first paint. Otherwise lines that grow
                // would move the content below.
                script type="module" blocking="render" src=(asset::SCRIPT.path()) {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                header.site {
                    a.brand href="/" { "Centile" }
                    nav aria-label="Site" { a href="/docs/" { "API" } }
                }
                main #main { (main) }
            }
        }
    }
}
