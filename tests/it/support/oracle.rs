//! The expected rankings, computed in the simplest way from a list of acts: sums over vectors,
//! sorted again for every question. Shares neither SQL nor functions with the code that it checks.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    ops::RangeInclusive,
};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// How a player's score follows from the events that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Sum,
    Best,
    Latest,
}

/// The rule for equal scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    Shared,
    First,
    Tiebreak,
    /// By a second number: whether smaller ones are better, and whether those of a sum are replaced.
    Second {
        ascending: bool,
        replaced: bool,
    },
}

/// The rules of a board.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub mode: Mode,
    pub ascending: bool,
    pub ties: Ties,
    pub points_min: i64,
    pub points_max: i64,
}

impl Rules {
    /// Returns a score as a number of which larger is better.
    pub fn better(self, score: i64) -> i128 {
        if self.ascending { -i128::from(score) } else { i128::from(score) }
    }

    /// Returns a tiebreak as a number of which larger is better.
    pub fn better_tiebreak(self, tiebreak: i64) -> i64 {
        if matches!(self.ties, Ties::Second { ascending: true, .. }) { -tiebreak } else { tiebreak }
    }

    /// Returns the tiebreaks that events may have; `None` if they have none.
    pub fn tiebreaks(self) -> Option<RangeInclusive<i64>> {
        match self.ties {
            Ties::Shared | Ties::First => None,
            Ties::Tiebreak => Some(-2048..=2047),
            Ties::Second { .. } => Some(-i64::MAX..=i64::MAX),
        }
    }

    /// Returns whether an event may have a tiebreak.
    pub fn accepts(self, tiebreak: i64) -> bool {
        self.tiebreaks().is_some_and(|range| range.contains(&tiebreak))
    }

    /// Returns whether second numbers are added.
    fn adds_tiebreaks(self) -> bool {
        self.mode == Mode::Sum && matches!(self.ties, Ties::Second { replaced: false, .. })
    }

    /// Adds mode, order and ties to the rules of a new board.
    pub fn add_to(self, board: &mut Value) {
        let order = |ascending| if ascending { "asc" } else { "desc" };
        board["mode"] = match self.mode {
            Mode::Sum => "sum",
            Mode::Best => "best",
            Mode::Latest => "latest",
        }
        .into();
        board["order"] = order(self.ascending).into();
        board["ties"] = match self.ties {
            Ties::Shared => "shared",
            Ties::First => "first",
            Ties::Tiebreak => "tiebreak",
            Ties::Second { .. } => "second",
        }
        .into();
        if let Ties::Second { ascending, replaced } = self.ties {
            board["tiebreak_order"] = order(ascending).into();
            if self.mode == Mode::Sum {
                board["tiebreak_sum"] = if replaced { "replaced" } else { "added" }.into();
            }
        }
    }

    /// Returns the tie key of an entry: the second number, negated if smaller ones are better, or the
    /// tiebreak above 51 bits of (2^51 - 1 - microseconds since 2000), as the design defines it.
    pub fn tie_key(self, entry: &Entry) -> i64 {
        let Some(reached_at) = entry.reached_at else { return self.better_tiebreak(entry.tiebreak) };
        let epoch = DateTime::from_timestamp_secs(946_684_800).expect("the year 2000");
        let microseconds = (reached_at - epoch).num_microseconds().expect("within centuries");
        entry.tiebreak * (1 << 51) + ((1 << 51) - 1 - microseconds)
    }
}

/// A score as a caller sends it; `at` is set only if the caller gives a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub user: String,
    pub points: i64,
    pub tiebreak: Option<i64>,
    pub reason: Option<String>,
    pub id: Option<String>,
    pub at: Option<DateTime<Utc>>,
}

/// The expected answer to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    /// The same answer as for this ledger row.
    Repeated(i64),
    Refused(&'static str),
}

