//! Properties that every external input must satisfy. `make fuzz` searches for bytes that violate
//! them. The tests run the bytes in `seeds/`, including every input that has ever failed.

use std::str;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use centile::{
    fuzzed::{
        self, Board, File, FileFormat, Imported, Limits, Metadata, Mode, Period, PeriodKind, PeriodSelector,
        PeriodState, Ties,
    },
    tested, timed,
};
use chrono::Datelike as _;

/// A period selector is accepted exactly if it is valid, and its output equals its input. A cursor
/// decodes to the key that it was made from.
pub fn period(data: &[u8]) {
    if let Ok(text) = str::from_utf8(data) {
        let read = text.parse::<PeriodSelector>().ok();
        assert_eq!(read.is_some(), is_selector(text), "{text:?}: {read:?}");
        if let Some(selector) = read {
            assert_eq!(selector.to_string(), text);
        }
        cursor(text);
    }
    cursor(&BASE64_URL_SAFE_NO_PAD.encode(data));
}

/// Returns whether a text is a valid selector, by its characters and the calendar.
fn is_selector(text: &str) -> bool {
    if let Some((whole, segment)) = text.split_once('@') {
        let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        return is_selector(whole)
            && segment.split_once(':').is_some_and(|(name, value)| {
                (1..=32).contains(&name.len())
                    && name.bytes().all(is_plain)
                    && (1..=64).contains(&value.chars().count())
                    && !value.contains(char::is_control)
            });
    }
    let (kind, label) = text.split_once(':').map_or((text, None), |(kind, label)| (kind, Some(label)));
    let is_back = |label: &str| {
        let number = label.strip_prefix('-').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        number.is_some_and(|digits| !digits.starts_with('0') && (1..=366).contains(&digits.parse().unwrap_or(0)))
    };
    match (kind, label) {
        ("hour" | "day" | "week" | "month" | "quarter" | "year", Some(label)) if is_back(label) => true,
        ("all_time" | "hour" | "day" | "week" | "month" | "quarter" | "year", None)
        | ("hour" | "day" | "week" | "month" | "quarter" | "year", Some("previous")) => true,
        ("hour", Some(label)) => {
            label.split_once('T').is_some_and(|(day, hour)| weekday(day).is_some() && is_hour(hour))
        }
        ("day", Some(label)) => weekday(label).is_some(),
        ("week", Some(label)) => weekday(label) == Some(1),
        ("month", Some(label)) => weekday(&format!("{label}-01")).is_some(),
        ("quarter", Some(label)) => {
            let quarter = label.split_once("-Q").filter(|(_, quarter)| ["1", "2", "3", "4"].contains(quarter));
            quarter.is_some_and(|(year, _)| weekday(&format!("{year}-01-01")).is_some())
        }
        ("year", Some(label)) => weekday(&format!("{label}-01-01")).is_some(),
        ("season", Some("previous" | "current" | "next")) => false,
        ("season", Some(label)) => {
            let is_plain = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
            let bytes = label.as_bytes();
            (1..=40).contains(&bytes.len())
                && is_plain(&bytes[0])
                && bytes.iter().all(|byte| is_plain(byte) || matches!(byte, b'-' | b'_'))
        }
        ("snapshot", Some(label)) => match label.split_once('-') {
            Some(("day", day)) => weekday(day).is_some(),
            Some(("week", day)) => weekday(day) == Some(1),
            Some(("month", month)) => weekday(&format!("{month}-01")).is_some(),
            _ => false,
        },
        ("rolling", Some(label)) => {
            let (length, rest) = label.split_once('-').map_or((label, None), |(length, rest)| (length, Some(rest)));
            let is_days = length.strip_suffix('d').is_some_and(|days| {
                !days.starts_with('0')
                    && days.bytes().all(|byte| byte.is_ascii_digit())
                    && (2..=366).contains(&days.parse().unwrap_or(0))
            });
            match rest {
                None => is_days || length == "24h",
                Some(day) if is_days => weekday(day).is_some(),
                Some(hour) if length == "24h" => {
                    hour.split_once('T').is_some_and(|(day, hour)| weekday(day).is_some() && is_hour(hour))
                }
                Some(_) => false,
            }
        }
        _ => false,
    }
}

/// Returns whether a text is an hour of a day, from 00 to 23.
fn is_hour(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()) && text < "24"
}

/// Returns the weekday of a date such as 2024-01-15, 0 for Sunday (Sakamoto's method). `None` if
/// the date does not exist.
fn weekday(date: &str) -> Option<u32> {
    let bytes = date.as_bytes();
    let is_written_so = bytes.len() == 10
        && bytes.iter().enumerate().all(|(place, byte)| match place {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !is_written_so {
        return None;
    }
    let [mut year, month, day] = [0..4, 5..7, 8..10].map(|range| date[range].parse::<u32>().unwrap_or_default());
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days).contains(&day) {
        return None;
    }
    // The calendar repeats every 400 years. This also keeps the year before year 0 positive.
    year += 400;
    if month < 3 {
        year -= 1;
    }
    let offset = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4][month as usize - 1];
    Some((year + year / 4 - year / 100 + year / 400 + offset + day) % 7)
}

