//! Checks responses: ranks of a sample, the top ten, a far page and neighbours over HTTP, against
//! plain `rank()` over the system's own source of truth. A wrong response ends the run.

use std::{
    collections::{HashMap, HashSet},
    ops::RangeInclusive,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    common::{Bench, BenchResult},
    system::{BOARD, Site, System},
};

/// Number of players whose ranks are compared, and of those whose neighbours are compared too.
const SAMPLE: usize = 200;
const WITH_NEIGHBOURS: usize = 20;
/// Neighbours on each side.
const AROUND: i64 = 4;
/// Concurrent requests. One at a time would take minutes if a rank takes most of a second.
const AT_ONCE: usize = 4;

/// The part of a player's response that all systems share.
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
    data: Vec<Player>,
}

/// A player by `rank()`.
#[derive(Debug, Clone, Copy)]
struct Truth {
    score: i64,
    rank: i64,
    /// Number of players with this score.
    equals: i64,
}

/// Compares the responses of a server without writes.
pub async fn compare(bench: &Bench, site: &Site, system: System, address: &str, page: u64) -> BenchResult<()> {
    let mut random = StdRng::seed_from_u64(2);
    let sample: Vec<_> = (0..SAMPLE).map(|_| format!("player-{}", random.random_range(1..=site.players))).collect();
    let oracle = Oracle::read(bench, site, system, &sample, page)?;
    let scores = format!("{address}/v1/boards/{BOARD}/scores");
    let wrong = |what: &str, truth: &dyn std::fmt::Debug, said: &dyn std::fmt::Debug| -> BenchResult<()> {
        Err(format!("{}: {what} is {truth:?}, not {said:?}", system.title()).into())
    };
    let player = async |(n, user): (usize, &String)| -> BenchResult<()> {
        let truth = oracle.players.get(user).ok_or("a player has no rank")?;
        let said: Player = get(&format!("{scores}/{user}?around=0")).await?;
        if said.user_id != *user || !truth.allows(&said, system) {
            wrong(user, truth, &said)?;
        }
        if n < WITH_NEIGHBOURS {
            let said: Player = get(&format!("{scores}/{user}?around={AROUND}")).await?;
            let expected = oracle.neighbours.get(user).ok_or("a player has no neighbours")?;
            if !truth.allows(&said, system) || !expected.allow(&said, *truth) {
                wrong(&format!("{user} with neighbours"), expected, &said)?;
            }
            let rows: Vec<_> = said.above.iter().chain([&said]).chain(&said.below).collect();
            if let Some((alone, row)) = not_alike(&scores, &rows).await? {
                wrong(&format!("{} by himself", row.user_id), &alone, row)?;
            }
        }
        Ok(())
    };
    let players = stream::iter(sample.iter().enumerate()).map(player).buffer_unordered(AT_ONCE);
    players.try_collect::<()>().await?;
    for (from, expected) in [(1, &oracle.top), (page, &oracle.page)] {
        let said: Page = get(&format!("{scores}?from={from}&limit=10")).await?;
        let right = said.data.iter().zip(expected).all(|(row, truth)| truth.allows(row, system));
        if said.data.len() != expected.len() || !right {
            wrong(&format!("the page from {from}"), expected, &said)?;
        }
        if let Some((alone, row)) = not_alike(&scores, &said.data.iter().collect::<Vec<_>>()).await? {
            wrong(&format!("{} by himself", row.user_id), &alone, row)?;
        }
    }
    Ok(())
}

/// Returns a row that occurs twice, or that differs from the response for the same player alone.
async fn not_alike<'a>(scores: &str, rows: &[&'a Player]) -> BenchResult<Option<(Option<Player>, &'a Player)>> {
    let mut seen = HashSet::new();
    for row in rows {
        if !seen.insert(&row.user_id) {
            return Ok(Some((None, row)));
        }
        let alone: Player = get(&format!("{scores}/{}?around=0", row.user_id)).await?;
        if (alone.rank, alone.score) != (row.rank, row.score) {
            return Ok(Some((Some(alone), row)));
        }
    }
    Ok(None)
}

