//! Lines of an exported ranking.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};

use crate::Result;

/// A player's line. Its members are named after the columns.
#[derive(Debug, Serialize)]
pub(crate) struct ExportedRow {
    /// Position in the total order, from 1, never shared.
    pub(crate) position: u64,
    /// Rank, shared among equals on `shared` boards.
    pub(crate) rank: u64,
    /// The caller's own id of the player.
    pub(crate) user_id: String,
    pub(crate) name: String,
    pub(crate) score: i64,
    #[serde(serialize_with = "to_the_microsecond", skip_serializing_if = "Option::is_none")]
    pub(crate) reached_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tiebreak: Option<i64>,
}

/// Writes RFC 3339 with exactly six fractional digits, so that all times of a file have one form.
#[expect(clippy::ref_option, reason = "serde passes the field")]
fn to_the_microsecond<S: Serializer>(at: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(|at| at.to_rfc3339_opts(SecondsFormat::Micros, true)).serialize(serializer)
}
