//! A board with past events, and all reads of a period.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool, query, query_as, query_scalar};

use crate::{
    http::api::site::Site,
    support::{Files, TestDb, amount, import, wait::until},
};

/// Rows of a page in a walk.
pub const STEP: usize = 7;

/// A board whose events have times in the past.
pub struct Past<'a> {
    pub pool: PgPool,
    db: &'a TestDb,
    board: &'a str,
    has_tiebreaks: bool,
    files: Files,
}

impl<'a> Past<'a> {
    pub async fn new(db: &'a TestDb, board: &'a str, mut rules: Value, site: &Site) -> Self {
        rules["slug"] = json!(board);
        let has_tiebreaks = rules["ties"] == "tiebreak" || rules["ties"] == "second";
        site.board(rules, &[]).await;
        Self { pool: db.pool().await, db, board, has_tiebreaks, files: Files::new() }
    }

    /// Creates a season before its first score.
    pub async fn season(&self, name: &str, from: &str, until: &str) {
        self.db
            .execute(&format!("SELECT centile.create_season('{}', '{name}', '{from}Z', '{until}Z')", self.board))
            .await;
    }

    /// Submits events of at most `players` players within some minutes of a day, with many equal
    /// scores, times and tiebreaks.
    pub fn play(&self, seed: u64, players: u32, events: u32, day: &str) {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut lines = Vec::new();
        for event in 0..events {
            // Each player once, then random players.
            let player = if event < players { event } else { rng.random_range(0..players) };
            let (points, minute) = (rng.random_range(-4..12), rng.random_range(0..10));
            let mut line = json!({"user_id": format!("p{player}"), "points": points, "occurred_at": format!("{day}T10:0{minute}:00Z")});
            if self.has_tiebreaks {
                line["tiebreak"] = json!(rng.random_range(-2..3));
            }
            lines.push(line.to_string());
        }
        let file = self.files.write(&format!("{seed}.ndjson"), lines.join("\n"));
        import(self.db, &file, self.board, &[]).well(events.into(), 0);
    }

    async fn id(&self, period: &str) -> i64 {
        let (kind, label) = period.split_once(':').unwrap();
        query_scalar(
            "SELECT p.id FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
             WHERE b.slug = $1 AND p.kind = $2 AND p.label = $3",
        )
        .bind(self.board)
        .bind(kind)
        .bind(label)
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }

    /// Closes a period like `centile close`, in four transactions.
    pub async fn close(&self, period: &str) {
        let id = self.id(period).await;
        for step in ["cut_off_period(ID)", "build_archive(ID)", "compare_archive(ID)"] {
            let call = format!("SELECT centile_store.{step}").replace("ID", &id.to_string());
            self.db.execute(&call).await;
        }
        let differences: i64 = query_scalar("SELECT archive_differences FROM centile_store.periods WHERE id = $1")
            .bind(id)
            .fetch_one(&self.pool)
            .await
            .unwrap();
        assert_eq!(differences, 0, "{} {period}", self.board);
        self.db
            .execute(&format!(
                "SELECT centile_store.finish_close(id, cut_off_at) FROM centile_store.periods WHERE id = {id}"
            ))
            .await;
    }

    /// Waits until all top lists of the period come from its archive: a top list may lag.
    pub async fn is_shown_closed(&self, site: &Site, period: &str) {
        for rest in ["", "&limit=1000", &format!("&limit={STEP}"), "&limit=10", "&limit=5"] {
            let path = format!("/v1/boards/{}/scores?period={period}{rest}", self.board);
            until("the top list of the closed period", async || {
                site.get(&path).await.is(200)["period"]["state"] == "closed"
            })
            .await;
        }
    }

