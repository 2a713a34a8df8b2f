//! Decides events in their order, and folds the accepted ones into entries.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, NaiveDate, Utc};

use crate::{
    model::board::{OnViolation, Order, PeriodKind, Ties},
    rules::{
        entry::{Entry, ScoredEvent, rank_key},
        facts::{Content, Facts, KnownAnswer, KnownEvent, Standing},
        limits::{Tally, out_of_bounds},
        refusal::{Refusal, Violation},
    },
};

/// An event that waits to be decided.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    /// Place of the player in [`Facts::players`].
    pub(crate) player: usize,
    /// Points earned (`sum`), or the score itself (`best`, `latest`).
    pub(crate) points: i64,
    /// Breaks ties on `tiebreak` boards.
    pub(crate) tiebreak: Option<i16>,
    /// Why, in the caller's words.
    pub(crate) reason: Option<String>,
    /// The caller's id.
    pub(crate) id: Option<String>,
    /// A time of its own, of an imported event.
    pub(crate) at: Option<DateTime<Utc>>,
}

impl Pending {
    /// Its points as a number of which larger is better.
    pub(crate) fn rank_key(&self, order: Order) -> Option<i64> {
        rank_key(self.points, order)
    }
}

/// Whether events come live or from an import. Of the rules against cheating only the bounds of
/// points hold for an import, which only administrators do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// They come live, without times of their own.
    Live,
    /// They come from an import.
    Import,
}

/// Decision on one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decided {
    /// It goes into the ledger.
    Accepted {
        /// The time it counts for.
        at: DateTime<Utc>,
        /// The player's standings after it; none for an import.
        standings: Vec<Standing>,
    },
    /// It goes into quarantine.
    Quarantined(Violation),
    /// It is refused.
    Refused(Refusal),
    /// It was answered before under its id.
    Known(KnownAnswer),
    /// It repeats an event of the same batch, at this place, and gets its answer.
    Repeats(usize),
}

/// An entry that a batch changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    /// The ranking.
    pub(crate) ranking_id: i64,
    /// Place of the player in [`Facts::players`].
    pub(crate) player: usize,
    /// The entry before the batch; `None` for a newcomer.
    pub(crate) was: Option<Entry>,
    /// The entry after it.
    pub(crate) now: Entry,
}

/// Decisions on a batch.
#[derive(Debug)]
pub(crate) struct Decisions {
    /// One decision for each event, in their order.
    pub(crate) events: Vec<Decided>,
    /// The entries that change, each once.
    pub(crate) changes: Vec<Change>,
}

/// A period that holds an event does not exist yet: these times have to be opened first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MissingPeriods(pub(crate) Vec<DateTime<Utc>>);

/// Decides events in their order. Each is decided by itself, so that one bad event harms no other.
pub(crate) fn decide(facts: &Facts, source: Source, events: &[Pending]) -> Result<Decisions, MissingPeriods> {
    let mut batch = Batch {
        facts,
        source,
        events,
        holders: HashMap::new(),
        tallies: HashMap::new(),
        entries: BTreeMap::new(),
        missing: Vec::new(),
    };
    let decided = (0..events.len()).map(|place| batch.decide(place)).collect();
    if !batch.missing.is_empty() {
        return Err(MissingPeriods(batch.missing));
    }
    let changes = batch.entries.into_iter().filter_map(|((ranking_id, player), now)| {
        let was = facts.entries.get(&(ranking_id, player)).copied();
        (was != Some(now)).then_some(Change { ranking_id, player, was, now })
    });
    Ok(Decisions { events: decided, changes: changes.collect() })
}

/// A batch while it is decided.
struct Batch<'a> {
    facts: &'a Facts,
    source: Source,
    events: &'a [Pending],
    /// The event that has each id: the first that was not refused.
    holders: HashMap<(usize, &'a str), usize>,
    tallies: HashMap<usize, Tally>,
    /// Entries after the events so far, by ranking id and place of the player.
    entries: BTreeMap<(i64, usize), Entry>,
    missing: Vec<DateTime<Utc>>,
}

