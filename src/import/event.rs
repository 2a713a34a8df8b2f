//! Parses a line as an event, and checks it as far as possible without the database.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    Error, Result,
    import::record::{self, Record, shortened},
    model::{board::Board, json, score::Event, user::check_text},
    rules::{Refusal, Violation, check_tiebreak},
};

/// 2000-01-01 00:00 UTC in seconds since 1970. A rank key cannot hold an earlier time.
const EARLIEST_SECONDS: i64 = 946_684_800;

#[derive(Debug)]
pub(crate) struct ImportedEvent {
    pub(crate) name: Option<String>,
    pub(crate) event: Event,
}

/// A column of a CSV file, or a member of an NDJSON line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Id,
    UserId,
    Name,
    Points,
    OccurredAt,
    Reason,
    Tiebreak,
    Metadata,
}

/// The unparsed fields of an event, from CSV or JSON.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    #[serde(default, deserialize_with = "id")]
    id: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "id")]
    user_id: Option<Cow<'a, str>>,
    #[serde(alias = "user_name")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "raw")]
    points: Option<Cow<'a, str>>,
    occurred_at: Option<Cow<'a, str>>,
    reason: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "raw")]
    tiebreak: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "raw")]
    metadata: Option<Cow<'a, str>>,
}

/// Reads a JSON value as written, so that an error can quote 1.5 as 1.5.
fn raw<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    let value = Option::<&RawValue>::deserialize(deserializer)?;
    Ok(value.map(|value| Cow::Borrowed(value.get())))
}

/// Reads an id, which may be a number.
fn id<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'static, str>>, D::Error> {
    Ok(json::optional_id(deserializer)?.map(Cow::Owned))
}

impl Record for ImportedEvent {
    type Column = Column;
    type Rules = Board;
    /// `user_name` is the name in SQL views, whose rows can be imported too.
    const COLUMNS: &'static [(&'static str, Column)] = &[
        ("id", Column::Id),
        ("user_id", Column::UserId),
        ("name", Column::Name),
        ("user_name", Column::Name),
        ("points", Column::Points),
        ("occurred_at", Column::OccurredAt),
        ("reason", Column::Reason),
        ("tiebreak", Column::Tiebreak),
        ("metadata", Column::Metadata),
    ];
    const REQUIRED: &'static [Column] = &[Column::UserId, Column::Points];

    fn from_csv(board: &Board, columns: &[Column], record: &[u8]) -> Result<Self> {
        let mut fields = Fields::default();
        for (column, value) in record::csv_values(columns, record)? {
            match column {
                Column::Id => fields.id = value,
                Column::UserId => fields.user_id = value,
                Column::Name => fields.name = value,
                Column::Points => fields.points = value,
                Column::OccurredAt => fields.occurred_at = value,
                Column::Reason => fields.reason = value,
                Column::Tiebreak => fields.tiebreak = value,
                Column::Metadata => fields.metadata = value,
            }
        }
        checked(board, fields)
    }

    fn from_json(board: &Board, line: &[u8]) -> Result<Self> {
        checked(board, record::json_members(line)?)
    }
}

/// Refuses what the board or the database would refuse, before any player or period is created for
/// it.
fn checked(board: &Board, fields: Fields) -> Result<ImportedEvent> {
    let missing = |field| Error::invalid(field, "is missing");
    let text = |field, value: Option<Cow<str>>, max_bytes| match value {
        Some(value) => check_text(field, &value, max_bytes).map(|()| Some(value.into_owned())),
        None => Ok(None),
    };
    let user_id = fields.user_id.ok_or_else(|| missing("user_id"))?.parse()?;
    let points = whole("points", &fields.points.ok_or_else(|| missing("points"))?)?;
    if !(board.limits.points_min..=board.limits.points_max).contains(&points) {
        return Err(Violation::out_of_bounds(board.limits.points_min, board.limits.points_max).error(board));
    }
    let tiebreak = fields.tiebreak.map(|value| whole("tiebreak", &value)).transpose()?;
    check_tiebreak(board.ties, tiebreak).map_err(|refusal| refusal.error(board))?;
    let name = text("name", fields.name, 128)?;
    let event = Event {
        user_id,
        points,
        occurred_at: fields.occurred_at.map(|at| time(board, &at)).transpose()?,
        reason: text("reason", fields.reason, 256)?,
        id: text("id", fields.id, 128)?,
        tiebreak,
        metadata: fields.metadata.map(|text| text.parse()).transpose()?,
    };
    Ok(ImportedEvent { name, event })
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
