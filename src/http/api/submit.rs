//! `POST /v1/boards/{board}/scores` writes one score event, and `/scores/batch` many.
//! `POST /v1/scores/batch` writes events on several boards.

use std::{collections::BTreeMap, sync::Arc};

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Payload},
};
use chrono::{DateTime, Utc};
use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Code, Error, Result, boards,
    http::{
        Api,
        api::{
            event::{BatchRequest, BoardsBatchRequest, EventRequest, parse_batch, parse_boards_batch, parse_event},
            problem::{Problem, WriteProblems},
            reply,
        },
        extract::{body, caller, path::BoardPath, query},
        server::version,
    },
    instance::Instance,
    model::{
        board::{Board, BoardSlug},
        key::Key,
        score::{Accepted, Event, NewStanding, Outcome, Quarantined},
    },
    scoring::{self, writer::Admission},
};

/// Boards of a batch that are written at the same time.
const BOARDS_AT_ONCE: usize = 16;

/// Options of a write.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SubmitQuery {
    /// Whether results include new and previous ranks.
    #[serde(default)]
    #[param(value_type = Option<bool>, default = false)]
    ranks: bool,
}

/// A player's standing in one period after an event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewStandingResponse {
    /// Score after the event.
    #[schema(example = 1_234)]
    score: i64,
    /// Rank after the commit, so after all events of the request; present with `ranks=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 6, minimum = 1)]
    rank: Option<u64>,
    /// Rank that the score before the event would have now. Present with `ranks=true`, except for a
    /// new player.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 9, minimum = 1)]
    previous_rank: Option<u64>,
    /// The player's tier with this rank; null for none. Present with the rank, on boards with tiers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[expect(clippy::option_option, reason = "absent, null and a value mean three different things")]
    #[schema(value_type = Option<String>, example = "gold")]
    tier: Option<Option<String>>,
}

impl From<NewStanding> for NewStandingResponse {
    fn from(standing: NewStanding) -> Self {
        let NewStanding { score, rank, previous_rank, tier } = standing;
        Self { score, rank, previous_rank, tier }
    }
}

/// An event that was written to the ledger.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedResponse {
    state: AcceptedState,
    /// Whether this is the stored result of an earlier event with the same id.
    repeated: bool,
    /// Id of the score transaction in the ledger.
    #[schema(example = 1_042)]
    transaction_id: i64,
    /// Time that the event counts for.
    occurred_at: DateTime<Utc>,
    /// The player's standing in each period, by the period's name.
    #[schema(example = json!({"all_time": {"score": 1234}, "week:2024-01-15": {"score": 50}}))]
    periods: BTreeMap<String, NewStandingResponse>,
}

/// State of an accepted event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum AcceptedState {
    Accepted,
}

impl From<Accepted> for AcceptedResponse {
    fn from(accepted: Accepted) -> Self {
        let periods = accepted.periods.into_iter();
        Self {
            state: AcceptedState::Accepted,
            repeated: accepted.repeated,
            transaction_id: accepted.transaction_id,
            occurred_at: accepted.occurred_at,
            periods: periods.map(|(name, standing)| (name, standing.into())).collect(),
        }
    }
}

/// An event that broke a rule of its board and waits in quarantine for an administrator.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuarantinedResponse {
    state: QuarantinedState,
    /// Whether this is the stored result of an earlier event with the same id.
    repeated: bool,
    /// Id of the event in the board's quarantine.
    #[schema(example = 7)]
    quarantine_id: i64,
    /// The rule that the event broke: `points_out_of_bounds`, `too_many_events` or
    /// `gain_too_large`.
    #[schema(value_type = String, example = "points_out_of_bounds")]
    rule: Code,
    /// The rule in words.
    #[schema(example = "points: board arena allows 0 to 100 points per event")]
    detail: String,
}

/// State of an event in quarantine.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum QuarantinedState {
    Quarantined,
}

impl From<Quarantined> for QuarantinedResponse {
    fn from(quarantined: Quarantined) -> Self {
        let Quarantined { quarantine_id, rule, why, repeated } = quarantined;
        Self { state: QuarantinedState::Quarantined, repeated, quarantine_id, rule, detail: why }
    }
}

