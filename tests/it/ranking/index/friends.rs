//! Random changes of friends, scores, bans and erasures, compared with a model of the
//! edges and with rankings of the ledger. A failure names its seed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Pair, source};
use crate::{
    http::{api::site::Site, property::client::escaped},
    store::property::{Reproducible, same, seeds},
    support::{
        Files, TestDb, amount, import,
        oracle::{Oracle, Place, Rules, Ties},
        replay::Ledger,
        run,
    },
};

const PLAYERS: usize = 40;
const WEEK: &str = "week:2024-01-15";

/// Boards by name, mode, order and ties.
const BOARDS: [(&str, &str, &str, &str); 4] = [
    ("sums", "sum", "desc", "shared"),
    ("laps", "best", "asc", "first"),
    ("duels", "latest", "desc", "tiebreak"),
    ("pairs", "sum", "desc", "second"),
];

/// A row of a ranking among friends: local rank, rank, position, player, score.
type Shown = (i64, i64, i64, String, i64);

/// The expected state.
struct Game<'a> {
    db: &'a TestDb,
    pair: &'a Pair,
    rng: StdRng,
    /// Ids that operations use; some players do not exist at times.
    users: Vec<String>,
    known: BTreeSet<String>,
    banned: BTreeSet<String>,
    friends: BTreeMap<String, BTreeSet<String>>,
    /// Current rankings, until something changes them.
    current: HashMap<&'static str, Vec<Place>>,
    /// Rankings of the closed week.
    closed: HashMap<&'static str, Vec<Place>>,
    names: HashMap<i64, String>,
    from_index: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_friends_match_a_model() {
    let db = TestDb::new().await;
    let pair = Pair::start(&db).await;
    let operations = amount(1_000, 10_000);
    for seed in seeds(1) {
        let _named = Reproducible(seed);
        let mut game = Game::start(&db, &pair, seed).await;
        for _ in 0..operations {
            game.operate().await;
        }
        // Of some 170 pages, half are asked of this instance, and half of these are of the closed week.
        assert!(game.from_index > 20, "{} answers from the index", game.from_index);
        game.edges().await;
    }
}

/// Returns the ranking of a period by the ledger.
fn ranking(ledger: &Ledger, board: &str, period: &str) -> Vec<Place> {
    let ties = if board == "duels" { Ties::Tiebreak } else { ledger.rules.ties };
    let mut oracle = Oracle::new(Rules { ties, ..ledger.rules });
    ledger.rows.iter().for_each(|row| oracle.act(row.row));
    oracle.standings(ledger.periods[period])
}

impl<'a> Game<'a> {
    /// Creates the boards, each with a closed week.
    async fn start(db: &'a TestDb, pair: &'a Pair, seed: u64) -> Self {
        let users: Vec<String> = (0..PLAYERS).map(|n| format!("p{n}/ü")).collect();
        let mut game = Self {
            db,
            pair,
            rng: StdRng::seed_from_u64(seed),
            users,
            known: BTreeSet::new(),
            banned: BTreeSet::new(),
            friends: BTreeMap::new(),
            current: HashMap::new(),
            closed: HashMap::new(),
            names: HashMap::new(),
            from_index: 0,
        };
        let files = Files::new();
        for (slug, mode, order, ties) in BOARDS {
            let board = json!({
                "slug": slug, "mode": mode, "order": order, "ties": ties, "lanes": 2, "periods": ["all_time", "week"],
            });
            pair.index.admin(Method::POST, "/v1/boards", board).await.is(201);
            let mut lines = vec!["user_id,points,occurred_at\n".to_owned()];
            for n in 0..60 {
                let user = game.users[game.rng.random_range(0..PLAYERS * 3 / 4)].clone();
                let points = game.rng.random_range(-2..8);
                lines.push(format!("{user},{points},2024-01-{}T{:02}:00:00Z\n", 15 + n % 7, n % 24));
                game.known.insert(user);
            }
            import(db, &files.write(&format!("{slug}.csv"), lines.concat()), slug, &[]).well(60, 0);
            run(db, &["close", "--board", slug, "--period", WEEK]).well();
            let ledger = Ledger::read(&db.pool().await, slug).await;
            game.closed.insert(slug, ranking(&ledger, slug, WEEK));
        }
        game
    }

