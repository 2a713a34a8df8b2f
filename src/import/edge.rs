//! Parses a line as a player and a friend.

use std::borrow::Cow;

use serde::Deserialize;

use crate::{
    Error, Result,
    import::record::{self, Record},
    model::user::UserId,
};

/// A player and a friend of the player.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) user_id: UserId,
    pub(crate) friend_id: UserId,
}

/// A column of a CSV file, or a member of an NDJSON line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    UserId,
    FriendId,
}

/// The unparsed fields of an edge, from CSV or JSON.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    user_id: Option<Cow<'a, str>>,
    friend_id: Option<Cow<'a, str>>,
}

impl Record for Edge {
    type Column = Column;
    type Rules = ();
    const COLUMNS: &'static [(&'static str, Column)] = &[("user_id", Column::UserId), ("friend_id", Column::FriendId)];
    const REQUIRED: &'static [Column] = &[Column::UserId, Column::FriendId];

    fn from_csv((): &(), columns: &[Column], record: &[u8]) -> Result<Self> {
        let mut fields = Fields::default();
        for (column, value) in record::csv_values(columns, record)? {
            match column {
                Column::UserId => fields.user_id = value,
                Column::FriendId => fields.friend_id = value,
            }
        }
        checked(fields)
    }

    fn from_json((): &(), line: &[u8]) -> Result<Self> {
        checked(record::json_members(line)?)
    }
}

fn checked(fields: Fields) -> Result<Edge> {
    let id = |field, value: Option<Cow<str>>| {
        let value = value.ok_or_else(|| Error::invalid(field, "is missing"))?;
        value.parse::<UserId>().map_err(|error| error.in_field(field))
    };
    let edge = Edge { user_id: id("user_id", fields.user_id)?, friend_id: id("friend_id", fields.friend_id)? };
    if edge.user_id == edge.friend_id {
        return Err(Error::invalid("friend_id", "must be another player"));
    }
    Ok(edge)
}
