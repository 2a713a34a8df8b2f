//! Query strings. Parsing is strict: an ignored parameter would give a wrong answer that looks
//! right.

use std::{borrow::Cow, collections::BTreeMap, fmt::Display, str::FromStr};

use actix_web::HttpRequest;
use percent_encoding::percent_decode_str;
use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeOwned, Error as _, IntoDeserializer, Visitor,
        value::{Error as ValueError, MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Result,
    http::api::body::refusal,
    model::{board::Board, period::PeriodSelector, segment::Segment, tag::Tag},
};

pub(crate) use crate::model::period::PeriodText;

/// Parses the query string of `request`. [`Error::Invalid`] names a parameter that is unknown,
/// missing, of the wrong type, or repeated without being a list.
pub(crate) fn parse<T: DeserializeOwned>(request: &HttpRequest) -> Result<T> {
    let mut parameters = BTreeMap::<String, Parameter>::new();
    for (name, value) in fields(request.query_string())? {
        parameters.entry(name).or_default().0.push(value);
    }
    serde_path_to_error::deserialize(MapDeserializer::new(parameters.into_iter()))
        .map_err(|error| refusal("query", error.path(), &error.inner().to_string()))
}

/// Returns the names and values of a query string or a form, decoded.
pub(crate) fn fields(text: &str) -> Result<Vec<(String, String)>> {
    let field = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name).ok_or_else(|| Error::invalid(name, "is not UTF-8"))?;
        let value = decoded(value).ok_or_else(|| Error::invalid(name.as_str(), "is not UTF-8"))?;
        Ok((name, value))
    };
    text.split('&').filter(|pair| !pair.is_empty()).map(field).collect()
}

/// Refuses all parameters, for a call that takes none.
pub(crate) fn none(request: &HttpRequest) -> Result<()> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NoParameters {}

    parse::<NoParameters>(request).map(|NoParameters {}| ())
}

/// Decodes a name or value of a query string, where `+` means a space (WHATWG URL, 5.1).
fn decoded(raw: &str) -> Option<String> {
    let spaced = if raw.contains('+') { Cow::Owned(raw.replace('+', " ")) } else { Cow::Borrowed(raw) };
    percent_decode_str(&spaced).decode_utf8().ok().map(Cow::into_owned)
}

/// The values of one parameter, in the order of the query string.
#[derive(Default)]
struct Parameter(Vec<String>);

impl Parameter {
    /// Returns the value of a parameter that may occur once.
    fn single(self) -> Result<String, ValueError> {
        <[String; 1]>::try_from(self.0)
            .map(|[value]| value)
            .map_err(|values| ValueError::custom(format!("is given {} times", values.len())))
    }

    /// Parses the value of a number or flag; `what` names the expected type.
    fn parsed<T: FromStr>(self, what: &str) -> Result<T, ValueError> {
        let text = self.single()?;
        text.parse().map_err(|_| ValueError::custom(format!("{text:?} is not {what}")))
    }
}

impl IntoDeserializer<'_, ValueError> for Parameter {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Parameter {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_string(self.single()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_seq(SeqDeserializer::new(self.0.into_iter()))
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_u64(self.parsed("a whole number of 64 bits, 0 or more")?)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_i64(self.parsed("a whole number of 64 bits")?)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_bool(self.parsed("true or false")?)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u32 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

/// Selects a page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Maximum rows of the page.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    pub(crate) limit: Option<u64>,
    /// `next_cursor` of an earlier page.
    #[param(min_length = 1)]
    pub(crate) cursor: Option<String>,
}

impl ListQuery {
    pub(crate) fn parse(request: &HttpRequest) -> Result<Self> {
        parse(request)
    }

    /// Returns the selected page of `items`, and the cursor of the next one. A cursor is the last
    /// item's `id`, which stays unique.
    pub(crate) fn page<T>(&self, items: Vec<T>, id: impl Fn(&T) -> &str) -> Result<(Vec<T>, Option<String>)> {
        let limit = bounded("limit", self.limit, LIST_LIMIT_DEFAULT, 1, LIST_LIMIT_MAX)?;
        let start = match &self.cursor {
            None => 0,
            Some(cursor) => {
                let last = items.iter().position(|item| id(item) == cursor);
                last.ok_or_else(|| Error::invalid("cursor", "is not the `next_cursor` of an earlier page"))? + 1
            }
        };
        let is_last = items.len() - start <= limit;
        let page: Vec<T> = items.into_iter().skip(start).take(limit).collect();
        let next = page.last().filter(|_| !is_last).map(|item| id(item).to_owned());
        Ok((page, next))
    }
}

/// Default rows of a page of a list.
pub(crate) const LIST_LIMIT_DEFAULT: usize = 50;

/// Maximum rows of a page of a list.
pub(crate) const LIST_LIMIT_MAX: usize = 1_000;

