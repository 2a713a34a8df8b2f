//! How a board and its scores are shown. None of this touches scores.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::{
    Error, Result,
    model::{json::as_text, text::checked_text, user::check_text},
};

/// How a board is shown to people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Presentation {
    /// How scores are written for people, such as `number`, `decimal:2`, `number points` or
    /// `duration:ms`. Calls that return scores add `score_text` on request.
    #[schema(value_type = String, example = "number points")]
    pub score_format: ScoreFormat,
    /// Text about the board.
    #[serde(deserialize_with = "if_valid")]
    #[schema(required = true, value_type = Option<String>, example = "Kills per match")]
    pub description: Option<Description>,
    /// Picture of the board: an https URL, or a path on the host of the service.
    #[serde(deserialize_with = "if_valid")]
    #[schema(required = true, value_type = Option<String>, example = "https://example.com/arena.png")]
    pub icon_url: Option<IconUrl>,
    /// Colour of the board, in lower case.
    #[serde(deserialize_with = "if_valid")]
    #[schema(required = true, value_type = Option<String>, example = "#1f6feb")]
    pub colour: Option<Colour>,
}

/// Ignores an invalid text that SQL has stored, because it is only shown.
fn if_valid<'de, D: Deserializer<'de>, T: FromStr<Err = Error>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let warn = |error: &Error| tracing::warn!(%error, "a board has an invalid text");
    Ok(text.and_then(|text| text.parse().inspect_err(warn).ok()))
}

/// How a score, which is a 64-bit integer, is written for people.
///
/// Text forms: `number`, `decimal:2`, `duration:ms` and `duration:s`. `number` and `decimal` may have a
/// unit after a space: `number points`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScoreFormat {
    /// A number with this many decimals, and a unit.
    Number {
        /// The score is in units of this negative power of ten: 0 to [`DECIMALS_MAX`].
        decimals: usize,
        /// Unit; empty for none.
        unit: String,
    },
    /// Minutes and seconds, with hours if there are any.
    Duration {
        /// Whether the score counts milliseconds instead of seconds.
        is_milliseconds: bool,
    },
}

/// Maximum decimals of a score.
pub const DECIMALS_MAX: usize = 18;

/// Maximum bytes of the text form of a [`ScoreFormat`].
pub const SCORE_FORMAT_MAX_BYTES: usize = 64;

pub const DESCRIPTION_MAX_BYTES: usize = 1_000;

/// Maximum bytes of the URL of a picture.
pub const ICON_URL_MAX_BYTES: usize = 1_024;

impl Default for ScoreFormat {
    fn default() -> Self {
        Self::Number { decimals: 0, unit: String::new() }
    }
}

impl ScoreFormat {
    /// Writes a score without regard to language: digits without groups, `.`, `-` and `:`.
    pub fn plain(&self, score: i64) -> String {
        self.written(score, "-", |digits| digits)
    }

    /// Writes a score in English: thousands in groups, and a minus sign.
    pub fn english(&self, score: i64) -> String {
        self.written(score, "\u{2212}", |digits| grouped(&digits))
    }

    /// Writes a score. `whole` writes the digits of whole numbers.
    fn written(&self, score: i64, minus: &str, whole: impl Fn(String) -> String) -> String {
        let sign = if score < 0 { minus } else { "" };
        let value = score.unsigned_abs();
        match self {
            Self::Number { decimals, unit } => {
                // With at least one digit before the point.
                let digits = format!("{value:0width$}", width = decimals + 1);
                let (before, after) = digits.split_at(digits.len() - decimals);
                let point = if *decimals > 0 { "." } else { "" };
                let space = if unit.is_empty() { "" } else { " " };
                format!("{sign}{}{point}{after}{space}{unit}", whole(before.to_owned()))
            }
            Self::Duration { is_milliseconds } => {
                let (seconds, fraction) = if *is_milliseconds {
                    (value / 1_000, format!(".{:03}", value % 1_000))
                } else {
                    (value, String::new())
                };
                let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
                if hours > 0 {
                    format!("{sign}{}:{minutes:02}:{seconds:02}{fraction}", whole(hours.to_string()))
                } else {
                    format!("{sign}{minutes}:{seconds:02}{fraction}")
                }
            }
        }
    }
}

