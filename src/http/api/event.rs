//! Score events in the bodies of requests.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{
    Error, Result,
    http::api::{
        body,
        path::{UserIdText, board_slug},
        query,
    },
    model::{
        board::BoardSlug,
        json::{self, Integer, Object},
        metadata::Metadata,
        score::Event,
        user::check_text,
    },
};

/// Maximum events of a batch.
const EVENTS_MAX: usize = 1_000;

/// One score event.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventRequest {
    /// The caller's own id of the player: 1 to 128 bytes of UTF-8 without control characters. A whole
    /// number is read as its decimal text: `7` means `"7"`. An unknown player is created.
    #[serde(deserialize_with = "json::id")]
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
    /// content is refused.
    #[serde(default, deserialize_with = "json::optional_id")]
    #[schema(example = "match-7:ada", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    id: Option<String>,
    /// Breaks ties: on `tiebreak` boards a whole number from −2048 to 2047, of which the larger wins; on
    /// `second` boards the second number, of 64 bits. Other boards do not accept it.
    #[schema(value_type = Option<i64>, minimum = -9_223_372_036_854_775_807i64)]
    tiebreak: Option<Integer>,
    /// Any data of the game about the score, such as a replay, up to 1,024 bytes of JSON without
    /// spaces, and 32 levels. Everyone who may read the board can read it.
    #[schema(value_type = Option<Object>, example = json!({"character": "mage"}))]
    metadata: Option<Object>,
}

impl EventRequest {
    /// Validates the event as far as possible without its board.
    fn checked(self) -> Result<Event> {
        if let Some(reason) = &self.reason {
            check_text("reason", reason, 256)?;
        }
        if let Some(id) = &self.id {
            check_text("id", id, 128)?;
        }
        Ok(Event {
            user_id: self.user_id.parse()?,
            points: self.points.0,
            reason: self.reason,
            id: self.id,
            tiebreak: self.tiebreak.map(|tiebreak| tiebreak.0),
            metadata: self.metadata.map(Metadata::try_from).transpose()?,
            occurred_at: None,
        })
    }
}

/// One score event of a batch for several boards.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BoardEventRequest {
    /// Name of the board; the default board of the service when absent.
    #[schema(example = "arena", min_length = 1, max_length = 40, pattern = "^[a-z][a-z0-9_-]*$")]
    board: Option<String>,
    /// The caller's own id of the player: 1 to 128 bytes of UTF-8 without control characters. A whole
    /// number is read as its decimal text: `7` means `"7"`. An unknown player is created.
    #[serde(deserialize_with = "json::id")]
    #[schema(value_type = UserIdText)]
    user_id: String,
    /// Points earned (`sum`), or the score itself (`best`, `latest`): a whole number within the
    /// board's bounds.
    #[schema(value_type = i64, example = 50, minimum = -9_223_372_036_854_775_807i64)]
    points: Integer,
    /// Reason for the score, up to 256 bytes.
    #[schema(example = "boss defeated", min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    reason: Option<String>,
    /// The caller's id of the event, up to 128 bytes, unique per board and player, so that events on
    /// several boards may share it. It makes retries safe, as in a single event.
    #[serde(default, deserialize_with = "json::optional_id")]
    #[schema(example = "match-7:ada", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    id: Option<String>,
    /// Breaks ties: on `tiebreak` boards a whole number from −2048 to 2047, of which the larger wins; on
    /// `second` boards the second number, of 64 bits. Other boards do not accept it.
    #[schema(value_type = Option<i64>, minimum = -9_223_372_036_854_775_807i64)]
    tiebreak: Option<Integer>,
    /// Any data of the game about the score, such as a replay, up to 1,024 bytes of JSON without
    /// spaces, and 32 levels. Everyone who may read the board can read it.
    #[schema(value_type = Option<Object>, example = json!({"character": "mage"}))]
    metadata: Option<Object>,
}

impl BoardEventRequest {
    /// Separates the board from the event.
    fn split(self) -> (Option<String>, EventRequest) {
        let Self { board, user_id, points, reason, id, tiebreak, metadata } = self;
        (board, EventRequest { user_id, points, reason, id, tiebreak, metadata })
    }
}

