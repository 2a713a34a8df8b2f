//! The computation of a combined board, as part of the board.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    Error, Result,
    http::api::{body::Integer, query::PeriodText},
    model::combination::{Aggregate, Combination, CombinationChange, Join, NewCombination, RefreshRule, Source},
};

/// A source of a combined board.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceRequest {
    /// Name of a board, which may be a combined one.
    #[schema(example = "arena", min_length = 1, max_length = 40, pattern = "^[a-z][a-z0-9_-]*$")]
    board: String,
    /// Period of the board. `week:previous` is another week each week.
    #[schema(value_type = PeriodText, example = "week:previous")]
    period: String,
    /// Factor of the scores, not 0; 1 when absent.
    #[schema(value_type = Option<i32>, minimum = -1_000_000, maximum = 1_000_000, example = 2)]
    weight: Option<Integer<i32>>,
}

/// How a combined board is computed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateCombination {
    /// The sources.
    #[schema(min_items = 1, max_items = 366)]
    sources: Vec<SourceRequest>,
    /// Players of any source (`union`) or of every source (`intersection`); `union` when absent.
    join: Option<Join>,
    /// `sum`, `min` or `max` of a player's scores, each times the weight of its source; `sum` when
    /// absent. A missing score counts as 0 in a sum, and not at all otherwise.
    aggregate: Option<Aggregate>,
    /// When to compute the board again: `manual`, `on-close` (a period of a source was closed, or an
    /// archive changed), `after=10000` scores in the boards of the sources, `every=5m` while they
    /// change (`s`, `m` or `h`), or a cron expression of five fields in the board's time zone;
    /// `manual` when absent. A new board is computed at once.
    #[schema(example = "on-close", min_length = 1, max_length = 128)]
    refresh: Option<String>,
}

impl TryFrom<CreateCombination> for NewCombination {
    type Error = Error;

    fn try_from(request: CreateCombination) -> Result<Self> {
        Ok(Self {
            sources: sources(request.sources)?,
            join: request.join.unwrap_or_default(),
            aggregate: request.aggregate.unwrap_or_default(),
            refresh: request.refresh.as_deref().map_or(Ok(RefreshRule::Manual), refresh)?,
        })
    }
}

/// Changes to the computation of a combined board. An absent field stays unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeCombination {
    /// New sources, which replace all earlier ones.
    #[schema(min_items = 1, max_items = 366)]
    sources: Option<Vec<SourceRequest>>,
    /// New choice of players.
    join: Option<Join>,
    /// New combination of scores.
    aggregate: Option<Aggregate>,
    /// New times at which to compute the board.
    #[schema(example = "every=5m", min_length = 1, max_length = 128)]
    refresh: Option<String>,
}

impl TryFrom<ChangeCombination> for CombinationChange {
    type Error = Error;

    fn try_from(request: ChangeCombination) -> Result<Self> {
        Ok(Self {
            sources: request.sources.map(sources).transpose()?,
            join: request.join,
            aggregate: request.aggregate,
            refresh: request.refresh.as_deref().map(refresh).transpose()?,
        })
    }
}

/// Parses the sources. An error names the place in the list.
fn sources(requests: Vec<SourceRequest>) -> Result<Vec<Source>> {
    let source = |(place, request): (usize, SourceRequest)| {
        let field = |name| format!("combination.sources[{place}].{name}");
        let source = Source {
            board: request.board.parse().map_err(|error: Error| error.in_field(field("board")))?,
            period: request.period.parse().map_err(|error: Error| error.in_field(field("period")))?,
            weight: request.weight.map_or(1, |Integer(weight)| weight),
        };
        let checked = if source.period.segment().is_some() { "period" } else { "weight" };
        source.checked().map_err(|error| error.in_field(field(checked)))
    };
    requests.into_iter().enumerate().map(source).collect()
}

fn refresh(text: &str) -> Result<RefreshRule> {
    text.parse().map_err(|error: Error| error.in_field("combination.refresh"))
}

/// A source of a combined board.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourceResponse {
    /// Name of the board.
    #[schema(example = "arena")]
    board: String,
    /// Period of the board.
    #[schema(example = "week:previous")]
    period: String,
    /// Factor of the scores.
    #[schema(example = 2)]
    weight: i32,
}

/// How a combined board is computed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CombinationResponse {
    /// `union` or `intersection`.
    #[schema(value_type = String, example = "union")]
    join: Join,
    /// `sum`, `min` or `max`.
    #[schema(value_type = String, example = "sum")]
    aggregate: Aggregate,
    /// The sources.
    sources: Vec<SourceResponse>,
    /// When the board is computed again.
    #[schema(example = "on-close")]
    refresh: String,
    /// Time of the snapshot from which the ranking was computed; null if it has not been yet.
    #[schema(required = true)]
    as_of: Option<DateTime<Utc>>,
    /// The last failure since the last successful refresh. Only shown to server and admin keys of the board;
    /// absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    failure: Option<CombinationFailure>,
}

/// A failure to compute a combined board. The last ranking answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CombinationFailure {
    /// When it happened.
    at: DateTime<Utc>,
    /// The reason of the failure.
    #[schema(example = "board arena has no period season:spring")]
    detail: String,
}

impl CombinationResponse {
    /// Describes the computation to everyone.
    pub(super) fn public(combination: &Combination) -> Self {
        Self { failure: None, ..Self::from(combination) }
    }
}

impl From<&Combination> for CombinationResponse {
    /// Describes the computation to a holder of a server or admin key.
    fn from(Combination { rules, as_of, failure }: &Combination) -> Self {
        let source = |source: &Source| SourceResponse {
            board: source.board.to_string(),
            period: source.period.to_string(),
            weight: source.weight,
        };
        Self {
            join: rules.join,
            aggregate: rules.aggregate,
            sources: rules.sources.iter().map(source).collect(),
            refresh: rules.refresh.to_string(),
            as_of: *as_of,
            failure: failure.as_ref().map(|(at, detail)| CombinationFailure { at: *at, detail: detail.clone() }),
        }
    }
}