    fn site(&mut self) -> &'a Site {
        if self.rng.random() { &self.pair.index } else { &self.pair.sql }
    }

    fn user(&mut self) -> String {
        self.users.choose(&mut self.rng).unwrap().clone()
    }

    /// Returns up to 12 ids, some of them twice.
    fn some_users(&mut self, without: &str) -> Vec<String> {
        let amount = self.rng.random_range(0..12);
        (0..amount).map(|_| self.user()).filter(|user| user != without).collect()
    }

    fn friends_of(&self, user: &str) -> BTreeSet<String> {
        self.friends.get(user).cloned().unwrap_or_default()
    }

    fn mutual_friends_of(&self, user: &str) -> BTreeSet<String> {
        self.friends_of(user).into_iter().filter(|friend| self.friends_of(friend).contains(user)).collect()
    }

    async fn operate(&mut self) {
        match self.rng.random_range(0..200) {
            0..60 => self.add().await,
            60..90 => self.remove().await,
            90..130 => self.change().await,
            130..142 => self.score().await,
            142..144 => self.ban().await,
            144 => self.erase().await,
            145..165 => self.list().await,
            _ => self.rank().await,
        }
    }

    async fn add(&mut self) {
        let (user, friend, site) = (self.user(), self.user(), self.site());
        let path = format!("/v1/users/{}/friends/{}", escaped(&user), escaped(&friend));
        let answer = site.json(Method::PUT, &path, &site.server_key, String::new()).await;
        if user == friend {
            assert_eq!(answer.is(422)["field"], "friend_id");
            return;
        }
        answer.is(204);
        self.known.extend([user.clone(), friend.clone()]);
        self.friends.entry(user).or_default().insert(friend);
    }

    async fn remove(&mut self) {
        let (user, site) = (self.user(), self.site());
        let friends: Vec<String> = self.friends_of(&user).into_iter().collect();
        let friend = match friends.choose(&mut self.rng) {
            Some(friend) if self.rng.random() => friend.clone(),
            _ => self.user(),
        };
        let path = format!("/v1/users/{}/friends/{}", escaped(&user), escaped(&friend));
        let answer = site.json(Method::DELETE, &path, &site.server_key, String::new()).await;
        answer.is(if self.known.contains(&user) { 204 } else { 404 });
        self.friends.entry(user).or_default().remove(&friend);
    }

    async fn change(&mut self) {
        let (user, site) = (self.user(), self.site());
        let list = self.some_users(&user);
        let change = *["add", "remove", "replace"].choose(&mut self.rng).unwrap();
        let path = format!("/v1/users/{}/friends", escaped(&user));
        let answer = site.post(&path, json!({"change": change, "user_ids": list})).await;
        if change == "remove" && !self.known.contains(&user) {
            answer.is(404);
            return;
        }
        let (before, list) = (self.friends_of(&user), BTreeSet::from_iter(list));
        let after: BTreeSet<String> = match change {
            "add" => &before | &list,
            "remove" => &before - &list,
            _ => list.clone(),
        };
        let wanted = json!({
            "added": (&after - &before).len(), "removed": (&before - &after).len(), "friends": after.len(),
        });
        assert_eq!(answer.is(200), wanted, "{change} {list:?}");
        if change != "remove" {
            self.known.insert(user.clone());
            self.known.extend(list);
        }
        self.friends.insert(user, after);
    }

    async fn score(&mut self) {
        let (user, site) = (self.user(), self.site());
        let (board, .., ties) = *BOARDS.choose(&mut self.rng).unwrap();
        let mut event = json!({"user_id": user, "points": self.rng.random_range(-2..8)});
        if ["tiebreak", "second"].contains(&ties) {
            event["tiebreak"] = self.rng.random_range(0..2).into();
        }
        let answer = site.post(&format!("/v1/boards/{board}/scores"), event).await;
        answer.is(if self.banned.contains(&user) { 409 } else { 200 });
        self.known.insert(user);
        self.current.clear();
    }

    /// Bans a player, or unbans a banned one.
    async fn ban(&mut self) {
        let (user, site) = (self.user(), self.site());
        let act = if self.banned.contains(&user) { "unban" } else { "ban" };
        let answer = site.admin(Method::POST, &format!("/v1/users/{}/{act}", escaped(&user)), Value::Null).await;
        answer.is(if self.known.contains(&user) { 200 } else { 404 });
        if !self.banned.remove(&user) && self.known.contains(&user) {
            self.banned.insert(user);
        }
        self.current.clear();
    }

    async fn erase(&mut self) {
        let (user, site) = (self.user(), self.site());
        let answer = site.admin(Method::DELETE, &format!("/v1/users/{}", escaped(&user)), Value::Null).await;
        answer.is(if self.known.contains(&user) { 200 } else { 404 });
        self.friends.remove(&user);
        for friends in self.friends.values_mut() {
            friends.remove(&user);
        }
        self.known.remove(&user);
        self.banned.remove(&user);
        self.current.clear();
    }

    /// Reads all pages of a list.
    async fn list(&mut self) {
        let (user, site, mutual) = (self.user(), self.site(), self.rng.random::<bool>());
        let limit = self.rng.random_range(1..8);
        let path = format!("/v1/users/{}/friends?mutual={mutual}&limit={limit}", escaped(&user));
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let answer = site.get(&format!("{path}{cursor}")).await;
            if !self.known.contains(&user) {
                assert_eq!(answer.is(404)["code"], "user_not_found");
                return;
            }
            let page = answer.is(200);
            let rows = page["data"].as_array().unwrap();
            assert!(rows.len() <= limit, "{page}");
            found.extend(rows.iter().map(|row| {
                assert_eq!((&row["name"], &row["avatar_url"]), (&row["user_id"], &Value::Null), "{row}");
                (row["user_id"].as_str().unwrap().to_owned(), row["mutual"].as_bool().unwrap())
            }));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        found.sort();
        let both = self.mutual_friends_of(&user);
        let wanted = if mutual { both.clone() } else { self.friends_of(&user) };
        let wanted: Vec<_> = wanted.into_iter().map(|friend| (friend.clone(), both.contains(&friend))).collect();
        same(&found, &wanted, &format!("friends of {user}, mutual: {mutual}"));
    }

    /// Returns the expected ranking of a player and the friends.
    async fn expected(&mut self, board: &'static str, period: &str, user: &str, mutual: bool) -> (usize, Vec<Shown>) {
        if !self.current.contains_key(board) {
            let ledger = Ledger::read(&self.db.pool().await, board).await;
            let places = ranking(&ledger, board, "all_time");
            self.current.insert(board, places);
            self.names = ledger.names;
        }
        let mut group = if mutual { self.mutual_friends_of(user) } else { self.friends_of(user) };
        group.insert(user.to_owned());
        let places = if period == WEEK { &self.closed[board] } else { &self.current[board] };
        let members: Vec<&Place> =
            places.iter().filter(|place| group.contains(&self.names[&place.entry.user])).collect();
        let row = |place: &&Place| {
            let better = members.iter().filter(|other| other.rank < place.rank).count();
            let local_rank = i64::try_from(better).unwrap() + 1;
            (local_rank, place.rank, place.position, self.names[&place.entry.user].clone(), place.entry.score)
        };
        (places.len(), members.iter().map(row).collect())
    }

    /// Reads a ranking among friends: a page, all pages, or the page around the player.
    async fn rank(&mut self) {
        let (user, site, mutual) = (self.user(), self.site(), self.rng.random::<bool>());
        let board = BOARDS.choose(&mut self.rng).unwrap().0;
        let period = if self.rng.random_range(0..3) == 0 { WEEK } else { "all_time" };
        let (players, rows) = self.expected(board, period, &user, mutual).await;
        let path = format!("/v1/boards/{board}/scores?period={period}&friends_of={}&mutual={mutual}", escaped(&user));
        if !self.known.contains(&user) {
            assert_eq!(site.get(&path).await.is(404)["code"], "user_not_found");
            return;
        }
        let limit = self.rng.random_range(1..rows.len() + 3);
        let what = format!("{path} from {}", site.serve.at(""));
        let own = rows.iter().position(|row| row.3 == user);
        let (parameters, wanted) = match (self.rng.random_range(0..3), own) {
            (0, None) => {
                assert_eq!(site.get(&format!("{path}&around={limit}")).await.is(404)["code"], "score_not_found");
                return;
            }
            (0, Some(own)) => {
                (format!("&around={limit}"), &rows[own.saturating_sub(limit)..rows.len().min(own + limit + 1)])
            }
            (1, _) => {
                let skipped = self.rng.random_range(0..rows.len() + 2);
                let first = skipped.min(rows.len());
                (format!("&limit={limit}&from={}", skipped + 1), &rows[first..rows.len().min(first + limit)])
            }
            _ => {
                let mut walked = Vec::new();
                let mut cursor = String::new();
                loop {
                    let page = self.page(site, &format!("{path}&limit={limit}{cursor}"), players, rows.len()).await;
                    walked.extend(shown(&page));
                    let Some(next) = page["next_cursor"].as_str() else { break };
                    assert!(walked.len() < rows.len(), "{what}: {page}");
                    cursor = format!("&cursor={next}");
                }
                same(&walked, &rows, &what);
                return;
            }
        };
        let page = self.page(site, &format!("{path}{parameters}"), players, rows.len()).await;
        same(&shown(&page), wanted, &format!("{what}{parameters}"));
        let is_last = wanted.last().is_none_or(|last| Some(last) == rows.last());
        assert_eq!(page["next_cursor"].is_null(), is_last, "{what}{parameters}: {page}");
    }

    /// Reads a page, and checks its common members.
    async fn page(&mut self, site: &Site, path: &str, players: usize, local_players: usize) -> Value {
        let answer = site.get(path).await;
        self.from_index += usize::from(source(&answer) == "index");
        assert!(!answer.headers.contains_key("etag"), "friends change without the ranking");
        let page = answer.is(200);
        assert_eq!(
            (&page["players"], &page["local_players"]),
            (&json!(players), &json!(local_players)),
            "{path}: {page}"
        );
        page
    }

    /// Compares all edges in the database with the model.
    async fn edges(&self) {
        let found: Vec<(String, String)> =
            sqlx::query_as("SELECT user_id, friend_id FROM centile.friends ORDER BY user_id, friend_id")
                .fetch_all(&self.db.pool().await)
                .await
                .unwrap();
        let wanted = self
            .friends
            .iter()
            .flat_map(|(user, friends)| friends.iter().map(move |friend| (user.clone(), friend.clone())));
        same(&found, &wanted.collect::<Vec<_>>(), "all friends");
    }
}

fn shown(page: &Value) -> Vec<Shown> {
    let number = |row: &Value, name: &str| row[name].as_i64().unwrap_or_else(|| panic!("{name} in {row}"));
    let row = |row: &Value| {
        let user = row["user_id"].as_str().unwrap().to_owned();
        (number(row, "local_rank"), number(row, "rank"), number(row, "position"), user, number(row, "score"))
    };
    page["data"].as_array().unwrap().iter().map(row).collect()
}