    /// Refreshes the archive; returns its revision.
    pub async fn refresh(&self, period: &str) -> i32 {
        query_scalar("SELECT centile_store.refresh_archive($1, 'dora', 'a correction')")
            .bind(self.id(period).await)
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    /// Bans or unbans a player on this board.
    pub async fn ban(&self, user: &str, is_banned: bool) {
        self.db.execute(&format!("SELECT centile.ban_user('{}', '{user}', {is_banned})", self.board)).await;
    }

    /// Runs the first or the last step of releasing the archive. The last one does not wait long
    /// for readers (SQLSTATE 55P03), so it is repeated.
    pub async fn release_archive(&self, period: &str, is_last: bool) {
        let id = self.id(period).await;
        until("the archive is released", async || {
            let step = query("SELECT centile_store.drop_archive($1, $2)").bind(id).bind(is_last);
            match step.execute(&self.pool).await {
                Err(error)
                    if error.as_database_error().is_some_and(|error| error.code().as_deref() == Some("55P03")) =>
                {
                    false
                }
                done => done.is_ok() || panic!("{done:?}"),
            }
        })
        .await;
    }

    /// Returns the paths of all pages after the first, by following the cursors.
    pub async fn cursors(&self, site: &Site, period: &str) -> Vec<String> {
        let first = format!("/v1/boards/{}/scores?period={period}&limit={STEP}", self.board);
        let (mut paths, mut path) = (Vec::new(), format!("{first}&from=1"));
        while let Some(cursor) = site.get(&path).await.is(200)["next_cursor"].as_str() {
            path = format!("{first}&cursor={}", utf8_percent_encode(cursor, NON_ALPHANUMERIC));
            paths.push(path.clone());
        }
        assert!(paths.len() > 2, "{paths:?}");
        paths
    }

    /// Returns the players from first to last, page by page.
    pub async fn walk(&self, site: &Site, period: &str) -> Vec<Value> {
        let mut paths = vec![format!("/v1/boards/{}/scores?period={period}&limit={STEP}", self.board)];
        paths.extend(self.cursors(site, period).await);
        let mut rows = Vec::new();
        for path in paths {
            rows.extend(site.get(&path).await.is(200)["data"].as_array().unwrap().clone());
        }
        rows
    }

    /// Compares the functions for psql users with the rows that were read.
    pub async fn walk_by_sql(&self, period: &str, rows: &[Value]) {
        let (board, players) = (self.board, rows.len());
        let page: Vec<(i64, i64, String, i64)> = query_as(AssertSqlSafe(format!(
            "SELECT position, rank, user_id, score FROM centile.page('{board}', '{period}', 1, {})",
            players + 1
        )))
        .fetch_all(&self.pool)
        .await
        .unwrap();
        let wanted: Vec<(i64, i64, String, i64)> = rows.iter().map(columns).collect();
        assert_eq!(page, wanted);
        for row in rows.iter().step_by(5) {
            let (position, rank, user, score) = columns(row);
            let found: (i64, i64, i64, i64) = query_as(AssertSqlSafe(format!(
                "SELECT position, rank, score, players FROM centile.player_rank('{board}', '{user}', '{period}')"
            )))
            .fetch_one(&self.pool)
            .await
            .unwrap();
            assert_eq!(found, (position, rank, score, i64::try_from(players).unwrap()));
            let around: Vec<String> = query_scalar(AssertSqlSafe(format!(
                "SELECT user_id FROM centile.players_around('{board}', '{user}', '{period}', 2)"
            )))
            .fetch_all(&self.pool)
            .await
            .unwrap();
            let at = usize::try_from(position).unwrap() - 1;
            let wanted: Vec<String> =
                rows[at.saturating_sub(2)..(at + 3).min(players)].iter().map(|row| columns(row).2).collect();
            assert_eq!(around, wanted);
        }
    }
}

fn columns(row: &Value) -> (i64, i64, String, i64) {
    let number = |name: &str| row[name].as_i64().unwrap();
    (number("position"), number("rank"), row["user_id"].as_str().unwrap().to_owned(), number("score"))
}

/// Returns the paths of all reads of a period with players.
pub async fn reads(site: &Site, board: &str, period: &str) -> Vec<String> {
    let path = |rest: &str| {
        let mark = if rest.contains('?') { '&' } else { '?' };
        format!("/v1/boards/{board}/{rest}{mark}period={period}")
    };
    let all = site.send(Method::GET, &path("scores?from=1&limit=1000"), &[], String::new()).await.is(200);
    let rows = all["data"].as_array().unwrap();
    let players = rows.len();
    assert!(players > 4, "{all}");
    let mut paths = vec![path("distribution"), path("scores"), path("scores?limit=1000")];
    for place in 1..=players + 1 {
        paths.push(path(&format!("scores?from={place}&limit=3")));
    }
    for (place, row) in rows.iter().enumerate() {
        let user = row["user_id"].as_str().unwrap();
        for around in [0, 2, 100] {
            paths.push(path(&format!("scores/{user}?around={around}")));
        }
        let friend = rows[(place * 7 + 3) % players]["user_id"].as_str().unwrap();
        let other = rows[(place * 5 + 1) % players]["user_id"].as_str().unwrap();
        paths.push(path(&format!("scores/query?user_id={user}&user_id={friend}&user_id={other}&user_id=nobody")));
    }
    for score in (-60..=60).step_by(amount(10, 1)).chain([i64::MAX, i64::MIN + 1]) {
        paths.push(path(&format!("rank?score={score}")));
    }
    paths
}

/// Removes what closing changes from an answer: the period's state, the version, and cursors.
pub fn seen(answer: &Value) -> Value {
    let mut answer = answer.clone();
    answer["version"] = Value::Null;
    answer["period"]["state"] = Value::Null;
    if let Some(next) = answer.get_mut("next_cursor") {
        *next = json!(!next.is_null());
    }
    answer
}
