//! Compares reads of two rankings of a million players: the top, a standing, and one with neighbours.

use std::path::Path;

use super::{
    Bench, BenchResult, Serve, median,
    wrk::{self, Run},
};

/// Connections of the closed loops, and seconds of each. The first round warms up: indexes load.
const CONNECTIONS: u32 = 32;
const SECONDS: u32 = 10;

/// Prints a table of responses per second. A ranking is given as name, board and period.
pub fn compare(
    bench: &Bench,
    dir: &Path,
    players: u32,
    rounds: u32,
    rankings: &[(&str, &str, &str); 2],
) -> BenchResult<()> {
    let serve = Serve::start(bench, &["--no-maintenance"])?;
    let [(first, ..), (second, ..)] = rankings;
    println!("| read | {first} (1/s) | {second} (1/s) | ratio |\n| --- | --- | --- | --- |");
    for (what, path) in [
        ("top 100", "scores?limit=100&"),
        ("standing", "scores/player-%d?"),
        ("around 4", "scores/player-%d?around=4&"),
    ] {
        let mut rates: [Vec<f64>; 2] = Default::default();
        for seed in 0..=rounds {
            for ((_, board, period), rates) in rankings.iter().zip(&mut rates) {
                let request = format!(
                    "wrk.format('GET', string.format('/v1/boards/{board}/{path}period={period}', math.random({players})))"
                );
                let run = Run {
                    address: &serve.address,
                    connections: CONNECTIONS,
                    seconds: SECONDS,
                    seed,
                    key: "",
                    request: &request,
                    varies: true,
                };
                let answers = wrk::run(dir, &run)?;
                if answers.errors > 0 {
                    return Err(format!("{what}: {} errors", answers.errors).into());
                }
                if seed > 0 {
                    rates.push(answers.requests as f64 / answers.seconds);
                }
            }
        }
        let [before, after] = rates.map(median);
        println!("| {what} | {before:.0} | {after:.0} | {:.2} |", after / before);
    }
    println!();
    Ok(())
}