/// The time range of a period, from its start (inclusive) to its end (exclusive); open at both ends
/// for all time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    pub starts_at: Option<DateTime<Utc>>,
    pub ends_at: Option<DateTime<Utc>>,
}

impl Slice {
    /// Returns whether an instant is in the range.
    pub fn holds(self, at: DateTime<Utc>) -> bool {
        self.starts_at.is_none_or(|start| start <= at) && self.ends_at.is_none_or(|end| at < end)
    }
}

/// The act of a ledger row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Score {
        points: i64,
        tiebreak: Option<i64>,
    },
    /// Cancels the row of this id.
    Void(i64),
    Reset,
    Ban,
    Unban,
}

impl Act {
    /// Returns the ledger's name of the kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Score { .. } => "score",
            Self::Void(_) => "void",
            Self::Reset => "reset",
            Self::Ban => "ban",
            Self::Unban => "unban",
        }
    }
}

/// A row of the ledger; `user` is the internal id, which breaks the last ties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub id: i64,
    pub user: i64,
    pub act: Act,
    pub at: DateTime<Utc>,
}

/// A player's entry in a period, without its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub user: i64,
    pub score: i64,
    pub tiebreak: i64,
    /// None with second numbers, which replace the time.
    pub reached_at: Option<DateTime<Utc>>,
    pub only_zeros: bool,
}

impl Entry {
    /// Returns the second number, if rows show one.
    pub fn second(&self) -> Option<i64> {
        self.reached_at.is_none().then_some(self.tiebreak)
    }
}

/// An entry with its place; `worse` is the number of players with a worse rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub position: i64,
    pub rank: i64,
    pub worse: i64,
    pub entry: Entry,
}

/// A board and all acts on it.
#[derive(Debug)]
pub struct Oracle {
    pub rules: Rules,
    pub rows: Vec<Row>,
    voided: HashSet<i64>,
    /// Known ids of players' events, with the event and its row.
    known: HashMap<(String, String), (Event, Row)>,
    /// Those of the current batch.
    in_batch: HashMap<(String, String), (Event, Row)>,
}

impl Oracle {
    /// Creates a board without events.
    pub fn new(rules: Rules) -> Self {
        Self { rules, rows: Vec::new(), voided: HashSet::new(), known: HashMap::new(), in_batch: HashMap::new() }
    }

    /// Returns the expected answer to the next event of a batch. `user` is the internal id if the
    /// user exists, `marked` whether that user is banned everywhere, `at` the event's time,
    /// `periods` all open periods.
    pub fn judge(
        &self,
        event: &Event,
        user: Option<i64>,
        marked: bool,
        at: DateTime<Utc>,
        periods: &[Slice],
    ) -> Verdict {
        let key = event.id.clone().map(|id| (event.user.clone(), id));
        // An event without a time repeats one of any time.
        let repeats = |(first, row): &(Event, Row)| {
            let is_same = Event { at: None, ..first.clone() } == Event { at: None, ..event.clone() };
            if is_same && event.at.is_none_or(|at| at == row.at) {
                Verdict::Repeated(row.id)
            } else {
                Verdict::Refused("id_conflict")
            }
        };
        if let Some(known) = key.as_ref().and_then(|key| self.known.get(key)) {
            return repeats(known);
        }
        let earlier = key.as_ref().and_then(|key| self.in_batch.get(key));
        let Some(user) = user else { return Verdict::Refused("unknown_user") };
        if marked || self.is_banned(user) {
            Verdict::Refused("banned")
        } else if event.points < self.rules.points_min || event.points > self.rules.points_max {
            Verdict::Refused("points_out_of_bounds")
        } else if event.tiebreak.is_some() && self.rules.tiebreaks().is_none() {
            Verdict::Refused("tiebreak_not_used")
        } else if event.tiebreak.is_some_and(|tiebreak| !self.rules.accepts(tiebreak)) {
            Verdict::Refused("tiebreak_out_of_range")
        } else if event.at.is_some_and(|at| at > Utc::now() + TimeDelta::minutes(1)) {
            Verdict::Refused("time_in_future")
        } else if event.at.is_some_and(|at| at.timestamp() < 946_684_800) {
            Verdict::Refused("time_out_of_range")
        } else if let Some(earlier) = earlier {
            repeats(earlier)
        } else if self.overflows(user, event, at, periods) {
            Verdict::Refused("overflow")
        } else {
            Verdict::Accepted
        }
    }

