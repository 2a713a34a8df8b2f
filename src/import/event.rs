//! Parses a line as an event, and checks it as far as possible without the database.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    Error, Result,
    import::text,
    model::{
        board::{Board, Ties},
        user::{UserId, check_text},
    },
    rules::{Refusal, Violation},
};

/// 2000-01-01 00:00 UTC in seconds since 1970. A rank key cannot hold an earlier time.
const EARLIEST_SECONDS: i64 = 946_684_800;

/// A score event from a file.
#[derive(Debug)]
pub(crate) struct Event {
    /// The caller's own id of the player.
    pub(crate) user_id: UserId,
    /// The player's name.
    pub(crate) name: Option<String>,
    /// Points.
    pub(crate) points: i64,
    /// Time of the event; the time of writing, if absent.
    pub(crate) occurred_at: Option<DateTime<Utc>>,
    /// Reason of the event.
    pub(crate) reason: Option<String>,
    /// Id of the event in the file.
    pub(crate) id: Option<String>,
    /// Tiebreak, on boards with ties by tiebreak.
    pub(crate) tiebreak: Option<i16>,
}

/// A column of a CSV file, or a member of an NDJSON line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Id,
    UserId,
    Name,
    Points,
    OccurredAt,
    Reason,
    Tiebreak,
}

/// `user_name` is the name in SQL views, whose rows can be imported too.
const COLUMNS: [(&str, Column); 8] = [
    ("id", Column::Id),
    ("user_id", Column::UserId),
    ("name", Column::Name),
    ("user_name", Column::Name),
    ("points", Column::Points),
    ("occurred_at", Column::OccurredAt),
    ("reason", Column::Reason),
    ("tiebreak", Column::Tiebreak),
];

/// Parses the header of a CSV file; returns its columns in order.
pub(super) fn header(record: &[u8]) -> Result<Vec<Column>> {
    let names = std::str::from_utf8(record).map_err(|_| bad_header("is not UTF-8"))?;
    let names = text::fields(names.as_bytes()).unwrap_or_default();
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let name = String::from_utf8_lossy(&name).trim().to_owned();
        let known = COLUMNS.iter().find(|(known, _)| *known == name);
        let Some((_, column)) = known else {
            let all = COLUMNS.map(|(name, _)| name).join(", ");
            return Err(bad_header(&format!("names the column {:?}; known are {all}", shortened(&name))));
        };
        if columns.contains(column) {
            return Err(bad_header(&format!("names the column {name:?} twice")));
        }
        columns.push(*column);
    }
    for (name, needed) in COLUMNS.iter().filter(|(_, column)| matches!(column, Column::UserId | Column::Points)) {
        if !columns.contains(needed) {
            return Err(bad_header(&format!("lacks the column {name:?}")));
        }
    }
    Ok(columns)
}

fn bad_header(message: &str) -> Error {
    Error::invalid("file", format!("the header {message}"))
}

/// The unparsed fields of an event, from CSV or JSON.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    id: Option<Cow<'a, str>>,
    user_id: Option<Cow<'a, str>>,
    #[serde(alias = "user_name")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "number")]
    points: Option<Cow<'a, str>>,
    occurred_at: Option<Cow<'a, str>>,
    reason: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "number")]
    tiebreak: Option<Cow<'a, str>>,
}

/// Reads a JSON value as written, so that an error can quote 1.5 as 1.5.
fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    let value = Option::<&RawValue>::deserialize(deserializer)?;
    Ok(value.map(|value| Cow::Borrowed(value.get())))
}

