//! Leagues: divisions of small cohorts, whose best members move up at the end of a period.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A league and its rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct League {
    #[schema(example = "arena-league")]
    pub name: String,
    #[schema(example = "arena")]
    pub board: String,
    /// Kind of period of the board.
    #[schema(example = "week")]
    pub period: String,
    /// Maximum members of a cohort.
    #[schema(example = 30)]
    pub size: i32,
    /// Names of the divisions, lowest first.
    #[schema(example = json!(["bronze", "silver", "gold"]))]
    pub divisions: Vec<String>,
    /// Members of each cohort who move up.
    #[schema(example = 7)]
    pub promote: i32,
    /// Members of each cohort who move down.
    #[schema(example = 7)]
    pub relegate: i32,
    /// `arrival`: players of a division come together as they arrive; `form`: those with similar
    /// results in the period before.
    #[schema(example = "arrival")]
    pub fill: String,
    /// `leave`: players without a score stay in their divisions; `relegate`: they move down.
    #[schema(example = "leave")]
    pub idle: String,
    /// At the lines, players of the same rank count as the best of them (`up`) or the worst (`down`).
    #[schema(example = "up")]
    pub ties: String,
    /// Start of the first period.
    pub starts_at: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
}

/// A new league, or a change of one.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeagueSettings {
    /// Name of the board; cannot change.
    #[schema(example = "arena")]
    pub board: String,
    /// Kind of period of the board, such as `week`; cannot change.
    #[schema(example = "week")]
    pub period: String,
    /// Maximum members of a cohort; cannot change.
    #[schema(minimum = 2, maximum = 1000, example = 30)]
    pub size: i32,
    /// Names of the divisions, lowest first; cannot change.
    #[schema(min_items = 1, max_items = 20, example = json!(["bronze", "silver", "gold"]))]
    pub divisions: Vec<String>,
    /// Members of each cohort who move up.
    #[schema(minimum = 0, maximum = 1000, example = 7)]
    pub promote: i32,
    /// Members of each cohort who move down.
    #[schema(minimum = 0, maximum = 1000, example = 7)]
    pub relegate: i32,
    /// `arrival` or `form`; `arrival` by default.
    #[schema(nullable = false, example = "arrival")]
    pub fill: Option<String>,
    /// `leave` or `relegate`; `leave` by default.
    #[schema(nullable = false, example = "leave")]
    pub idle: Option<String>,
    /// `up` or `down`; `up` by default.
    #[schema(nullable = false, example = "up")]
    pub ties: Option<String>,
}

/// A league and its current period.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LeagueOverview {
    #[serde(flatten)]
    pub league: League,
    /// The period whose players have cohorts; null until somebody scores.
    #[schema(required = true, example = "week:2024-01-15")]
    pub current_period: Option<String>,
    /// Players who have scored in a later period, and wait until the current one is closed.
    pub waiting: i64,
    /// Cohorts and players of each division in the current period, lowest first.
    pub cohorts: Vec<DivisionCounts>,
}

/// Cohorts and players of a division.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DivisionCounts {
    #[schema(example = "bronze")]
    pub division: String,
    pub cohorts: i64,
    pub players: i64,
}

/// A cohort, or a player's place in the league.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeagueState {
    /// Name of the league.
    #[schema(example = "arena-league")]
    pub league: String,
    /// Maximum members of a cohort.
    #[schema(example = 30)]
    pub size: i32,
    pub period: LeaguePeriod,
    /// `placed`: with a cohort; `waiting`: the player has scored, and gets a cohort when the period
    /// before is closed; `none`: the player has not scored in the period.
    #[schema(example = "placed")]
    pub state: String,
    /// Null while the player waits, and in closed periods without a score.
    #[schema(required = true, example = "silver")]
    pub division: Option<String>,
    #[schema(required = true, example = 42)]
    pub cohort_id: Option<i64>,
    /// Members up to this rank move up; null in the highest division.
    #[schema(required = true, example = 7)]
    pub promotion_rank: Option<i64>,
    /// Members from this rank on move down; null if none does.
    #[schema(required = true, example = 24)]
    pub relegation_rank: Option<i64>,
    /// The members of the cohort, best first.
    pub rows: Vec<LeagueRow>,
}

/// A period of a league.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaguePeriod {
    #[schema(example = "week:2024-01-15")]
    pub name: String,
    /// `open`, `due` (ended, and not closed) or `closed`.
    #[schema(example = "open")]
    pub state: String,
    pub starts_at: DateTime<Utc>,
    pub ends_at: DateTime<Utc>,
    /// Time left until `ends_at`, in seconds.
    pub seconds_left: i64,
}

/// A member of a cohort.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeagueRow {
    /// Rank among the members; null without a score, such as of a banned player.
    #[schema(required = true, example = 3)]
    pub rank: Option<i64>,
    #[schema(example = "ada")]
    pub user_id: String,
    #[schema(example = "Ada")]
    pub name: String,
    #[schema(required = true)]
    pub avatar_url: Option<String>,
    #[schema(required = true, example = 1_250)]
    pub score: Option<i64>,
    /// 1 if the player moves up with this rank, -1 if down, otherwise 0.
    #[serde(rename = "move")]
    pub movement: i16,
    /// Rank key, tie key and internal id, as long as the period is open.
    #[serde(skip_serializing, default)]
    #[schema(ignore)]
    pub(crate) key: Option<(i64, i64, i64)>,
}

/// A player's result in a closed period.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LeagueResult {
    #[schema(example = "week:2024-01-15")]
    pub period: String,
    pub ends_at: DateTime<Utc>,
    #[schema(example = "silver")]
    pub division: String,
    /// Null for a player who was relegated without a score.
    #[schema(required = true, example = 42)]
    pub cohort_id: Option<i64>,
    /// Rank among the members of the cohort; null without a score.
    #[schema(required = true, example = 3)]
    pub rank: Option<i64>,
    #[schema(required = true, example = 1_250)]
    pub score: Option<i64>,
    /// The division after the period.
    #[schema(example = "gold")]
    pub next_division: String,
}

impl LeagueState {
    /// Returns whether nothing but the time left differs, of what callers see.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let mut same = self.clone();
        same.period.seconds_left = other.period.seconds_left;
        for (row, other) in same.rows.iter_mut().zip(&other.rows) {
            row.key = other.key;
        }
        *other == same
    }
}
