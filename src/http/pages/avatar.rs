//! Avatars of players: a picture over the initials of the name, which stay visible while the
//! picture loads, and if it does not.

use maud::{Markup, html};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::{http::server::origin::Origin, model::rank::Row};

/// Maximum words of a name whose first letters are shown.
const INITIALS: usize = 2;

/// Renders the avatar of a row's player. It is decoration: the name stands beside it. Pictures load
/// only from `origins`.
pub(crate) fn avatar(row: &Row, origins: &[Origin]) -> Markup {
    let picture = row.avatar.as_deref().filter(|url| is_within(url, origins));
    html! {
        span.avatar data-initials=(initials(&row.user_name)) aria-hidden="true" {
            @if let Some(url) = picture { img src=(url) alt="" width="28" height="28" loading="lazy"; }
        }
    }
}

/// Returns the first letters of the first and the last word. Letters are grapheme clusters, so that
/// an emoji stays whole.
fn initials(name: &str) -> String {
    let mut letters: Vec<&str> = name.split_whitespace().filter_map(|word| word.graphemes(true).next()).collect();
    if letters.len() > INITIALS {
        letters.drain(1..letters.len() - 1);
    }
    letters.concat().to_uppercase()
}

/// Returns whether a URL begins with one of these origins.
fn is_within(url: &str, origins: &[Origin]) -> bool {
    origins.iter().any(|origin| match origin {
        Origin::Any => true,
        Origin::One(origin) => {
            url.strip_prefix(origin.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initials_are_those_of_the_first_and_the_last_word() {
        for (name, wanted) in [
            ("Ada", "A"),
            ("ada king lovelace", "AL"),
            ("  Ünal  çelik ", "ÜÇ"),
            ("👩‍🚀 Sally", "👩‍🚀S"),
            ("שרה כהן", "שכ"),
            ("e\u{301}va", "E\u{301}"),
            ("", ""),
        ] {
            assert_eq!(initials(name), wanted, "{name}");
        }
    }

    #[test]
    fn pictures_load_only_from_named_origins() {
        let cdn = [Origin::One("https://cdn.example".to_owned())];
        for (url, wanted) in [
            ("https://cdn.example/a.png", true),
            ("https://cdn.example?a", true),
            ("https://cdn.example.org/a.png", false),
            ("https://cdn.example:8443/a.png", false),
            ("https://cdn.example@evil.example/a.png", false),
            ("http://cdn.example/a.png", false),
        ] {
            assert_eq!(is_within(url, &cdn), wanted, "{url}");
            assert!(is_within(url, &[Origin::Any]) && !is_within(url, &[]), "{url}");
        }
    }
}
