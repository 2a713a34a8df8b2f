//! The rules against cheating in plain Rust: which events a player's ledger allows next.

use chrono::{DateTime, Datelike as _, Days, TimeDelta, Utc};
use sqlx::PgPool;

/// A row of a player's ledger.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Row {
    pub transaction_id: i64,
    pub kind: String,
    pub points: Option<i64>,
    pub voids_id: Option<i64>,
    pub occurred_at: DateTime<Utc>,
    /// Whether a game server sent it as a current score.
    pub is_live: bool,
}

/// Returns a player's ledger in the order of writing. In these tests live events have no reason,
/// and all others have one.
pub async fn ledger(pool: &PgPool, board: &str, user: &str) -> Vec<Row> {
    sqlx::query_as(
        "SELECT transaction_id, kind, points, voids_id, occurred_at, kind = 'score' AND reason IS NULL AS is_live
         FROM centile.score_history WHERE board = $1 AND user_id = $2 ORDER BY transaction_id",
    )
    .bind(board)
    .bind(user)
    .fetch_all(pool)
    .await
    .unwrap()
}

/// The rules of a board whose time zone is UTC.
#[derive(Debug, Clone)]
pub struct Rules {
    pub mode: &'static str,
    pub ascending: bool,
    pub points_min: i64,
    pub points_max: i64,
    pub events_per_minute: usize,
    /// Kinds of period with their limits, in the order in which the periods were opened.
    pub gain_max: Vec<(&'static str, i128)>,
}

/// Returns the start of the period of a kind that contains `at`.
fn starts_at(kind: &str, at: DateTime<Utc>) -> DateTime<Utc> {
    let day = at.date_naive();
    let first = match kind {
        "all_time" => return DateTime::<Utc>::MIN_UTC,
        "day" => day,
        "week" => day - Days::new(u64::from(day.weekday().num_days_from_monday())),
        "month" => day.with_day(1).unwrap(),
        other => panic!("{other}"),
    };
    first.and_hms_opt(0, 0, 0).unwrap().and_utc()
}

impl Rules {
    /// Returns the points as a number of which more is better.
    fn key(&self, points: i64) -> i128 {
        if self.ascending { -i128::from(points) } else { i128::from(points) }
    }

    /// Returns the names of all rules that an event of these points would break at `at`, after the
    /// rows in `before`.
    pub fn broken(&self, before: &[Row], points: i64, at: DateTime<Utc>) -> Vec<&'static str> {
        let mut broken = Vec::new();
        if points < self.points_min || points > self.points_max {
            broken.push("points_out_of_bounds");
        }
        let recent = |row: &&Row| row.kind == "score" && row.occurred_at > at - TimeDelta::seconds(60);
        if before.iter().filter(recent).count() >= self.events_per_minute {
            broken.push("too_many_events");
        }
        if self.gain_max.iter().any(|(kind, most)| self.gain(before, points, starts_at(kind, at)) > *most) {
            broken.push("gain_too_large");
        }
        broken
    }

    /// Returns the player's gain in a period that began at `start` if the event is accepted; 0 if
    /// the event adds nothing.
    fn gain(&self, before: &[Row], points: i64, start: DateTime<Utc>) -> i128 {
        let reset = before.iter().filter(|row| row.kind == "reset").map(|row| row.occurred_at).max();
        let voided: Vec<i64> = before.iter().filter_map(|row| row.voids_id).collect();
        let mut counted: Vec<&Row> = before
            .iter()
            .filter(|row| row.kind == "score" && reset.is_none_or(|reset| row.occurred_at >= reset))
            .filter(|row| !voided.contains(&row.transaction_id))
            .collect();
        counted.sort_by_key(|row| (row.occurred_at, row.transaction_id));
        let keys = |rows: &[&Row]| rows.iter().map(|row| self.key(row.points.unwrap())).collect::<Vec<_>>();
        let (past, within): (Vec<&Row>, Vec<&Row>) = counted.into_iter().partition(|row| row.occurred_at < start);
        let (past, within, key) = (keys(&past), keys(&within), self.key(points));
        let entered = match self.mode {
            "sum" if key <= 0 => return 0,
            "sum" => return within.iter().filter(|won| **won > 0).sum::<i128>() + key,
            "best" if within.iter().any(|had| *had >= key) => return 0,
            "best" => past.iter().max(),
            _ => past.last(),
        };
        entered.or(within.first()).map_or(0, |entered| key - entered)
    }
}
