//! Whether answers are right: ranks of a sample, the first ten, the page far down and neighbours over HTTP, against plain `rank()`
//! over what the system itself holds to be true. A wrong answer is no result.

use std::collections::HashMap;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    common::{Bench, Outcome},
    system::{BOARD, Site, System},
};

/// Players whose ranks are compared, and of them those whose neighbours are.
const SAMPLE: usize = 200;
const WITH_NEIGHBOURS: usize = 20;

/// What every system answers of a player.
#[derive(Debug, Deserialize)]
pub struct Player {
    pub user_id: String,
    pub rank: i64,
    pub score: i64,
    #[serde(default)]
    above: Vec<Player>,
    #[serde(default)]
    below: Vec<Player>,
    #[serde(default)]
    pub counts_age_ms: u64,
}

#[derive(Debug, Deserialize)]
struct Page {
    scores: Vec<Player>,
}

/// What `rank()` says.
#[derive(Debug, Clone, Copy)]
struct Truth {
    score: i64,
    rank: i64,
    /// Players with this score.
    equals: i64,
}

/// Compares the answers of a server that nobody writes to.
pub async fn compare(bench: &Bench, site: &Site, system: System, address: &str, page: u64) -> Outcome<()> {
    let mut random = StdRng::seed_from_u64(2);
    let sample: Vec<_> = (0..SAMPLE).map(|_| format!("player-{}", random.random_range(1..=site.players))).collect();
    let oracle = Oracle::read(bench, site, system, &sample, page)?;
    let scores = format!("{address}/v1/boards/{BOARD}/scores");
    let wrong = |what: &str, truth: &dyn std::fmt::Debug, said: &dyn std::fmt::Debug| -> Outcome<()> {
        Err(format!("{}: {what} is {truth:?}, and it says {said:?}", system.title()).into())
    };
    for (n, user) in sample.iter().enumerate() {
        let truth = oracle.players.get(user).ok_or("a player without a rank")?;
        let said: Player = get(&format!("{scores}/{user}?around=0")).await?;
        if said.user_id != *user || !truth.allows(&said, system) {
            wrong(user, truth, &said)?;
        }
        if n < WITH_NEIGHBOURS {
            let said: Player = get(&format!("{scores}/{user}?around=4")).await?;
            let scores: Vec<_> = said.above.iter().chain([&said]).chain(&said.below).map(|row| row.score).collect();
            let expected = oracle.neighbours.get(user);
            if !truth.allows(&said, system) || expected.is_some_and(|expected| *expected != scores) {
                wrong(&format!("{user} with neighbours"), &expected, &said)?;
            }
            for row in said.above.iter().chain(&said.below) {
                let alone: Player =
                    get(&format!("{address}/v1/boards/{BOARD}/scores/{}?around=0", row.user_id)).await?;
                if (alone.rank, alone.score) != (row.rank, row.score) {
                    wrong(&format!("{} by himself", row.user_id), &alone, &row)?;
                }
            }
        }
    }
    for (from, expected) in [(1, &oracle.top), (page, &oracle.page)] {
        let said: Page = get(&format!("{scores}?from={from}&limit=10")).await?;
        let right = said.scores.iter().zip(expected).all(|(row, truth)| truth.allows(row, system));
        if said.scores.len() != expected.len() || !right {
            wrong(&format!("the page from {from}"), expected, &said)?;
        }
    }
    Ok(())
}

impl Truth {
    /// Whether an answer is right. Where equals do not share a rank, each has one of their places.
    fn allows(self, said: &Player, system: System) -> bool {
        let last = if system.shares_ranks() { self.rank } else { self.rank + self.equals - 1 };
        said.score == self.score && (self.rank..=last).contains(&said.rank)
    }
}

/// What is true of a sample and of two pages.
struct Oracle {
    players: HashMap<String, Truth>,
    /// Scores from four places above to four below, of players of the sample without equals.
    neighbours: HashMap<String, Vec<i64>>,
    top: Vec<Truth>,
    page: Vec<Truth>,
}

impl Oracle {
    fn read(bench: &Bench, site: &Site, system: System, sample: &[String], page: u64) -> Outcome<Self> {
        let users = sample.join(",");
        let few = sample[..WITH_NEIGHBOURS].join(",");
        let all = format!(
            "SET work_mem = '256MB'; CREATE TEMP TABLE ranked AS
             SELECT user_id, score, rank() OVER w AS rank, row_number() OVER w AS position
             FROM ({}) a WINDOW w AS (ORDER BY score DESC);
             CREATE INDEX ON ranked (score); CREATE INDEX ON ranked (position); CREATE INDEX ON ranked (user_id); ANALYZE ranked",
            system.authority()
        );
        let truth = "r.score, r.rank, (SELECT count(*) FROM ranked e WHERE e.score = r.score)";
        let text = bench.psql_in(
            &site.database,
            &[
                &all,
                &format!("SELECT 'player', r.user_id, {truth} FROM ranked r WHERE r.user_id = ANY ('{{{users}}}')"),
                &format!("SELECT 'top', '', {truth} FROM ranked r WHERE r.position BETWEEN 1 AND 10 ORDER BY r.position"),
                &format!(
                    "SELECT 'page', '', {truth} FROM ranked r WHERE r.position BETWEEN {page} AND {page} + 9 ORDER BY r.position"
                ),
                &format!(
                    "SELECT 'neighbour', p.user_id, n.score, 0, 0 FROM ranked p JOIN ranked n ON n.position BETWEEN p.rank - 4 AND p.rank + 4
                     WHERE p.user_id = ANY ('{{{few}}}') AND (SELECT count(*) FROM ranked e WHERE e.score = p.score) = 1
                     ORDER BY p.user_id, n.position"
                ),
            ],
        )?;
        let mut oracle =
            Self { players: HashMap::new(), neighbours: HashMap::new(), top: Vec::new(), page: Vec::new() };
        for line in text.lines() {
            let [what, user, score, rank, equals] = line.split('|').collect::<Vec<_>>()[..] else {
                return Err(format!("not a line of ranks: {line}").into());
            };
            let truth = Truth { score: score.parse()?, rank: rank.parse()?, equals: equals.parse()? };
            match what {
                "player" => drop(oracle.players.insert(user.to_owned(), truth)),
                "top" => oracle.top.push(truth),
                "page" => oracle.page.push(truth),
                _ => oracle.neighbours.entry(user.to_owned()).or_default().push(truth.score),
            }
        }
        Ok(oracle)
    }
}

/// What a server answers.
pub async fn get<T: DeserializeOwned>(url: &str) -> Outcome<T> {
    let body = reqwest::get(url).await?.error_for_status()?.text().await?;
    Ok(serde_json::from_str(&body)?)
}
