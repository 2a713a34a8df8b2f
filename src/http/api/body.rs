//! Request bodies: JSON of a limited size. Errors name the field at fault.
//!
//! A body that is not JSON is malformed (400). JSON that does not fit the call is invalid (422).

use std::{ops::Deref, rc::Rc};

use actix_web::{
    HttpMessage, HttpRequest,
    http::header::{self, HeaderValue},
    web,
};
use futures::StreamExt as _;
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_path_to_error::Path;
use tokio::time::timeout;

use crate::{
    Error, Result,
    http::{
        auth::caller::{self, CheckedKey},
        server::{Api, Settings, activity::Activity, address, body_memory::Reservation},
    },
    model::json::{DEPTH_MAX, is_deeper},
};

/// Field that an error names when the body as a whole is at fault.
pub(crate) const WHOLE: &str = "body";

/// Smallest buffer of a body, in bytes: enough for most bodies.
const MIN_CAPACITY_BYTES: usize = 1_024;

/// A request body's text and its reserved share of the body memory.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    text: String,
    _reservation: Reservation<'a>,
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// Returns the body of `request`, or an empty text if it has none. For a call that needs a key.
pub(crate) async fn text<'a>(api: &'a Api, request: &HttpRequest, payload: web::Payload) -> Result<Text<'a>> {
    read_body(&api.settings, api.settings.body_limit_bytes, api.bodies.reserve(), request, payload, false).await
}

/// Like [`text`], for a call that also takes a form. Also returns whether the body is a form.
pub(crate) async fn text_or_form<'a>(
    api: &'a Api,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<(Text<'a>, bool)> {
    let limit = api.settings.body_limit_bytes;
    Ok((read_body(&api.settings, limit, api.bodies.reserve(), request, payload, true).await?, is_form(request)))
}

/// Like [`text`], for a call that needs no key, with a limit of `limit` bytes.
///
/// A body without a valid key takes memory from a separate pool, limited per network. So callers
/// without a key cannot exhaust the memory of callers with one, and no network can exhaust the
/// pool.
pub(crate) async fn open_text<'a>(
    api: &'a Api,
    limit: usize,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<Text<'a>> {
    let limit = limit.min(api.settings.body_limit_bytes);
    let reservation = match CheckedKey::from_request(request) {
        Some(_) => api.bodies.reserve(),
        None => api
            .open_bodies
            .reserve_for(address::client_address(&api.settings.trusted_proxies, request).map(address::network), limit),
    };
    read_body(&api.settings, limit, reservation, request, payload, false).await
}

async fn read_body<'a>(
    settings: &Settings,
    limit: usize,
    mut reservation: Reservation<'a>,
    request: &HttpRequest,
    payload: web::Payload,
    takes_form: bool,
) -> Result<Text<'a>> {
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > limit) {
        return Err(too_large(limit));
    }
    let is_identity = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if !request.headers().get_all(header::CONTENT_ENCODING).all(is_identity) {
        return Err(Error::UnsupportedMediaType("send the body without Content-Encoding".into()));
    }
    if let Some(activity) = request.conn_data::<Rc<Activity>>() {
        activity.send_continue();
    }
    let time = settings.client_timeout;
    let bytes = timeout(time, receive(payload, limit, &mut reservation))
        .await
        .map_err(|_| Error::TooSlow(format!("the body did not arrive within {} seconds", time.as_secs_f64())))??;
    caller::recheck(request).await?;
    // A call whose body is optional may omit the type; a body that is not empty must have one.
    let is_known = is_json(request) || takes_form && is_form(request);
    if !bytes.is_empty() && !is_known {
        return Err(Error::UnsupportedMediaType("send JSON as Content-Type: application/json".into()));
    }
    let text = String::from_utf8(bytes).map_err(|error| Error::Malformed(format!("the body is not UTF-8: {error}")))?;
    // Parts that are kept as raw JSON have the same limit.
    if is_deeper(&text, DEPTH_MAX) {
        return Err(Error::Malformed(format!("the body is nested more than {DEPTH_MAX} deep")));
    }
    Ok(Text { text, _reservation: reservation })
}

