//! Tiers of players, compared with a plain computation over all players.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::query_as;

use super::{Pair, from_index};
use crate::{
    http::api::site::Site,
    support::{Files, TestDb, import, run, wait::until},
};

const WEEK: &str = "week:2024-01-15";

/// One score of each player, in the order of time.
#[derive(Debug)]
struct Oracle {
    order: &'static str,
    ties: &'static str,
    /// Id, score and tiebreak.
    players: Vec<(String, i64, i64)>,
}

impl Oracle {
    /// Players with few different scores and tiebreaks.
    fn new(order: &'static str, ties: &'static str) -> Self {
        let players = (0..61).map(|n| (format!("p{n:02}"), n * n % 13 - 2, n * 7 % 3)).collect();
        Self { order, ties, players }
    }

    /// Returns the players as lines to import.
    fn csv(&self) -> String {
        let line = |(n, (user, score, tiebreak)): (usize, &(String, i64, i64))| {
            let tiebreak = if self.ties == "tiebreak" { tiebreak.to_string() } else { String::new() };
            format!("{user},{score},{tiebreak},2024-01-16T12:00:{n:02}.5Z")
        };
        let lines: Vec<String> = self.players.iter().take(60).enumerate().map(line).collect();
        format!("user_id,points,tiebreak,occurred_at\n{}\n", lines.join("\n"))
    }

    /// Returns whether the first player is strictly ahead of the second.
    fn is_ahead(&self, one: usize, other: usize) -> bool {
        let (_, one_score, one_tiebreak) = self.players[one];
        let (_, other_score, other_tiebreak) = self.players[other];
        if one_score != other_score {
            return (one_score > other_score) == (self.order == "desc");
        }
        match self.ties {
            "shared" => false,
            "tiebreak" if one_tiebreak != other_tiebreak => one_tiebreak > other_tiebreak,
            _ => one < other,
        }
    }

    /// Returns rank and tier of each player.
    fn wanted(&self, tiers: &[String]) -> BTreeMap<String, (u64, Option<String>)> {
        let count = self.players.len().min(60);
        let wanted = (0..count).map(|player| {
            let rank = 1 + (0..count).filter(|other| self.is_ahead(*other, player)).count();
            let holds = |tier: &&String| {
                let words: Vec<&str> = tier.split_once(": ").unwrap().1.split(' ').collect();
                let number: f64 = words[1].parse().unwrap();
                match (words[0], self.order) {
                    ("rank", _) => rank as f64 <= number,
                    // Shares of 60 players are far enough from whole numbers, or exact.
                    ("top", _) => rank as f64 / count as f64 * 100.0 <= number + 1e-9,
                    (_, "desc") => self.players[player].1 as f64 >= number,
                    _ => self.players[player].1 as f64 <= number,
                }
            };
            let name = tiers.iter().find(holds).map(|tier| tier.split_once(": ").unwrap().0.to_owned());
            (self.players[player].0.clone(), (rank as u64, name))
        });
        wanted.collect()
    }
}

type Wanted = BTreeMap<String, (u64, Option<String>)>;

#[track_caller]
fn right(rows: &[Value], wanted: &Wanted, path: &str) {
    assert!(!rows.is_empty(), "{path}");
    for row in rows {
        let (rank, tier) = &wanted[row["user_id"].as_str().unwrap()];
        assert!(row.as_object().unwrap().contains_key("tier"), "{path}: {row}");
        assert_eq!((&row["rank"], &row["tier"]), (&json!(rank), &json!(tier)), "{path}: {row}");
    }
}

/// Checks the tiers in all reads of a period.
async fn shows(site: &Site, board: &str, period: &str, tiers: &[String], wanted: &Wanted) {
    let scores = format!("/v1/boards/{board}/scores");
    for list in ["limit=1000", "limit=7", "from=2&limit=1000"] {
        let path = format!("{scores}?period={period}&{list}");
        let page = site.get(&path).await.is(200);
        right(page["data"].as_array().unwrap(), wanted, &path);
        if let Some(cursor) = page["next_cursor"].as_str() {
            let path = format!("{scores}?period={period}&limit=1000&cursor={cursor}");
            right(site.get(&path).await.is(200)["data"].as_array().unwrap(), wanted, &path);
        }
    }
    let users: Vec<&String> = wanted.keys().collect();
    let chosen = site.post(&format!("{scores}/query"), json!({"user_ids": users, "period": period})).await.is(200);
    assert_eq!(chosen["data"].as_array().map(Vec::len), Some(wanted.len()));
    right(chosen["data"].as_array().unwrap(), wanted, "chosen");
    for user in users.iter().step_by(9) {
        let path = format!("{scores}/{user}?around=5&period={period}");
        let standing = site.get(&path).await.is(200);
        let others = ["above", "below"].map(|side| standing[side].as_array().unwrap().clone()).concat();
        right(&[vec![standing], others].concat(), wanted, &path);
        let path = format!("/v1/users/{user}/standings?period={period}");
        let standings = site.get(&path).await.is(200);
        let own: Vec<Value> =
            standings["data"].as_array().unwrap().iter().filter(|row| row["board"] == board).cloned().collect();
        right(&own, wanted, &path);
    }
    let path = format!("/v1/boards/{board}/tiers?period={period}");
    let counted = site.get(&path).await.is(200);
    assert_eq!(counted["data"], counts(tiers, wanted), "{path}");
    assert_eq!(counted["players"], json!(wanted.len()), "{path}");
}

