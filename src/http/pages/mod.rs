//! Pages for people: what is read of a board, as HTML. They work without a script, which makes them live.
//!
//! Nothing here asks anything: each page is made of what it is given. Whatever a name holds is escaped by the templates.

pub(crate) mod asset;
pub(crate) mod board;
pub(crate) mod embed;
mod figure;
pub(crate) mod gzip;
pub(crate) mod home;
pub(crate) mod link;
mod number;
pub(crate) mod ops;
pub(crate) mod problem;
mod table;

use maud::{DOCTYPE, Markup, html};

use crate::{http::pages::asset::Asset, model::period::PeriodState};

/// What is said of a period that no longer takes scores.
fn over(state: PeriodState) -> Option<&'static str> {
    match state {
        PeriodState::Open => None,
        PeriodState::Due => Some("over, being closed"),
        PeriodState::Closed => Some("closed"),
    }
}

/// A whole page with this title and this in its middle.
fn document(title: &str, main: &Markup) -> Markup {
    styled(title, &[], main)
}

/// The same with more looks than those of all pages.
fn styled(title: &str, styles: &[&Asset], main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" type="image/svg+xml" href=(asset::ICON.path());
                link rel="stylesheet" href=(asset::STYLE.path());
                @for style in styles { link rel="stylesheet" href=(style.path()); }
                // Numbers and times are written anew before anything is seen, or lines that grow would push down what is below.
                script type="module" blocking="render" src=(asset::SCRIPT.path()) {}
            }
            body {
                a.skip href="#main" { "To the content" }
                header.site {
                    a.brand href="/" { "Centile" }
                    nav aria-label="Site" { a href="/docs/" { "API" } }
                }
                main #main { (main) }
            }
        }
    }
}
