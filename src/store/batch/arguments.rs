//! Arguments of `commit_batch`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use crate::{
    Error, Result,
    model::{layout::Layouts, name::Named as _},
    rules::{Change, Decided, Decisions, Entry, EventSource, Facts, Pending, Player, Standing},
    store::{batch::ctid::Ctid, layout::place},
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

/// Changes of bucket rows and counts, as `write_entries` takes them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BucketRows {
    /// The buckets, each once.
    pub(super) buckets: Vec<i16>,
    /// Position of each bucket's first row to update, from 1.
    pub(super) updates: Vec<i32>,
    /// Position of each bucket's first row to delete, from 1.
    pub(super) deletes: Vec<i32>,
    /// Position of each bucket's first row to insert, from 1.
    pub(super) inserts: Vec<i32>,
    pub(super) rankings: Vec<i64>,
    pub(super) user_keys: Vec<i64>,
    pub(super) was_keys: Vec<Option<i64>>,
    pub(super) was_ties: Vec<Option<i64>>,
    pub(super) keys: Vec<Option<i64>>,
    pub(super) ties: Vec<Option<i64>>,
    pub(super) count_rankings: Vec<i64>,
    pub(super) count_buckets: Vec<i16>,
    pub(super) count_changes: Vec<i32>,
}

/// The change of a bucket row. Within a bucket, updates come first, then deletions, then insertions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Update,
    Delete,
    Insert,
}

impl BucketRows {
    pub(super) fn of(players: &[Player], changes: &[Change], layouts: &Layouts) -> Result<Self> {
        let user_key = |change: &Change| internal_id(&players[change.player]).map(|id| -id);
        let mut all: Vec<(i16, Step, &Change)> = Vec::with_capacity(changes.len());
        for change in changes {
            let layout = layouts
                .get(change.ranking_id)
                .ok_or_else(|| Error::Internal(format!("the layout of ranking {} is not known", change.ranking_id)))?;
            let user_key = user_key(change)?;
            let key = |entry: Entry| (entry.rank_key, entry.tie_key, user_key);
            let now = layout.bucket_of(key(change.now));
            match change.was.map(key) {
                Some(was) if was == key(change.now) => {}
                Some(was) if layout.bucket_of(was) == now => all.push((now, Step::Update, change)),
                Some(was) => all.extend([(layout.bucket_of(was), Step::Delete, change), (now, Step::Insert, change)]),
                None => all.push((now, Step::Insert, change)),
            }
        }
        all.sort_unstable_by_key(|(bucket, step, change)| (*bucket, *step, change.ranking_id, change.player));
        let mut rows = Self::default();
        let mut counts: BTreeMap<(i64, i16), i32> = BTreeMap::new();
        for group in all.chunk_by(|(bucket, ..), (next, ..)| bucket == next) {
            let first = rows.rankings.len();
            let start_of = |step| place(first + group.partition_point(|(_, earlier, _)| *earlier < step));
            rows.buckets.push(group[0].0);
            rows.updates.push(start_of(Step::Update));
            rows.deletes.push(start_of(Step::Delete));
            rows.inserts.push(start_of(Step::Insert));
            for (bucket, step, change) in group {
                let was = change.was.filter(|_| *step != Step::Insert);
                let now = Some(change.now).filter(|_| *step != Step::Delete);
                rows.rankings.push(change.ranking_id);
                rows.user_keys.push(user_key(change)?);
                rows.was_keys.push(was.map(|entry| entry.rank_key));
                rows.was_ties.push(was.map(|entry| entry.tie_key));
                rows.keys.push(now.map(|entry| entry.rank_key));
                rows.ties.push(now.map(|entry| entry.tie_key));
                *counts.entry((change.ranking_id, *bucket)).or_default() += match step {
                    Step::Update => 0,
                    Step::Delete => -1,
                    Step::Insert => 1,
                };
            }
        }
        for ((ranking_id, bucket), change) in counts.into_iter().filter(|(_, change)| *change != 0) {
            rows.count_rankings.push(ranking_id);
            rows.count_buckets.push(bucket);
            rows.count_changes.push(change);
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop there")]

    use super::*;
    use crate::model::layout::{KeyTuple, Layout, PLACES};

    /// Layout of a ranking whose first two buckets are 7, up to rank key 99, and 3.
    fn layout() -> Layout {
        let buckets: Vec<i16> = [7, 3].into_iter().chain((0..100).filter(|bucket| ![7, 3].contains(bucket))).collect();
        let bound = |n: usize| match n {
            0 => (i64::MIN, i64::MIN, i64::MIN),
            1 => (100, i64::MIN, i64::MIN),
            _ => (i64::MAX, i64::MAX, i64::MAX),
        };
        let bounds: Vec<KeyTuple> = (0..PLACES).map(bound).collect();
        Layout::new(DateTime::<Utc>::UNIX_EPOCH, &buckets, &bounds).unwrap()
    }

    #[test]
    fn a_player_without_an_internal_id_is_not_written() {
        let change =
            Change { ranking_id: 1, player: 0, was: None, now: Entry { rank_key: 1, tie_key: 1, only_zeros: false } };
        let mut layouts = Layouts::default();
        layouts.put(1, layout());
        let rows = |id| BucketRows::of(&[Player { id, ..Player::default() }], &[change], &layouts);
        assert!(rows(Some(1)).is_ok() && rows(None).is_err());
    }

    #[test]
    fn bucket_rows_are_grouped_by_bucket_and_step() {
        let entry = |rank_key, only_zeros| Entry { rank_key, tie_key: 5, only_zeros };
        let change = |ranking_id, player, was: Option<i64>, now| Change {
            ranking_id,
            player,
            was: was.map(|rank_key| entry(rank_key, false)),
            now: entry(now, false),
        };
        let changes = [
            change(1, 0, Some(10), 20),
            change(1, 1, Some(30), 130),
            change(1, 2, None, 40),
            change(2, 0, Some(110), 120),
            Change { ranking_id: 2, player: 1, was: Some(entry(0, true)), now: entry(0, false) },
            change(2, 2, Some(140), 50),
        ];
        let players: Vec<Player> = (1..=3).map(|id| Player { id: Some(id), ..Player::default() }).collect();
        let mut layouts = Layouts::default();
        layouts.put(1, layout());
        layouts.put(2, layout());
        let rows = BucketRows::of(&players, &changes, &layouts).unwrap();
        let expected = BucketRows {
            buckets: vec![3, 7],
            updates: vec![1, 4],
            deletes: vec![2, 5],
            inserts: vec![3, 6],
            rankings: vec![2, 2, 1, 1, 1, 1, 2],
            user_keys: vec![-1, -3, -2, -1, -2, -3, -3],
            was_keys: vec![Some(110), Some(140), None, Some(10), Some(30), None, None],
            was_ties: vec![Some(5), Some(5), None, Some(5), Some(5), None, None],
            keys: vec![Some(120), None, Some(130), Some(20), None, Some(40), Some(50)],
            ties: vec![Some(5), None, Some(5), Some(5), None, Some(5), Some(5)],
            count_rankings: vec![1, 2, 2],
            count_buckets: vec![3, 3, 7],
            count_changes: vec![1, -1, 1],
        };
        assert_eq!(rows, expected);
    }
}
