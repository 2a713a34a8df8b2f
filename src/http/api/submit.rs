//! `POST /v1/boards/{board}/scores`: writes one score event or a list of them.

use std::collections::BTreeMap;

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Payload},
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Result,
    http::{
        Api,
        api::{
            problem::{Problem, WriteProblems},
            reply,
        },
        extract::{
            body::{self, Integer},
            caller,
            path::{BoardPath, UserIdText},
            query,
        },
    },
    instance::Instance,
    model::{
        board::Board,
        key::Key,
        score::{Accepted, Event, NewStanding, Outcome, Quarantined},
        user::check_text,
    },
    scoring,
};

/// Maximum events of one request.
const EVENTS_MAX: usize = 1_000;

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

/// One score event.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventRequest {
    /// The caller's own id of the player: 1 to 128 bytes of UTF-8 without control characters. An
    /// unknown player is created.
    #[schema(value_type = UserIdText)]
    user_id: String,
    /// Points earned (`sum`), or the score itself (`best`, `latest`): a whole number within the
    /// board's bounds.
    #[schema(value_type = i64, example = 50, minimum = -9_223_372_036_854_775_807i64)]
    points: Integer,
    /// Reason for the score, up to 256 bytes.
    #[schema(example = "boss defeated", min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    reason: Option<String>,
    /// The caller's id of the event, up to 128 bytes, unique per board and player. It makes retries
    /// safe: an event with the same content gets the first result and changes nothing; other
    /// content is refused. Required with a signing key.
    #[schema(example = "match-7:ada", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    id: Option<String>,
    /// Breaks ties on `tiebreak` boards; larger wins. Not allowed on `sum` boards.
    #[schema(value_type = Option<i16>, minimum = -2048, maximum = 2047)]
    tiebreak: Option<Integer>,
}

impl EventRequest {
    /// Validates the event as far as possible without its board.
    fn checked(self, ranks: bool) -> Result<Event> {
        if let Some(reason) = &self.reason {
            check_text("reason", reason, 256)?;
        }
        if let Some(id) = &self.id {
            check_text("id", id, 128)?;
        }
        let tiebreak = self.tiebreak.map(|Integer(tiebreak)| {
            i16::try_from(tiebreak)
                .ok()
                .filter(|tiebreak| (-2_048..=2_047).contains(tiebreak))
                .ok_or_else(|| Error::invalid("tiebreak", format!("must be from -2048 to 2047, not {tiebreak}")))
        });
        Ok(Event {
            user_id: self.user_id.parse()?,
            points: self.points.0,
            reason: self.reason,
            id: self.id,
            tiebreak: tiebreak.transpose()?,
            ranks,
        })
    }
}

/// One event, or a list of them. A refused event does not affect the others of its list.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"user_id": "ada", "points": 50, "reason": "boss defeated", "id": "match-7:ada"}))]
#[expect(dead_code, reason = "describes the body, which `Events::parse` reads event by event")]
#[serde(untagged)]
pub(crate) enum SubmitRequest {
    /// One event.
    One(EventRequest),
    /// A list of events.
    Many(EventList),
}

/// 1 to 1,000 events.
#[derive(Debug, ToSchema)]
#[schema(min_items = 1, max_items = 1000)]
#[expect(dead_code, reason = "describes the list, which `Events::parse` reads event by event")]
pub(crate) struct EventList(Vec<EventRequest>);

/// The events of a request. Each event of a list is valid or refused separately.
#[derive(Debug)]
pub(crate) enum Events {
    /// The body was one event.
    One(Event),
    /// The body was a list.
    Many(Vec<Result<Event>>),
}

impl Events {
    /// Reads the events in the body of `request`, which was sent with `key`. `ranks` asks for ranks
    /// in the results.
    pub(crate) async fn of(api: &Api, request: &HttpRequest, payload: Payload, key: &Key, ranks: bool) -> Result<Self> {
        let events = Self::parse(&body::text(api, request, payload).await?, ranks)?;
        if key.signed { events.with_ids() } else { Ok(events) }
    }

