//! Arguments of `commit_batch`.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use crate::{
    Error, Result,
    model::name::Named as _,
    rules::{Decisions, Entry, EventDecision, EventSource, EventStanding, Facts, Pending, Player},
    store::rows::paired,
};

/// An event to write, as `commit_batch` takes it.
#[derive(Debug, Default, sqlx::Type)]
#[sqlx(type_name = "centile_store.pending_event")]
pub(super) struct PendingEvent {
    user_id: i64,
    points: i64,
    tiebreak: Option<i64>,
    reason: Option<String>,
    /// `None` for the time of the batch.
    occurred_at: Option<DateTime<Utc>>,
    external_id: Option<String>,
    standings: Option<Vec<Option<i64>>>,
    /// Of an event for the quarantine.
    rule: Option<String>,
    detail: Option<String>,
    board_id: i32,
}

/// All standings of a player, as `commit_batch` takes them.
#[derive(Debug, sqlx::Type)]
#[sqlx(type_name = "centile_store.player_standings")]
pub(super) struct PlayerStandings {
    user_id: i64,
    period_ids: Vec<i64>,
    rank_keys: Vec<i64>,
    tie_keys: Vec<i64>,
    zero_periods: Option<Vec<i64>>,
    board_id: i32,
}

impl PlayerStandings {
    fn of(user_id: i64, board_id: i32, entries: &BTreeMap<i64, Entry>) -> Self {
        let zeros: Vec<i64> = entries.iter().filter(|(_, entry)| entry.only_zeros).map(|(period, _)| *period).collect();
        Self {
            user_id,
            period_ids: entries.keys().copied().collect(),
            rank_keys: entries.values().map(|entry| entry.rank_key).collect(),
            tie_keys: entries.values().map(|entry| entry.tie_key).collect(),
            zero_periods: (!zeros.is_empty()).then_some(zeros),
            board_id,
        }
    }
}

/// Changed entries for the log, as `commit_batch` takes them.
#[derive(Debug, Default, sqlx::Type)]
#[sqlx(type_name = "centile_store.logged_entries")]
pub(super) struct LoggedEntries {
    ranking_ids: Vec<i64>,
    user_ids: Vec<i64>,
    was_rank_keys: Vec<Option<i64>>,
    was_tie_keys: Vec<Option<i64>>,
    rank_keys: Vec<i64>,
    tie_keys: Vec<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) events: Vec<PendingEvent>,
    /// Metadata of the events; `None` if no event has any.
    pub(super) metadata: Option<Vec<Option<String>>>,
    pub(super) players: Vec<PlayerStandings>,
    pub(super) entries: LoggedEntries,
    /// The board of each of these entries.
    pub(super) entry_boards: Vec<i32>,
    pub(super) member_users: Vec<i64>,
    pub(super) member_segments: Vec<String>,
}

impl Columns {
    pub(super) fn from_decisions(
        facts: &Facts,
        source: EventSource,
        events: &[Pending],
        decisions: &Decisions,
    ) -> Result<Self> {
        let mut columns = Self::default();
        // Events that leave a row, and their metadata.
        let mut metadata = Vec::with_capacity(events.len());
        for (Pending { player, event }, decided) in paired("events and decisions", events, &decisions.events)? {
            let written = || -> Result<PendingEvent> {
                Ok(PendingEvent {
                    user_id: internal_id(&facts.players[*player])?,
                    points: event.points,
                    tiebreak: event.tiebreak,
                    reason: event.reason.clone(),
                    external_id: event.id.clone(),
                    board_id: facts.players[*player].board_id,
                    ..PendingEvent::default()
                })
            };
            match decided {
                EventDecision::Accepted { at, standings } => columns.events.push(PendingEvent {
                    occurred_at: (source == EventSource::Import).then_some(*at),
                    standings: event.id.is_some().then(|| standings.iter().flat_map(numbers).collect()),
                    ..written()?
                }),
                EventDecision::Quarantined(violation) => columns.events.push(PendingEvent {
                    rule: Some(violation.rule.name().to_owned()),
                    detail: Some(violation.detail.clone()),
                    ..written()?
                }),
                EventDecision::Refused(_) | EventDecision::AlreadyAnswered(_) | EventDecision::Repeats(_) => continue,
            }
            metadata.push(event.metadata.as_ref().map(ToString::to_string));
        }
        columns.metadata = metadata.iter().any(Option::is_some).then_some(metadata);
        // New memberships in segments, of players with accepted events.
        let accepted = paired("events and decisions", events, &decisions.events)?;
        let accepted = accepted.filter(|(_, decided)| matches!(decided, EventDecision::Accepted { .. }));
        for player in accepted.map(|(pending, _)| pending.player).collect::<BTreeSet<_>>() {
            let player = &facts.players[player];
            for segment in &player.segments.new {
                columns.member_users.push(internal_id(player)?);
                columns.member_segments.push(segment.clone());
            }
        }
        // Changed entries, before and after the batch.
        for change in &decisions.changes {
            let (entries, player) = (&mut columns.entries, &facts.players[change.player]);
            columns.entry_boards.push(player.board_id);
            entries.ranking_ids.push(change.ranking_id.0);
            entries.user_ids.push(internal_id(player)?);
            entries.was_rank_keys.push(change.was.map(|entry| entry.rank_key));
            entries.was_tie_keys.push(change.was.map(|entry| entry.tie_key));
            entries.rank_keys.push(change.now.rank_key);
            entries.tie_keys.push(change.now.tie_key);
        }
        // All standings of the players with changes. Players not yet filled in a window are included,
        // so that their rows carry the batch.
        let changed = decisions.entries.keys().map(|(player, _)| *player);
        for index in changed.chain(decisions.unfilled.iter().copied()).collect::<BTreeSet<_>>() {
            let (player, changed) =
                (&facts.players[index], decisions.entries.range((index, i64::MIN)..=(index, i64::MAX)));
            let mut entries = player.entries.clone();
            entries.extend(changed.map(|((_, period), entry)| (*period, *entry)));
            columns.players.push(PlayerStandings::of(internal_id(player)?, player.board_id, &entries));
        }
        Ok(columns)
    }
}

/// Returns the internal id of a player whose events are written.
fn internal_id(player: &Player) -> Result<i64> {
    player.id.ok_or_else(|| Error::Internal("an event of an unknown player was accepted".to_owned()))
}

/// The numbers that `transaction_ids` stores of a standing.
fn numbers(standing: &EventStanding) -> [Option<i64>; 4] {
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
