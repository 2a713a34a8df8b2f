//! Addresses of a board's page: whatever it shows stands in its address, so that it can be kept, sent and gone back to.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All but what never means anything in a query (RFC 3986, 2.3), and what reads well in it.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// Friends of a page: as many as can be followed live, with the player.
pub(crate) const FRIENDS_MAX: usize = 19;

/// What a board's page shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// Name of the board.
    pub(crate) board: String,
    /// The period, as it was asked for; the first that the board keeps when absent.
    pub(crate) period: Option<String>,
    /// Position of the first row.
    pub(crate) from: u64,
    /// Rows of a page; as many as usual when absent.
    pub(crate) limit: Option<u32>,
    /// The player who is looked at.
    pub(crate) player: Option<String>,
    /// The players among whom places are shown.
    pub(crate) friends: Vec<String>,
}

impl Link {
    /// The same from another position.
    pub(crate) fn from(&self, from: u64) -> Self {
        Self { from, ..self.clone() }
    }

    /// The top of another period.
    pub(crate) fn period(&self, name: &str) -> Self {
        Self { period: Some(name.to_owned()), from: 1, ..self.clone() }
    }

    /// The same with another player, or with none.
    pub(crate) fn player(&self, player: Option<&str>) -> Self {
        Self { player: player.map(ToOwned::to_owned), ..self.clone() }
    }

    /// The same with a friend more.
    pub(crate) fn with_friend(&self, friend: &str) -> Self {
        let mut link = self.without_friend(friend);
        link.friends.push(friend.to_owned());
        link
    }

    /// The same with a friend less.
    pub(crate) fn without_friend(&self, friend: &str) -> Self {
        let friends = self.friends.iter().filter(|other| *other != friend).cloned().collect();
        Self { friends, ..self.clone() }
    }

    /// Where the page is.
    pub(crate) fn path(&self) -> String {
        format!("/boards/{}", self.board)
    }

    /// What stands in the query, in the order in which it is written.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut parameters = Vec::new();
        parameters.extend(self.period.clone().map(|period| ("period", period)));
        parameters.extend((self.from > 1).then(|| ("from", self.from.to_string())));
        parameters.extend(self.limit.map(|limit| ("limit", limit.to_string())));
        parameters.extend(self.player.clone().map(|player| ("player", player)));
        parameters.extend(self.friends.iter().map(|friend| ("friends", friend.clone())));
        parameters
    }

    /// The address.
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
    fn whatever_is_shown_stands_in_the_address() {
        let link =
            Link { board: "arena".into(), period: None, from: 1, limit: None, player: None, friends: Vec::new() };
        assert_eq!(link.href(), "/boards/arena");
        let link =
            link.period("week:2024-01-15").from(51).player(Some("a&b=c d+é\"<")).with_friend("x").with_friend("y");
        assert_eq!(
            link.href(),
            "/boards/arena?period=week:2024-01-15&from=51&player=a%26b%3Dc%20d%2B%C3%A9%22%3C&friends=x&friends=y"
        );
        assert_eq!(link.with_friend("x").friends, ["y", "x"]);
        assert_eq!(link.without_friend("x").player(None).period("day").href(), "/boards/arena?period=day&friends=y");
    }
}
