//! How scores may be spread over players.

use clap::ValueEnum;
use rand::{RngExt as _, rngs::StdRng};
use serde_json::{Value, json};

/// A board's rules and the scores that come to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Spread {
    /// Anything up to a million.
    Uniform,
    /// A bell around a million.
    Normal,
    /// What many games have: most low, a long tail.
    LogNormal,
    /// Few distinct scores at the low end, shared by most.
    Zipf,
    /// Everybody has 7.
    Equal,
    /// Half have 0, half 1.
    TwoValued,
    /// Newcomers begin low, and a random player gains with each of them.
    Growing,
    /// Log-normal, but for one who has 10^15.
    FrontRunner,
    /// Below zero.
    Negative,
    /// Each newcomer below everybody else.
    Bottom,
    /// Anything up to a million, on a board whose first layout expects a thousand at most.
    WrongHints,
    /// Lap times, the best counts and the lowest leads; every second one is tried again.
    AscLaps,
    /// Three distinct scores; players of equal score share a rank.
    ThreeShared,
    /// Three distinct scores; who was there first leads.
    ThreeFirst,
    /// Three distinct scores and tiebreaks.
    ThreeTiebreak,
}

impl Spread {
    /// As it is called on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Mode, order and ties of the board.
    pub fn rules(self) -> [&'static str; 3] {
        match self {
            Self::AscLaps => ["best", "asc", "first"],
            Self::ThreeFirst => ["sum", "desc", "first"],
            Self::ThreeTiebreak => ["best", "desc", "tiebreak"],
            _ => ["sum", "desc", "shared"],
        }
    }

    /// What `centile board create` is told of the scores to come.
    pub fn hints(self) -> &'static [&'static str] {
        if self == Self::WrongHints { &["--expected-points", "1000"] } else { &[] }
    }

    /// What comes with the arrival of a player, of `players` so far: an event or two.
    pub fn arrival(self, player: u64, random: &mut StdRng) -> Vec<Value> {
        let event = |player: u64, points: i64| json!({"user_id": format!("player-{player}"), "points": points});
        let bell = |random: &mut StdRng| (0..12).map(|_| random.random_range(0.0..1.0)).sum::<f64>() - 6.0;
        let three = |random: &mut StdRng| [10, 20, 50][random.random_range(0..3)];
        let points = match self {
            Self::Uniform | Self::WrongHints => random.random_range(0..=1_000_000),
            Self::Bottom => 1_000_000_000 - i64::try_from(player).unwrap_or(i64::MAX),
            Self::Normal => 1_000_000 + whole(bell(random) * 50_000.0),
            Self::Zipf => whole(1.0 / random.random_range(1e-6..1.0)),
            Self::Equal => 7,
            Self::TwoValued => random.random_range(0..=1),
            Self::Growing => {
                let newcomer = event(player, random.random_range(0..=100));
                let gains = random.random_range(1..=player);
                return vec![newcomer, event(gains, random.random_range(0..=1_000))];
            }
            Self::FrontRunner if player == 1 => 1_000_000_000_000_000,
            Self::LogNormal | Self::FrontRunner => whole((bell(random) * 1.5 + 8.0).exp()),
            Self::Negative => random.random_range(-1_000_000..=-1),
            Self::AscLaps => {
                let lap = 60_000 + whole((bell(random) * 0.5 + 9.0).exp());
                let again = 1 + random.random_range(0..player);
                let first = event(player, lap);
                let tried =
                    player.is_multiple_of(2).then(|| event(again, 60_000 + whole((bell(random) * 0.5 + 9.0).exp())));
                return std::iter::once(first).chain(tried).collect();
            }
            Self::ThreeShared | Self::ThreeFirst => three(random),
            Self::ThreeTiebreak => {
                let mut event = event(player, three(random));
                event["tiebreak"] = random.random_range(-3..=3).into();
                return vec![event];
            }
        };
        vec![event(player, points)]
    }
}

/// A number of points, cut to what a board takes.
#[expect(clippy::cast_possible_truncation, reason = "cut to the range before")]
fn whole(points: f64) -> i64 {
    points.clamp(-1e15, 1e15) as i64
}