impl Truth {
    /// Returns whether a response is right. If equal scores do not share a rank, any of their
    /// places is right.
    fn allows(self, said: &Player, system: System) -> bool {
        let last = if system.shares_ranks() { self.rank } else { self.rank + self.equals - 1 };
        said.score == self.score && (self.rank..=last).contains(&said.rank)
    }
}

/// Positions and scores around a player and those with the same score: from [`AROUND`] places
/// before the first of them to as many after the last.
#[derive(Debug, Default)]
struct Neighbours(Vec<(i64, i64)>);

impl Neighbours {
    /// Returns whether the scores are those around any place of the equal scores. The system
    /// decides the order of equal scores.
    fn allow(&self, said: &Player, truth: Truth) -> bool {
        let scores = |rows: &[Player]| rows.iter().map(|row| row.score).collect::<Vec<_>>();
        let (above, below) = (scores(&said.above), scores(&said.below));
        (truth.rank..truth.rank + truth.equals).any(|position| {
            let at = |places: RangeInclusive<i64>| {
                self.0.iter().filter(move |(place, _)| places.contains(place)).map(|(_, score)| *score)
            };
            at(position - AROUND..=position - 1).eq(above.iter().copied())
                && at(position + 1..=position + AROUND).eq(below.iter().copied())
        })
    }
}

/// The right responses for a sample and for two pages.
struct Oracle {
    players: HashMap<String, Truth>,
    neighbours: HashMap<String, Neighbours>,
    top: Vec<Truth>,
    page: Vec<Truth>,
}

impl Oracle {
    fn read(bench: &Bench, site: &Site, system: System, sample: &[String], page: u64) -> BenchResult<Self> {
        let users = sample.join(",");
        let few = sample[..WITH_NEIGHBOURS].join(",");
        let all = format!(
            "SET work_mem = '256MB'; CREATE TEMP TABLE ranked AS
             SELECT user_id, score, rank() OVER w AS rank, row_number() OVER w AS position
             FROM ({}) a WINDOW w AS (ORDER BY score DESC);
             CREATE INDEX ON ranked (score); CREATE INDEX ON ranked (position); ANALYZE ranked",
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
                    "SELECT 'neighbour', p.user_id, n.score, n.position, 0
                     FROM ranked p CROSS JOIN LATERAL (SELECT count(*) AS equals FROM ranked e WHERE e.score = p.score) e
                     JOIN ranked n ON n.position BETWEEN p.rank - {AROUND} AND p.rank + e.equals - 1 + {AROUND}
                     WHERE p.user_id = ANY ('{{{few}}}') ORDER BY p.user_id, n.position"
                ),
            ],
        )?;
        let mut oracle =
            Self { players: HashMap::new(), neighbours: HashMap::new(), top: Vec::new(), page: Vec::new() };
        for line in text.lines() {
            let [what, user, score, rank, equals] = line.split('|').collect::<Vec<_>>()[..] else {
                return Err(format!("invalid line of ranks: {line}").into());
            };
            let truth = Truth { score: score.parse()?, rank: rank.parse()?, equals: equals.parse()? };
            match what {
                "player" => drop(oracle.players.insert(user.to_owned(), truth)),
                "top" => oracle.top.push(truth),
                "page" => oracle.page.push(truth),
                // For neighbours, the rank column contains the position.
                _ => oracle.neighbours.entry(user.to_owned()).or_default().0.push((truth.rank, truth.score)),
            }
        }
        Ok(oracle)
    }
}

/// Sends a request and parses the response.
pub async fn get<T: DeserializeOwned>(url: &str) -> BenchResult<T> {
    let body = reqwest::get(url).await?.error_for_status()?.text().await?;
    Ok(serde_json::from_str(&body)?)
}