    /// Records an event, and the ledger row of an accepted one.
    pub fn take(&mut self, event: &Event, row: Option<Row>) {
        if let Some(row) = row {
            self.rows.push(row);
            if let Some(id) = event.id.clone() {
                self.in_batch.insert((event.user.clone(), id), (event.clone(), row));
            }
        }
    }

    /// Commits the batch: ids of accepted events are known, those of refused ones stay free.
    pub fn end_batch(&mut self) {
        self.known.extend(self.in_batch.drain());
    }

    /// Records an administrative act.
    pub fn act(&mut self, row: Row) {
        if let Act::Void(target) = row.act {
            self.voided.insert(target);
        }
        self.rows.push(row);
    }

    /// Returns whether a score was voided.
    pub fn is_voided(&self, id: i64) -> bool {
        self.voided.contains(&id)
    }

    /// Returns whether a player's latest ban or unban in the ledger is a ban.
    pub fn is_banned(&self, user: i64) -> bool {
        let acts = self.rows.iter().filter(|row| row.user == user && matches!(row.act, Act::Ban | Act::Unban));
        acts.max_by_key(|row| row.id).is_some_and(|row| row.act == Act::Ban)
    }

    /// Returns a player's scores that count in a period if the player is not banned: neither voided
    /// nor before a reset.
    fn counted(&self, user: i64, period: Slice) -> Vec<(Row, i64, Option<i64>)> {
        let of_player = || self.rows.iter().filter(|row| row.user == user && period.holds(row.at));
        let reset = of_player().filter(|row| row.act == Act::Reset).map(|row| row.at).max();
        of_player()
            .filter(|row| reset.is_none_or(|reset| row.at >= reset) && !self.is_voided(row.id))
            .filter_map(|row| match row.act {
                Act::Score { points, tiebreak } => Some((*row, points, tiebreak)),
                _ => None,
            })
            .collect()
    }

    /// Returns whether one more event would overflow a sum in some period that contains it.
    fn overflows(&self, user: i64, event: &Event, at: DateTime<Utc>, periods: &[Slice]) -> bool {
        let one = [(event.points, event.tiebreak)];
        self.rules.mode == Mode::Sum
            && periods.iter().filter(|period| period.holds(at)).any(|period| {
                let reset = self
                    .rows
                    .iter()
                    .any(|row| row.user == user && row.act == Act::Reset && period.holds(row.at) && at < row.at);
                let counted = self.counted(user, *period).into_iter().map(|(_, points, tiebreak)| (points, tiebreak));
                !reset && self.is_too_large(counted.chain(one))
            })
    }

    /// Returns whether a sum of a player would overflow without one of the rows, also if a ban hides it.
    pub fn out_of_range(&self, user: i64, without: i64, periods: &[Slice]) -> bool {
        let rest = |period: &Slice| {
            let rest = self.counted(user, *period).into_iter().filter(move |(row, ..)| row.id != without);
            rest.map(|(_, points, tiebreak)| (points, tiebreak))
        };
        self.rules.mode == Mode::Sum && periods.iter().any(|period| self.is_too_large(rest(period)))
    }

    /// Returns whether the sum of points, or that of second numbers, does not fit into 64 bits.
    fn is_too_large(&self, events: impl Iterator<Item = (i64, Option<i64>)>) -> bool {
        let (mut points, mut tiebreaks) = (0_i128, 0_i128);
        for (more, tiebreak) in events {
            points += i128::from(more);
            tiebreaks += i128::from(tiebreak.filter(|_| self.rules.adds_tiebreaks()).unwrap_or(0));
        }
        points.abs().max(tiebreaks.abs()) > i128::from(i64::MAX)
    }

