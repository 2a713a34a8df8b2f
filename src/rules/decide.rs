//! Decides events in order, and folds the accepted ones into entries.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, NaiveDate, Utc};

use crate::{
    model::{
        board::{Mode, OnViolation},
        id::RankingId,
        score::Event,
    },
    rules::{
        entry::{Entry, ScoredEvent},
        facts::{Content, EarlierEvent, EarlierOutcome, EventStanding, Facts},
        limits::{Tally, out_of_bounds},
        refusal::{Refusal, Violation, check_tiebreak},
    },
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending<'a> {
    /// Index of the player in [`Facts::players`].
    pub(crate) player: usize,
    pub(crate) event: &'a Event,
}

/// Origin of events.
///
/// Only the bounds of points apply to imports, which only administrators make. The other rules
/// against cheating apply to live events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventSource {
    /// Live events, without times of their own.
    Live,
    Import,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EventDecision {
    /// The event goes into the ledger.
    Accepted {
        at: DateTime<Utc>,
        /// The player's standings after the event; empty for an import.
        standings: Vec<EventStanding>,
    },
    Quarantined(Violation),
    Refused(Refusal),
    /// The event was answered before under its id.
    AlreadyAnswered(EarlierOutcome),
    /// The event repeats the event at this index of the batch, and gets its answer.
    Repeats(usize),
}

/// An entry that a batch changes, in a whole period or a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    /// The ranking of the period or segment.
    pub(crate) ranking_id: RankingId,
    /// Index of the player in [`Facts::players`].
    pub(crate) player: usize,
    /// The entry before the batch; `None` for a new player.
    pub(crate) was: Option<Entry>,
    /// The entry after the batch.
    pub(crate) now: Entry,
}

#[derive(Debug)]
pub(crate) struct Decisions {
    /// One decision per event, in order.
    pub(crate) events: Vec<EventDecision>,
    /// The changed entries, each once.
    pub(crate) changes: Vec<Change>,
    /// The changed entries of whole periods, by index of the player and period id.
    pub(crate) entries: BTreeMap<(usize, i64), Entry>,
    /// Players with events in a window that is not filled up to them yet. Their rows get the batch, so
    /// that maintenance computes their standings again.
    pub(crate) unfilled: BTreeSet<usize>,
}

/// Periods or segments that events need and that do not exist yet. Open them and decide again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MissingPeriods {
    /// Periods that hold these times.
    Periods(Vec<DateTime<Utc>>),
    /// Segments, each with the id of its whole period.
    Segments(Vec<(i64, String)>),
}

/// Decides events in order. One bad event does not affect the others.
pub(crate) fn decide(facts: &Facts, source: EventSource, events: &[Pending]) -> Result<Decisions, MissingPeriods> {
    let mut batch = OpenBatch {
        facts,
        source,
        events,
        holders: HashMap::new(),
        tallies: HashMap::new(),
        entries: BTreeMap::new(),
        decided_at: BTreeMap::new(),
        rankings: BTreeMap::new(),
        unfilled: BTreeSet::new(),
        missing: Vec::new(),
        missing_segments: BTreeSet::new(),
    };
    let decided = (0..events.len()).map(|index| batch.decide(index)).collect();
    if !batch.missing.is_empty() {
        return Err(MissingPeriods::Periods(batch.missing));
    }
    if !batch.missing_segments.is_empty() {
        let missing = batch.missing_segments.into_iter().map(|(period, segment)| (period, segment.to_owned()));
        return Err(MissingPeriods::Segments(missing.collect()));
    }
    let OpenBatch { mut entries, rankings, unfilled, .. } = batch;
    let was = |player: usize, period: i64| facts.players[player].entries.get(&period).copied();
    entries.retain(|(player, period), now| was(*player, *period) != Some(*now));
    // A player has the same entry in a segment as in the whole period, before and after the batch.
    let changes = rankings.into_iter().filter_map(|((ranking_id, player), period)| {
        let now = *entries.get(&(player, period))?;
        Some(Change { ranking_id, player, was: was(player, period), now })
    });
    Ok(Decisions { events: decided, changes: changes.collect(), entries, unfilled })
}