/// A refused event of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefusedResponse {
    state: RefusedState,
    /// Reason for the refusal.
    error: Problem,
}

/// State of a refused event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RefusedState {
    Refused,
}

impl From<Error> for RefusedResponse {
    fn from(error: Error) -> Self {
        Self { state: RefusedState::Refused, error: Problem::of(&error) }
    }
}

/// The result of one event.
///
/// Each variant has its own struct with a `state`, so that the OpenAPI document names it: client
/// generators omit variants without a name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(description = "The result of one event; `state` tells its kind.")]
#[serde(untagged)]
#[schema(discriminator(property_name = "state", mapping(
    ("accepted" = "#/components/schemas/AcceptedResponse"),
    ("quarantined" = "#/components/schemas/QuarantinedResponse"),
    ("refused" = "#/components/schemas/RefusedResponse"),
)))]
pub(crate) enum EventResult {
    /// The event is in the ledger.
    Accepted(AcceptedResponse),
    /// The event is in quarantine and waits for an administrator.
    Quarantined(QuarantinedResponse),
    /// The event was refused; `error` says why.
    Refused(RefusedResponse),
}

/// The results of a batch.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchResponse {
    /// One result for each event, in the order of the request.
    results: Vec<EventResult>,
}

/// Write a score
///
/// Needs a server key for the board, or an admin key. Responds once the score is committed. A
/// refused event gets an error response; a quarantined event gets 202.
#[utoipa::path(
    post, path = "/v1/boards/{board}/scores", operation_id = "submit_score", tag = "writing",
    security(("key" = [])), params(BoardPath, SubmitQuery), request_body = EventRequest,
    responses(
        (status = 200, description = "The event is in the ledger.", body = AcceptedResponse),
        (status = 202, description = "The event was quarantined.", body = QuarantinedResponse),
        WriteProblems,
    ),
)]
pub(crate) async fn submit(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let call = Call::begin(&api, &request).await?;
    let event = parse_event(&body::text(&api, &request, payload).await?, call.ranks)?;
    let written = write_one(&api.instance, &call.board, event).await?;
    version::note_write(&request, &call.board);
    Ok(match written {
        Written::Accepted(accepted) => reply::written(StatusCode::OK, &AcceptedResponse::from(accepted)),
        Written::Quarantined(quarantined) => quarantine_response(quarantined),
    })
}

/// Write scores in a batch
///
/// Needs a server key for the board, or an admin key. Responds once the scores are committed, with
/// one result for each event. A refused or quarantined event does not affect the others.
#[utoipa::path(
    post, path = "/v1/boards/{board}/scores/batch", operation_id = "submit_batch", tag = "writing",
    security(("key" = [])), params(BoardPath, SubmitQuery), request_body = BatchRequest,
    responses((status = 200, description = "The result of each event.", body = BatchResponse), WriteProblems),
)]
pub(crate) async fn submit_batch(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let call = Call::begin(&api, &request).await?;
    let events = parse_batch(&body::text(&api, &request, payload).await?, call.ranks)?;
    let results = write_many(&api.instance, &call.board, events, "events").await?;
    version::note_write(&request, &call.board);
    Ok(reply::written(StatusCode::OK, &results))
}

/// Write scores on several boards
///
/// Needs a server or admin key. Each event may name its board, so one request can write the scores of
/// a match on several boards. Responds once the scores are committed, with one result for each event.
/// An event is refused alone if its board does not exist, or if the key is not for that board.
#[utoipa::path(
    post, path = "/v1/scores/batch", operation_id = "submit_boards_batch", tag = "writing",
    security(("key" = [])), params(SubmitQuery), request_body = BoardsBatchRequest,
    responses((status = 200, description = "The result of each event.", body = BatchResponse), WriteProblems),
)]
pub(crate) async fn submit_boards(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let _admission = scoring::admit_any(&api.instance.writers)?;
    let key = caller::server(&api, &request).await?;
    let SubmitQuery { ranks } = query::parse(&request)?;
    let text = body::text(&api, &request, payload).await?;
    let events = parse_boards_batch(&text, &api.settings.default_board, ranks)?;
    Ok(reply::written(StatusCode::OK, &write_boards(&api.instance, &request, &key, events).await?))
}