    /// Returns a player's entry in a period.
    pub fn entry(&self, user: i64, period: Slice) -> Option<Entry> {
        if self.is_banned(user) {
            return None;
        }
        let events = self.counted(user, period);
        if let Ties::Second { replaced, .. } = self.rules.ties {
            let (score, tiebreak) = self.second_entry(&events, replaced)?;
            return Some(Entry { user, score, tiebreak, reached_at: None, only_zeros: false });
        }
        let only_zeros = events.iter().all(|(_, points, _)| *points == 0);
        let (score, tiebreak, reached_at) = match self.rules.mode {
            Mode::Sum => {
                let total: i128 = events.iter().map(|(_, points, _)| i128::from(*points)).sum();
                let times = || events.iter().map(|(row, ..)| row.at);
                let scored = events.iter().filter(|(_, points, _)| *points != 0).map(|(row, ..)| row.at).max();
                (i64::try_from(total).expect("a sum that was accepted"), 0, scored.or(times().min())?)
            }
            Mode::Best => {
                let best = |(row, points, tiebreak): &(Row, i64, Option<i64>)| {
                    (self.rules.better(*points), tiebreak.unwrap_or(0), Reverse(row.at))
                };
                let (row, points, tiebreak) = *events.iter().max_by_key(|event| best(event))?;
                (points, tiebreak.unwrap_or(0), row.at)
            }
            Mode::Latest => {
                let (row, points, tiebreak) = *events.iter().max_by_key(|(row, ..)| (row.at, row.id))?;
                (points, tiebreak.unwrap_or(0), row.at)
            }
        };
        Some(Entry { user, score, tiebreak, reached_at: Some(reached_at), only_zeros })
    }

    /// Returns the score and the second number of a player with these events.
    fn second_entry(&self, events: &[(Row, i64, Option<i64>)], replaced: bool) -> Option<(i64, i64)> {
        let number = |tiebreak: Option<i64>| tiebreak.unwrap_or(0);
        let by_time = |(row, ..): &&(Row, i64, Option<i64>)| (row.at, row.id);
        let (_, last_points, last_tiebreak) = *events.iter().max_by_key(by_time)?;
        Some(match self.rules.mode {
            Mode::Sum => {
                let points: i128 = events.iter().map(|(_, points, _)| i128::from(*points)).sum();
                let tiebreaks: i128 = events.iter().map(|(.., tiebreak)| i128::from(number(*tiebreak))).sum();
                let named = events.iter().filter(|(.., tiebreak)| tiebreak.is_some()).max_by_key(by_time);
                let tiebreak =
                    if replaced { i128::from(named.map_or(0, |(.., tiebreak)| number(*tiebreak))) } else { tiebreaks };
                let accepted = |sum: i128| i64::try_from(sum).expect("a sum that was accepted");
                (accepted(points), accepted(tiebreak))
            }
            Mode::Best => {
                let pairs = events.iter().map(|(_, points, tiebreak)| (*points, number(*tiebreak)));
                pairs.max_by_key(|pair| (self.rules.better(pair.0), self.rules.better_tiebreak(pair.1)))?
            }
            Mode::Latest => (last_points, number(last_tiebreak)),
        })
    }

    /// Returns all players of a period, best first.
    pub fn standings(&self, period: Slice) -> Vec<Place> {
        let users: BTreeSet<i64> = self.rows.iter().map(|row| row.user).collect();
        let mut entries: Vec<Entry> = users.into_iter().filter_map(|user| self.entry(user, period)).collect();
        entries.sort_by_key(|entry| self.key(entry));
        let equal = |a: &Entry, b: &Entry| match self.rules.ties {
            Ties::Shared => a.score == b.score,
            Ties::First | Ties::Tiebreak | Ties::Second { .. } => a.user == b.user,
        };
        let mut places: Vec<Place> = Vec::new();
        for (position, entry) in (1..).zip(&entries) {
            let ahead = entries.iter().take_while(|other| !equal(other, entry)).count();
            let worse = entries.iter().rev().take_while(|other| !equal(other, entry)).count();
            places.push(Place { position, rank: number(ahead) + 1, worse: number(worse), entry: *entry });
        }
        places
    }

