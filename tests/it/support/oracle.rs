//! The expected rankings, computed in the simplest way from a list of acts: sums over vectors,
//! sorted again for every question. Shares neither SQL nor functions with the code that it checks.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
};

use chrono::{DateTime, TimeDelta, Utc};
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
}

/// A score as a caller sends it; `at` is set only if the caller gives a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub user: String,
    pub points: i64,
    pub tiebreak: Option<i16>,
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
        tiebreak: Option<i16>,
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
    pub tiebreak: i16,
    pub reached_at: DateTime<Utc>,
    pub only_zeros: bool,
}

impl Entry {
    /// Packs the tiebreak above 51 bits of (2^51 - 1 - microseconds since 2000), as the design
    /// defines it.
    pub fn tie_key(&self) -> i64 {
        let epoch = DateTime::from_timestamp_secs(946_684_800).expect("the year 2000");
        let microseconds = (self.reached_at - epoch).num_microseconds().expect("within centuries");
        i64::from(self.tiebreak) * (1 << 51) + ((1 << 51) - 1 - microseconds)
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
        } else if event.tiebreak.is_some() && self.rules.ties != Ties::Tiebreak {
            Verdict::Refused("tiebreak_not_used")
        } else if event.tiebreak.is_some_and(|tiebreak| !(-2048..=2047).contains(&tiebreak)) {
            Verdict::Refused("tiebreak_out_of_range")
        } else if event.at.is_some_and(|at| at > Utc::now() + TimeDelta::minutes(1)) {
            Verdict::Refused("time_in_future")
        } else if event.at.is_some_and(|at| at.timestamp() < 946_684_800) {
            Verdict::Refused("time_out_of_range")
        } else if let Some(earlier) = earlier {
            repeats(earlier)
        } else if self.overflows(user, event.points, at, periods) {
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
    fn counted(&self, user: i64, period: Slice) -> Vec<(Row, i64, i16)> {
        let of_player = || self.rows.iter().filter(|row| row.user == user && period.holds(row.at));
        let reset = of_player().filter(|row| row.act == Act::Reset).map(|row| row.at).max();
        of_player()
            .filter(|row| reset.is_none_or(|reset| row.at >= reset) && !self.is_voided(row.id))
            .filter_map(|row| match row.act {
                Act::Score { points, tiebreak } => Some((*row, points, tiebreak.unwrap_or(0))),
                _ => None,
            })
            .collect()
    }

    /// Returns whether one more event would overflow a sum in some period that contains it.
    fn overflows(&self, user: i64, points: i64, at: DateTime<Utc>, periods: &[Slice]) -> bool {
        self.rules.mode == Mode::Sum
            && periods.iter().filter(|period| period.holds(at)).any(|period| {
                let reset = self
                    .rows
                    .iter()
                    .any(|row| row.user == user && row.act == Act::Reset && period.holds(row.at) && at < row.at);
                let total: i128 = self.counted(user, *period).iter().map(|(_, points, _)| i128::from(*points)).sum();
                !reset && (total + i128::from(points)).abs() > i128::from(i64::MAX)
            })
    }

    /// Returns whether a sum of a player would overflow without one of the rows, also if a ban hides it.
    pub fn out_of_range(&self, user: i64, without: i64, periods: &[Slice]) -> bool {
        let total = |period: &Slice| {
            let rest = self.counted(user, *period).into_iter().filter(|(row, ..)| row.id != without);
            rest.map(|(_, points, _)| i128::from(points)).sum::<i128>()
        };
        self.rules.mode == Mode::Sum && periods.iter().any(|period| total(period).abs() > i128::from(i64::MAX))
    }

    /// Returns a player's entry in a period.
    pub fn entry(&self, user: i64, period: Slice) -> Option<Entry> {
        if self.is_banned(user) {
            return None;
        }
        let events = self.counted(user, period);
        let only_zeros = events.iter().all(|(_, points, _)| *points == 0);
        let (score, tiebreak, reached_at) = match self.rules.mode {
            Mode::Sum => {
                let total: i128 = events.iter().map(|(_, points, _)| i128::from(*points)).sum();
                let times = || events.iter().map(|(row, ..)| row.at);
                let scored = events.iter().filter(|(_, points, _)| *points != 0).map(|(row, ..)| row.at).max();
                (i64::try_from(total).expect("a sum that was accepted"), 0, scored.or(times().min())?)
            }
            Mode::Best => {
                let best = |(row, points, tiebreak): &(Row, i64, i16)| {
                    (self.rules.better(*points), *tiebreak, Reverse(row.at))
                };
                let (row, points, tiebreak) = *events.iter().max_by_key(|event| best(event))?;
                (points, tiebreak, row.at)
            }
            Mode::Latest => {
                let (row, points, tiebreak) = *events.iter().max_by_key(|(row, ..)| (row.at, row.id))?;
                (points, tiebreak, row.at)
            }
        };
        Some(Entry { user, score, tiebreak, reached_at, only_zeros })
    }

    /// Returns all players of a period, best first.
    pub fn standings(&self, period: Slice) -> Vec<Place> {
        let users: BTreeSet<i64> = self.rows.iter().map(|row| row.user).collect();
        let mut entries: Vec<Entry> = users.into_iter().filter_map(|user| self.entry(user, period)).collect();
        entries.sort_by_key(|entry| self.key(entry));
        let equal = |a: &Entry, b: &Entry| match self.rules.ties {
            Ties::Shared => a.score == b.score,
            Ties::First | Ties::Tiebreak => a.user == b.user,
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
        (Reverse(self.rules.better(entry.score)), Reverse(entry.tiebreak), entry.reached_at, entry.user)
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
            Ties::First | Ties::Tiebreak => self.key(other) < self.key(entry),
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