/// Writes digits in groups of three.
fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (n, digit) in digits.char_indices() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl FromStr for ScoreFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused = || {
            let forms = "number, decimal:1 to decimal:18, duration:ms or duration:s; number and decimal may have a unit after a space";
            Error::invalid("score_format", format!("must be {forms}; at most {SCORE_FORMAT_MAX_BYTES} bytes"))
        };
        if text.len() > SCORE_FORMAT_MAX_BYTES {
            return Err(refused());
        }
        let (name, unit) = text.split_once(' ').map_or((text, None), |(name, unit)| (name, Some(unit)));
        let is_unit = |unit: &str| {
            !unit.is_empty() && !unit.starts_with(' ') && !unit.ends_with(' ') && !unit.chars().any(char::is_control)
        };
        if !unit.is_none_or(is_unit) {
            return Err(refused());
        }
        let decimals = match (name, name.strip_prefix("decimal:")) {
            ("duration:ms" | "duration:s", _) if unit.is_none() => {
                return Ok(Self::Duration { is_milliseconds: name == "duration:ms" });
            }
            ("number", _) => 0,
            (_, Some(decimals)) => {
                let parsed = decimals
                    .parse()
                    .ok()
                    .filter(|n: &usize| (1..=DECIMALS_MAX).contains(n) && n.to_string() == decimals);
                parsed.ok_or_else(refused)?
            }
            _ => return Err(refused()),
        };
        Ok(Self::Number { decimals, unit: unit.unwrap_or_default().to_owned() })
    }
}

as_text!(ScoreFormat);

/// How scores are written for people.
#[derive(Debug, ToSchema)]
#[schema(
    as = ScoreFormat,
    example = "decimal:2",
    max_length = 64,
    pattern = r"^((number|decimal:([1-9]|1[0-8]))( [^ \x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^ \x00-\x1f\x7f-\x9f])?)?|duration:(ms|s))$"
)]
#[expect(dead_code, reason = "describes a valid format")]
pub(super) struct ScoreFormatText(String);

impl fmt::Display for ScoreFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { decimals: 0, .. } => f.write_str("number")?,
            Self::Number { decimals, .. } => write!(f, "decimal:{decimals}")?,
            Self::Duration { is_milliseconds: true } => f.write_str("duration:ms")?,
            Self::Duration { is_milliseconds: false } => f.write_str("duration:s")?,
        }
        match self {
            Self::Number { unit, .. } if !unit.is_empty() => write!(f, " {unit}"),
            _ => Ok(()),
        }
    }
}

/// Defines a checked text.
macro_rules! text {
    ($(#[$about:meta])* $name:ident, $check:expr) => {
        #[derive(Debug, Clone, PartialEq, Eq, ToSchema)]
        $(#[$about])*
        pub struct $name(String);

        checked_text!($name);
        as_text!($name);

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                let check: fn(&str) -> Result<String> = $check;
                check(text).map(Self)
            }
        }
    };
}

text!(
    /// Text about a board: up to [`DESCRIPTION_MAX_BYTES`] without control characters.
    #[schema(description = "Text about a board.", example = "Kills per match", min_length = 1, max_length = 1000, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    Description,
    |text| check_text("description", text, DESCRIPTION_MAX_BYTES).map(|()| text.to_owned())
);

