//! Links to a board's page. The URL contains everything that the page shows, so that it can be
//! saved and shared.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Characters to escape in a query: all but the unreserved ones (RFC 3986, 2.3) and a few that are
/// safe and easy to read.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// Maximum friends of a page: with the player, as many as one subscriber can follow.
pub(crate) const FRIENDS_MAX: usize = 19;

/// Players in the table of a board's page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Among {
    #[default]
    All,
    /// The selected player and that player's friends.
    Friends,
}

/// Parameters of a board's page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) board: String,
    /// The period as requested; the board's default period when absent.
    pub(crate) period: Option<String>,
    /// The segment, such as `country:DE`; all players when absent.
    pub(crate) segment: Option<String>,
    pub(crate) from: u64,
    /// Rows per page; the default when absent.
    pub(crate) limit: Option<u32>,
    pub(crate) player: Option<String>,
    pub(crate) among: Among,
    /// Players who are ranked among each other.
    pub(crate) friends: Vec<String>,
}

impl Link {
    /// Returns the link to a board's page without parameters.
    pub(crate) fn of_board(board: &str) -> Self {
        Self {
            board: board.to_owned(),
            period: None,
            segment: None,
            from: 1,
            limit: None,
            player: None,
            among: Among::All,
            friends: Vec::new(),
        }
    }

    /// Returns this link with another first position.
    pub(crate) fn from(&self, from: u64) -> Self {
        Self { from, ..self.clone() }
    }

    /// Returns a link to the top of another period.
    pub(crate) fn period(&self, name: &str) -> Self {
        Self { period: Some(name.to_owned()), from: 1, ..self.clone() }
    }

    /// Returns a link to the top of another segment, or of all players.
    pub(crate) fn segment(&self, segment: Option<&str>) -> Self {
        Self { segment: segment.map(ToOwned::to_owned), from: 1, ..self.clone() }
    }

    pub(crate) fn player(&self, player: Option<&str>) -> Self {
        Self { player: player.map(ToOwned::to_owned), ..self.clone() }
    }

    /// Returns a link to the top of these players.
    pub(crate) fn among(&self, among: Among) -> Self {
        Self { among, from: 1, ..self.clone() }
    }

    pub(crate) fn with_friend(&self, friend: &str) -> Self {
        let mut link = self.without_friend(friend);
        link.friends.push(friend.to_owned());
        link
    }

    pub(crate) fn without_friend(&self, friend: &str) -> Self {
        let friends = self.friends.iter().filter(|other| *other != friend).cloned().collect();
        Self { friends, ..self.clone() }
    }

    pub(crate) fn path(&self) -> String {
        format!("/boards/{}", self.board)
    }

    /// Returns the parameters of the query, in order.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut parameters = Vec::new();
        parameters.extend(self.period.clone().map(|period| ("period", period)));
        parameters.extend(self.segment.clone().map(|segment| ("segment", segment)));
        parameters.extend((self.from > 1).then(|| ("from", self.from.to_string())));
        parameters.extend(self.limit.map(|limit| ("limit", limit.to_string())));
        parameters.extend(self.player.clone().map(|player| ("player", player)));
        parameters.extend((self.among == Among::Friends).then(|| ("among", "friends".to_owned())));
        parameters.extend(self.friends.iter().map(|friend| ("friends", friend.clone())));
        parameters
    }

    /// Returns the URL of the page, without the host.
    pub(crate) fn href(&self) -> String {
        let mut address = self.path();
        for (n, (name, value)) in self.parameters().into_iter().enumerate() {
            let sign = if n == 0 { '?' } else { '&' };
            // Writing to a String cannot fail.
            let _ = write!(address, "{sign}{name}={}", utf8_percent_encode(&value, QUERY));
        }
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_contains_everything_shown() {
        let link = Link::of_board("arena");
        assert_eq!(link.href(), "/boards/arena");
        let link =
            link.period("week:2024-01-15").from(51).player(Some("a&b=c d+é\"<")).with_friend("x").with_friend("y");
        assert_eq!(
            link.href(),
            "/boards/arena?period=week:2024-01-15&from=51&player=a%26b%3Dc%20d%2B%C3%A9%22%3C&friends=x&friends=y"
        );
        assert_eq!(
            link.segment(Some("class:a b")).href(),
            "/boards/arena?period=week:2024-01-15&segment=class:a%20b&player=a%26b%3Dc%20d%2B%C3%A9%22%3C&friends=x&friends=y"
        );
        assert_eq!(link.with_friend("x").friends, ["y", "x"]);
        assert_eq!(link.without_friend("x").player(None).period("day").href(), "/boards/arena?period=day&friends=y");
    }
}
