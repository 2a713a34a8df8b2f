//! Rules against cheating: bounds of points, events per minute, and gains per period.

use crate::{
    model::board::Mode,
    rules::{
        entry::rank_key,
        facts::{Facts, Gain, Player, Rules},
        refusal::{Rule, Violation},
    },
};

/// Maximum waiting events of one player in quarantine. Further ones are refused, so that a flood
/// cannot fill it.
const MAX_WAITING: u32 = 100;

/// Counts of one player during a batch. Refused events do not count.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    recent: u32,
    waiting: u32,
    /// Rank key of the player's first accepted event of the batch.
    first: Option<i64>,
    gains: Vec<Limited>,
}

/// A player's gain in one period, with that of the batch.
#[derive(Debug, Clone)]
struct Limited {
    gain: Gain,
    /// Rank key of the player's entry.
    best: Option<i64>,
}

impl Tally {
    /// Returns the counts of the player at this index before the batch.
    pub(crate) fn new(facts: &Facts, player: usize) -> Self {
        let Player { history, entries, .. } = &facts.players[player];
        let limited = history.gains.iter().map(|gain| {
            let entry = entries.get(&facts.periods[gain.period].id);
            Limited { gain: *gain, best: entry.map(|entry| entry.rank_key) }
        });
        Self { recent: history.recent, waiting: history.waiting, first: None, gains: limited.collect() }
    }

    /// Returns the first rule that an event with these points breaks.
    ///
    /// On `sum` boards a player's gain in a period is the sum of points won in it. Losses do not
    /// reduce it. On `best` and `latest` boards the gain is the improvement over the player's score
    /// at the start of the period. Without one, it is the improvement over the first score in it.
    /// On `best` boards a score that is no better than the player's best in the period is no gain.
    pub(crate) fn broken(&self, facts: &Facts, points: i64) -> Option<Violation> {
        let rules = &facts.rules;
        let broken = |rule, detail| Some(Violation { rule, detail });
        if let Some(violation) = out_of_bounds(rules, points) {
            return Some(violation);
        }
        if let Some(most) = rules.events_per_minute.filter(|most| self.recent >= *most) {
            return broken(Rule::TooManyEvents, format!("{most} events in 60 seconds"));
        }
        let key = rank_key(points, rules.order)?;
        self.gains.iter().find_map(|limited| {
            let Gain { period, limit, .. } = limited.gain;
            let gained = limited.after(rules, key, self.first)?;
            if gained <= i128::from(limit) {
                return None;
            }
            broken(Rule::GainTooLarge, format!("{limit} in {}, not {gained}", facts.periods[period].name))
        })
    }

    pub(crate) fn accept(&mut self, rules: &Rules, points: i64) {
        let Some(key) = rank_key(points, rules.order) else { return };
        self.recent = self.recent.saturating_add(1);
        self.first = self.first.or(Some(key));
        for limited in &mut self.gains {
            limited.gain.won += i128::from(key.max(0));
            limited.best = limited.best.max(Some(key));
        }
    }

    /// Counts an event that goes into quarantine. Returns `false` if too many are waiting.
    pub(crate) fn quarantine(&mut self) -> bool {
        let is_below_limit = self.waiting < MAX_WAITING;
        self.waiting += u32::from(is_below_limit);
        is_below_limit
    }
}

impl Limited {
    /// Returns the gain in the period after an event with this rank key. `None` if the event gains
    /// nothing.
    fn after(&self, rules: &Rules, key: i64, first: Option<i64>) -> Option<i128> {
        match rules.mode {
            Mode::Sum => (key > 0).then(|| self.gain.won + i128::from(key)),
            Mode::Best if self.best.is_some_and(|best| key <= best) => None,
            Mode::Best | Mode::Latest | Mode::Combined => {
                let base = self.gain.base.or(first).unwrap_or(key);
                Some(i128::from(key) - i128::from(base))
            }
        }
    }
}

/// Returns the periods whose kind has a limit of gains, with the limit.
pub(crate) fn limited_periods(facts: &Facts) -> impl Iterator<Item = (usize, i64)> {
    let periods = facts.periods.iter().enumerate().filter(|(_, period)| period.filled_to.is_none());
    periods.filter_map(|(place, period)| facts.rules.gain_max.get(&period.kind).map(|limit| (place, *limit)))
}

/// Returns a violation if the board does not accept these points in one event.
pub(crate) fn out_of_bounds(rules: &Rules, points: i64) -> Option<Violation> {
    let Rules { points_min, points_max, .. } = *rules;
    (!(points_min..=points_max).contains(&points)).then(|| Violation::out_of_bounds(points_min, points_max))
}
