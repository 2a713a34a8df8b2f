//! Timestamps in responses.

use chrono::{DateTime, Datelike as _, Timelike as _, Utc};
use serde::{Serialize as _, Serializer};

/// Length of `2026-11-24T10:20:30.123456789Z`, the longest text.
const LENGTH_MAX: usize = 30;

/// Writes a timestamp exactly as chrono does: RFC 3339 in UTC, with 0, 3, 6 or 9 fractional digits.
///
/// chrono makes one write per character, which took 5 % of the time of a page.
pub(crate) fn serialize<S: Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut text = [0; LENGTH_MAX];
    match write(*at, &mut text) {
        Some(text) => serializer.serialize_str(text),
        None => at.serialize(serializer),
    }
}

/// Writes a timestamp as [`serialize`] does. Fields without one are skipped.
#[expect(clippy::ref_option, reason = "serde passes the field")]
pub(crate) fn serialize_some<S: Serializer>(at: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => serialize(at, serializer),
        None => serializer.serialize_none(),
    }
}

/// Formats `at`, or returns `None` for a leap second and for a year outside 0 to 9999, which chrono
/// formats.
fn write(at: DateTime<Utc>, text: &mut [u8; LENGTH_MAX]) -> Option<&str> {
    let (year, nanos) = (u32::try_from(at.year()).ok().filter(|year| *year < 10_000)?, at.nanosecond());
    if nanos >= 1_000_000_000 {
        return None;
    }
    text[..20].copy_from_slice(b"0000-00-00T00:00:00.");
    let parts = [
        (0..4, year),
        (5..7, at.month()),
        (8..10, at.day()),
        (11..13, at.hour()),
        (14..16, at.minute()),
        (17..19, at.second()),
        (20..29, nanos),
    ];
    for (places, mut value) in parts {
        for place in text[places].iter_mut().rev() {
            *place = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
    let end = match nanos {
        0 => 19,
        nanos if nanos % 1_000_000 == 0 => 23,
        nanos if nanos % 1_000 == 0 => 26,
        _ => 29,
    };
    text[end] = b'Z';
    str::from_utf8(&text[..=end]).ok()
}

#[cfg(test)]
mod tests {
    use chrono::{Duration, TimeZone as _};
    use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

    use super::*;

    #[derive(serde::Serialize)]
    struct Ours(#[serde(serialize_with = "serialize")] DateTime<Utc>);

    #[test]
    fn timestamps_are_formatted_as_by_chrono() {
        let seed = rand::random::<u64>();
        eprintln!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let mut all: Vec<DateTime<Utc>> = (0..100_000)
            .filter_map(|_| {
                let seconds = rng.random_range(-70_000_000_000_i64..300_000_000_000);
                let unit = [1, 1_000, 1_000_000, 1_000_000_000][rng.random_range(0..4)];
                Utc.timestamp_opt(seconds, rng.random_range(0..1_000_000_000_u32) / unit * unit).single()
            })
            .collect();
        all.extend([DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC, DateTime::UNIX_EPOCH]);
        // A leap second, as chrono keeps it.
        all.extend("2016-12-31T23:59:60.5Z".parse::<DateTime<Utc>>().ok());
        all.extend("9999-12-31T23:59:59.999999Z".parse::<DateTime<Utc>>().map(|last| last + Duration::microseconds(1)));
        for at in all {
            assert_eq!(serde_json::to_string(&Ours(at)).ok(), serde_json::to_string(&at).ok());
        }
    }
}