impl Batch<'_> {
    fn decide(&mut self, place: usize) -> Decided {
        let (facts, event) = (self.facts, &self.events[place]);
        let at = event.at.unwrap_or(facts.at);
        let key = event.id.as_deref().map(|id| (event.player, id));
        if let Some(known) = event.id.clone().and_then(|id| facts.known.get(&(event.player, id))) {
            return repetition(known, event);
        }
        if let Err(refusal) = self.check(event, at) {
            return Decided::Refused(refusal);
        }
        if let Some(holder) = key.and_then(|key| self.holders.get(&key).copied()) {
            let is_same = has_content(event, &content(&self.events[holder], facts.at));
            return if is_same { Decided::Repeats(holder) } else { Decided::Refused(Refusal::IdConflict) };
        }
        let decided = self.judge(event, at);
        if let (Some(key), Decided::Accepted { .. } | Decided::Quarantined(_)) = (key, &decided) {
            self.holders.insert(key, place);
        }
        decided
    }

    /// Checks an event without looking at others.
    fn check(&self, event: &Pending, at: DateTime<Utc>) -> Result<(), Refusal> {
        let rules = &self.facts.rules;
        let player = &self.facts.players[event.player];
        if player.id.is_none() {
            return Err(Refusal::UnknownUser);
        }
        if player.is_banned {
            return Err(Refusal::Banned);
        }
        // No ledger holds `i64::MIN`, not even in quarantine.
        if let Some(violation) = out_of_bounds(rules, event.points)
            && (!self.quarantines() || event.points == i64::MIN)
        {
            return Err(Refusal::Broken(violation));
        }
        if event.tiebreak.is_some() && rules.ties != Ties::Tiebreak {
            return Err(Refusal::TiebreakNotUsed);
        }
        if event.tiebreak.is_some_and(|tiebreak| !(-2_048..=2_047).contains(&tiebreak)) {
            return Err(Refusal::TiebreakOutOfRange);
        }
        if event.at.is_some_and(|at| at > self.facts.now) {
            return Err(Refusal::TimeInFuture);
        }
        if !(first_day(2_000)..=first_day(2_071)).contains(&at) {
            return Err(Refusal::TimeOutOfRange);
        }
        Ok(())
    }

    /// Whether events that break a rule go into quarantine.
    fn quarantines(&self) -> bool {
        self.source == Source::Live && self.facts.rules.on_violation == OnViolation::Quarantine
    }

    /// Applies the rules against cheating, then folds the event into the player's entries.
    fn judge(&mut self, event: &Pending, at: DateTime<Utc>) -> Decided {
        let facts = self.facts;
        if self.source == Source::Live && facts.rules.need_history() {
            let quarantines = self.quarantines();
            let tally = self.tallies.entry(event.player).or_insert_with(|| Tally::new(facts, event.player));
            if let Some(violation) = tally.broken(facts, event) {
                return if quarantines && tally.quarantine() {
                    Decided::Quarantined(violation)
                } else {
                    Decided::Refused(Refusal::Broken(violation))
                };
            }
        }
        let standings = match self.fold(event, at) {
            Ok(standings) => standings,
            Err(refusal) => return Decided::Refused(refusal),
        };
        if let Some(tally) = self.tallies.get_mut(&event.player) {
            tally.accept(&facts.rules, event.points);
        }
        Decided::Accepted { at, standings }
    }

    /// Folds an event into the player's entries: in all periods that hold it, or in none.
    fn fold(&mut self, event: &Pending, at: DateTime<Utc>) -> Result<Vec<Standing>, Refusal> {
        let Facts { rules, periods, players, entries, .. } = self.facts;
        let player = &players[event.player];
        let scored = ScoredEvent { points: event.points, tiebreak: event.tiebreak.unwrap_or_default(), at };
        let mut standings = Vec::new();
        let mut after = Vec::with_capacity(periods.len());
        let mut kinds = 0;
        for period in periods.iter().filter(|period| period.holds(at)) {
            kinds += usize::from(period.kind != PeriodKind::Season);
            let ranking_id = period.ranking_id.ok_or(Refusal::PeriodClosed)?;
            // A reset separates what came before it in its period.
            let is_before_reset = |reset: &DateTime<Utc>| *reset > at && *reset < period.ends_at;
            if player.resets.iter().any(is_before_reset) {
                continue;
            }
            let place = (ranking_id, event.player);
            let was = self.entries.get(&place).or_else(|| entries.get(&place)).copied();
            let now = Entry::after(was, rules.mode, rules.order, scored).ok_or(Refusal::Overflow)?;
            after.push((place, now));
            if self.source == Source::Live {
                standings.push(Standing {
                    user_id: player.id.unwrap_or_default(),
                    period_id: period.id,
                    period: period.name.clone(),
                    score: now.score(rules.order),
                    was: was.map(|was| (was.rank_key, was.tie_key)),
                });
            }
        }
        if kinds < rules.periods.len() {
            self.missing.push(at);
        }
        self.entries.extend(after);
        Ok(standings)
    }
}

/// Decision on an event with a known id.
fn repetition(known: &KnownEvent, event: &Pending) -> Decided {
    if has_content(event, &known.content) {
        Decided::Known(known.answer.clone())
    } else {
        Decided::Refused(Refusal::IdConflict)
    }
}

fn content(event: &Pending, at: DateTime<Utc>) -> Content {
    Content { points: event.points, tiebreak: event.tiebreak, reason: event.reason.clone(), at: event.at.unwrap_or(at) }
}

/// Whether an event has this content. One without a time of its own may have been written at any
/// time.
fn has_content(event: &Pending, known: &Content) -> bool {
    event.points == known.points
        && event.tiebreak == known.tiebreak
        && event.reason == known.reason
        && event.at.is_none_or(|at| at == known.at)
}

/// The first instant of a year, UTC.
fn first_day(year: i32) -> DateTime<Utc> {
    NaiveDate::from_ymd_opt(year, 1, 1).unwrap_or_default().and_hms_opt(0, 0, 0).unwrap_or_default().and_utc()
}
