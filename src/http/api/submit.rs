//! `POST /v1/boards/{board}/scores` writes one score event, and `/scores/batch` many.
//! `POST /v1/scores/batch` writes events on several boards.

use std::{collections::BTreeMap, iter, sync::Arc};

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
        api::{
            body,
            event::{BatchRequest, BoardsBatchRequest, EventRequest, parse_batch, parse_boards_batch, parse_event},
            path::BoardPath,
            query, reply,
        },
        auth::caller,
        server::{
            Api,
            problem::{Problem, WriteProblems},
            version,
        },
    },
    instance::Instance,
    model::{
        board::{Board, BoardSlug},
        key::Key,
        rank::{RankChange, Tiering},
        score::Event,
    },
    rules::AcceptedEvent,
    scoring::{self, batch::EventOutcome, writer::Admission},
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
    #[schema(value_type = Option<String>, example = "gold")]
    tier: Option<Option<String>>,
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

impl AcceptedResponse {
    /// Builds the response from the ranks of the standings, if they were read.
    fn new(board: &Board, accepted: AcceptedEvent, repeated: bool, ranks: Vec<RankChange>) -> Self {
        let ranks = ranks.into_iter().chain(iter::repeat(RankChange::default()));
        let periods = accepted.standings.into_iter().zip(ranks).map(|(standing, change)| {
            let RankChange { rank, previous_rank, score, players } = change;
            let ranked = rank.zip(score).zip(players);
            let tier = ranked.and_then(|((rank, score), players)| Tiering::open(board, players).tier(score, rank));
            let tier = tier.map(|tier| tier.map(ToOwned::to_owned));
            (standing.period, NewStandingResponse { score: standing.score, rank, previous_rank, tier })
        });
        Self {
            state: AcceptedState::Accepted,
            repeated,
            transaction_id: accepted.transaction_id,
            occurred_at: accepted.at,
            periods: periods.collect(),
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
    let event = parse_event(&body::text(&api, &request, payload).await?)?;
    let answer = write_one(&api.instance, &call.board, event, call.ranks).await?;
    version::record_write(&request, &call.board);
    Ok(response(&call.board, answer))
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
    let events = parse_batch(&body::text(&api, &request, payload).await?)?;
    let results = write_many(&api.instance, &call.board, events, call.ranks, "events").await?;
    version::record_write(&request, &call.board);
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
    let _admission = api.instance.writers.admit(None)?;
    let key = caller::server(&api, &request).await?;
    let SubmitQuery { ranks } = query::parse(&request)?;
    let text = body::text(&api, &request, payload).await?;
    let events = parse_boards_batch(&text, &api.settings.default_board)?;
    Ok(reply::written(StatusCode::OK, &write_boards(&api, &request, &key, events, ranks).await?))
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
        let path = BoardPath::from_request(request);
        // First of all, so that an overloaded instance refuses a write at little cost.
        let admission = match &path {
            Ok(path) => Some(api.instance.writers.admit(api.instance.boards.last_seen(&path.board).as_deref())?),
            Err(_) => None,
        };
        let key = caller::authenticated(api, request).await?;
        let path = path?;
        key.may_write(&path.board)?;
        let SubmitQuery { ranks } = query::parse(request)?;
        let board = find(api, &key, &path.board).await?;
        Ok(Self { _admission: admission, board, ranks })
    }
}

/// Returns the board, and counts it for the key if the first score will create it.
async fn find(api: &Api, key: &Key, slug: &BoardSlug) -> Result<Arc<Board>> {
    let board = boards::find(&api.instance.boards, slug).await?;
    if board.is_future() {
        api.rates.charge_board(&key.id)?;
    }
    Ok(board)
}

/// Builds the response to a single event.
pub(crate) fn response(board: &Board, answer: EventOutcome) -> HttpResponse {
    let status = match answer {
        EventOutcome::Accepted { .. } => StatusCode::OK,
        EventOutcome::Quarantined { .. } => StatusCode::ACCEPTED,
    };
    reply::written(status, &EventResult::new(board, answer))
}

/// Writes one event. Returns the error of a refused event.
pub(crate) async fn write_one(instance: &Instance, board: &Board, event: Event, ranks: bool) -> Result<EventOutcome> {
    let answers = scoring::submit(&instance.writers, &instance.rankings, board, vec![event], ranks).await?;
    answers.into_iter().next().unwrap_or_else(|| Err(outcome_mismatch()))
}

/// Writes the valid events and returns a result for each event of the list, which the request calls
/// `list`.
pub(crate) async fn write_many(
    instance: &Instance,
    board: &Board,
    events: Vec<Result<Event>>,
    ranks: bool,
    list: &str,
) -> Result<BatchResponse> {
    let mut readable = Vec::with_capacity(events.len());
    let mut refusals = Vec::with_capacity(events.len());
    for event in events {
        refusals.push(event.map(|event| readable.push(event)).err());
    }
    let answers = if readable.is_empty() {
        Vec::new()
    } else {
        scoring::submit(&instance.writers, &instance.rankings, board, readable, ranks).await?
    };
    Ok(BatchResponse { results: merged(board, refusals, answers, list)? })
}

/// Writes the valid events board by board, concurrently, and returns a result for each event.
///
/// If a board cannot be written, the result of each of its events is that error. Returns an error only if
/// all events are valid, and every board fails with the same temporary error.
async fn write_boards(
    api: &Api,
    request: &HttpRequest,
    key: &Key,
    events: Vec<Result<(BoardSlug, Event)>>,
    ranks: bool,
) -> Result<BatchResponse> {
    // Group the valid events by board. The others already have their results.
    let mut results: Vec<Option<EventResult>> = Vec::with_capacity(events.len());
    let mut by_board: BTreeMap<BoardSlug, (Vec<usize>, Vec<Event>)> = BTreeMap::new();
    for (index, event) in events.into_iter().enumerate() {
        results.push(match event {
            Ok((board, event)) => {
                let (indexes, events) = by_board.entry(board).or_default();
                indexes.push(index);
                events.push(event);
                None
            }
            Err(error) => Some(EventResult::refused("events", index, error)),
        });
    }
    let is_any_invalid = results.iter().any(Option::is_some);
    // Write to several boards at a time.
    let writes = by_board.into_iter().map(|(slug, (indexes, events))| async move {
        let written = async {
            key.may_write(&slug)?;
            let board = find(api, key, &slug).await?;
            let answers = scoring::submit(&api.instance.writers, &api.instance.rankings, &board, events, ranks).await?;
            version::record_write(request, &board);
            Ok((board, answers))
        };
        (indexes, written.await)
    });
    let written: Vec<_> = stream::iter(writes).buffer_unordered(BOARDS_AT_ONCE).collect().await;
    // Different errors stay with their events: after one of them, a retry may be safe, after another not.
    if !is_any_invalid
        && let Some(error) = Error::of_all(written.iter().map(|(_, written)| written))
        && error.is_temporary()
    {
        return Err(error.clone());
    }
    // Return the results in the order of the request.
    for (indexes, written) in written {
        match written {
            Ok((board, answers)) => {
                for (index, answer) in indexes.into_iter().zip(answers) {
                    results[index] = Some(EventResult::of(&board, "events", index, answer));
                }
            }
            Err(error) => {
                for index in indexes {
                    results[index] = Some(EventResult::refused("events", index, error.clone()));
                }
            }
        }
    }
    let results = results.into_iter().map(|result| result.ok_or_else(outcome_mismatch));
    Ok(BatchResponse { results: results.collect::<Result<_>>()? })
}

/// Merges results in the order of the events. `refusals` holds `None` for each event that has an
/// answer.
fn merged(
    board: &Board,
    refusals: Vec<Option<Error>>,
    answers: Vec<Result<EventOutcome>>,
    list: &str,
) -> Result<Vec<EventResult>> {
    let mut answers = answers.into_iter();
    let mut results = Vec::with_capacity(refusals.len());
    for (index, refusal) in refusals.into_iter().enumerate() {
        results.push(match refusal {
            Some(error) => EventResult::refused(list, index, error),
            None => EventResult::of(board, list, index, answers.next().ok_or_else(outcome_mismatch)?),
        });
    }
    if answers.next().is_some() { Err(outcome_mismatch()) } else { Ok(results) }
}

impl EventResult {
    fn new(board: &Board, answer: EventOutcome) -> Self {
        match answer {
            EventOutcome::Accepted { accepted, repeated, ranks } => {
                Self::Accepted(AcceptedResponse::new(board, accepted, repeated, ranks))
            }
            EventOutcome::Quarantined { quarantine_id, violation, repeated } => {
                let error = violation.error(board);
                let (state, rule, detail) = (QuarantinedState::Quarantined, error.code(), error.to_string());
                Self::Quarantined(QuarantinedResponse { state, repeated, quarantine_id, rule, detail })
            }
        }
    }

