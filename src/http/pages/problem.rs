//! The page of an error.

use maud::{Markup, html};

/// Renders an error with a link to all boards.
pub(crate) fn page(status: u16, title: &str, detail: &str) -> Markup {
    let main = html! {
        p.status { (status) }
        h1 { (title) }
        p.detail { (detail) }
        p { a href="/" { "All boards" } }
    };
    crate::http::pages::document(&format!("{title} · Centile"), &main)
}