/// Receives a body. Memory is reserved as bytes arrive, not for the announced length.
async fn receive(mut payload: web::Payload, limit: usize, reservation: &mut Reservation<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(part) = payload.next().await {
        let part = part.map_err(|error| Error::Malformed(format!("the body could not be received: {error}")))?;
        let length = bytes.len() + part.len();
        if length > limit {
            return Err(too_large(limit));
        }
        if length > bytes.capacity() {
            let capacity = length.next_power_of_two().clamp(MIN_CAPACITY_BYTES.min(limit), limit);
            reservation.grow_to(capacity)?;
            bytes.reserve_exact(capacity - bytes.len());
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

fn too_large(limit: usize) -> Error {
    Error::TooLarge(format!("the body has more than {limit} bytes"))
}

/// Returns whether the body is declared as JSON: `application/json` or a type with the suffix
/// `+json`.
fn is_json(request: &HttpRequest) -> bool {
    let declared = request.mime_type().ok().flatten();
    declared.is_some_and(|mime| {
        mime.type_() == "application" && (mime.subtype() == "json" || mime.suffix().is_some_and(|s| s == "json"))
    })
}

/// Returns whether the type of the body is `application/x-www-form-urlencoded`.
fn is_form(request: &HttpRequest) -> bool {
    let declared = request.mime_type().ok().flatten();
    declared.is_some_and(|mime| mime.essence_str() == "application/x-www-form-urlencoded")
}

/// Reads the body, which must be a JSON object, as a `T`.
pub(crate) async fn json<T: DeserializeOwned>(api: &Api, request: &HttpRequest, payload: web::Payload) -> Result<T> {
    object(&text(api, request, payload).await?)
}

/// Like [`json`]; an absent body or `null` gives the default of `T`.
pub(crate) async fn optional_json<T: DeserializeOwned + Default>(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<T> {
    let text = text(api, request, payload).await?;
    if text.is_empty() || text.trim_ascii() == "null" { Ok(T::default()) } else { object(&text) }
}

/// Parses the JSON object `text`. serde alone would also accept an array that lists a struct's
/// fields in order.
pub(crate) fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    if !text.trim_ascii_start().starts_with('{') {
        parse::<IgnoredAny>(text)?;
        return Err(Error::invalid(WHOLE, "must be a JSON object"));
    }
    parse(text)
}

/// Parses a JSON text. Returns [`Error::Malformed`] for invalid JSON and [`Error::Invalid`] for an
/// invalid value, which it names.
pub(crate) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| refusal(WHOLE, error.path(), &error.inner().to_string()))
        .and_then(|value| {
            deserializer.end().map_err(|error| Error::Malformed(error.to_string()))?;
            Ok(value)
        });
    match parsed {
        // Only a failure pays for a second pass, which tells invalid values from invalid JSON.
        Err(error) => Err(match serde_json::from_str::<IgnoredAny>(text) {
            Err(malformed) => Error::Malformed(match error {
                Error::Invalid { field, .. } if field != WHOLE => format!("{field}: {malformed}"),
                _ => malformed.to_string(),
            }),
            Ok(_) => error,
        }),
        parsed => parsed,
    }
}

/// Turns a serde message into an error that names the field.
///
/// The field comes from `path`, where serde stopped, and from the message. Without either it is
/// `whole`.
pub(crate) fn refusal(whole: &str, path: &Path, message: &str) -> Error {
    // serde_path_to_error writes `?` for an unknown segment.
    let path = match path.to_string().trim_end_matches('?').trim_end_matches('.') {
        "" => ".".to_owned(),
        known => known.to_owned(),
    };
    // For a missing or repeated field serde stops at the parent and names the field only in the
    // message.
    let named = ["missing field `", "duplicate field `"].into_iter().find_map(|start| message.strip_prefix(start));
    let field = match (path.as_str(), named.and_then(|rest| rest.split('`').next())) {
        (".", Some(name)) => name.to_owned(),
        (".", None) => whole.to_owned(),
        (path, Some(name)) => format!("{path}.{name}"),
        (path, None) => path.to_owned(),
    };
    // The field says where; a line and column would count from the start of an event of a batch.
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    Error::invalid(field, message)
}

#[cfg(test)]
mod tests {
    use actix_web::{FromRequest, ResponseError, test::TestRequest};

    use super::*;
    use crate::{http::server::body_memory::BodyMemory, model::json::Integer};

    /// Returns the status for a body with a limit of 16 bytes: 200 if it is accepted.
    async fn status_of(request: TestRequest) -> u16 {
        let (settings, memory) = (Settings::new(parsed("arena")), BodyMemory::new(16));
        let (request, mut payload) = request.to_http_parts();
        let payload = web::Payload::from_request(&request, &mut payload).await;
        let Ok(payload) = payload else { return 500 };
        let body = read_body(&settings, 16, memory.reserve(), &request, payload, false).await;
        body.map_or_else(|error| error.status_code().as_u16(), |_| 200)
    }

    fn parsed<T: std::str::FromStr<Err = Error>>(text: &str) -> T {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[actix_web::test]
    async fn bodies_are_json_of_limited_size() {
        let json = || TestRequest::post().insert_header(header::ContentType::json());
        assert_eq!(status_of(json().set_payload(r#"{"a":"23456789"}"#)).await, 200);
        assert_eq!(status_of(json().set_payload(r#"{"a":"234567890"}"#)).await, 413);
        let announced = json().insert_header((header::CONTENT_LENGTH, 17));
        assert_eq!(status_of(announced).await, 413);
        assert_eq!(status_of(json().set_payload(&b"{\"\xff\":1}"[..])).await, 400);
        assert_eq!(status_of(json().insert_header((header::CONTENT_ENCODING, "gzip")).set_payload("{}")).await, 415);

        let typed =
            |mime: &'static str| TestRequest::post().insert_header((header::CONTENT_TYPE, mime)).set_payload("{}");
        assert_eq!(status_of(typed("application/json; charset=utf-8")).await, 200);
        assert_eq!(status_of(typed("application/vnd.game+json")).await, 200);
        assert_eq!(status_of(typed("application/x-www-form-urlencoded")).await, 415);
        assert_eq!(status_of(typed("text/json")).await, 415);
        assert_eq!(status_of(TestRequest::post().set_payload("{}")).await, 415);
        assert_eq!(status_of(TestRequest::post()).await, 200);
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "the tests check only the errors")]
    struct Sample {
        points: Integer,
        inner: Option<Inner>,
        #[serde(default)]
        list: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "the tests check only the errors")]
    struct Inner {
        depth: Integer,
    }

    #[test]
    fn json_that_does_not_fit_is_invalid_and_names_the_field() {
        let cases = [
            (r#"{"points":"5"}"#, "points", "invalid type: string \"5\", expected a whole number of 64 bits"),
            (r#"{"points":1.5}"#, "points", "floating point `1.5`, expected a whole number"),
            (r#"{"points":1e-3}"#, "points", "floating point `1e-3`"),
            // As doubles these are whole.
            (r#"{"points":4503599627370497.5}"#, "points", "floating point `4503599627370497.5`"),
            (r#"{"points":1.00000000000000000001}"#, "points", "floating point"),
            (r#"{"points":1e-400}"#, "points", "floating point `1e-400`"),
            (r#"{"points":10e9223372036854775807}"#, "points", "floating point"),
            (r#"{"points":1.5e-9223372036854775808}"#, "points", "floating point"),
            (r#"{"points":9007199254740992.0}"#, "points", "floating point"),
            (r#"{"points":-9007199254740993e0}"#, "points", "floating point"),
            (r#"{"points":1e30}"#, "points", "floating point"),
            (r#"{"points":1e400}"#, "points", "floating point `1e400`"),
            (r#"{"points":null}"#, "points", "null"),
            (r#"{"points":9223372036854775808}"#, "points", "integer `9223372036854775808`"),
            (r#"{"points":100000000000000000000}"#, "points", "expected a whole number"),
            (r#"{"points":1,"points":2}"#, "points", "duplicate"),
            (r#"{"points":1,"colour":1}"#, "colour", "unknown field"),
            (r"{}", "points", "missing"),
            (r#"{"points":1,"inner":{}}"#, "inner.depth", "missing"),
            (r#"{"points":1,"list":[{"depth":1},{"depth":true}]}"#, "list[1].depth", "boolean"),
            (r"[1]", "body", "must be a JSON object"),
            (r"5", "body", "must be a JSON object"),
        ];
        for (text, wanted, reason) in cases {
            match object::<Sample>(text) {
                Err(Error::Invalid { field, message, .. }) => {
                    assert_eq!(field, wanted, "{text}: {message}");
                    assert!(message.contains(reason), "{text}: {message}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_whole_number_may_be_written_in_several_ways() {
        for (text, wanted) in [
            ("0", 0),
            ("-0", 0),
            ("5.0", 5),
            ("-5.000", -5),
            ("1e3", 1_000),
            ("1.5E+1", 15),
            ("10e-1", 1),
            ("9007199254740991.0", 9_007_199_254_740_991),
            ("-9007199254740991e0", -9_007_199_254_740_991),
            ("9007199254740993", 9_007_199_254_740_993),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(parse::<Integer>(text).ok(), Some(Integer(wanted)), "{text}");
        }
        assert_eq!(parse::<Integer<i16>>("32767.0").ok(), Some(Integer(i16::MAX)));
        for text in ["32768", "32768.0", "-32769"] {
            assert!(parse::<Integer<i16>>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn invalid_json_is_malformed_and_names_the_place() {
        let cases = [
            (r#"{"points":NaN}"#, "points: expected value"),
            (r#"{"points":-Infinity}"#, "points: invalid number"),
            (r#"{"points":01}"#, "points: "),
            (r#"{"points":1"#, "EOF"),
            (r#"{"points":1} x"#, "trailing"),
            ("[1", "EOF"),
            ("", "EOF"),
        ];
        for (text, reason) in cases {
            match object::<Sample>(text) {
                Err(Error::Malformed(message)) => assert!(message.contains(reason), "{text}: {message}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
