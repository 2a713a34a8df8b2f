//! Prints the results.

use crate::{
    common::{percentile, read::Times},
    sample::Counted,
};

/// Results of a board.
#[derive(Debug, Default)]
pub struct Grown {
    pub spread: String,
    pub players: u64,
    pub scores: u64,
    pub seconds: f64,
    /// Shares in the largest bucket after each part of the growth.
    pub largest_while_growing: Vec<f64>,
    /// Shares in the largest bucket at rest.
    pub largest: Option<f64>,
    /// Median time of a rank, in milliseconds, after each part of the growth.
    pub while_growing: Vec<f64>,
    /// Time from the last score until rebalancing finished.
    pub rest_seconds: f64,
    /// Lock times of steps in milliseconds, including the commit timed closest to each, and the
    /// rows moved.
    pub moved: Vec<(f64, i64)>,
    pub repositioned: Vec<(f64, i64)>,
    pub commit: Times,
    /// Rows counted for a rank, at rest.
    pub counted: Option<Counted>,
    pub last: Option<Times>,
    pub best: Option<Times>,
    pub wrong: Vec<String>,
}

/// A limit, and whether the board keeps it.
type Demand = (&'static str, bool);

impl Grown {
    /// Returns the rows moved between buckets per new player.
    fn rows_per_newcomer(&self) -> f64 {
        self.moved.iter().map(|step| step.1).sum::<i64>() as f64 / self.players.max(1) as f64
    }

    /// Returns a percentile of the lock times.
    fn hold(&self, percent: f64) -> f64 {
        let mut all: Vec<f64> = self.moved.iter().chain(&self.repositioned).map(|step| step.0).collect();
        percentile(&mut all, percent)
    }

    /// Returns the ratio of the slowest rank during growth to that at the end.
    fn slowest(&self) -> f64 {
        self.while_growing.iter().copied().fold(0.0, f64::max) / self.last.map_or(f64::NAN, |times| times.p50)
    }

    /// Returns the ratio of a rank's time to that in a rebuilt ranking.
    fn beside_best(&self) -> f64 {
        self.last.map_or(f64::NAN, |times| times.p50) / self.best.map_or(f64::NAN, |times| times.p50)
    }

    fn demands(&self) -> [Demand; 6] {
        [
            ("at most 1.8 shares in the largest bucket, at rest", self.largest.is_some_and(|shares| shares <= 1.8)),
            ("at most 2 rows moved per new player", self.rows_per_newcomer() <= 2.0),
            ("rank within 1.5 times the best case", self.beside_best() <= 1.5),
            ("rank during growth within 5 times that at the end", self.slowest() <= 5.0),
            ("lock held at most 20 ms at the 99th percentile", self.hold(99.0) <= 20.0 || self.hold(99.0).is_nan()),
            ("no faults", self.wrong.is_empty()),
        ]
    }

    pub fn print(&self) {
        let (Some(last), Some(best), Some(counted)) = (self.last, self.best, self.counted) else { return };
        let largest: Vec<String> = self.largest_while_growing.iter().map(|shares| format!("{shares:.1}")).collect();
        println!(
            "| {} | {} | {:.0} | {} / {} | {:.2} | {} | {:.2} | {:.0}, {} | {:.0} | {:.3}, {:.3} | {:.3}, {:.3} | {:.2} | {:.2} | {:.1}, {:.1}, {:.1} | {:.1}, {:.1} | {:.0} | {} |",
            self.spread,
            self.scores,
            self.scores as f64 / self.seconds,
            self.moved.len(),
            self.repositioned.len(),
            self.rows_per_newcomer(),
            largest.join(" "),
            self.largest.unwrap_or(f64::NAN),
            counted.mean,
            counted.most,
            counted.nearest,
            last.p50,
            last.p99,
            best.p50,
            best.p99,
            self.beside_best(),
            self.slowest(),
            self.hold(50.0),
            self.hold(99.0),
            self.hold(100.0),
            self.commit.p50,
            self.commit.p99,
            self.rest_seconds,
            if self.wrong.is_empty() { "yes".to_owned() } else { self.wrong.join("; ") },
        );
    }
}

pub fn head(players: u64, seed: u64) {
    println!(
        "Boards growing from 0 to {players} players through `centile serve`, 1,000 scores per request, 4 concurrent requests; seed {seed}."
    );
}

pub fn columns() {
    println!(
        "| scores | accepted | a second | steps: moves / repositions | rows moved a newcomer \
         | shares in the largest bucket after each tenth | at rest | rows counted a rank: mean, most | to the nearer end \
         | rank, ms: p50, p99 | rebuilt: p50, p99 | ÷ rebuilt | slowest while growing ÷ end \
         | lock held, ms: p50, p99, longest step | a commit, ms: p50, p99 | s to come to rest | sound |"
    );
    println!("|{}", " --- |".repeat(17));
}

/// Prints which limits hold for all boards, and the exceptions.
pub fn demands(all: &[Grown]) {
    println!();
    let Some(names) = all.first().map(Grown::demands) else { return };
    for (n, (name, _)) in names.iter().enumerate() {
        let failed: Vec<&str> =
            all.iter().filter(|grown| !grown.demands()[n].1).map(|grown| grown.spread.as_str()).collect();
        println!(
            "- {name}: {}",
            if failed.is_empty() { "holds".to_owned() } else { format!("NOT for {}", failed.join(", ")) }
        );
    }
}
