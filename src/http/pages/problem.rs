//! The page of an error.

use maud::{Markup, html};

/// Renders an error with a link to all boards.
pub(crate) fn page(status: u16, title: &str, detail: &str) -> Markup {
    let main = html! {
        p.status { (status) }
        h1 { (title) }
        p.detail { (detail) }
        @if status == 404 { p { "Check the address, or choose one of the boards." } }
        p { a href="/" { "All boards" } }
    };
    crate::http::pages::document(&format!("{title} · Centile"), &main)
}