/// Returns the tiers with their players.
fn counts(tiers: &[String], wanted: &Wanted) -> Value {
    let count = |tier: &String| {
        let (name, rule) = tier.split_once(": ").unwrap();
        let players = wanted.values().filter(|(_, tier)| tier.as_deref() == Some(name)).count();
        json!({"tier": name, "rule": rule, "players": players})
    };
    tiers.iter().map(count).collect()
}

/// Checks the functions of SQL.
async fn shows_in_sql(db: &TestDb, board: &str, period: &str, tiers: &[String], wanted: &Wanted) {
    let pool = db.pool().await;
    let (kind, label) = period.split_once(':').unwrap_or((period, period));
    let rows: Vec<(String, i64, Option<String>)> = query_as(
        "SELECT r.user_id, r.rank, centile.tier_of(p.tiers, b.score_order, r.score, r.rank, p.players)
         FROM centile.boards b JOIN centile.periods p ON p.board = b.slug AND p.kind = $2 AND p.label = $3
         CROSS JOIN LATERAL centile.ranking(b.slug, $4) r WHERE b.slug = $1",
    )
    .bind(board)
    .bind(kind)
    .bind(label)
    .bind(period)
    .fetch_all(&pool)
    .await
    .unwrap();
    let found: Wanted = rows.into_iter().map(|(user, rank, tier)| (user, (rank.unsigned_abs(), tier))).collect();
    assert_eq!(&found, wanted, "{board} {period}");
    let counted: Vec<(i32, String, String, i64)> =
        query_as("SELECT place, tier, rule, players FROM centile.tiers($1, $2)")
            .bind(board)
            .bind(period)
            .fetch_all(&pool)
            .await
            .unwrap();
    let counted: Vec<Value> = counted
        .into_iter()
        .zip(1..)
        .map(|((place, tier, rule, players), n)| {
            assert_eq!(place, n);
            json!({"tier": tier, "rule": rule, "players": players})
        })
        .collect();
    assert_eq!(json!(counted), counts(tiers, wanted), "{board} {period}");
}

fn owned(tiers: &[&str]) -> Vec<String> {
    tiers.iter().map(|tier| (*tier).to_owned()).collect()
}

