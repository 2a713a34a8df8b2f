//! A board of one period with random rules, and players who join, score and leave.

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::json;
use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    expected::{Key, Places},
    sorted::Sorted,
};
use crate::{
    store::property::layout::check_ranking,
    support::{
        TestDb,
        layout::{self, Step},
        next_number,
        oracle::lane_of,
    },
};

/// Every mode with every rule for ties that it allows.
pub const KINDS: [(&str, &str); 11] = [
    ("sum", "shared"),
    ("sum", "first"),
    ("best", "shared"),
    ("best", "first"),
    ("best", "tiebreak"),
    ("latest", "shared"),
    ("latest", "first"),
    ("latest", "tiebreak"),
    ("sum", "second"),
    ("best", "second"),
    ("latest", "second"),
];

/// Distributions of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scores {
    Uniform,
    /// Three distinct scores.
    Three,
    Equal,
    /// Each score of new and old players exceeds all earlier ones.
    Growing,
    /// Few large scores, many small ones, and one far above all others.
    FrontRunner,
    /// Both extremes of the score range, and few scores in between.
    Extreme,
}

impl Scores {
    pub const ALL: [Self; 6] =
        [Self::Uniform, Self::Three, Self::Equal, Self::Growing, Self::FrontRunner, Self::Extreme];
}

/// A score event of a player.
#[derive(Debug, Clone, Copy)]
struct Event {
    player: u32,
    points: i64,
    /// On boards with tiebreaks.
    tiebreak: Option<i64>,
}

pub struct Arena {
    pub connection: PgConnection,
    pub rng: StdRng,
    /// The id of its board.
    pub number: i32,
    pub ranking_id: i64,
    url: String,
    slug: String,
    lanes: i16,
    ties: &'static str,
    ascending: bool,
    players: u32,
    high: i64,
}

impl Arena {
    /// Creates a board whose rules follow from the seed; the seed selects mode and ties among [`KINDS`].
    pub async fn random(db: &TestDb, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut connection = PgConnection::connect(db.url()).await.unwrap();
        let (mode, ties) = KINDS[usize::try_from(seed).unwrap() % KINDS.len()];
        let ascending = rng.random();
        let lanes = rng.random_range(1..=4);
        let mut rules = json!({
            "mode": mode, "order": if ascending { "asc" } else { "desc" }, "ties": ties, "periods": ["all_time"],
            "lanes": lanes, "points_min": -i64::MAX, "points_max": i64::MAX,
        });
        if ties == "second" {
            rules["tiebreak_order"] = if rng.random() { "asc" } else { "desc" }.into();
        }
        if rng.random() {
            rules["first_layout"] = json!({"bounds": (-10..10).map(|n| n * 50).collect::<Vec<i64>>()});
        }
        let slug = format!("arena{}", next_number());
        let number: i32 = sqlx::query_scalar("SELECT centile.create_board($1, $2)")
            .bind(&slug)
            .bind(rules)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        let statement = "SELECT centile_store.open_periods($1, ARRAY[now()])";
        sqlx::query(statement).bind(number).execute(&mut connection).await.unwrap();
        let ranking_id = current(&mut connection, number).await;
        let url = db.url().to_owned();
        Self { connection, rng, number, ranking_id, url, slug, lanes, ties, ascending, players: 0, high: 0 }
    }

    /// Adds scores of `newcomers` new players and of as many existing ones.
    pub async fn play(&mut self, scores: Scores, newcomers: u32) {
        let mut events = Vec::new();
        for _ in 0..newcomers {
            let old = self.rng.random_range(0..=self.players);
            self.players += 1;
            for player in [old, self.players] {
                self.high += 7;
                let points = match scores {
                    Scores::Uniform => self.rng.random_range(-1_000..=1_000),
                    Scores::Three => *[-5, 0, 5].choose(&mut self.rng).unwrap(),
                    Scores::Equal if player == old && old > 0 => continue,
                    Scores::Equal => 3,
                    Scores::Growing => self.high,
                    Scores::FrontRunner if self.rng.random_ratio(1, 300) => 1_000_000_000_000_000,
                    Scores::FrontRunner => 1_000 / self.rng.random_range(1..=200),
                    // Another value could overflow a sum.
                    Scores::Extreme if player == old => 0,
                    Scores::Extreme => {
                        *[i64::MAX, -i64::MAX, i64::MAX - 1, 0, 1 - i64::MAX].choose(&mut self.rng).unwrap()
                    }
                };
                let tiebreaks: &[i64] = match self.ties {
                    "tiebreak" => &[-2048, 0, 0, 2047],
                    "second" => &[-i64::MAX, -1, 0, 1, i64::MAX],
                    _ => &[],
                };
                let tiebreak = tiebreaks.choose(&mut self.rng).copied();
                events.push(Event { player, points, tiebreak });
            }
        }
        record_all(&mut self.connection, self.number, self.lanes, &events).await;
    }