    /// Builds the result of the event at `index` of the list.
    fn of(board: &Board, list: &str, index: usize, answer: Result<EventOutcome>) -> Self {
        answer.map_or_else(|error| Self::refused(list, index, error), |answer| Self::new(board, answer))
    }

    /// Builds the result of a refused event. Prefixes the field of the error with the event's place in
    /// the list.
    fn refused(list: &str, index: usize, error: Error) -> Self {
        let error = match error {
            Error::Invalid { code, field, message } if field == body::WHOLE => {
                Error::Invalid { code, field: format!("{list}[{index}]"), message }
            }
            Error::Invalid { code, field, message } => {
                Error::Invalid { code, field: format!("{list}[{index}].{field}"), message }
            }
            other => other,
        };
        Self::Refused(RefusedResponse { state: RefusedState::Refused, error: Problem::from_error(&error) })
    }
}

fn outcome_mismatch() -> Error {
    Error::Internal("the number of answers differs from the number of events".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rules::EventStanding, tested};

    fn accepted(transaction_id: i64) -> EventOutcome {
        let standing = EventStanding { user_id: 1, period_id: 1, period: "all_time".to_owned(), score: 50, was: None };
        let accepted = AcceptedEvent { transaction_id, at: DateTime::UNIX_EPOCH, standings: vec![standing] };
        let ranks = vec![RankChange { rank: Some(2), ..RankChange::default() }];
        EventOutcome::Accepted { accepted, repeated: false, ranks }
    }

    #[test]
    fn results_keep_the_order_of_the_events() -> Result<()> {
        let refusals = vec![None, Some(Error::invalid("points", "no")), None, Some(Error::invalid(body::WHOLE, "no"))];
        let answers = vec![Ok(accepted(1)), Err(Error::conflict(Code::IdConflict, "other content"))];
        let results = merged(&tested::board("main")?, refusals, answers, "events")?;
        let results = serde_json::to_value(results).unwrap_or_default();
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
    fn a_wrong_number_of_answers_is_an_internal_error() -> Result<()> {
        let board = tested::board("main")?;
        assert!(merged(&board, vec![None, None], vec![Ok(accepted(1))], "events").is_err());
        assert!(merged(&board, vec![None], vec![Ok(accepted(1)), Ok(accepted(2))], "events").is_err());
        Ok(())
    }
}