/// Parses a CSV record as an event.
pub(super) fn from_csv(board: &Board, columns: &[Column], record: &[u8]) -> Result<Event> {
    let record = utf8(record)?;
    let values = text::fields(record.as_bytes()).unwrap_or_default();
    if values.len() != columns.len() {
        return Err(Error::Malformed(format!("has {} fields; the header names {}", values.len(), columns.len())));
    }
    let mut fields = Fields::default();
    for (column, value) in columns.iter().zip(values) {
        // An empty field is absent.
        let value = match value {
            Cow::Borrowed(value) => std::str::from_utf8(value).map(Cow::Borrowed).ok(),
            Cow::Owned(value) => String::from_utf8(value).map(Cow::Owned).ok(),
        };
        let value = value.filter(|value| !value.is_empty());
        match column {
            Column::Id => fields.id = value,
            Column::UserId => fields.user_id = value,
            Column::Name => fields.name = value,
            Column::Points => fields.points = value,
            Column::OccurredAt => fields.occurred_at = value,
            Column::Reason => fields.reason = value,
            Column::Tiebreak => fields.tiebreak = value,
        }
    }
    checked(board, fields)
}

/// Parses an NDJSON line as an event.
pub(super) fn from_json(board: &Board, line: &[u8]) -> Result<Event> {
    let line = utf8(line)?;
    if !line.trim_start().starts_with('{') {
        return Err(Error::Malformed("must be a JSON object".to_owned()));
    }
    let mut reader = serde_json::Deserializer::from_str(line);
    let fields: Fields = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (path, error) = (error.path().to_string(), error.into_inner());
        if path == "." { Error::Malformed(error.to_string()) } else { Error::invalid(path, error.to_string()) }
    })?;
    reader.end().map_err(|error| Error::Malformed(error.to_string()))?;
    checked(board, fields)
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes)
        .map_err(|error| Error::Malformed(format!("is not UTF-8 from byte {} on", error.valid_up_to() + 1)))
}

/// Refuses what the board or the database would refuse, before any player or period is created for
/// it.
fn checked(board: &Board, fields: Fields) -> Result<Event> {
    let missing = |field| Error::invalid(field, "is missing");
    let text = |field, value: Option<Cow<str>>, max_bytes| match value {
        Some(value) => check_text(field, &value, max_bytes).map(|()| Some(value.into_owned())),
        None => Ok(None),
    };
    let user_id = fields.user_id.ok_or_else(|| missing("user_id"))?.parse()?;
    let points = whole("points", &fields.points.ok_or_else(|| missing("points"))?)?;
    if !(board.points_min..=board.points_max).contains(&points) {
        return Err(Violation::out_of_bounds(board.points_min, board.points_max).error(board));
    }
    let tiebreak = fields.tiebreak.map(|value| whole("tiebreak", &value)).transpose()?;
    if tiebreak.is_some() && board.ties != Ties::Tiebreak {
        return Err(Refusal::TiebreakNotUsed.error(board));
    }
    let tiebreak = tiebreak.map(|value| {
        let small = i16::try_from(value).ok().filter(|value| (-2_048..=2_047).contains(value));
        small.ok_or_else(|| Refusal::TiebreakOutOfRange.error(board))
    });
    Ok(Event {
        user_id,
        name: text("name", fields.name, 128)?,
        points,
        occurred_at: fields.occurred_at.map(|at| time(board, &at)).transpose()?,
        reason: text("reason", fields.reason, 256)?,
        id: text("id", fields.id, 128)?,
        tiebreak: tiebreak.transpose()?,
    })
}

fn whole(field: &str, text: &str) -> Result<i64> {
    text.parse()
        .map_err(|_| Error::invalid(field, format!("must be a whole number of 64 bits, not {:?}", shortened(text))))
}

fn time(board: &Board, text: &str) -> Result<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).map_err(|_| {
        Error::invalid(
            "occurred_at",
            format!("must be a time with its offset, such as 2024-01-15T20:00:00Z, not {:?}", shortened(text)),
        )
    })?;
    if time.timestamp() < EARLIEST_SECONDS {
        return Err(Refusal::TimeOutOfRange.error(board));
    }
    // A leap second becomes the second after it, as in PostgreSQL.
    DateTime::from_timestamp_micros(time.timestamp_micros()).ok_or_else(|| Refusal::TimeOutOfRange.error(board))
}

/// Shortens a text for an error message.
fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