text!(
    /// Address of a picture: an https URL, or a path on the host of the service. Only ASCII without
    /// spaces and backslashes.
    #[schema(
        example = "https://example.com/arena.png",
        max_length = 1024,
        pattern = r#"^(https://[!-"$-.0-9;->A-\[\]-~][!-"$-.0->A-\[\]-~]*([/?#][!-\[\]-~]*)?|/[!-.0-\[\]-~][!-\[\]-~]*)$"#
    )]
    IconUrl,
    |text| {
        check_text("icon_url", text, ICON_URL_MAX_BYTES)?;
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        let has_host = text.strip_prefix("https://").is_some_and(|rest| {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            !authority.is_empty() && !authority.starts_with(':') && !authority.contains('@')
        });
        // A path that begins with two slashes would name another host.
        let is_path = text.strip_prefix('/').is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
        if is_plain && (has_host || is_path) {
            Ok(text.to_owned())
        } else {
            let message = "must be an https URL, such as https://example.com/arena.png, or a path on this host, such as /arena.png";
            Err(Error::invalid("icon_url", message))
        }
    }
);

impl IconUrl {
    /// Returns the address if it is a path on the host of the service.
    pub fn path(&self) -> Option<&str> {
        self.0.starts_with('/').then_some(&*self.0)
    }
}

