//! Events in quarantine.

use chrono::{DateTime, Utc};
use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantNames};
use utoipa::ToSchema;

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
    Rejected,
}

/// An event of the quarantine, as it was submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = QuarantinedEventResponse)]
pub struct QuarantinedEvent {
    /// Id of the event in the quarantine.
    #[schema(example = 7)]
    pub quarantine_id: i64,
    /// The caller's own id of the player.
    #[schema(example = "ada")]
    pub user_id: String,
    /// Points.
    #[schema(example = 5_000)]
    pub points: i64,
    /// The event's tiebreak, if it has one.
    #[schema(required = true)]
    pub tiebreak: Option<i64>,
    /// The reason given with the event.
    #[schema(example = "boss defeated", required = true)]
    pub reason: Option<String>,
    /// The caller's id of the event.
    #[schema(example = "match-7:ada", required = true)]
    #[serde(rename = "id")]
    pub event_id: Option<String>,
    /// The rule that the event broke: `points_out_of_bounds`, `too_many_events` or
    /// `gain_too_large`.
    #[schema(example = "gain_too_large")]
    pub rule: String,
    /// The limit and the value that exceeded it.
    #[schema(example = "1000 in day:2024-01-15, not 5000")]
    pub detail: String,
    /// When the event was submitted.
    pub submitted_at: DateTime<Utc>,
    /// `waiting`, `accepted` or `rejected`.
    #[schema(value_type = String, example = "waiting")]
    pub state: State,
    /// When the event was accepted or rejected.
    #[schema(required = true)]
    pub decided_at: Option<DateTime<Utc>>,
    /// Actor that accepted or rejected the event.
    #[schema(example = "key 0123456789abcdef", required = true)]
    pub decided_by: Option<String>,
    /// The reason given for the decision.
    #[schema(required = true)]
    pub decided_why: Option<String>,
    /// Id of the score transaction of an accepted event.
    #[schema(required = true)]
    pub transaction_id: Option<i64>,
    /// Metadata of the event. Present if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>, example = json!({"character": "mage"}))]
    pub metadata: Option<Metadata>,
}
