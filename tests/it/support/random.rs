//! Random boards and random operations on them, from a seed.

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use rand::{
    RngExt as _, SeedableRng as _,
    rngs::StdRng,
    seq::{IndexedRandom as _, IteratorRandom as _},
};

use super::oracle::{Event, Mode, Rules, Ties};

/// Number of kinds of board in one order: every mode with every rule for ties that it allows.
pub const RULES: u64 = 12;
/// The same in both orders.
pub const KINDS: u64 = 2 * RULES;
/// Zones with various offsets.
const ZONES: &[&str] = &["UTC", "Asia/Kolkata", "America/New_York", "Pacific/Kiritimati", "Europe/Berlin"];

/// A random operation on a board. Voids name scores by their number in [`Source::sent`].
#[derive(Debug, Clone)]
pub enum Operation {
    /// Scores at the database's current time.
    Live(Vec<Event>),
    /// Scores of which most have their own times.
    Import(Vec<Event>),
    Ban(String),
    Unban(String),
    Void(Vec<usize>),
    Reset(String),
    /// Random layout changes from a seed.
    Scatter(u64),
    Rename(String, String),
}

/// A random board with its players, and an endless source of operations on it.
#[derive(Debug)]
pub struct Source {
    pub rng: StdRng,
    pub rules: Rules,
    pub time_zone: &'static str,
    pub layout_bounds: Vec<i64>,
    pub users: Vec<String>,
    /// Every event made so far, whether it was accepted or not.
    pub sent: Vec<Event>,
    /// Instants to reuse: events' times, resets, bounds of periods.
    pub instants: Vec<DateTime<Utc>>,
    banned: Vec<String>,
    next_id: u32,
}

