//! What a reader is told instead of a page.

use maud::{Markup, html};

/// A page that says what went wrong and where to go on.
pub(crate) fn page(status: u16, title: &str, detail: &str) -> Markup {
    let main = html! {
        p.status { (status) }
        h1 { (title) }
        p.detail { (detail) }
        p { a href="/" { "All boards" } }
    };
    crate::http::pages::document(&format!("{title} · Centile"), &main)
}