    /// Refuses each event without an id. A signed request may be sent again by anyone who has seen
    /// it; the id makes a repeat harmless.
    fn with_ids(self) -> Result<Self> {
        let with_id = |event: Event| match event.id {
            Some(_) => Ok(event),
            None => Err(Error::invalid(
                "id",
                "is required with a signing key: it keeps a repeated request from counting twice",
            )),
        };
        Ok(match self {
            Self::One(event) => Self::One(with_id(event)?),
            Self::Many(events) => Self::Many(events.into_iter().map(|event| event.and_then(with_id)).collect()),
        })
    }

    /// Parses the events in the JSON `text`.
    fn parse(text: &str, ranks: bool) -> Result<Self> {
        if !text.trim_ascii_start().starts_with('[') {
            return body::object::<EventRequest>(text)?.checked(ranks).map(Self::One);
        }
        let events: Vec<&RawValue> = body::parse(text)?;
        if events.is_empty() {
            return Err(Error::invalid(body::WHOLE, "must contain at least one event"));
        }
        if events.len() > EVENTS_MAX {
            return Err(Error::TooLarge(format!("the list has {} events; the maximum is {EVENTS_MAX}", events.len())));
        }
        let read = |event: &RawValue| body::object::<EventRequest>(event.get())?.checked(ranks);
        Ok(Self::Many(events.into_iter().map(read).collect()))
    }
}

/// A player's standing in one period after an event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewStandingResponse {
    /// Score after the event.
    #[schema(example = 1_234)]
    score: i64,
    /// Rank after the commit; present with `ranks=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 6, minimum = 1)]
    rank: Option<u64>,
    /// Current rank of the score before the event. Present with `ranks=true`, except for a new
    /// player.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 9, minimum = 1)]
    previous_rank: Option<u64>,
}

impl From<NewStanding> for NewStandingResponse {
    fn from(standing: NewStanding) -> Self {
        Self { score: standing.score, rank: standing.rank, previous_rank: standing.previous_rank }
    }
}

/// An event that was written to the ledger.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedResponse {
    status: AcceptedStatus,
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

/// Status of an accepted event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum AcceptedStatus {
    Accepted,
}

impl From<Accepted> for AcceptedResponse {
    fn from(accepted: Accepted) -> Self {
        let periods = accepted.periods.into_iter();
        Self {
            status: AcceptedStatus::Accepted,
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
    status: QuarantinedStatus,
    /// Whether this is the stored result of an earlier event with the same id.
    repeated: bool,
    /// Id of the event in the board's quarantine.
    #[schema(example = 7)]
    quarantine_id: i64,
    /// The rule that the event broke.
    #[schema(example = "points: board arena allows 0 to 100 points per event")]
    detail: String,
}

/// Status of an event in quarantine.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum QuarantinedStatus {
    Quarantined,
}

impl From<Quarantined> for QuarantinedResponse {
    fn from(quarantined: Quarantined) -> Self {
        let Quarantined { quarantine_id, why, repeated } = quarantined;
        Self { status: QuarantinedStatus::Quarantined, repeated, quarantine_id, detail: why }
    }
}

/// A refused event of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefusedResponse {
    status: RefusedStatus,
    /// Reason for the refusal.
    error: Problem,
}

/// Status of a refused event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RefusedStatus {
    Refused,
}

impl From<Error> for RefusedResponse {
    fn from(error: Error) -> Self {
        Self { status: RefusedStatus::Refused, error: Problem::of(&error) }
    }
}

/// The result of one event.
///
/// Each variant has its own struct with a `status`, so that the OpenAPI document names it: client
/// generators omit variants without a name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(description = "The result of one event; `status` tells its kind.")]
#[serde(untagged)]
pub(crate) enum EventResult {
    /// The event is in the ledger.
    Accepted(AcceptedResponse),
    /// The event is in quarantine and waits for an administrator.
    Quarantined(QuarantinedResponse),
    /// The event was refused; `error` says why.
    Refused(RefusedResponse),
}

/// The results of a list of events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SubmitResponse {
    /// One result for each event, in the order of the request.
    results: Vec<EventResult>,
}

/// The result of one event, or of each event of a list.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes the two bodies, which the handler writes")]
#[serde(untagged)]
pub(crate) enum SubmitAnswer {
    /// Result of a single event: accepted or quarantined. A refused event gets an error response
    /// instead.
    One(EventResult),
    /// Results of a list.
    Many(SubmitResponse),
}