fn cursor(text: &str) {
    let board = board(Ties::Shared);
    for selector in [PeriodSelector::default(), PeriodSelector::Current(PeriodKind::Week)] {
        if let Ok(key) = timed::unpack_key(text, &board, &selector) {
            let label = "2024-01-15".to_owned();
            let period = Period {
                kind: selector.kind(),
                label,
                starts_at: None,
                ends_at: None,
                state: PeriodState::Open,
                segment: None,
            };
            let again = timed::pack_key(&board, &period, key);
            assert_eq!(timed::unpack_key(&again, &board, &selector).ok(), Some(key), "{text:?}");
        }
    }
}

/// A key's text consists of its id and its secret only, and parsing separates the two.
pub fn key(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Some((id, secret)) = fuzzed::key(text) {
        assert_eq!(format!("ctl_{id}_{secret}"), text);
        assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{text:?}");
        assert_eq!(secret.len(), 64, "{text:?}");
    }
    // Any text in the form of a key parses as a key.
    if data.len() >= 40 {
        let (id, secret) = (hex(&data[..8]), hex(&data[8..40]));
        assert_eq!(fuzzed::key(&format!("ctl_{id}_{secret}")), Some((&*id, &*secret)));
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |digit: u8| char::from_digit(digit.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Any text is read as the metadata of an event, and as the body of a request. Accepted metadata are
/// the same object in both, within the limits, and unchanged by another reading.
pub fn metadata(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let body = format!(r#"{{"user_id":"ada","points":1,"metadata":{text}}}"#);
    for body in [text, &body, &format!(r#"{{"events":[{body}]}}"#), &format!(r#"{{"metadata":{text}}}"#)] {
        fuzzed::bodies(body);
    }
    let Ok(metadata) = text.parse::<Metadata>() else { return };
    let stored = metadata.as_str();
    assert!(stored.starts_with('{') && stored.len() <= 1_024, "{text:?}: {stored}");
    assert_eq!(stored.parse().ok().as_ref(), Some(&metadata), "{text:?}");
    assert_eq!(fuzzed::event(&body).ok(), Some(Some(metadata.clone())), "{text:?}");
    // serde_json has a key of its own, which may be written with escapes.
    if !text.contains("$serde_json") && !text.contains("\\u") {
        let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        assert_eq!(value.to_string(), stored, "{text:?}");
    }
}

/// Any file of events is read to its end. Accepted events are within the board's limits, and parse
/// again after they are written out. The first byte selects the board and the format.
pub fn import(data: &[u8]) {
    let Some((kind, file)) = data.split_first() else { return };
    let board = board(if kind & 2 == 0 { Ties::Shared } else { Ties::Tiebreak });
    let format = if kind & 1 == 0 { FileFormat::Csv } else { FileFormat::Ndjson };
    let Ok(File { events, rejected }) = fuzzed::import(&board, file, format) else {
        assert_eq!(format, FileFormat::Csv, "only a header can be refused with the whole file");
        return;
    };
    let mut numbers: Vec<u64> = events.iter().map(|(number, _)| *number).chain(rejected).collect();
    numbers.sort_unstable();
    assert!(numbers.is_sorted_by(|a, b| a < b), "each line has at most one event: {numbers:?}");
    let lines = file.split(|byte| *byte == b'\n').count() as u64;
    assert!(numbers.iter().all(|number| (1..=lines).contains(number)), "{numbers:?} of {lines}");
    for (_, event) in events {
        check(&board, &event);
        // RFC 3339 years have four digits; an offset can move the instant into year 10000.
        if event.occurred_at.is_none_or(|at| at.year() <= 9_999) {
            let again = fuzzed::import(&board, &serde_json::to_vec(&event).unwrap_or_default(), FileFormat::Ndjson);
            assert!(
                again.is_ok_and(|again| again.events == [(1, event)]),
                "an event changed when it was written and read again"
            );
        }
    }
}

fn check(board: &Board, event: &Imported) {
    for (text, max_bytes) in [
        (Some(&event.user_id), 128),
        (event.name.as_ref(), 128),
        (event.reason.as_ref(), 256),
        (event.id.as_ref(), 128),
    ] {
        let is_plain = |text: &String| {
            (1..=max_bytes).contains(&text.len()) && !text.chars().any(|c| c < ' ' || ('\u{7f}'..'\u{a0}').contains(&c))
        };
        assert!(text.is_none_or(is_plain), "{event:?}");
    }
    assert!((board.limits.points_min..=board.limits.points_max).contains(&event.points), "{event:?}");
    let may_be = |tiebreak| board.ties == Ties::Tiebreak && (-2_048..=2_047).contains(&tiebreak);
    assert!(event.tiebreak.is_none_or(may_be), "{event:?}");
    assert!(event.occurred_at.is_none_or(|at| at.year() >= 2000), "{event:?}");
    let is_object = |metadata: &Metadata| metadata.as_str().starts_with('{') && metadata.as_str().len() <= 1_024;
    assert!(event.metadata.as_ref().is_none_or(is_object), "{event:?}");
}

fn board(ties: Ties) -> Board {
    let board = tested::board("arena").unwrap_or_else(|_| unreachable!("a slug"));
    Board {
        mode: Mode::Best,
        ties,
        periods: vec![PeriodKind::AllTime, PeriodKind::Week],
        limits: Limits { lanes: 4, points_min: -1_000_000, points_max: 1_000_000, ..board.limits },
        ..board
    }
}