    /// Starts writers with separate connections. Each writes at least `batches` batches of a few
    /// scores, and continues until `stop`.
    pub fn writers(&mut self, writers: u32, batches: u32, stop: &CancellationToken) -> Vec<JoinHandle<()>> {
        let mut all = Vec::new();
        for writer in 0..writers {
            let (url, board, lanes, stop) = (self.url.clone(), self.number, self.lanes, stop.clone());
            let mut rng = StdRng::seed_from_u64(self.rng.random());
            all.push(tokio::spawn(async move {
                let mut connection = PgConnection::connect(&url).await.unwrap();
                for batch in 0.. {
                    if batch >= batches && stop.is_cancelled() {
                        return;
                    }
                    let event = |_| {
                        let player = rng.random_range(0..1_000) * writers + writer;
                        Event { player, points: rng.random_range(-500..500), tiebreak: None }
                    };
                    let events: Vec<Event> = (0..20).map(event).collect();
                    record_all(&mut connection, board, lanes, &events).await;
                }
            }));
        }
        all
    }

    /// Resets all players but one in `one_in`.
    pub async fn leave(&mut self, one_in: u32) {
        sqlx::query(
            "SELECT centile.reset_player($1, u.external_id, 'left')
             FROM centile_store.leaderboard l JOIN centile_store.users u ON u.id = l.user_id
             WHERE l.ranking_id = $2 AND u.id % $3 <> 0",
        )
        .bind(&self.slug)
        .bind(self.ranking_id)
        .bind(i64::from(one_in))
        .execute(&mut self.connection)
        .await
        .unwrap();
    }

    /// Takes random steps, so that players are in many buckets.
    pub async fn scatter(&mut self) {
        assert!(layout::scatter(&mut self.connection, self.ranking_id, &mut self.rng, layout::MANY).await > 100);
    }

    /// Moves all players to one place, counted from 1. Returns their number.
    pub async fn gather(&mut self, place: i32) -> i32 {
        loop {
            let (number, players) = layout::occupied(&mut self.connection, self.ranking_id).await;
            let all = players.iter().sum::<i64>();
            let ends = [players.iter().position(|some| *some > 0), players.iter().rposition(|some| *some > 0)];
            let [lowest, highest] = ends.map(|index| i32::try_from(index.unwrap()).unwrap() + 1);
            let (from, to) = match (lowest < place, highest > place) {
                (true, _) => (lowest, lowest + 1),
                (false, true) => (highest, highest - 1),
                (false, false) => return i32::try_from(all).unwrap(),
            };
            let step = Step::Move { from, to, rows: i32::try_from(all).unwrap() };
            assert!(layout::take(&mut self.connection, self.ranking_id, number, step).await.unwrap().is_some());
        }
    }

    /// Takes random steps. After each step, everything stored and everything read must be as
    /// predicted.
    pub async fn step_and_check(&mut self, steps: u32) {
        let sorted = self.sorted().await;
        self.check(&sorted, "before any step").await;
        for _ in 0..steps {
            let (number, players) = layout::occupied(&mut self.connection, self.ranking_id).await;
            let Some(step) = self.step(&players) else { return };
            let what = format!("after {step:?} from {players:?}");
            let mut expected = self.places().await;
            let keys: Vec<Key> = sorted.keys();
            let rows = expected.take(&keys, step);
            let done = layout::take(&mut self.connection, self.ranking_id, number, step).await.unwrap();
            assert_eq!(done, Some(rows), "{what}");
            assert_eq!(self.places().await, expected, "{what}");
            assert_eq!(layout::occupied(&mut self.connection, self.ranking_id).await.0, number + 1, "{what}");
            self.check(&sorted, &what).await;
        }
    }

