//! Events in quarantine.

use chrono::{DateTime, Utc};
use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::model::metadata::Metadata;

/// State of an event in quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, EnumString, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum State {
    /// The event waits for an administrator.
    Waiting,
    /// The event was accepted into the ledger.
    Accepted,
    /// The event was rejected.
    Rejected,
}

/// A quarantined event of a board. Its JSON members are those of the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuarantinedEvent {
    /// Id in the quarantine.
    pub quarantine_id: i64,
    /// The caller's own id of the player.
    pub user_id: String,
    /// Points.
    pub points: i64,
    /// Tiebreak, if the event has one.
    pub tiebreak: Option<i16>,
    /// Reason given by the caller.
    pub reason: Option<String>,
    /// The caller's id of the event.
    #[serde(rename = "id")]
    pub event_id: Option<String>,
    /// Name of the broken rule.
    pub rule: String,
    /// The limit, and the value that broke it.
    pub detail: String,
    /// Time of submission.
    pub submitted_at: DateTime<Utc>,
    /// State.
    pub state: State,
    /// Time of the decision.
    pub decided_at: Option<DateTime<Utc>>,
    /// Administrator who decided.
    pub decided_by: Option<String>,
    /// Reason for the decision.
    pub decided_why: Option<String>,
    /// Score transaction of an accepted event.
    pub transaction_id: Option<i64>,
    /// Metadata of the event, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}