/// A write that its caller may make.
struct Call<'a> {
    _admission: Option<Admission<'a>>,
    board: Arc<Board>,
    ranks: bool,
}

impl<'a> Call<'a> {
    /// Admits the request and checks its key, before the body is received.
    async fn begin(api: &'a Api, request: &HttpRequest) -> Result<Self> {
        let path = BoardPath::of(request);
        // First of all, so that an overloaded instance refuses a write at little cost.
        let admission = match &path {
            Ok(path) => Some(scoring::admit(&api.instance.writers, &api.instance.boards, &path.board)?),
            Err(_) => None,
        };
        let key = caller::authenticated(api, request).await?;
        let path = path?;
        key.may_write(&path.board)?;
        let SubmitQuery { ranks } = query::parse(request)?;
        let board = path.find(&api.instance).await?;
        Ok(Self { _admission: admission, board, ranks })
    }
}

/// The result of an event that was not refused.
#[derive(Debug)]
pub(crate) enum Written {
    /// The event is in the ledger.
    Accepted(Accepted),
    /// The event waits for an administrator.
    Quarantined(Quarantined),
}

/// Builds the response to a quarantined event.
pub(crate) fn quarantine_response(quarantined: Quarantined) -> HttpResponse {
    reply::written(StatusCode::ACCEPTED, &QuarantinedResponse::from(quarantined))
}

/// Writes one event.
pub(crate) async fn write_one(instance: &Instance, board: &Board, event: Event) -> Result<Written> {
    match scoring::submit(&instance.writers, &instance.rankings, board, vec![event]).await?.pop() {
        Some(Outcome::Accepted(accepted)) => Ok(Written::Accepted(accepted)),
        Some(Outcome::Quarantined(quarantined)) => Ok(Written::Quarantined(quarantined)),
        Some(Outcome::Refused(error)) => Err(error),
        None => Err(outcome_mismatch()),
    }
}

/// Writes the valid events and returns a result for each event of the list, which the request calls
/// `list`.
pub(crate) async fn write_many(
    instance: &Instance,
    board: &Board,
    events: Vec<Result<Event>>,
    list: &str,
) -> Result<BatchResponse> {
    let mut readable = Vec::with_capacity(events.len());
    let mut refusals = Vec::with_capacity(events.len());
    for event in events {
        refusals.push(event.map(|event| readable.push(event)).err());
    }
    let outcomes = if readable.is_empty() {
        Vec::new()
    } else {
        scoring::submit(&instance.writers, &instance.rankings, board, readable).await?
    };
    Ok(BatchResponse { results: merged(refusals, outcomes, list)? })
}

/// Writes the valid events board by board, concurrently, and returns a result for each event.
///
/// If a board cannot be written, all its events are refused. Returns [`Error::Unavailable`] if all
/// events are valid but no board can be written now, all for the same reason.
async fn write_boards(
    instance: &Instance,
    request: &HttpRequest,
    key: &Key,
    events: Vec<Result<(BoardSlug, Event)>>,
) -> Result<BatchResponse> {
    let mut outcomes: Vec<Option<Outcome>> = Vec::with_capacity(events.len());
    let mut by_board: BTreeMap<BoardSlug, (Vec<usize>, Vec<Event>)> = BTreeMap::new();
    for (index, event) in events.into_iter().enumerate() {
        outcomes.push(match event {
            Ok((board, event)) => {
                let (indexes, events) = by_board.entry(board).or_default();
                indexes.push(index);
                events.push(event);
                None
            }
            Err(error) => Some(Outcome::Refused(error)),
        });
    }
    let is_any_invalid = outcomes.iter().any(Option::is_some);
    let writes = by_board.into_iter().map(|(slug, (indexes, events))| async move {
        let written = async {
            key.may_write(&slug)?;
            let board = boards::find(&instance.boards, &slug).await?;
            let outcomes = scoring::submit(&instance.writers, &instance.rankings, &board, events).await?;
            version::note_write(request, &board);
            Ok(outcomes)
        };
        (indexes, written.await)
    });
    let written: Vec<_> = stream::iter(writes).buffer_unordered(BOARDS_AT_ONCE).collect().await;
    // Different errors stay with their events: after one of them, a retry may be safe, after another not.
    if !is_any_invalid
        && let Some((_, Err(error @ Error::Unavailable { .. }))) = written.first()
        && written.iter().all(|(_, written)| written.as_ref().is_err_and(|other| other.code() == error.code()))
    {
        return Err(error.clone());
    }
    for (indexes, written) in written {
        match written {
            Ok(of_board) => {
                for (index, outcome) in indexes.into_iter().zip(of_board) {
                    outcomes[index] = Some(outcome);
                }
            }
            Err(error) => {
                for index in indexes {
                    outcomes[index] = Some(Outcome::Refused(error.clone()));
                }
            }
        }
    }
    let results = outcomes.into_iter().enumerate();
    let results = results.map(|(index, outcome)| Ok(result("events", index, outcome.ok_or_else(outcome_mismatch)?)));
    Ok(BatchResponse { results: results.collect::<Result<_>>()? })
}

