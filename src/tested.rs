//! For tests only: batches and count checks, as an instance runs them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    Result,
    maintenance::verify::{CountFindings, check_counts},
    model::{hidden::Hidden, id::Lane, name::Named as _, settings::Settings},
    rules::{EventSource, EventStanding, Refusal},
    scoring::batch::{self, EventOutcome},
    store::{Administrator, Store},
};

pub use crate::{
    background::Background,
    model::{board::example as board, score::Event},
};

/// Writes batches to a database.
#[derive(Debug)]
pub struct Batches(Store);

impl Batches {
    /// Prepares a connection to the database at `url`.
    pub fn new(url: &str) -> Result<Self> {
        store(url).map(Self)
    }

    /// Writes events of one lane, live or as an import.
    ///
    /// Returns the number of the lane's last batch. For each event, returns its outcome by name,
    /// whether it repeats an earlier event, and the result if it was accepted.
    pub async fn write(
        &self,
        board_id: i32,
        lane: i16,
        is_import: bool,
        events: &[Event],
    ) -> Result<(i64, Vec<(&'static str, bool, Option<Value>)>)> {
        let source = if is_import { EventSource::Import } else { EventSource::Live };
        let Store { score_writer, bucket_writer, .. } = &self.0;
        let events: Vec<(i32, &Event)> = events.iter().map(|event| (board_id, event)).collect();
        let mut lane = batch::WriterLane::new(board_id, Lane(lane));
        let written = lane.write_events(score_writer, bucket_writer, source, &events).await?;
        Ok((written.batch.0, written.answers.iter().map(described).collect()))
    }
}

/// Prepares a connection to the database at `url`.
pub(crate) fn store(url: &str) -> Result<Store> {
    Store::new(&Settings {
        database_url: Hidden::from(url),
        replica: None,
        redis_url: None,
        redis_ca: None,
        redis_prefix: String::new(),
        read_connections: 1,
        write_connections: 1,
        statement_timeout: Duration::from_mins(1),
        pool_wait: Duration::from_mins(1),
        index_memory: 0,
        write_wait: Duration::from_mins(1),
        master_keys: None,
        maintenance_every: None,
    })
}

/// Checks bucket counts, as the timer does.
#[derive(Debug)]
pub struct CountChecks(Administrator, CountFindings);

impl CountChecks {
    /// Prepares a connection to the database at `url`.
    pub fn new(url: &str) -> Result<Self> {
        Ok(Self(store(url)?.admin, CountFindings::default()))
    }

    /// Checks the next bucket of each ranking; returns the number of known differences.
    pub async fn run(&self) -> Result<usize> {
        check_counts(&self.0, &self.1).await
    }
}

fn described(answer: &Result<EventOutcome, Refusal>) -> (&'static str, bool, Option<Value>) {
    match answer {
        Ok(EventOutcome::Accepted { accepted, repeated, .. }) => {
            let standing = |standing: &EventStanding| {
                let EventStanding { user_id, period, score, was, .. } = standing;
                (period.clone(), json!({"user": user_id, "score": score, "was": was}))
            };
            let periods: serde_json::Map<String, Value> = accepted.standings.iter().map(standing).collect();
            let result = json!({
                "transaction_id": accepted.transaction_id,
                "occurred_at": accepted.at,
                "periods": periods,
            });
            ("accepted", *repeated, Some(result))
        }
        Ok(EventOutcome::Quarantined { repeated, .. }) => ("quarantined", *repeated, None),
        Err(refusal) => (name(refusal), false, None),
    }
}

fn name(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::UnknownUser => "unknown_user",
        Refusal::Banned => "banned",
        Refusal::BoardDeleted => "board_deleted",
        Refusal::Broken(violation) => violation.rule.name(),
        Refusal::TiebreakNotUsed => "tiebreak_not_used",
        Refusal::TiebreakOutOfRange => "tiebreak_out_of_range",
        Refusal::TimeInFuture => "time_in_future",
        Refusal::TimeOutOfRange => "time_out_of_range",
        Refusal::PeriodClosed => "period_closed",
        Refusal::Overflow => "overflow",
        Refusal::IdConflict => "id_conflict",
        Refusal::IdInQuarantine => "id_in_quarantine",
    }
}