/// Write scores
///
/// Needs a server key for the board, or an admin key. Responds once the scores are committed.
///
/// A single refused event gets an error response with the problem's status; a single quarantined
/// event gets 202. A list gets 200 and one result for each event.
#[utoipa::path(
    post, path = "/v1/boards/{board}/scores", operation_id = "submit_scores", tag = "writing",
    security(("key" = [])), params(BoardPath, SubmitQuery), request_body = SubmitRequest,
    responses(
        (status = 200, description = "The result of the event, or of each event of a list.", body = SubmitAnswer),
        (status = 202, description = "The event was quarantined.", body = EventResult),
        WriteProblems,
    ),
)]
pub(crate) async fn submit(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    // First of all, so that an overloaded instance refuses a write at little cost.
    let _admission = match BoardPath::of(&request) {
        Ok(path) => Some(scoring::admit(&api.instance.writers, &api.instance.boards, &path.board)?),
        Err(_) => None,
    };
    let key = caller::authenticated(&api, &request).await?;
    let path = BoardPath::of(&request)?;
    key.may_write(&path.board)?;
    let SubmitQuery { ranks } = query::parse(&request)?;
    let board = path.find(&api.instance).await?;
    match Events::of(&api, &request, payload, &key, ranks).await? {
        Events::One(event) => Ok(match write_one(&api.instance, &board, event).await? {
            Written::Accepted(accepted) => reply::written(StatusCode::OK, &EventResult::Accepted(accepted.into())),
            Written::Quarantined(quarantined) => quarantine_response(quarantined),
        }),
        Events::Many(events) => {
            let results = write_many(&api.instance, &board, events).await?;
            Ok(reply::written(StatusCode::OK, &results))
        }
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
    reply::written(StatusCode::ACCEPTED, &EventResult::Quarantined(quarantined.into()))
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

/// Writes the valid events and returns a result for each event of the list.
pub(crate) async fn write_many(
    instance: &Instance,
    board: &Board,
    events: Vec<Result<Event>>,
) -> Result<SubmitResponse> {
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
    Ok(SubmitResponse { results: merged(refusals, outcomes)? })
}

/// Merges results in the order of the events. `refusals` holds `None` for each event that has an
/// outcome.
fn merged(refusals: Vec<Option<Error>>, outcomes: Vec<Outcome>) -> Result<Vec<EventResult>> {
    let mut outcomes = outcomes.into_iter();
    let mut results = Vec::with_capacity(refusals.len());
    for (index, refusal) in refusals.into_iter().enumerate() {
        let outcome = match refusal {
            Some(error) => Outcome::Refused(error),
            None => outcomes.next().ok_or_else(outcome_mismatch)?,
        };
        results.push(match outcome {
            Outcome::Accepted(accepted) => EventResult::Accepted(accepted.into()),
            Outcome::Quarantined(quarantined) => EventResult::Quarantined(quarantined.into()),
            Outcome::Refused(error) => EventResult::Refused(at(index, error).into()),
        });
    }
    if outcomes.next().is_some() { Err(outcome_mismatch()) } else { Ok(results) }
}

/// Prefixes the field of a refusal with the event's index in the list.
fn at(index: usize, error: Error) -> Error {
    match error {
        Error::Invalid { field, message } if field == body::WHOLE => Error::invalid(format!("[{index}]"), message),
        Error::Invalid { field, message } => Error::invalid(format!("[{index}].{field}"), message),
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
        let standing = NewStanding { score: 50, rank: Some(2), previous_rank: None };
        Outcome::Accepted(Accepted {
            transaction_id,
            occurred_at: DateTime::UNIX_EPOCH,
            repeated: false,
            periods: BTreeMap::from([("all_time".to_owned(), standing)]),
        })
    }

    fn field_of(error: &Error) -> &str {
        match error {
            Error::Invalid { field, .. } => field,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_invalid_event_does_not_affect_the_others() -> Result<()> {
        let text =
            r#" [{"user_id":"a","points":1}, {"user_id":"b","points":1e400}, ["c",1], {"user_id":"","points":1}] "#;
        let Events::Many(events) = Events::parse(text, true)? else { panic!("a list was read as one event") };
        let fields: Vec<_> = events.iter().map(|event| event.as_ref().err().map(field_of)).collect();
        assert_eq!(fields, [None, Some("points"), Some("body"), Some("user_id")]);
        Ok(())
    }

    #[test]
    fn a_list_with_invalid_json_is_refused_as_a_whole() {
        for text in [r#"[{"user_id":"a","points":NaN}]"#, r#"[{"user_id":"a","points":1}"#, "[,]"] {
            assert!(matches!(Events::parse(text, false), Err(Error::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn each_event_needs_an_id_with_a_signing_key() -> Result<()> {
        let one = |text| Events::parse(text, false).and_then(Events::with_ids);
        assert!(matches!(one(r#"{"user_id":"a","points":1,"id":"x"}"#), Ok(Events::One(_))));
        assert!(one(r#"{"user_id":"a","points":1}"#).is_err_and(|error| field_of(&error) == "id"));
        let Events::Many(events) = one(r#"[{"user_id":"a","points":1},{"user_id":"a","points":1,"id":"x"},7]"#)? else {
            panic!("a list was read as one event")
        };
        let fields: Vec<_> = events.iter().map(|event| event.as_ref().err().map(field_of)).collect();
        assert_eq!(fields, [Some("id"), None, Some("body")]);
        Ok(())
    }

    #[test]
    fn a_list_has_1_to_1000_events() {
        let list = |events: usize| format!("[{}]", vec![r#"{"user_id":"a","points":1}"#; events].join(","));
        assert!(matches!(Events::parse("[]", false), Err(Error::Invalid { .. })));
        assert!(matches!(Events::parse(&list(1_000), false), Ok(Events::Many(events)) if events.len() == 1_000));
        assert!(matches!(Events::parse(&list(1_001), false), Err(Error::TooLarge(_))));
    }

    #[test]
    fn an_event_out_of_bounds_names_its_field() {
        let long = "x".repeat(257);
        let cases = [
            (r#"{"points":1}"#.to_owned(), "user_id"),
            (r#"{"user_id":"a","points":1,"tiebreak":2048}"#.to_owned(), "tiebreak"),
            (r#"{"user_id":"a","points":1,"tiebreak":-2049}"#.to_owned(), "tiebreak"),
            (r#"{"user_id":"a","points":1,"id":""}"#.to_owned(), "id"),
            (format!(r#"{{"user_id":"a","points":1,"reason":"{long}"}}"#), "reason"),
            (r#"{"user_id":"a\u0000","points":1}"#.to_owned(), "user_id"),
            (r#"{"user_id":7,"points":1}"#.to_owned(), "user_id"),
            (r#"{"user_id":"a","points":1,"score":1}"#.to_owned(), "score"),
        ];
        for (text, field) in cases {
            match Events::parse(&text, false) {
                Err(error) => assert_eq!(field_of(&error), field, "{text}"),
                Ok(events) => panic!("{text}: {events:?}"),
            }
        }
    }

    #[test]
    fn results_keep_the_order_of_the_events() -> Result<()> {
        let refusals = vec![None, Some(Error::invalid("points", "no")), None, Some(Error::invalid(body::WHOLE, "no"))];
        let outcomes = vec![accepted(1), Outcome::Refused(Error::Conflict("other content".into()))];
        let results = serde_json::to_value(merged(refusals, outcomes)?).unwrap_or_default();
        assert_eq!(
            results[0],
            serde_json::json!({
                "status": "accepted", "repeated": false, "transaction_id": 1, "occurred_at": "1970-01-01T00:00:00Z",
                "periods": {"all_time": {"score": 50, "rank": 2}},
            })
        );
        assert_eq!(results[1]["error"]["field"], "[1].points");
        assert_eq!(results[2]["error"]["status"], 409);
        assert_eq!(results[3]["error"]["field"], "[3]");
        Ok(())
    }

    #[test]
    fn a_wrong_number_of_outcomes_is_an_internal_error() {
        assert!(merged(vec![None, None], vec![accepted(1)]).is_err());
        assert!(merged(vec![None], vec![accepted(1), accepted(2)]).is_err());
    }
}