#[tokio::test]
async fn tiers_are_those_of_a_plain_computation_everywhere() {
    let db = TestDb::new().await;
    let pair = Pair::start(&db).await;
    let files = Files::new();
    let rules = [
        ("desc", "shared"),
        ("asc", "shared"),
        ("desc", "first"),
        ("asc", "first"),
        ("desc", "tiebreak"),
        ("asc", "tiebreak"),
    ];
    for (order, ties) in rules {
        let oracle = Oracle::new(order, ties);
        let board = format!("{order}-{ties}");
        let score = if order == "desc" { "silver: score 7" } else { "silver: score -1" };
        let tiers = owned(&[
            "crown: rank 1",
            "gold: top 12.5 %",
            score,
            "bronze: rank 30",
            "void: top 0.01 %",
            "iron: top 66.67 %",
        ]);
        let mut rules =
            json!({"slug": board, "mode": "best", "order": order, "ties": ties, "periods": ["all_time", "week"]});
        rules["tiers"] = json!(tiers);
        pair.sql.board(rules, &[]).await;
        let path = format!("/v1/boards/{board}");
        // Without scores.
        let none = Wanted::new();
        assert_eq!(pair.sql.get(&format!("{path}/tiers")).await.is(200)["data"], counts(&tiers, &none));
        shows_in_sql(&db, &board, "all_time", &tiers, &none).await;
        import(&db, &files.write(&format!("{board}.csv"), oracle.csv()), &board, &[]).well(60, 0);
        let wanted = oracle.wanted(&tiers);

        // A live ranking, from the index and by SQL.
        for period in ["all_time", WEEK] {
            from_index(&pair.index, &format!("{path}/tiers?period={period}")).await;
            shows(&pair.index, &board, period, &tiers, &wanted).await;
            shows(&pair.sql, &board, period, &tiers, &wanted).await;
            shows_in_sql(&db, &board, period, &tiers, &wanted).await;
        }
        // A closed period keeps its tiers; the others get new ones.
        run(&db, &["close", "--board", &board, "--period", WEEK]).well();
        let new = owned(&["all but: top 98.3 %", "half: top 50 %", "rest: rank 999999999999999999"]);
        for site in [&pair.sql, &pair.index] {
            site.admin(Method::PATCH, &path, json!({"tiers": new})).await.is(200);
            until("the board has the new tiers", async || site.get(&path).await.is(200)["tiers"] == json!(new)).await;
        }
        let wanted_new = oracle.wanted(&new);
        for site in [&pair.sql, &pair.index] {
            shows(site, &board, WEEK, &tiers, &wanted).await;
            shows(site, &board, "all_time", &new, &wanted_new).await;
        }
        shows_in_sql(&db, &board, WEEK, &tiers, &wanted).await;
        shows_in_sql(&db, &board, "all_time", &new, &wanted_new).await;

        // A combined board has its own tiers, those of its last refresh.
        if ties == "tiebreak" {
            continue;
        }
        let combined = format!("{board}-all");
        let combination = json!({"sources": [{"board": board, "period": WEEK}]});
        let rules = json!({"slug": combined, "mode": "combined", "order": order, "ties": ties, "tiers": tiers, "combination": combination});
        pair.sql.admin(Method::POST, "/v1/boards", rules).await.is(201);
        assert_eq!(pair.sql.get(&format!("/v1/boards/{combined}/tiers")).await.is(200)["data"], counts(&tiers, &none));
        run(&db, &["refresh", "--board", &combined, "--by", "dora"]).well();
        shows(&pair.sql, &combined, "all_time", &tiers, &wanted).await;
        pair.sql.admin(Method::PATCH, &format!("/v1/boards/{combined}"), json!({"tiers": new})).await.is(200);
        shows(&pair.sql, &combined, "all_time", &tiers, &wanted).await;
        shows_in_sql(&db, &combined, "all_time", &tiers, &wanted).await;
        run(&db, &["refresh", "--board", &combined, "--by", "dora"]).well();
        // Tops may lag.
        until("the top is of the refresh", async || {
            let [top, counts] = ["scores?limit=1000", "tiers"].map(|path| format!("/v1/boards/{combined}/{path}"));
            pair.sql.get(&top).await.is(200)["version"] == pair.sql.get(&counts).await.is(200)["version"]
        })
        .await;
        shows(&pair.sql, &combined, "all_time", &new, &wanted_new).await;
    }
}

#[tokio::test]
async fn tiers_follow_every_score() {
    let db = TestDb::new().await;
    let pair = Pair::start(&db).await;
    let tiers = owned(&["lead: rank 1", "first: top 50 %", "rich: score 10"]);
    pair.sql.board(json!({"tiers": tiers, "periods": ["all_time"]}), &[("ada", 9)]).await;
    let tier = async |user: &str, points: i64| {
        let event = json!({"user_id": user, "points": points});
        let result = pair.sql.post("/v1/boards/main/scores?ranks=true", event.clone()).await.is(200);
        let by_sql = result["periods"]["all_time"].clone();
        // The same player with no points, on the instance with an index.
        let event = json!({"user_id": user, "points": 0});
        let index = async || pair.index.post("/v1/boards/main/scores?ranks=true", event.clone()).await.is(200);
        let by_index = index().await["periods"]["all_time"].clone();
        assert_eq!((&by_sql["rank"], &by_sql["tier"]), (&by_index["rank"], &by_index["tier"]), "{by_sql} {by_index}");
        let path = format!("/v1/boards/main/scores/{user}");
        assert_eq!(pair.sql.get(&path).await.is(200)["tier"], by_sql["tier"]);
        assert_eq!(from_index(&pair.index, &path).await["tier"], by_sql["tier"]);
        by_sql["tier"].clone()
    };
    assert_eq!(tier("bob", 1).await, Value::Null);
    assert_eq!(tier("cyd", 2).await, Value::Null);
    assert_eq!(tier("dan", 0).await, Value::Null);
    assert_eq!(tier("cyd", 0).await, "first");
    assert_eq!(tier("bob", 9).await, "lead");
    assert_eq!(tier("eve", 9).await, "first");
    assert_eq!(tier("ada", 1).await, "lead");
    assert_eq!(tier("cyd", 8).await, "lead");
    assert_eq!(tier("eve", 1).await, "lead");
    assert_eq!(tier("dan", 11).await, "lead");
    assert_eq!(tier("eve", 0).await, "first");
    // Without ranks there is no tier.
    let result = pair.sql.post("/v1/boards/main/scores", json!({"user_id": "ada", "points": 1})).await.is(200);
    assert_eq!(result["periods"]["all_time"], json!({"score": 11}));
}