/// Merges results in the order of the events. `refusals` holds `None` for each event that has an
/// outcome.
fn merged(refusals: Vec<Option<Error>>, outcomes: Vec<Outcome>, list: &str) -> Result<Vec<EventResult>> {
    let mut outcomes = outcomes.into_iter();
    let mut results = Vec::with_capacity(refusals.len());
    for (index, refusal) in refusals.into_iter().enumerate() {
        let outcome = match refusal {
            Some(error) => Outcome::Refused(error),
            None => outcomes.next().ok_or_else(outcome_mismatch)?,
        };
        results.push(result(list, index, outcome));
    }
    if outcomes.next().is_some() { Err(outcome_mismatch()) } else { Ok(results) }
}

/// Builds the result of the event at `index` of the list.
fn result(list: &str, index: usize, outcome: Outcome) -> EventResult {
    match outcome {
        Outcome::Accepted(accepted) => EventResult::Accepted(accepted.into()),
        Outcome::Quarantined(quarantined) => EventResult::Quarantined(quarantined.into()),
        Outcome::Refused(error) => EventResult::Refused(at(list, index, error).into()),
    }
}

/// Prefixes the field of a refusal with the event's place in the list.
fn at(list: &str, index: usize, error: Error) -> Error {
    match error {
        Error::Invalid { code, field, message } if field == body::WHOLE => {
            Error::Invalid { code, field: format!("{list}[{index}]"), message }
        }
        Error::Invalid { code, field, message } => {
            Error::Invalid { code, field: format!("{list}[{index}].{field}"), message }
        }
        other => other,
    }
}

fn outcome_mismatch() -> Error {
    Error::Internal("the number of outcomes differs from the number of events".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(transaction_id: i64) -> Outcome {
        let standing = NewStanding { score: 50, rank: Some(2), previous_rank: None, tier: None };
        Outcome::Accepted(Accepted {
            transaction_id,
            occurred_at: DateTime::UNIX_EPOCH,
            repeated: false,
            periods: BTreeMap::from([("all_time".to_owned(), standing)]),
        })
    }

    #[test]
    fn results_keep_the_order_of_the_events() -> Result<()> {
        let refusals = vec![None, Some(Error::invalid("points", "no")), None, Some(Error::invalid(body::WHOLE, "no"))];
        let outcomes = vec![accepted(1), Outcome::Refused(Error::conflict(Code::IdConflict, "other content"))];
        let results = serde_json::to_value(merged(refusals, outcomes, "events")?).unwrap_or_default();
        assert_eq!(
            results[0],
            serde_json::json!({
                "state": "accepted", "repeated": false, "transaction_id": 1, "occurred_at": "1970-01-01T00:00:00Z",
                "periods": {"all_time": {"score": 50, "rank": 2}},
            })
        );
        assert_eq!(results[1]["error"]["field"], "events[1].points");
        assert_eq!(results[2]["error"]["code"], "id_conflict");
        assert_eq!(results[3]["error"]["field"], "events[3]");
        Ok(())
    }

    #[test]
    fn a_wrong_number_of_outcomes_is_an_internal_error() {
        assert!(merged(vec![None, None], vec![accepted(1)], "events").is_err());
        assert!(merged(vec![None], vec![accepted(1), accepted(2)], "events").is_err());
    }
}
