//! Arguments of `commit_batch`.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use crate::{
    Error, Result,
    model::name::Named as _,
    rules::{Decided, Decisions, EventSource, Facts, Pending, Player, Standing},
    store::batch::ctid::Ctid,
};

/// An event to write, as `commit_batch` takes it.
#[derive(Debug, Default, sqlx::Type)]
#[sqlx(type_name = "centile_store.pending_event")]
pub(super) struct PendingEvent {
    user_id: i64,
    points: i64,
    tiebreak: Option<i16>,
    reason: Option<String>,
    /// `None` for the time of the batch.
    occurred_at: Option<DateTime<Utc>>,
    external_id: Option<String>,
    standings: Option<Vec<Option<i64>>>,
    /// Of an event for the quarantine.
    rule: Option<String>,
    detail: Option<String>,
}

/// Arguments of `commit_batch`.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) events: Vec<PendingEvent>,
    /// Metadata of the events; `None` if no event has any.
    pub(super) metadata: Option<Vec<Option<String>>>,
    pub(super) entry_rankings: Vec<i64>,
    pub(super) entry_users: Vec<i64>,
    pub(super) entry_was_keys: Vec<Option<i64>>,
    pub(super) entry_was_ties: Vec<Option<i64>>,
    pub(super) entry_ctids: Vec<Option<Ctid>>,
    pub(super) entry_keys: Vec<i64>,
    pub(super) entry_ties: Vec<i64>,
    pub(super) entry_zeros: Vec<bool>,
    pub(super) member_users: Vec<i64>,
    pub(super) member_segments: Vec<String>,
}

impl Columns {
    pub(super) fn of(
        facts: &Facts,
        entry_ctids: &HashMap<(i64, usize), Ctid>,
        source: EventSource,
        events: &[Pending],
        decisions: &Decisions,
    ) -> Result<Self> {
        let mut columns = Self::default();
        let mut metadata = Vec::with_capacity(events.len());
        for (event, decided) in events.iter().zip(&decisions.events) {
            let written = || -> Result<PendingEvent> {
                Ok(PendingEvent {
                    user_id: internal_id(&facts.players[event.player])?,
                    points: event.points,
                    tiebreak: event.tiebreak,
                    reason: event.reason.clone(),
                    external_id: event.id.clone(),
                    ..PendingEvent::default()
                })
            };
            match decided {
                Decided::Accepted { at, standings } => columns.events.push(PendingEvent {
                    occurred_at: (source == EventSource::Import).then_some(*at),
                    standings: event.id.is_some().then(|| standings.iter().flat_map(numbers).collect()),
                    ..written()?
                }),
                Decided::Quarantined(violation) => columns.events.push(PendingEvent {
                    rule: Some(violation.rule.name().to_owned()),
                    detail: Some(violation.detail.clone()),
                    ..written()?
                }),
                Decided::Refused(_) | Decided::Known(_) | Decided::Repeats(_) => continue,
            }
            metadata.push(event.metadata.as_ref().map(ToString::to_string));
        }
        columns.metadata = metadata.iter().any(Option::is_some).then_some(metadata);
        let accepted = events.iter().zip(&decisions.events);
        let accepted = accepted.filter(|(_, decided)| matches!(decided, Decided::Accepted { .. }));
        for player in accepted.map(|(event, _)| event.player).collect::<BTreeSet<_>>() {
            let player = &facts.players[player];
            for segment in &player.segments.new {
                columns.member_users.push(internal_id(player)?);
                columns.member_segments.push(segment.clone());
            }
        }
        for change in &decisions.changes {
            columns.entry_rankings.push(change.ranking_id);
            columns.entry_users.push(internal_id(&facts.players[change.player])?);
            columns.entry_was_keys.push(change.was.map(|entry| entry.rank_key));
            columns.entry_was_ties.push(change.was.map(|entry| entry.tie_key));
            columns.entry_ctids.push(entry_ctids.get(&(change.ranking_id, change.player)).copied());
            columns.entry_keys.push(change.now.rank_key);
            columns.entry_ties.push(change.now.tie_key);
            columns.entry_zeros.push(change.now.only_zeros);
        }
        Ok(columns)
    }
}

/// Returns the internal id of a player whose events are written.
fn internal_id(player: &Player) -> Result<i64> {
    player.id.ok_or_else(|| Error::Internal("an event of an unknown player was accepted".to_owned()))
}

/// The numbers that `transaction_ids` stores of a standing.
fn numbers(standing: &Standing) -> [Option<i64>; 4] {
    let (key, tie) = standing.was.unzip();
    [Some(standing.period_id), Some(standing.score), key, tie]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop there")]

    use super::*;

    #[test]
    fn an_unknown_player_has_no_internal_id() {
        assert_eq!(internal_id(&Player { id: Some(7), ..Player::default() }).unwrap(), 7);
        assert!(internal_id(&Player::default()).is_err());
    }
}
