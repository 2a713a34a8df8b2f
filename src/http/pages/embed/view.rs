//! A board in a frame on another site's page: its first rows, and a link to the board's own page.

use maud::{DOCTYPE, Markup, html};
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::{
    http::pages::{
        RankingView, Rows, asset, mark,
        number::{count, for_script, score},
        table::{RowStyle, tiebreak, tier},
    },
    model::{name::Named as _, rank::Row, segment::Segment},
};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Theme {
    /// The theme of the reader's system.
    #[default]
    Auto,
    Light,
    Dark,
}

impl Theme {
    /// Returns the value of `color-scheme`, which the browser applies before the style sheet.
    fn schemes(self) -> &'static str {
        match self {
            Self::Auto => "light dark",
            Self::Light | Self::Dark => self.name(),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Size {
    /// For a corner of a page.
    Small,
    #[default]
    Normal,
    /// For a screen on a wall.
    Large,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Appearance {
    pub(crate) theme: Theme,
    pub(crate) size: Size,
}

pub(crate) fn page(page: RankingView<'_>, appearance: Appearance) -> Markup {
    let rows = page.rows;
    let title = page.title();
    let whole = format!("{} · {title}", page.board.title);
    let main = html! {
        h1 { a href=(page.link.href()) target="_blank" rel="noopener" { (mark(page.board)) (page.board.title) } }
        p.when {
            strong data-live="period" { (title) }
            span.quiet { span data-live="players" { (count(rows.players())) } " players" }
            span.state role="status" data-live="state" { (state(rows)) }
        }
        section data-board=(page.board.slug) data-period=(page.selector.whole()) data-segment=[page.selector.segment().map(Segment::to_string)] data-limit=(page.limit) data-from="1" data-plain
            data-state=[rows.stale_for.is_none().then(|| rows.period().state.name())] data-over=[rows.over()] {
            @if rows.rows().is_empty() { p.empty { "No scores in this period." } }
            (table(&whole, rows.rows(), page.style(&rows.page.header)))
        }
    };
    document(&whole, appearance, &main)
}

/// Renders a problem in place of a board.
pub(crate) fn problem(title: &str, detail: &str, appearance: Appearance) -> Markup {
    document(title, appearance, &html! { h1 { (title) } p { (detail) } })
}

fn document(title: &str, appearance: Appearance, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=(appearance.theme.name()) data-size=(appearance.size.name()) {
            head {
                meta charset="utf-8";
                title { (title) }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content=(appearance.theme.schemes());
                link rel="icon" type="image/svg+xml" href=(asset::ICON.path());
                link rel="stylesheet" href=(asset::STYLE.path());
                link rel="stylesheet" href=(asset::EMBED_STYLE.path());
                script type="module" blocking="render" src=(asset::SCRIPT.path()) {}
                script type="module" src=(asset::FRAME_SCRIPT.path()) {}
            }
            body { main { (main) } }
        }
    }
}

/// Renders the state of the period, or the age of stale rows.
fn state(rows: &Rows) -> Markup {
    html! {
        @match rows.stale_for {
            Some(age) => span.warning { "as of " (age.as_secs()) " s ago" }
            None => (rows.over().unwrap_or_default())
        }
    }
}

/// Renders the rows in the form that the script updates.
fn table(caption: &str, rows: &[Row], style: RowStyle<'_>) -> Markup {
    html! {
        table data-live="top" data-format=[for_script(style.format)] hidden[rows.is_empty()] {
            caption.unseen { (caption) }
            thead {
                tr {
                    th.rank scope="col" { "Rank" }
                    th.move scope="col" { span.unseen { "Change" } }
                    th.name scope="col" { "Player" }
                    th.score scope="col" { "Score" }
                    @if style.has_tiebreaks { th.tiebreak scope="col" { "Tiebreak" } }
                }
            }
            tbody {
                @for row in rows {
                    tr data-user=(row.user_id) {
                        td.rank { (count(row.rank)) }
                        td.move {}
                        th.name scope="row" { bdi { (row.user_name) } (tier(row, style.tiering)) }
                        td.score { (score(style.format, row.score)) }
                        (tiebreak(row))
                    }
                }
            }
        }
    }
}