    /// Returns the sort key of players, best first.
    pub fn key(&self, entry: &Entry) -> impl Ord + use<> {
        let tiebreak = self.rules.better_tiebreak(entry.tiebreak);
        (Reverse(self.rules.better(entry.score)), Reverse(tiebreak), entry.reached_at, entry.user)
    }

    /// Returns the rank of a new player with a score: behind equals, unless they share a rank.
    pub fn rank_of_score(&self, places: &[Place], score: i64) -> i64 {
        let ahead = places.iter().filter(|place| {
            let (theirs, ours) = (self.rules.better(place.entry.score), self.rules.better(score));
            theirs > ours || theirs == ours && self.rules.ties != Ties::Shared
        });
        1 + number(ahead.count())
    }

    /// Returns the rank that an entry would have now if its player had no other entry.
    pub fn rank_among_others(&self, places: &[Place], entry: &Entry) -> i64 {
        let others = places.iter().map(|place| place.entry).filter(|other| other.user != entry.user);
        let ahead = others.filter(|other| match self.rules.ties {
            Ties::Shared => self.rules.better(other.score) > self.rules.better(entry.score),
            Ties::First | Ties::Tiebreak | Ties::Second { .. } => self.key(other) < self.key(entry),
        });
        1 + number(ahead.count())
    }

    /// Counts players in score ranges of equal width, worst first, as (first, last, players).
    pub fn histogram(&self, places: &[Place], bars: i128) -> Vec<(i128, i128, i64)> {
        let keys: Vec<i128> = places.iter().map(|place| self.rules.better(place.entry.score)).collect();
        let (Some(&high), Some(&low)) = (keys.first(), keys.last()) else { return Vec::new() };
        let width = (high - low + 1 + bars - 1) / bars;
        let score = |key: i128| if self.rules.ascending { -key } else { key };
        let edges = (0..bars).map(|bar| low + bar * width).take_while(|from| *from <= high);
        edges
            .map(|from| {
                let to = (from + width - 1).min(high);
                (score(from), score(to), number(keys.iter().filter(|key| (from..=to).contains(*key)).count()))
            })
            .collect()
    }
}

/// Returns the percentile of a place: 100 × players with a worse rank ÷ max(players − 1, 1).
pub fn percentile(place: &Place, places: &[Place]) -> f64 {
    100.0 * place.worse as f64 / (places.len().max(2) - 1) as f64
}

/// Returns the score at each tenth percentile: the first score, from the worst up, that this share
/// of the players does not exceed.
pub fn tenth_percentiles(places: &[Place]) -> Vec<(i32, i64)> {
    let worst_first: Vec<i64> = places.iter().rev().map(|place| place.entry.score).collect();
    let at = |percent: i32| {
        let enough = |(count, _): &(i64, &i64)| *count * 100 >= i64::from(percent) * number(worst_first.len());
        (1..).zip(&worst_first).find(enough).map(|(_, score)| (percent, *score))
    };
    (0..=100).step_by(10).filter_map(at).collect()
}

/// Returns a player's lane: the first two bytes of the SHA-256 of the user id, modulo the board's
/// lanes.
pub fn lane_of(user: &str, lanes: i16) -> i16 {
    let hash = Sha256::digest(user.as_bytes());
    let lane = u16::from_be_bytes([hash[0], hash[1]]) % lanes.unsigned_abs();
    lane.cast_signed()
}

/// Returns a length as a bigint.
pub fn number(count: usize) -> i64 {
    i64::try_from(count).expect("a count of players")
}