    /// Returns a valid step: usually one that `centile maintain` could take, sometimes one that it
    /// never would.
    fn step(&mut self, players: &[i64]) -> Option<Step> {
        let step = layout::random_step(&mut self.rng, players)?;
        Some(match step {
            Step::Move { from, to, .. } if self.rng.random_ratio(1, 6) => Step::Move { from, to, rows: i32::MAX },
            Step::Move { rows, .. } if self.rng.random_ratio(1, 6) => {
                let (from, to) = *[(1, 2), (2, 1), (99, 100), (100, 99)].choose(&mut self.rng).unwrap();
                Step::Move { from, to, rows }
            }
            // An empty bucket is allowed: its range moves.
            Step::Move { .. } if self.rng.random_ratio(1, 6) => {
                let from = self.rng.random_range(2..=99);
                let to = if self.rng.random() { from + 1 } else { from - 1 };
                Step::Move { from, to, rows: 10 }
            }
            step => step,
        })
    }

    /// Compares everything stored, and everything read of each player, with a sorted list.
    pub async fn check(&mut self, sorted: &Sorted, what: &str) {
        check_ranking(&mut self.connection, self.ranking_id, what).await;
        sorted.check(&mut self.connection, &mut self.rng, what).await;
    }

    /// Reads the players in their current order.
    pub async fn sorted(&mut self) -> Sorted {
        Sorted::read(&mut self.connection, self.ranking_id, self.ties == "shared", self.ascending).await
    }

    /// Reads the stored buckets and bounds.
    pub async fn places(&mut self) -> Places {
        Places::read(&mut self.connection, self.ranking_id).await
    }

    /// Builds a second ranking and makes it the current one.
    pub async fn rebuild(&mut self) {
        sqlx::query("SELECT testing.rebuild((SELECT id FROM centile_store.periods WHERE board_id = $1))")
            .bind(self.number)
            .execute(&mut self.connection)
            .await
            .unwrap();
        self.ranking_id = current(&mut self.connection, self.number).await;
    }

    /// Returns everything stored of the ranking, as text.
    pub async fn dump(&mut self) -> Vec<String> {
        self.dump_of(self.ranking_id).await
    }

    /// Like [`Self::dump`], for another ranking.
    pub async fn dump_of(&mut self, ranking_id: i64) -> Vec<String> {
        sqlx::query_scalar(
            "SELECT x FROM (
                 SELECT 'c' || c::text FROM centile_store.bucket_counts c WHERE ranking_id = $1
                 UNION ALL SELECT 'r' || r::text FROM centile_store.leaderboard_bucket r WHERE ranking_id = $1
                 UNION ALL SELECT 'g' || g::text FROM centile_store.rankings g WHERE id = $1) AS x (x)
             ORDER BY x",
        )
        .bind(ranking_id)
        .fetch_all(&mut self.connection)
        .await
        .unwrap()
    }
}

fn name(player: u32) -> String {
    format!("p{player}")
}

async fn current(connection: &mut PgConnection, board: i32) -> i64 {
    let statement = "SELECT ranking_id FROM centile_store.periods WHERE board_id = $1";
    sqlx::query_scalar(statement).bind(board).fetch_one(connection).await.unwrap()
}

/// Writes a batch in each lane.
async fn record_all(connection: &mut PgConnection, board: i32, lanes: i16, events: &[Event]) {
    for lane in 0..lanes {
        let is_of_lane = |event: &&Event| lane_of(&name(event.player), lanes) == lane;
        let events: Vec<&Event> = events.iter().filter(is_of_lane).collect();
        if events.is_empty() {
            continue;
        }
        let users: Vec<String> = events.iter().map(|event| name(event.player)).collect();
        let points: Vec<i64> = events.iter().map(|event| event.points).collect();
        let tiebreaks: Vec<Option<i64>> = events.iter().map(|event| event.tiebreak).collect();
        sqlx::query("SELECT centile.ensure_users($1)").bind(&users).execute(&mut *connection).await.unwrap();
        let accepted: i64 =
            sqlx::query_scalar("SELECT count(*) FROM testing.record_scores($1, $2, $3, $4, p_tiebreaks => $5)")
                .bind(board)
                .bind(lane)
                .bind(&users)
                .bind(&points)
                .bind(&tiebreaks)
                .fetch_one(&mut *connection)
                .await
                .unwrap();
        assert_eq!(usize::try_from(accepted).unwrap(), users.len());
    }
}
