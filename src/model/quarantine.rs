//! Events in quarantine.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

/// What has become of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It waits for an administrator.
    Waiting,
    /// It is in the ledger.
    Accepted,
    /// It will never be.
    Rejected,
}

impl State {
    /// Its name in the database and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Waiting, Self::Accepted, Self::Rejected].into_iter().find(|it| it.name() == name)
    }
}

/// An event of a board's quarantine, as it was submitted; its members in JSON are those of the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuarantinedEvent {
    /// Its id in the quarantine.
    pub quarantine_id: i64,
    /// The caller's own id of the player.
    pub user_id: String,
    /// Points.
    pub points: i64,
    /// Tiebreak, where it has one.
    pub tiebreak: Option<i16>,
    /// Why, as the game put it.
    pub reason: Option<String>,
    /// The caller's id of the event.
    #[serde(rename = "id")]
    pub event_id: Option<String>,
    /// The rule that it broke, as `centile_store.broken_rules` calls it.
    pub rule: String,
    /// What is allowed, and what was met.
    pub detail: String,
    /// When it was submitted.
    pub submitted_at: DateTime<Utc>,
    /// What has become of it.
    pub state: State,
    /// When it was decided.
    pub decided_at: Option<DateTime<Utc>>,
    /// Who decided.
    pub decided_by: Option<String>,
    /// Why, as whoever decided put it.
    pub decided_why: Option<String>,
    /// The score transaction that an accepted event became.
    pub transaction_id: Option<i64>,
}
