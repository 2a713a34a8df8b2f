//! Simulated games. Their scores are written over HTTP with a server key, as by a game server.

use std::{fmt, num::NonZero, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use reqwest::{Client, RequestBuilder};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    Error, Result,
    dev::demo::{
        LAPS_BOARD, MAIN_BOARD,
        players::{self, Player},
    },
};

/// Games played on each board at the first start.
const INITIAL_GAMES: [(&str, usize); 2] = [(MAIN_BOARD, 2_500), (LAPS_BOARD, 500)];

/// Scores per request in the initial games.
const BATCH: usize = 250;

/// Concurrent requests that name players.
const NAMING_CONCURRENCY: usize = 16;

/// One game in this many is a lap.
const LAPS_EVERY: u32 = 4;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Plays games against a running service.
#[derive(Debug)]
pub struct Games {
    client: Client,
    url: String,
    key: String,
    players: Vec<Player>,
    random: StdRng,
}

/// A game that was played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Game {
    /// Slug of the board.
    pub board: &'static str,
    /// Name of the player.
    pub name: String,
    /// Points of the game; on [`LAPS_BOARD`] the milliseconds of the lap.
    pub points: i64,
    /// The player's all-time score after the game.
    pub score: i64,
    /// The player's all-time rank after the game.
    pub rank: u64,
    /// The rank that the previous score would have now; `None` for a new player.
    pub previous_rank: Option<u64>,
}

impl fmt::Display for Game {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { board, name, points, score, rank, .. } = self;
        write!(f, "{board}: {name} plays {points}, has {score}, rank {rank}")?;
        match self.previous_rank {
            Some(previous) if previous != *rank => write!(f, " (was {previous})"),
            Some(_) => Ok(()),
            None => f.write_str(" (new)"),
        }
    }
}

/// The part of an event result that the demo needs.
#[derive(Debug, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum EventResult {
    Accepted { periods: Periods },
    Refused { error: Value },
}

/// The part of the standings that the demo needs.
#[derive(Debug, Deserialize)]
struct Periods {
    all_time: Standing,
}

#[derive(Debug, Deserialize)]
struct Standing {
    score: i64,
    rank: Option<u64>,
    previous_rank: Option<u64>,
}

impl Games {
    /// Returns games against the service at `url`, with the server key `key`. The same `seed` gives
    /// the same games.
    pub fn new(url: &str, key: &str, seed: u64) -> Result<Self> {
        // Ignore proxies in the environment: the service is local.
        let client = Client::builder().no_proxy().timeout(REQUEST_TIMEOUT).build();
        Ok(Self {
            client: client.map_err(|error| Error::Internal(format!("cannot create an HTTP client: {error}")))?,
            url: url.to_owned(),
            key: key.to_owned(),
            players: players::all(),
            random: StdRng::seed_from_u64(seed),
        })
    }

    /// Returns the number of players on the main board.
    pub async fn players(&self) -> Result<u64> {
        #[derive(Deserialize)]
        struct Answer {
            players: u64,
        }
        let request = self.client.get(format!("{}/v1/boards/{MAIN_BOARD}/scores?limit=1", self.url));
        Ok(answer::<Answer>(request).await?.players)
    }

    /// Names the players and plays about 3,000 initial games. Calls `progress` with the games
    /// played and their total.
    pub async fn play_first(&mut self, progress: impl Fn(usize, usize)) -> Result<usize> {
        let total = INITIAL_GAMES.iter().map(|(_, games)| games).sum();
        progress(0, total);
        stream::iter(&self.players)
            .map(|player| self.name(player))
            .buffer_unordered(NAMING_CONCURRENCY)
            .try_collect::<()>()
            .await?;
        let mut played = 0;
        for (board, games) in INITIAL_GAMES {
            for begin in (0..games).step_by(BATCH) {
                let events: Vec<Value> = (begin..games.min(begin + BATCH)).map(|_| self.event(board).1).collect();
                played += events.len();
                self.write(board, &events).await?;
                progress(played, total);
            }
        }
        Ok(total)
    }

