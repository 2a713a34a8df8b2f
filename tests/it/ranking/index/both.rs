//! Every read from the index equals the same read by SQL, on random boards. A failure names its
//! seed: `CENTILE_TEST_SEED` repeats it, with `CENTILE_TEST_CASES=1`.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Pair, source};
use crate::{
    http::property::client::escaped,
    store::property::{Reproducible, seeds},
    support::{
        TestDb, amount, layout,
        oracle::Rules,
        random::{KINDS, Source},
        wait::until_some,
    },
};

/// A case: boards with periods and players.
struct Arena<'a> {
    pair: &'a Pair,
    db: &'a TestDb,
    rules: Rules,
    rng: StdRng,
    users: Vec<String>,
    /// Two boards that get the same events in the same order, and one with several lanes.
    boards: [String; 3],
}

/// Players with friends.
const FRIENDLY: usize = 10;

const PERIODS: [&str; 2] = ["all_time", "season:spring"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_paths_give_the_same_answers() {
    let db = TestDb::new().await;
    let pair = Pair::start(&db).await;
    for seed in seeds(amount(1, KINDS)) {
        let _named = Reproducible(seed);
        let mut arena = Arena::make(&db, &pair, seed).await;
        arena.play(amount(80, 800)).await;
        arena.compare().await;
        arena.act().await;
        arena.play(amount(40, 400)).await;
        arena.compare().await;
        arena.compare_under_writes(amount(60, 4_000)).await;
        arena.compare().await;
    }
}

impl<'a> Arena<'a> {
    async fn make(db: &'a TestDb, pair: &'a Pair, seed: u64) -> Self {
        let rules = Source::new(seed).rules;
        let rng = StdRng::seed_from_u64(seed);
        let users = (0..amount(200, 600)).map(|n| format!("ü{n}/{seed}")).collect();
        let boards = ["x", "y", "z"].map(|name| format!("{name}{seed}"));
        for (slug, lanes) in boards.iter().zip([1, 1, 3]) {
            let mut board = json!({"slug": slug, "periods": ["all_time"], "lanes": lanes});
            rules.add_to(&mut board);
            pair.index.admin(Method::POST, "/v1/boards", board).await.is(201);
            db.execute(&format!(
                "SELECT centile.create_season('{slug}', 'spring', now() - interval '1 day', now() + interval '9 days')"
            ))
            .await;
        }
        let mut arena = Self { pair, db, rules, rng, users, boards };
        arena.befriend().await;
        arena
    }

    /// Gives the first players some friends, most of whom also have them as friends.
    async fn befriend(&mut self) {
        for user in &self.users[..FRIENDLY] {
            let mut friends: Vec<&String> = self.users.sample(&mut self.rng, 30).collect();
            friends.extend(&self.users[..FRIENDLY]);
            friends.retain(|friend| *friend != user);
            let body = json!({"change": "replace", "user_ids": friends});
            self.pair.sql.post(&format!("/v1/users/{}/friends", escaped(user)), body).await.is(200);
        }
    }

    /// Returns a random event; scores often repeat.
    fn event(&mut self) -> Value {
        let user = self.users.choose(&mut self.rng).unwrap();
        let mut event = json!({"user_id": user, "points": self.rng.random_range(-3..9)});
        if self.rules.tiebreaks().is_some() && self.rng.random_range(0..4) > 0 {
            event["tiebreak"] = self.rng.random_range(0..3).into();
        }
        event
    }

    /// Submits single scores, one through the index and one by SQL, whose answers must have the
    /// same ranks; and many at once.
    async fn play(&mut self, events: usize) {
        for number in 0..events {
            let event = self.event();
            let [x, y] = [0, 1].map(|board| format!("/v1/boards/{}/scores?ranks=true", self.boards[board]));
            let (x, y) = if number % 2 == 0 { (x, y) } else { (y, x) };
            let index = self.pair.index.post(&x, &event).await.is(200);
            let sql = self.pair.sql.post(&y, &event).await.is(200);
            assert_eq!(index["periods"], sql["periods"], "event {number}, {event}, on {:?}", self.rules);
            assert!(index["periods"]["all_time"]["rank"].is_number(), "{index}");
            if number == 2 {
                for (board, period) in self.boards.iter().take(2).zip(PERIODS) {
                    self.pair.read(&format!("/v1/boards/{board}/distribution?period={period}")).await;
                }
            }
        }
        let events: Vec<Value> = (0..events).map(|_| self.event()).collect();
        let path = format!("/v1/boards/{}/scores", self.boards[2]);
        self.pair.sql.post(&path, json!(events)).await.is(200);
    }

    /// Bans, an unban, voids, resets, renames, and layout changes.
    async fn act(&mut self) {
        let users: Vec<String> = self.users.sample(&mut self.rng, 8).cloned().collect();
        for (number, user) in users.iter().enumerate() {
            let site = if number % 2 == 0 { &self.pair.index } else { &self.pair.sql };
            let path = format!("/v1/users/{}", escaped(user));
            let renamed = json!({"name": format!("Renamed {number}"), "avatar_url": "https://example.com/a.png"});
            let answers = match number {
                0..2 => vec![site.admin(Method::PUT, &path, renamed).await],
                2..5 => vec![site.admin(Method::POST, &format!("{path}/ban"), Value::Null).await],
                _ => {
                    let mut answers = Vec::new();
                    for board in &self.boards {
                        let path = format!("/v1/boards/{board}/scores/{}/reset", escaped(user));
                        answers.push(site.admin(Method::POST, &path, Value::Null).await);
                    }
                    answers
                }
            };
            // Not every player has scores.
            assert!(answers.iter().all(|answer| [200, 201, 204, 404].contains(&answer.status)), "{answers:?}");
        }
        let unban = format!("/v1/users/{}/unban", escaped(&users[2]));
        let unbanned = self.pair.sql.admin(Method::POST, &unban, Value::Null).await;
        assert!([200, 404].contains(&unbanned.status), "{unbanned:?}");
        // Banned players' events would be refused.
        self.users.retain(|user| !users[3..5].contains(user));
        let mut connection = self.db.pool().await.acquire().await.unwrap();
        for board in &self.boards {
            let mut random = StdRng::seed_from_u64(7);
            let statement = "SELECT ranking_id FROM centile.periods WHERE board = $1 AND ranking_id IS NOT NULL";
            let rankings: Vec<i64> =
                sqlx::query_scalar(statement).bind(board).fetch_all(&mut *connection).await.unwrap();
            for ranking in rankings {
                assert!(
                    layout::scatter(&mut connection, ranking, &mut random, layout::MANY).await > 0,
                    "the layout changes"
                );
            }
        }
    }

    async fn compare(&mut self) {
        for board in self.boards.clone() {
            for period in PERIODS {
                for path in self.paths(&board, period) {
                    self.pair.read(&path).await;
                }
                self.walk(&board, period).await;
                self.query(&board, period).await;
                for limit in [1, 10, 1_000] {
                    self.pair.top(&format!("/v1/boards/{board}/scores?period={period}&limit={limit}")).await;
                }
            }
        }
    }

    /// Returns a path for every read except the top list.
    fn paths(&mut self, board: &str, period: &str) -> Vec<String> {
        let players = u64::try_from(self.users.len()).unwrap();
        let path = |rest: &str| format!("/v1/boards/{board}/{rest}period={period}");
        let mut paths = vec![path("distribution?"), path("scores/nobody?")];
        for _ in 0..3 {
            let (from, limit) = (self.rng.random_range(2..players + 2), self.rng.random_range(1..60));
            paths.push(path(&format!("scores?from={from}&limit={limit}&")));
        }
        for around in [0, 1, 5, 100] {
            let user = escaped(self.users.choose(&mut self.rng).unwrap());
            paths.push(path(&format!("scores/{user}?around={around}&")));
        }
        let chosen = self.users.sample(&mut self.rng, 7).map(|user| format!("user_id={}&", escaped(user)));
        paths.push(path(&format!("scores/query?user_id=nobody&{}", chosen.collect::<String>())));
        for _ in 0..2 {
            let user = escaped(self.users[..FRIENDLY].choose(&mut self.rng).unwrap());
            let (from, limit, mutual) =
                (self.rng.random_range(1..30), self.rng.random_range(1..30), self.rng.random::<bool>());
            paths.push(path(&format!("scores?friends_of={user}&mutual={mutual}&from={from}&limit={limit}&")));
            paths.push(path(&format!("scores?friends_of={user}&mutual={mutual}&around={}&", limit / 2)));
        }
        for score in [self.rng.random_range(-9..30), self.rng.random_range(-9..30), i64::MAX, -i64::MAX] {
            paths.push(path(&format!("rank?score={score}&")));
        }
        paths
    }

    /// Follows the cursors from a page to the end.
    async fn walk(&mut self, board: &str, period: &str) {
        let limit = self.rng.random_range(20..90);
        let path = format!("/v1/boards/{board}/scores?period={period}&limit={limit}");
        let mut page = self.pair.read(&format!("{path}&from=2")).await;
        let mut walked = 1 + page["data"].as_array().unwrap().len();
        while let Some(next) = page["next_cursor"].as_str() {
            page = self.pair.read(&format!("{path}&cursor={}", escaped(next))).await;
            walked += page["data"].as_array().unwrap().len();
        }
        assert_eq!(page["players"], walked, "{path}");
    }

    /// Reads chosen players by a body.
    async fn query(&mut self, board: &str, period: &str) {
        let users: Vec<&String> = self.users.sample(&mut self.rng, 50).collect();
        let (path, body) = (format!("/v1/boards/{board}/scores/query"), json!({"user_ids": users, "period": period}));
        let sql = self.pair.sql.post(&path, &body).await;
        assert_eq!((sql.status, source(&sql)), (200, "sql"), "{sql:?}");
        let read = async || {
            let index = self.pair.index.post(&path, &body).await;
            assert_eq!((index.status, &index.body), (200, &sql.body), "{body}");
            (source(&index) == "index").then_some(())
        };
        until_some("the index answers a query", read).await;
    }

    /// While scores are written, answers with the same version must be equal.
    async fn compare_under_writes(&mut self, rounds: usize) {
        let board = self.boards[2].clone();
        let mut paths = Vec::new();
        for period in PERIODS {
            paths.extend(self.paths(&board, period));
        }
        paths.retain(|path| !path.contains("nobody"));
        let events: Vec<Value> = (0..rounds).map(|_| self.event()).collect();
        let (known, same) = (Mutex::new(HashMap::<(usize, String), Value>::new()), AtomicUsize::new(0));
        let read = async |site, number: usize| {
            let site: &crate::http::api::site::Site = site;
            let answer = site.get(&paths[number]).await;
            // The player has no score yet.
            if answer.status == 404 {
                return 0;
            }
            let is_index = source(&answer) == "index";
            let body = answer.is(200);
            let key = (number, body["version"].as_str().unwrap().to_owned());
            if let Some(other) = known.lock().unwrap().insert(key, body.clone()) {
                assert_eq!(body, other, "{}, from the index: {is_index}", paths[number]);
                same.fetch_add(1, Ordering::Relaxed);
            }
            usize::from(is_index)
        };
        let post = format!("/v1/boards/{board}/scores");
        let mut from_index = 0;
        for (number, event) in events.iter().enumerate() {
            let writer = if number % 2 == 0 { &self.pair.index } else { &self.pair.sql };
            let number = number % paths.len();
            let (written, a, b, c, d) = tokio::join!(
                writer.post(&post, event),
                read(&self.pair.index, number),
                read(&self.pair.sql, number),
                read(&self.pair.index, number),
                read(&self.pair.sql, number)
            );
            written.is(200);
            assert_eq!(b + d, 0, "no index is to answer here");
            from_index += a + c;
        }
        assert!(from_index > 0 && same.load(Ordering::Relaxed) > 0, "{from_index} answers from the index");
    }
}