/// A batch while it is decided.
struct OpenBatch<'a> {
    facts: &'a Facts,
    source: EventSource,
    events: &'a [Pending<'a>],
    /// Index of the first event with each id that was not refused.
    holders: HashMap<(usize, &'a str), usize>,
    tallies: HashMap<usize, Tally>,
    /// Entries after the events so far, by index of the player and period id.
    entries: BTreeMap<(usize, i64), Entry>,
    /// Times of the events of the batch that decide entries, with ties `second`.
    decided_at: BTreeMap<(usize, i64), DateTime<Utc>>,
    /// The whole period of each ranking that the events change, by ranking id and index of the player.
    rankings: BTreeMap<(RankingId, usize), i64>,
    unfilled: BTreeSet<usize>,
    missing: Vec<DateTime<Utc>>,
    missing_segments: BTreeSet<(i64, &'a str)>,
}

impl<'a> OpenBatch<'a> {
    fn decide(&mut self, index: usize) -> EventDecision {
        let (facts, Pending { player, event }) = (self.facts, self.events[index]);
        let at = event.occurred_at.unwrap_or(facts.at);
        let key = event.id.as_deref().map(|id| (player, id));
        if let Some(known) = event.id.clone().and_then(|id| facts.earlier_events.get(&(player, id))) {
            return repetition(known, event);
        }
        if let Err(refusal) = self.check(player, event, at) {
            return EventDecision::Refused(refusal);
        }
        if let Some(holder) = key.and_then(|key| self.holders.get(&key).copied()) {
            let is_same = has_content(event, &content(self.events[holder].event, facts.at));
            return if is_same { EventDecision::Repeats(holder) } else { EventDecision::Refused(Refusal::IdConflict) };
        }
        let decided = self.judge(player, event, at);
        if let (Some(key), EventDecision::Accepted { .. } | EventDecision::Quarantined(_)) = (key, &decided) {
            self.holders.insert(key, index);
        }
        decided
    }

    /// Checks an event independently of others.
    fn check(&self, player: usize, event: &Event, at: DateTime<Utc>) -> Result<(), Refusal> {
        let rules = &self.facts.rules;
        let player = &self.facts.players[player];
        if player.id.is_none() {
            return Err(Refusal::UnknownUser);
        }
        if player.is_gone {
            return Err(Refusal::BoardDeleted);
        }
        if player.is_banned {
            return Err(Refusal::Banned);
        }
        // `i64::MIN` is always refused, not quarantined: no ledger can store it.
        if let Some(violation) = out_of_bounds(rules, event.points)
            && (!self.quarantines() || event.points == i64::MIN)
        {
            return Err(Refusal::Broken(violation));
        }
        check_tiebreak(rules.ties, event.tiebreak)?;
        if event.occurred_at.is_some_and(|at| at > self.facts.now) {
            return Err(Refusal::TimeInFuture);
        }
        if first_day(2_000).is_none_or(|first| at < first) || first_day(2_071).is_none_or(|last| at > last) {
            return Err(Refusal::TimeOutOfRange);
        }
        Ok(())
    }

    /// Returns whether events that break a rule go into quarantine.
    fn quarantines(&self) -> bool {
        self.source == EventSource::Live && self.facts.rules.on_violation == OnViolation::Quarantine
    }

    /// Applies the rules against cheating, then folds the event into the player's entries.
    fn judge(&mut self, player: usize, event: &Event, at: DateTime<Utc>) -> EventDecision {
        let facts = self.facts;
        if self.source == EventSource::Live && facts.rules.need_history() {
            let quarantines = self.quarantines();
            let tally = self.tallies.entry(player).or_insert_with(|| Tally::new(facts, player));
            if let Some(violation) = tally.broken(facts, event.points) {
                return if quarantines && tally.quarantine() {
                    EventDecision::Quarantined(violation)
                } else {
                    EventDecision::Refused(Refusal::Broken(violation))
                };
            }
        }
        let standings = match self.fold(player, event, at) {
            Ok(standings) => standings,
            Err(refusal) => return EventDecision::Refused(refusal),
        };
        if let Some(tally) = self.tallies.get_mut(&player) {
            tally.accept(&facts.rules, event.points);
        }
        EventDecision::Accepted { at, standings }
    }

    /// Folds an event into the player's entries: in all periods that hold it, or in none.
    fn fold(&mut self, index: usize, event: &Event, at: DateTime<Utc>) -> Result<Vec<EventStanding>, Refusal> {
        let facts: &'a Facts = self.facts;
        let Facts { rules, periods, players, .. } = facts;
        let player = &players[index];
        let (points, tiebreak) = (event.points, event.tiebreak);
        // With ties `second`, later events are compared with the time of this one.
        let has_time = rules.tiebreak_order.is_some() && (tiebreak.is_some() || rules.mode == Mode::Latest);
        let mut standings = Vec::new();
        let mut after = Vec::with_capacity(periods.len());
        let mut times = Vec::new();
        let mut rankings = Vec::new();
        let mut missing_segments = Vec::new();
        let mut kinds = 0;
        for period in periods.iter().filter(|period| period.holds(at)) {
            kinds += usize::from(rules.periods.contains(&period.kind));
            let ranking_id = period.ranking_id.ok_or(Refusal::PeriodClosed)?;
            // An event before a reset does not count in the period of the reset.
            let is_before_reset = |reset: &DateTime<Utc>| *reset > at && *reset < period.ends_at;
            if player.resets.iter().any(is_before_reset) {
                continue;
            }
            // Maintenance will compute this player's standing in the window.
            if period.filled_to.is_some_and(|last| player.id > Some(last)) {
                self.unfilled.insert(index);
                continue;
            }
            let entry = (index, period.id);
            let was = self.entries.get(&entry).or_else(|| player.entries.get(&period.id)).copied();
            let decided_at = self.decided_at.get(&entry).or_else(|| player.decided_at.get(&period.id));
            let is_latest = decided_at.is_none_or(|last| at >= *last);
            let scored = ScoredEvent { points, tiebreak, at, is_latest };
            let now = Entry::after(was, rules, scored).ok_or(Refusal::Overflow)?;
            after.push((entry, now));
            times.extend((has_time && is_latest).then_some((entry, at)));
            rankings.push(((ranking_id, index), period.id));
            // The event also counts in the player's segments.
            for segment in player.segments.until(period.ends_at) {
                match period.segments.get(segment) {
                    Some(ranking) => rankings.push(((ranking.ok_or(Refusal::PeriodClosed)?, index), period.id)),
                    None => missing_segments.push((period.id, segment)),
                }
            }
            if self.source == EventSource::Live && period.is_shown {
                standings.push(EventStanding {
                    user_id: player.id.ok_or(Refusal::UnknownUser)?,
                    period_id: period.id,
                    period: period.name.clone(),
                    score: now.score(rules.order),
                    was: was.map(|was| (was.rank_key, was.tie_key)),
                });
            }
        }
        // A period of some kind is missing: the batch starts again when it is open.
        if kinds < rules.periods.len() {
            self.missing.push(at);
        }
        // No period has refused the event, so it counts in all of them.
        self.entries.extend(after);
        self.decided_at.extend(times);
        self.rankings.extend(rankings);
        self.missing_segments.extend(missing_segments);
        Ok(standings)
    }
}

/// Returns the decision on an event with a known id.
fn repetition(known: &EarlierEvent, event: &Event) -> EventDecision {
    if has_content(event, &known.content) {
        EventDecision::AlreadyAnswered(known.answer.clone())
    } else {
        EventDecision::Refused(Refusal::IdConflict)
    }
}

fn content(event: &Event, at: DateTime<Utc>) -> Content {
    Content {
        points: event.points,
        tiebreak: event.tiebreak,
        reason: event.reason.clone(),
        at: event.occurred_at.unwrap_or(at),
        metadata: event.metadata.clone(),
    }
}

/// Returns whether an event has this content. An event without a time matches any time.
fn has_content(event: &Event, known: &Content) -> bool {
    event.points == known.points
        && event.tiebreak == known.tiebreak
        && event.reason == known.reason
        && event.metadata == known.metadata
        && event.occurred_at.is_none_or(|at| at == known.at)
}

/// Returns the first instant of a year, UTC; `None` for a year that dates cannot express.
fn first_day(year: i32) -> Option<DateTime<Utc>> {
    Some(NaiveDate::from_ymd_opt(year, 1, 1)?.and_hms_opt(0, 0, 0)?.and_utc())
}