/// Score events. A refused event does not affect the others.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the body, which `parse_batch` reads event by event")]
pub(crate) struct BatchRequest {
    /// The events, 1 to 1,000.
    #[schema(min_items = 1, max_items = 1000)]
    events: Vec<EventRequest>,
}

/// Score events on one or more boards. A refused event does not affect the others.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the body, which `parse_boards_batch` reads event by event")]
pub(crate) struct BoardsBatchRequest {
    /// The events, 1 to 1,000.
    #[schema(min_items = 1, max_items = 1000)]
    events: Vec<BoardEventRequest>,
}

/// The body of a batch. The events are parsed one by one, because each is refused alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchBody<'a> {
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

pub(crate) fn parse_event(text: &str) -> Result<Event> {
    body::object::<EventRequest>(text)?.checked()
}

/// Parses an event in a form, such as `user_id=ada&points=50`.
pub(crate) fn parse_form(form: &str) -> Result<Event> {
    // Some clients, such as `curl -d`, declare any body as a form.
    if form.trim_ascii_start().starts_with(['{', '[']) {
        return Err(Error::UnsupportedMediaType("send JSON as Content-Type: application/json".into()));
    }
    let text = |text: &str| serde_json::to_string(text).map_err(|error| Error::Internal(error.to_string()));
    let mut members = Vec::new();
    for (name, value) in query::fields(form)? {
        let json = match &*name {
            "points" | "tiebreak" => value.parse::<i64>().ok().map(|number| number.to_string()),
            "metadata" => value.parse::<Object>().ok().map(|object| object.to_string()),
            _ => None,
        };
        members.push(format!("{}:{}", text(&name)?, json.map_or_else(|| text(&value), Ok)?));
    }
    parse_event(&format!("{{{}}}", members.join(",")))
}

/// Parses the batch in the JSON `text`, like [`parse_event`]. Each event is valid or refused alone.
pub(crate) fn parse_batch(text: &str) -> Result<Vec<Result<Event>>> {
    let BatchBody { events } = body::object(text)?;
    parse_events("events", &events)
}

/// Parses the batch for several boards in the JSON `text`, like [`parse_batch`]. An event without a
/// board is for `default_board`.
pub(crate) fn parse_boards_batch(text: &str, default_board: &BoardSlug) -> Result<Vec<Result<(BoardSlug, Event)>>> {
    let BatchBody { events } = body::object(text)?;
    check_count("events", events.len())?;
    let parse = |event: &&RawValue| {
        let (board, event) = body::object::<BoardEventRequest>(event.get())?.split();
        let event = event.checked()?;
        Ok((board.map_or_else(|| Ok(default_board.clone()), board_slug)?, event))
    };
    Ok(events.iter().map(parse).collect())
}

/// Parses a list of events. An error about the whole list names `field`.
pub(crate) fn parse_events(field: &str, events: &[&RawValue]) -> Result<Vec<Result<Event>>> {
    check_count(field, events.len())?;
    Ok(events.iter().map(|event| parse_event(event.get())).collect())
}