/// An attribute of players and a value, such as `country:DE`. Selects the ranking of the players with
/// this value. The board must have segments by this attribute.
#[derive(Debug, ToSchema)]
#[schema(as = Segment, example = "country:DE", pattern = r"^[a-z0-9_]{1,32}:[^\x00-\x1f\x7f-\x9f]{1,64}$")]
#[expect(dead_code, reason = "describes a valid segment")]
pub(crate) struct SegmentText(String);

/// Selects a ranking.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RankingQuery {
    /// Period, such as `week`, `week:previous` or `season:spring`; the board's default
    /// period when absent.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Only the players of this segment, such as `country:DE`; all players when absent.
    #[param(value_type = Option<SegmentText>)]
    segment: Option<String>,
}

impl RankingQuery {
    pub(crate) fn selection(request: &HttpRequest) -> Result<Selection> {
        let Self { period, segment } = parse(request)?;
        Selection::parse(period.as_deref(), segment.as_deref())
    }
}

/// The period and segment that a request names, before its board is known.
#[derive(Debug)]
pub(crate) struct Selection {
    period: Option<PeriodSelector>,
    segment: Option<Segment>,
}

impl Selection {
    /// Parses the period and the segment.
    pub(crate) fn parse(period: Option<&str>, segment: Option<&str>) -> Result<Self> {
        let period: Option<PeriodSelector> = period.map(str::parse).transpose()?;
        if period.as_ref().is_some_and(|period| period.segment().is_some()) {
            return Err(Error::invalid("period", "must not contain a segment; use the parameter segment"));
        }
        Ok(Self { period, segment: segment.map(str::parse).transpose()? })
    }

    /// Returns what the request selects on a board: the board's default period and all players, unless
    /// it names others.
    pub(crate) fn on(&self, board: &Board) -> PeriodSelector {
        let period = self.period.clone().unwrap_or_else(|| board.default_selector());
        match &self.segment {
            Some(segment) => period.in_segment(segment.clone()),
            None => period,
        }
    }
}

pub(crate) fn tag(text: Option<&str>) -> Result<Option<Tag>> {
    text.map(str::parse).transpose()
}

/// Returns `value` if it lies from `min` to `max`, or `default` when absent.
pub(crate) fn bounded<T>(field: &str, value: Option<u64>, default: T, min: T, max: T) -> Result<T>
where
    T: TryFrom<u64> + PartialOrd + Display + Copy,
{
    let Some(given) = value else { return Ok(default) };
    match T::try_from(given) {
        Ok(value) if value >= min && value <= max => Ok(value),
        _ => Err(Error::invalid(field, format!("must be from {min} to {max}, not {given}"))),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        period: Option<String>,
        limit: Option<u64>,
        score: i64,
        #[serde(default)]
        ranks: bool,
        #[serde(default)]
        users: Vec<String>,
    }

    fn sample(query: &str) -> Result<Sample> {
        parse(&TestRequest::with_uri(&format!("/?{query}")).to_http_request())
    }

    #[test]
    fn lists_repeat_their_parameter_and_text_is_decoded() {
        let got = sample("users=a+b&score=-5&users=c%2Bd%26&period=week:2024-01-15&ranks=true&limit=7");
        let wanted = Sample {
            period: Some("week:2024-01-15".into()),
            limit: Some(7),
            score: -5,
            ranks: true,
            users: vec!["a b".into(), "c+d&".into()],
        };
        assert_eq!(got.ok(), Some(wanted));
    }

    #[test]
    fn refusals_name_the_parameter() {
        let cases = [
            ("score=1&colour=red", "colour", "unknown field"),
            ("limit=1", "score", "missing"),
            ("", "score", "missing"),
            ("score=1&limit=1&limit=2", "limit", "is given 2 times"),
            ("score=1&limit=-1", "limit", "\"-1\" is not a whole number of 64 bits, 0 or more"),
            ("score=1&limit=", "limit", "\"\" is not a whole number"),
            ("score=1.5", "score", "\"1.5\" is not a whole number"),
            ("score=1e400", "score", "is not a whole number"),
            ("score=9223372036854775808", "score", "is not a whole number of 64 bits"),
            ("score=1&ranks=yes", "ranks", "\"yes\" is not true or false"),
            ("score=1&users=%FF", "users", "is not UTF-8"),
        ];
        for (query, wanted, reason) in cases {
            match sample(query) {
                Err(Error::Invalid { field, message, .. }) => {
                    assert_eq!(field, wanted, "{query}");
                    assert!(message.contains(reason), "{query}: {message}");
                }
                other => panic!("{query}: {other:?}"),
            }
        }
    }

    #[test]
    fn bounds_are_inclusive() {
        assert_eq!(bounded("limit", None, 10_u32, 1, 1_000).ok(), Some(10));
        assert_eq!(bounded("limit", Some(1_000), 10_u32, 1, 1_000).ok(), Some(1_000));
        for bad in [0, 1_001, u64::MAX] {
            assert!(bounded("limit", Some(bad), 10_u32, 1, 1_000).is_err());
        }
    }
}
