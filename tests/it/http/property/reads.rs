//! Every read of a board, compared with the oracle.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use rand::{RngExt as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value, json};

use super::{
    Players,
    board::{Board, time_of},
    client::{Client, escaped},
};
use crate::{
    store::property::same,
    support::oracle::{Act, Place, number, percentile, tenth_percentiles},
};

/// A row of a list: position, rank, user, name, score, time.
type Shown = (i64, i64, String, String, i64, Option<DateTime<Utc>>, Option<i64>);

/// Reads of one period and their expected rows.
struct Reading<'a> {
    client: &'a Client,
    board: &'a Board,
    period: &'a str,
    places: Vec<Place>,
    players: &'a Players,
    rng: &'a mut StdRng,
}

impl Board {
    /// Reads some of the periods completely, and the ledgers of some players.
    pub async fn read(&self, client: &Client, players: &Players, rng: &mut StdRng, periods: usize) {
        let names: Vec<&String> = self.periods.keys().collect();
        let amount = periods.min(names.len());
        let chosen: Vec<&String> = names.sample(rng, amount).copied().collect();
        for period in chosen {
            let places = self.oracle.standings(self.periods[period]);
            let mut reading = Reading { client, board: self, period, places, players, rng };
            reading.tops_and_pages().await;
            reading.walk().await;
            reading.standings().await;
            reading.chosen().await;
            reading.newcomers().await;
            reading.distribution().await;
        }
        let users: Vec<&String> = players.keys().collect();
        let amount = users.len().min(3);
        for user in users.sample(rng, amount).copied().collect::<Vec<_>>() {
            self.history(client, user, players[user].internal_id, rng).await;
        }
    }

    /// Reads a player's ledger page by page.
    async fn history(&self, client: &Client, user: &str, internal_id: i64, rng: &mut StdRng) {
        let limit = rng.random_range(1..30);
        let path = format!("/v1/boards/{}/scores/{}/history?limit={limit}", self.slug, escaped(user));
        let mut found = Vec::new();
        let mut cursor = String::new();
        loop {
            let (status, answer) = client.get(&format!("{path}{cursor}"), rng).await;
            assert_eq!(status, 200, "{answer}");
            let rows = answer["data"].as_array().unwrap().clone();
            assert!(rows.len() <= limit, "{answer}");
            found.extend(rows.iter().map(|row| {
                let number = |name: &str| row[name].as_i64();
                let kind = row["kind"].as_str().unwrap().to_owned();
                (
                    number("transaction_id"),
                    kind,
                    number("points"),
                    number("tiebreak"),
                    number("voids"),
                    time_of(&row["occurred_at"]),
                )
            }));
            let Some(next) = answer["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={}", escaped(next));
        }
        let mut rows: Vec<_> = self.oracle.rows.iter().filter(|row| row.user == internal_id).collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.at, row.id)));
        let expected: Vec<_> = rows
            .into_iter()
            .map(|row| {
                let (points, tiebreak, voids) = match row.act {
                    Act::Score { points, tiebreak } => (Some(points), tiebreak, None),
                    Act::Void(target) => (None, None, Some(target)),
                    _ => (None, None, None),
                };
                (Some(row.id), row.act.kind().to_owned(), points, tiebreak, voids, row.at)
            })
            .collect();
        same(&found, &expected, &format!("history of {user} on {}", self.slug));
    }
}