text!(
    /// A colour such as `#1f6feb`.
    #[schema(example = "#1f6feb", pattern = "^#[0-9A-Fa-f]{6}$")]
    Colour,
    |text| {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
        if digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            Ok(text.to_ascii_lowercase())
        } else {
            Err(Error::invalid("colour", "must be # and six hexadecimal digits, such as #1f6feb"))
        }
    }
);

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;

    fn format(text: &str) -> ScoreFormat {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn scores_are_written_in_each_format() {
        for (text, score, plain, english) in [
            ("number", 0, "0", "0"),
            ("number", 1_234_567, "1234567", "1,234,567"),
            ("number", -1_000, "-1000", "\u{2212}1,000"),
            ("number points", 12_345, "12345 points", "12,345 points"),
            ("number µg per l", -1, "-1 µg per l", "\u{2212}1 µg per l"),
            ("number", i64::MIN, "-9223372036854775808", "\u{2212}9,223,372,036,854,775,808"),
            ("number", i64::MAX, "9223372036854775807", "9,223,372,036,854,775,807"),
            ("decimal:2", 12_345, "123.45", "123.45"),
            ("decimal:2", 5, "0.05", "0.05"),
            ("decimal:2", -5, "-0.05", "\u{2212}0.05"),
            ("decimal:2", 100, "1.00", "1.00"),
            ("decimal:2", 0, "0.00", "0.00"),
            ("decimal:3 km", -1_234_567_890, "-1234567.890 km", "\u{2212}1,234,567.890 km"),
            ("decimal:18", i64::MIN, "-9.223372036854775808", "\u{2212}9.223372036854775808"),
            ("decimal:18", 7, "0.000000000000000007", "0.000000000000000007"),
            ("duration:ms", 83_456, "1:23.456", "1:23.456"),
            ("duration:ms", 7, "0:00.007", "0:00.007"),
            ("duration:ms", 0, "0:00.000", "0:00.000"),
            ("duration:ms", -83_456, "-1:23.456", "\u{2212}1:23.456"),
            ("duration:ms", 3_600_000, "1:00:00.000", "1:00:00.000"),
            ("duration:ms", i64::MAX, "2562047788015:12:55.807", "2,562,047,788,015:12:55.807"),
            ("duration:ms", i64::MIN, "-2562047788015:12:55.808", "\u{2212}2,562,047,788,015:12:55.808"),
            ("duration:s", 3_725, "1:02:05", "1:02:05"),
            ("duration:s", 65, "1:05", "1:05"),
            ("duration:s", 5, "0:05", "0:05"),
            ("duration:s", 3_599, "59:59", "59:59"),
            ("duration:s", -3_600, "-1:00:00", "\u{2212}1:00:00"),
            ("duration:s", i64::MIN, "-2562047788015215:30:08", "\u{2212}2,562,047,788,015,215:30:08"),
        ] {
            let format = format(text);
            assert_eq!((format.plain(score), format.english(score)), (plain.to_owned(), english.to_owned()), "{text}");
            assert_eq!(format.to_string(), text);
        }
    }

    /// Reads a score back from its plain text: all digits without the point.
    fn read(text: &str) -> i128 {
        let digits = text.split(' ').next().unwrap_or_default().replace('.', "");
        digits.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Reads a duration back from its plain text, in units of its last digit.
    fn read_duration(text: &str, per_second: i128) -> i128 {
        let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let number = |text: &str| -> i128 { text.parse().unwrap_or_else(|error| panic!("{text}: {error}")) };
        let seconds = whole.split(':').fold(0, |seconds, part| seconds * 60 + number(part));
        sign * (seconds * per_second + number(fraction))
    }

    #[test]
    fn the_text_of_any_score_can_be_read_back() {
        let mut rng = rand::rng();
        let edges = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
        let mut scores: Vec<i64> = edges.to_vec();
        for bits in 0..63 {
            scores.extend([1 << bits, -(1 << bits), rng.random::<i64>() >> bits]);
        }
        for score in scores {
            let wanted = i128::from(score);
            for decimals in 0..=DECIMALS_MAX {
                for unit in ["", "km"] {
                    let text = ScoreFormat::Number { decimals, unit: unit.to_owned() }.plain(score);
                    assert_eq!(read(&text), wanted, "{text}");
                    let number = text.split(' ').next().unwrap_or_default();
                    let places = number.split_once('.').map_or(0, |(_, places)| places.len());
                    assert_eq!(places, decimals, "{text}");
                }
            }
            for (is_milliseconds, per_second) in [(true, 1_000), (false, 1)] {
                let format = ScoreFormat::Duration { is_milliseconds };
                let text = format.plain(score);
                assert_eq!(read_duration(&text, per_second), wanted, "{text}");
                // The English text has the same digits.
                let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
                assert_eq!(digits(&format.english(score)), digits(&text));
            }
        }
    }

    #[test]
    fn other_formats_are_refused() {
        let long = format!("number {}", "x".repeat(58));
        for bad in [
            "",
            " ",
            "Number",
            "number ",
            "number  x",
            "number x ",
            "number a\nb",
            "decimal",
            "decimal:",
            "decimal:0",
            "decimal:19",
            "decimal:02",
            "decimal:+2",
            "decimal:2km",
            "decimal:2:3",
            "duration",
            "duration:m",
            "duration:ms laps",
            "points",
            &long,
        ] {
            let refused = bad.parse::<ScoreFormat>();
            assert!(
                matches!(&refused, Err(Error::Invalid { field, .. }) if field == "score_format"),
                "{bad:?}: {refused:?}"
            );
        }
        assert_eq!(format(&long[..64]).to_string(), long[..64]);
    }

    #[test]
    fn pictures_are_https_urls_or_paths_on_this_host() {
        for good in
            ["https://example.com/a.png", "https://a:8443/x?y#z", "https://[::1]/", "/icons/a.svg", "/a", "/a//b?c=%20"]
        {
            assert_eq!(
                good.parse::<IconUrl>().map(|url| url.path().is_some()).ok(),
                Some(good.starts_with('/')),
                "{good}"
            );
        }
        for bad in [
            "",
            "/",
            "//example.com/a.png",
            "/\\example.com",
            "\\\\example.com",
            "http://example.com/a.png",
            "https://",
            "https:///a",
            "https://:80/",
            "https://a@b/",
            "https:/a",
            "javascript:alert(1)",
            "data:image/png;base64,AA",
            "a.png",
            "/a b",
            "/\u{e9}",
            "/a\n",
            " /a",
        ] {
            assert!(bad.parse::<IconUrl>().is_err(), "{bad:?}");
        }
        assert!(format!("/{}", "a".repeat(1_024)).parse::<IconUrl>().is_err());
    }

    #[test]
    fn colours_have_six_digits() {
        assert_eq!("#1F6FEb".parse::<Colour>().map(|colour| colour.to_string()).ok().as_deref(), Some("#1f6feb"));
        for bad in
            ["", "#", "1f6feb", "#1f6fe", "#1f6febf", "#1f6feg", "#fff", "red", "#1f6fe\u{e9}", "##f6feb", "url(x)"]
        {
            assert!(bad.parse::<Colour>().is_err(), "{bad:?}");
        }
    }
}
