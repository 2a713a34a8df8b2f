//! Distributions of scores.

use clap::ValueEnum;
use rand::{RngExt as _, rngs::StdRng};
use serde_json::{Value, json};

/// A board's rules and the distribution of its scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Spread {
    /// Uniform, up to a million.
    Uniform,
    /// Normal, around a million.
    Normal,
    /// As in many games: mostly low, with a long tail.
    LogNormal,
    /// Most players share a few low scores.
    Zipf,
    /// All players have 7.
    Equal,
    /// Half of the players have 0, half have 1.
    TwoValued,
    /// New players start low; with each, a random player gains points.
    Growing,
    /// Log-normal, with one player at 10^15.
    FrontRunner,
    /// Negative.
    Negative,
    /// Each new player is below all others.
    Bottom,
    /// Uniform up to a million, on a board whose first layout expects at most a thousand.
    WrongHints,
    /// Lap times: the lowest is best, and every second player tries again.
    AscLaps,
    /// Three distinct scores; players of equal score share a rank.
    ThreeShared,
    /// Three distinct scores; the earlier player leads.
    ThreeFirst,
    /// Three distinct scores and tiebreaks.
    ThreeTiebreak,
}

impl Spread {
    /// Returns its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Returns mode, order and ties of the board.
    pub fn rules(self) -> [&'static str; 3] {
        match self {
            Self::AscLaps => ["best", "asc", "first"],
            Self::ThreeFirst => ["sum", "desc", "first"],
            Self::ThreeTiebreak => ["best", "desc", "tiebreak"],
            _ => ["sum", "desc", "shared"],
        }
    }

    /// Returns the layout hint for `centile board create`.
    pub fn hints(self) -> &'static [&'static str] {
        if self == Self::WrongHints { &["--expected-points", "1000"] } else { &[] }
    }

    /// Returns the one or two events of a new player, with `players` so far.
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

/// Clamps points to the range of a board.
#[expect(clippy::cast_possible_truncation, reason = "clamped to the range")]
fn whole(points: f64) -> i64 {
    points.clamp(-1e15, 1e15) as i64
}