fn check_count(field: &str, events: usize) -> Result<()> {
    if (1..=EVENTS_MAX).contains(&events) {
        Ok(())
    } else {
        Err(Error::invalid(field, format!("must have 1 to {EVENTS_MAX} events, not {events}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field_of(error: &Error) -> &str {
        match error {
            Error::Invalid { field, .. } => field,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_invalid_event_does_not_affect_the_others() -> Result<()> {
        let text = r#" {"events":
            [{"user_id":"a","points":1}, {"user_id":"b","points":1e400}, ["c",1], {"user_id":"","points":1}]} "#;
        let events = parse_batch(text)?;
        let fields: Vec<_> = events.iter().map(|event| event.as_ref().err().map(field_of)).collect();
        assert_eq!(fields, [None, Some("points"), Some("body"), Some("user_id")]);
        Ok(())
    }

    #[test]
    fn a_batch_with_invalid_json_is_refused_as_a_whole() {
        for text in [r#"{"events":[{"user_id":"a","points":NaN}]}"#, r#"{"events":[{"user_id":"a","points":1}"#, "[,]"]
        {
            assert!(matches!(parse_batch(text), Err(Error::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn a_batch_is_an_object_with_events() {
        let event = r#"{"user_id":"a","points":1}"#;
        for (text, field) in [
            (format!("[{event}]"), "body"),
            (event.to_owned(), "user_id"),
            ("{}".to_owned(), "events"),
            (format!(r#"{{"events":{event}}}"#), "events"),
            (format!(r#"{{"events":[{event}],"ranks":true}}"#), "ranks"),
        ] {
            let refused = parse_batch(&text);
            assert!(refused.as_ref().is_err_and(|error| field_of(error) == field), "{text}: {refused:?}");
        }
    }

    #[test]
    fn a_batch_has_1_to_1000_events() {
        let batch =
            |events: usize| format!(r#"{{"events":[{}]}}"#, vec![r#"{"user_id":"a","points":1}"#; events].join(","));
        assert!(matches!(parse_batch(&batch(0)), Err(Error::Invalid { .. })));
        assert!(parse_batch(&batch(1_000)).is_ok_and(|events| events.len() == 1_000));
        assert!(matches!(parse_batch(&batch(1_001)), Err(Error::Invalid { .. })));
    }

    #[test]
    fn a_number_is_an_id() -> Result<()> {
        let event = parse_event(r#"{"user_id":7,"points":1,"id":-18446744073709551615}"#);
        assert!(event.is_err(), "{event:?}");
        let event = parse_event(r#"{"user_id":18446744073709551615,"points":1,"id":-7}"#)?;
        assert_eq!((event.user_id.as_str(), event.id.as_deref()), ("18446744073709551615", Some("-7")));
        Ok(())
    }

    #[test]
    fn a_form_is_an_event() -> Result<()> {
        assert_eq!(parse_form("user_id=a&points=%2B007")?.points, 7);
        let event = parse_form("user_id=a+b&points=-50&reason=won%26lost&tiebreak=3&metadata=%7B%22a%22%3A1%7D")?;
        assert_eq!((event.user_id.as_str(), event.points, event.tiebreak), ("a b", -50, Some(3)));
        assert_eq!((event.reason.as_deref(), event.metadata), (Some("won&lost"), r#"{"a":1}"#.parse().ok()));
        let json = parse_form(r#"{"user_id":"a","points":1}"#);
        assert!(matches!(json, Err(Error::UnsupportedMediaType(_))), "{json:?}");
        for (form, field) in [
            ("user_id=a", "points"),
            ("user_id=a&points=1.5", "points"),
            ("user_id=a&points=1&points=2", "points"),
            ("user_id=a&points=1&metadata=1", "metadata"),
            ("user_id=a&points=1&score=1", "score"),
            ("", "user_id"),
        ] {
            let refused = parse_form(form);
            assert!(refused.as_ref().is_err_and(|error| field_of(error) == field), "{form}: {refused:?}");
        }
        Ok(())
    }

    #[test]
    fn an_event_out_of_bounds_names_its_field() {
        let long = "x".repeat(257);
        let cases = [
            (r#"{"points":1}"#.to_owned(), "user_id"),
            (r#"{"user_id":"a","points":1,"id":""}"#.to_owned(), "id"),
            (format!(r#"{{"user_id":"a","points":1,"reason":"{long}"}}"#), "reason"),
            (r#"{"user_id":"a\u0000","points":1}"#.to_owned(), "user_id"),
            (r#"{"user_id":7.5,"points":1}"#.to_owned(), "user_id"),
            (r#"{"user_id":["a"],"points":1}"#.to_owned(), "user_id"),
            (r#"{"user_id":"a","points":1,"metadata":[]}"#.to_owned(), "metadata"),
            (format!(r#"{{"user_id":"a","points":1,"metadata":{{"a":"{long}{long}{long}{long}"}}}}"#), "metadata"),
            (r#"{"user_id":"a","points":1,"score":1}"#.to_owned(), "score"),
        ];
        for (text, field) in cases {
            match parse_event(&text) {
                Err(error) => assert_eq!(field_of(&error), field, "{text}"),
                Ok(event) => panic!("{text}: {event:?}"),
            }
        }
    }
}