impl Reading<'_> {
    fn what(&self, what: &str) -> String {
        format!("{what} of {} on {} ({:?})", self.period, self.board.slug, self.board.oracle.rules)
    }

    /// Returns the path of a read of this period.
    fn path(&self, rest: &str, parameters: &str) -> String {
        format!("/v1/boards/{}/{rest}?period={}{parameters}", self.board.slug, escaped(self.period))
    }

    /// Reads a path, which must succeed, and checks the common fields.
    async fn read(&mut self, rest: &str, parameters: &str) -> Value {
        let path = self.path(rest, parameters);
        let (status, answer) = self.client.get(&path, self.rng).await;
        assert_eq!(status, 200, "{path}: {answer}");
        self.about(&answer);
        answer
    }

    /// Checks board, period, version and the number of players.
    fn about(&self, answer: &Value) {
        assert_eq!(answer["players"], json!(self.places.len()), "{}: {answer}", self.what("players"));
        assert_eq!((&answer["board"], &answer["period"]["name"]), (&json!(self.board.slug), &json!(self.period)));
        assert!(answer["version"].is_string(), "{answer}");
    }

    /// Returns the rows that a list shows from an index on.
    fn shown(&self, from: usize, limit: usize) -> Vec<Shown> {
        self.places.iter().skip(from).take(limit).map(|place| self.row(place)).collect()
    }

    fn row(&self, place: &Place) -> Shown {
        let entry = place.entry;
        let (user, player) = self.players.iter().find(|(_, player)| player.internal_id == entry.user).unwrap();
        (place.position, place.rank, user.clone(), player.name.clone(), entry.score, entry.reached_at, entry.second())
    }

    /// Reads top lists, which may be cached, and pages from any position.
    async fn tops_and_pages(&mut self) {
        let limit = self.rng.random_range(1..=self.places.len() + 2);
        let expected = self.shown(0, limit);
        let path = self.path("scores", &format!("&limit={limit}"));
        let players = json!(self.places.len());
        let as_expected = |answer: &Value| rows_of(&answer["data"]) == expected && answer["players"] == players;
        let top = self.client.top(&path, self.rng, as_expected).await;
        same(&rows_of(&top["data"]), &expected, &self.what(&format!("top {limit}")));
        self.about(&top);
        for _ in 0..2 {
            let skipped = self.rng.random_range(1..self.places.len() + 4);
            let limit = self.rng.random_range(1..20);
            let answer = self.read("scores", &format!("&from={}&limit={limit}", skipped + 1)).await;
            let what = self.what(&format!("page of {limit} after {skipped} players"));
            same(&rows_of(&answer["data"]), &self.shown(skipped, limit), &what);
        }
    }

    /// Follows all pages by cursors, after a first one that is no top list.
    async fn walk(&mut self) {
        let limit = self.rng.random_range(self.places.len() / 6 + 1..=self.places.len() + 2);
        let mut parameters = format!("&limit={limit}&from=2");
        let mut walked = Vec::new();
        loop {
            let answer = self.read("scores", &parameters).await;
            walked.extend(rows_of(&answer["data"]));
            assert!(walked.len() <= self.places.len(), "{}: {walked:?}", self.what("walk without an end"));
            let Some(next) = answer["next_cursor"].as_str() else { break };
            parameters = format!("&limit={limit}&cursor={}", escaped(next));
        }
        same(&walked, &self.shown(1, usize::MAX), &self.what(&format!("walk by {limit}")));
    }

    /// Reads single players with their neighbours: the first, the last, random ones, and ids that
    /// may be unknown.
    async fn standings(&mut self) {
        let users: Vec<&String> = self.players.keys().collect();
        let mut users: Vec<String> = users.sample(self.rng, 5).map(|user| (*user).clone()).collect();
        users.extend([self.places.first(), self.places.last()].iter().flatten().map(|place| self.row(place).2));
        for user in users {
            let around = *[0, 1, 4, 100, self.rng.random_range(0..=100)].choose(self.rng).unwrap();
            let path = self.path(&format!("scores/{}", escaped(&user)), &format!("&around={around}"));
            let (status, answer) = self.client.get(&path, self.rng).await;
            let what = self.what(&format!("{around} around {user}"));
            let internal_id = self.players[&user].internal_id;
            let Some(place) = self.places.iter().find(|place| place.entry.user == internal_id) else {
                assert_eq!(status, 404, "{what}: {answer}");
                continue;
            };
            assert_eq!(status, 200, "{what}: {answer}");
            self.about(&answer);
            assert_eq!(row_of(&answer), self.row(place), "{what}");
            let percent = answer["percentile"].as_f64().unwrap();
            assert!((percent - percentile(place, &self.places)).abs() < 1e-9, "{what}: {answer}");
            let above = usize::try_from(place.position - 1).unwrap();
            let first = above.saturating_sub(around);
            same(&rows_of(&answer["above"]), &self.shown(first, above - first), &format!("above in {what}"));
            same(&rows_of(&answer["below"]), &self.shown(above + 1, around), &format!("below in {what}"));
        }
    }

    /// Reads chosen players by URL or by body, with duplicates and unknown ids.
    async fn chosen(&mut self) {
        let users: Vec<&String> = self.players.keys().collect();
        let amount = self.rng.random_range(1..=users.len());
        let mut users: Vec<String> = users.sample(self.rng, amount).map(|user| (*user).clone()).collect();
        users.extend(["who?".to_owned(), users[0].clone()]);
        let answer = if self.rng.random() {
            let list: Vec<String> = users.iter().map(|user| format!("&user_id={}", escaped(user))).collect();
            self.read("scores/query", &list.concat()).await
        } else {
            let path = format!("/v1/boards/{}/scores/query", self.board.slug);
            let (status, answer) =
                self.client.query(&path, &json!({"user_ids": users, "period": self.period}), self.rng).await;
            assert_eq!(status, 200, "{answer}");
            self.about(&answer);
            answer
        };
        let expected: Vec<Shown> =
            self.places.iter().map(|place| self.row(place)).filter(|row| users.contains(&row.2)).collect();
        same(&rows_of(&answer["data"]), &expected, &self.what("chosen players"));
        // Places among the chosen players are shared like ranks.
        let mut first_of_rank = BTreeMap::new();
        for (place, row) in (1..).zip(&expected) {
            first_of_rank.entry(row.1).or_insert(place);
        }
        let places: Vec<i64> =
            answer["data"].as_array().unwrap().iter().filter_map(|row| row["local_rank"].as_i64()).collect();
        let expected_places: Vec<i64> = expected.iter().map(|row| first_of_rank[&row.1]).collect();
        same(&places, &expected_places, &self.what("places of chosen players"));
        users.pop();
        users.retain(|user| expected.iter().all(|row| row.2 != *user));
        assert_eq!(answer["missing"], json!(users), "{}", self.what("missing players"));
    }

    /// Reads the ranks of arbitrary scores.
    async fn newcomers(&mut self) {
        let mut scores = vec![self.rng.random_range(-8..8), self.rng.random_range(-i64::MAX..=i64::MAX)];
        scores.extend(self.places.choose(self.rng).map(|place| place.entry.score));
        for score in scores {
            let answer = self.read("rank", &format!("&score={score}")).await;
            let expected = self.board.oracle.rank_of_score(&self.places, score);
            assert_eq!((&answer["rank"], &answer["score"]), (&json!(expected), &json!(score)), "{}", self.what("rank"));
        }
    }

    async fn distribution(&mut self) {
        let answer = self.read("distribution", "").await;
        let percentiles: Vec<Value> = tenth_percentiles(&self.places)
            .into_iter()
            .map(|(percentile, score)| json!({"percentile": percentile, "score": score}))
            .collect();
        assert_eq!(answer["percentiles"], json!(percentiles), "{}", self.what("percentiles"));
        let bars = answer["histogram"].as_array().unwrap();
        let bar = |bar: &Value| {
            let number = |name: &str| bar[name].as_i64().unwrap();
            (i128::from(number("from_score")), i128::from(number("to_score")), number("players"))
        };
        let found: Vec<(i128, i128, i64)> = bars.iter().map(bar).collect();
        let expected = self.board.oracle.histogram(&self.places, 20);
        same(&found, &expected, &self.what("histogram"));
        assert_eq!(found.iter().map(|bar| bar.2).sum::<i64>(), number(self.places.len()));
    }
}

/// Parses a row of a list.
fn row_of(row: &Value) -> Shown {
    let number = |name: &str| row[name].as_i64().unwrap_or_else(|| panic!("{name} in {row}"));
    let text = |name: &str| row[name].as_str().unwrap_or_else(|| panic!("{name} in {row}")).to_owned();
    let at = row["reached_at"].is_string().then(|| time_of(&row["reached_at"]));
    let place = (number("position"), number("rank"));
    (place.0, place.1, text("user_id"), text("name"), number("score"), at, row["tiebreak"].as_i64())
}

fn rows_of(rows: &Value) -> Vec<Shown> {
    rows.as_array().unwrap_or_else(|| panic!("{rows} is a list")).iter().map(row_of).collect()
}