impl Source {
    /// Creates the board of a seed. `seed % KINDS` selects mode, order and ties: [`RULES`]
    /// consecutive seeds cover all modes and ties, [`KINDS`] also both orders of each.
    pub fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let kind = seed % KINDS;
        let (mode, ties) = match kind % RULES {
            0 => (Mode::Sum, Ties::Shared),
            1 => (Mode::Sum, Ties::First),
            2 => (Mode::Best, Ties::Shared),
            3 => (Mode::Best, Ties::First),
            4 => (Mode::Best, Ties::Tiebreak),
            5 => (Mode::Latest, Ties::Shared),
            6 => (Mode::Latest, Ties::First),
            7 => (Mode::Latest, Ties::Tiebreak),
            8 => (Mode::Sum, Ties::Second { ascending: rng.random(), replaced: false }),
            9 => (Mode::Sum, Ties::Second { ascending: rng.random(), replaced: true }),
            10 => (Mode::Best, Ties::Second { ascending: rng.random(), replaced: false }),
            _ => (Mode::Latest, Ties::Second { ascending: rng.random(), replaced: false }),
        };
        let (points_min, points_max) = *[(-4, 6), (0, 1), (-60, 60), (-i64::MAX, i64::MAX)].choose(&mut rng).unwrap();
        let ascending = (kind + kind / RULES) % 2 == 1;
        let rules = Rules { mode, ascending, ties, points_min, points_max };
        let bounds = *[0, 0, 3, 12, 99].choose(&mut rng).unwrap();
        let (low, high) = (points_min.max(-200), points_max.min(200));
        let mut layout_bounds: Vec<i64> = (0..bounds).map(|_| rng.random_range(low..=high)).collect();
        layout_bounds.sort_unstable();
        layout_bounds.dedup();
        let players = *[3, 12, 25, 45].choose(&mut rng).unwrap();
        let users = (0..players).map(|number| format!("ü {number}/{seed}")).collect();
        let now = now();
        // Times on a few days only, so that there are few periods with many events each.
        let days = [rng.random_range(1..4), rng.random_range(20..50)];
        let instants = days.map(|days| now - TimeDelta::days(days)).to_vec();
        let time_zone = ZONES.choose(&mut rng).unwrap();
        let (sent, banned) = (Vec::new(), Vec::new());
        Self { rng, rules, time_zone, layout_bounds, users, sent, instants, banned, next_id: 0 }
    }

    /// Returns true with probability 1 in `times`.
    pub fn one_in(&mut self, times: u32) -> bool {
        self.rng.random_ratio(1, times)
    }

    /// Returns a random player.
    pub fn user(&mut self) -> String {
        self.users.choose(&mut self.rng).unwrap().clone()
    }

    /// Returns the next operation.
    pub fn operation(&mut self) -> Operation {
        match self.rng.random_range(0..24) {
            0..=8 => Operation::Live(self.batch(false)),
            9..=14 => Operation::Import(self.batch(true)),
            15 => {
                let user = self.user();
                self.banned.push(user.clone());
                Operation::Ban(user)
            }
            // The player may not be banned.
            16 | 17 if self.one_in(5) => Operation::Unban(self.user()),
            16 | 17 if !self.banned.is_empty() => {
                let place = self.rng.random_range(0..self.banned.len());
                Operation::Unban(self.banned.swap_remove(place))
            }
            18 | 19 if !self.sent.is_empty() => {
                let some = 0..self.rng.random_range(1..10);
                Operation::Void(some.map(|_| self.rng.random_range(0..self.sent.len())).collect())
            }
            20 => Operation::Reset(self.user()),
            21 => {
                let user = self.user();
                let name = format!("renamed {}", self.rng.random_range(0..1000));
                Operation::Rename(user, name)
            }
            _ => Operation::Scatter(self.rng.random()),
        }
    }

    /// Returns 1 to 60 events, mostly few.
    pub fn batch(&mut self, dated: bool) -> Vec<Event> {
        let most = *[2, 8, 30, 60].choose(&mut self.rng).unwrap();
        (0..self.rng.random_range(1..=most)).map(|_| self.event(dated)).collect()
    }

    fn event(&mut self, dated: bool) -> Event {
        if !self.sent.is_empty() && self.one_in(8) {
            return self.repetition(dated);
        }
        let mut event = Event {
            user: self.user(),
            points: self.points(),
            tiebreak: None,
            reason: self.one_in(4).then(|| "because".to_owned()),
            id: None,
            // Even among dated events, one may leave its time to the database.
            at: (dated && !self.one_in(10)).then(|| self.instant()),
        };
        if self.rules.ties == Ties::Tiebreak && !self.one_in(4) {
            event.tiebreak = Some(*[-2048, -1, 0, 0, 1, 1, 2047].choose(&mut self.rng).unwrap());
        } else if matches!(self.rules.ties, Ties::Second { .. }) && !self.one_in(4) {
            // Large numbers come close to overflowing a sum.
            let numbers = if self.one_in(12) { [-i64::MAX, i64::MAX] } else { [-1, 1] };
            event.tiebreak = numbers.into_iter().chain([0, 1, 2]).choose(&mut self.rng);
        }
        if self.one_in(3) {
            self.next_id += 1;
            event.id = Some(format!("id-{}", self.next_id));
        }
        if self.one_in(25) {
            self.corrupt(&mut event);
        }
        self.sent.push(event.clone());
        event
    }

    /// Returns an event that was sent before, sometimes with other content under the same id.
    fn repetition(&mut self, dated: bool) -> Event {
        let with_id: Vec<&Event> = self.sent.iter().filter(|event| event.id.is_some()).collect();
        let mut event = match with_id.choose(&mut self.rng) {
            Some(event) if self.rng.random_ratio(3, 4) => (*event).clone(),
            _ => self.sent.choose(&mut self.rng).unwrap().clone(),
        };
        if !dated {
            event.at = None;
        }
        match self.rng.random_range(0..8) {
            0 => event.points = self.points(),
            1 => event.reason = Some("another".to_owned()),
            2 => event.user = self.user(),
            _ => {}
        }
        self.sent.push(event.clone());
        event
    }

    /// Makes an event invalid in one way.
    fn corrupt(&mut self, event: &mut Event) {
        match self.rng.random_range(0..5) {
            0 => "nobody".clone_into(&mut event.user),
            1 => event.points = if self.one_in(2) { i64::MIN } else { self.rules.points_max.saturating_add(1) },
            2 => event.tiebreak = Some(*[-2049, 2048, 5, i64::MIN].choose(&mut self.rng).unwrap()),
            3 if event.at.is_some() => event.at = Some(now() + TimeDelta::days(1)),
            4 if event.at.is_some() => event.at = Some(DateTime::UNIX_EPOCH),
            _ => {}
        }
    }

    /// Returns points that often repeat, and that come close to overflowing a sum on boards that
    /// allow it.
    fn points(&mut self) -> i64 {
        let Rules { points_min, points_max, .. } = self.rules;
        let (low, high) = (points_min.max(-3), points_max.min(3));
        match self.rng.random_range(0..4) {
            0 if points_max > 100 => {
                let large = [i64::MAX, -i64::MAX, i64::MAX - 1, i64::MAX / 2, -(i64::MAX / 2)];
                let near = *large.choose(&mut self.rng).unwrap();
                if self.one_in(3) { self.rng.random_range(points_min..=points_max) } else { near }
            }
            0 => self.rng.random_range(points_min..=points_max),
            _ => self.rng.random_range(low..=high),
        }
    }

    /// Returns a past time: one used before, or one close to it.
    fn instant(&mut self) -> DateTime<Utc> {
        let latest = now();
        let base = if self.one_in(3) { latest } else { *self.instants.choose(&mut self.rng).unwrap() };
        let instant = match self.rng.random_range(0..6) {
            0 | 1 => base,
            2 => base - TimeDelta::microseconds(self.rng.random_range(-2..=2)),
            3 => base - TimeDelta::minutes(self.rng.random_range(0..180)),
            _ => base - TimeDelta::seconds(self.rng.random_range(-3..=3)),
        };
        instant.min(latest)
    }
}

/// Prints and returns the seed of a test's random choices: `CENTILE_TEST_SEED`, or a random one.
pub fn seed() -> u64 {
    let given = std::env::var("CENTILE_TEST_SEED").ok().map(|text| text.parse().expect("CENTILE_TEST_SEED"));
    let seed = given.unwrap_or_else(rand::random);
    eprintln!("CENTILE_TEST_SEED={seed}");
    seed
}

/// Returns random numbers from such a [`seed`].
pub fn seeded() -> StdRng {
    StdRng::seed_from_u64(seed())
}

/// Returns the current time in microseconds, the database's precision.
pub fn now() -> DateTime<Utc> {
    Utc::now().duration_trunc(TimeDelta::microseconds(1)).expect("a time of this century")
}