    /// Plays `per_second` games per second until this future is dropped, and calls `played` for
    /// each. Logs failed games.
    pub async fn play_on(&mut self, per_second: NonZero<u32>, played: impl Fn(&Game)) {
        let mut ticks = interval(Duration::from_secs(1) / per_second.get());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.play_one().await {
                Ok(game) => played(&game),
                Err(error) => tracing::warn!(%error, "a game failed"),
            }
        }
    }

    /// Plays one game on a random board. Fails if the service refuses the score.
    pub async fn play_one(&mut self) -> Result<Game> {
        let board = if self.random.random_ratio(1, LAPS_EVERY) { LAPS_BOARD } else { MAIN_BOARD };
        let (player, event) = self.event(board);
        let name = self.players[player].name.clone();
        let request = self.client.post(format!("{}/v1/boards/{board}/scores?ranks=true", self.url));
        match answer(request.bearer_auth(&self.key).json(&event)).await? {
            EventResult::Accepted { periods: Periods { all_time: Standing { score, rank, previous_rank } } } => {
                Ok(Game {
                    board,
                    name,
                    points: event["points"].as_i64().unwrap_or_default(),
                    score,
                    rank: rank.ok_or_else(|| Error::Internal("the response to a score has no rank".into()))?,
                    previous_rank,
                })
            }
            EventResult::Refused { error } => Err(Error::Internal(format!("a score was refused: {error}"))),
        }
    }

    /// Simulates a game on `board`. Returns the player's index and the score event.
    fn event(&mut self, board: &str) -> (usize, Value) {
        // Some players play far more often than others.
        let share: f64 = self.random.random();
        let index = players::by_activity(share.powf(1.5));
        let Player { id, skill, .. } = &self.players[index];
        let luck: f64 = self.random.random();
        let (points, reason) = match board {
            LAPS_BOARD => (61_000.0 + (1.0 - skill) * 22_000.0 + luck * 9_000.0, "lap finished"),
            _ => (1.0 + skill * 60.0 + luck * 40.0, "match played"),
        };
        #[expect(clippy::cast_possible_truncation, reason = "a small number, truncated on purpose")]
        let points = points as i64;
        (index, json!({ "user_id": id, "points": points, "reason": reason }))
    }

    async fn name(&self, player: &Player) -> Result<()> {
        let request = self.client.put(format!("{}/v1/users/{}", self.url, player.id)).bearer_auth(&self.key);
        answer::<Value>(request.json(&json!({ "name": player.name }))).await.map(drop)
    }

    /// Writes several events in one request. Fails if one is refused.
    async fn write(&self, board: &str, events: &[Value]) -> Result<()> {
        #[derive(Deserialize)]
        struct Answer {
            results: Vec<EventResult>,
        }
        let request = self.client.post(format!("{}/v1/boards/{board}/scores/batch", self.url));
        let answer: Answer = answer(request.bearer_auth(&self.key).json(&json!({ "events": events }))).await?;
        let refused = answer.results.into_iter().find_map(|result| match result {
            EventResult::Refused { error } => Some(error),
            EventResult::Accepted { .. } => None,
        });
        refused.map_or(Ok(()), |error| Err(Error::Internal(format!("a score was refused: {error}"))))
    }
}

/// Sends a request and parses the response. Fails unless its status is a success.
async fn answer<T: serde::de::DeserializeOwned>(request: RequestBuilder) -> Result<T> {
    let failed = |error: reqwest::Error| Error::Internal(format!("the service does not answer: {error}"));
    let response = request.send().await.map_err(failed)?;
    let status = response.status();
    if status.is_success() {
        return response.json().await.map_err(failed);
    }
    let text = response.text().await.map_err(failed)?;
    Err(Error::Internal(format!("the service returned {status}: {text}")))
}
