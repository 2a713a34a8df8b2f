//! The access log: a line per request, as `tracing` would format it, at a fraction of the cost.

use std::{
    io::{self, Write as _},
    net::IpAddr,
    time::Duration,
};

use chrono::{SecondsFormat, Utc};
use serde::Serialize;
use strum::{EnumString, VariantNames};
use tracing::Level;

use crate::telemetry::log::{self, LineFormat};

const TARGET: &str = "centile::request";

/// Duration from which a request is slow.
const SLOW: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum LogRequests {
    #[default]
    All,
    /// Requests with a status of 400 or above.
    Errors,
    /// Requests that take 100 ms or longer, and those with a status of 400 or above.
    Slow,
    Off,
}

impl LogRequests {
    /// Returns whether a request with this result is logged.
    pub(super) fn includes(self, status: u16, time: Duration) -> bool {
        let is_error = status >= 400;
        match self {
            Self::All => true,
            Self::Errors => is_error,
            Self::Slow => is_error || time >= SLOW,
            Self::Off => false,
        }
    }
}

/// A request and its result.
#[derive(Debug, Serialize)]
pub(super) struct AccessLogLine<'a> {
    pub(super) message: &'static str,
    pub(super) request_id: &'a str,
    pub(super) method: &'static str,
    pub(super) path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) address: Option<IpAddr>,
    pub(super) status: u16,
    pub(super) duration_ms: f64,
}

#[derive(Serialize)]
struct Json<'a> {
    timestamp: &'a str,
    level: &'static str,
    #[serde(flatten)]
    line: &'a AccessLogLine<'a>,
    target: &'static str,
}

impl AccessLogLine<'_> {
    /// Logs the line, unless `--log` excludes it.
    pub(super) fn log(&self) {
        if !tracing::enabled!(target: TARGET, Level::INFO) {
            return;
        }
        let now = || Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
        if !log::add_request(|format, out| self.write(&now(), format, out)) {
            let Self { message, request_id, method, path, address, status, duration_ms } = self;
            let address = address.map(tracing::field::display);
            tracing::info!(target: TARGET, %request_id, %method, path, address, status, duration_ms, "{message}");
        }
    }

    /// Appends the line to `out`, in the format of `tracing`.
    fn write(&self, timestamp: &str, format: LineFormat, out: &mut Vec<u8>) -> io::Result<()> {
        let Self { message, request_id: id, method, path, address, status, duration_ms } = self;
        match format {
            LineFormat::Text => {
                write!(out, "{timestamp}  INFO {TARGET}: {message} request_id={id} method={method} path={path:?}")?;
                if let Some(address) = address {
                    write!(out, " address={address}")?;
                }
                write!(out, " status={status} duration_ms={duration_ms:?}")?;
            }
            LineFormat::Json => {
                let line = Json { timestamp, level: "INFO", line: self, target: TARGET };
                serde_json::to_writer(&mut *out, &line)?;
            }
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fmt,
        io::{Read as _, pipe},
        sync::Arc,
    };

    use tracing::subscriber::with_default;
    use tracing_subscriber::fmt::{format::Writer, time::FormatTime};

    use super::*;

    const TIMESTAMP: &str = "2026-11-25T11:01:08.403198Z";

    struct FixedTime;

    impl FormatTime for FixedTime {
        fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
            writer.write_str(TIMESTAMP)
        }
    }

    #[test]
    fn lines_are_those_of_tracing() -> io::Result<()> {
        let lines = [
            ("answered", "a-1", "/v1/boards/main/scores", Some("127.0.0.1"), 200, 6.527_942),
            ("answered", "a+/=.:_", "/\"x\"\\\u{1b}[1m…é\u{7f}\n<&>", Some("2001:db8::1"), 404, 1.0),
            ("client disconnected", "", "", None, 499, 0.000_001),
        ];
        for (message, request_id, path, address, status, duration_ms) in lines {
            let address = address.and_then(|address| address.parse().ok());
            let line = AccessLogLine { message, request_id, method: "GET", path, address, status, duration_ms };
            for format in [LineFormat::Text, LineFormat::Json] {
                let (mut written, writer) = pipe()?;
                let subscriber = tracing_subscriber::fmt().with_timer(FixedTime).with_ansi(false);
                let subscriber = subscriber.with_writer(Arc::new(writer));
                // Without a log of this process, `tracing` writes the line.
                match format {
                    LineFormat::Text => with_default(subscriber.finish(), || line.log()),
                    LineFormat::Json => with_default(subscriber.json().flatten_event(true).finish(), || line.log()),
                }
                let (mut expected, mut out) = (String::new(), Vec::new());
                written.read_to_string(&mut expected)?;
                line.write(TIMESTAMP, format, &mut out)?;
                assert_eq!(String::from_utf8_lossy(&out), expected);
                assert!(expected.ends_with('\n') && expected.contains(TIMESTAMP), "{expected}");
            }
        }
        Ok(())
    }

    #[test]
    fn some_requests_are_logged() {
        let (fast, slow) = (SLOW.saturating_sub(Duration::from_nanos(1)), SLOW);
        for (requests, expected) in [
            (LogRequests::All, [true; 4]),
            (LogRequests::Errors, [false, false, true, true]),
            (LogRequests::Slow, [false, true, true, true]),
            (LogRequests::Off, [false; 4]),
        ] {
            let results = [(399, fast), (200, slow), (400, fast), (499, fast)];
            let included = results.map(|(status, time)| requests.includes(status, time));
            assert_eq!(included, expected, "{requests:?}");
        }
    }
}
