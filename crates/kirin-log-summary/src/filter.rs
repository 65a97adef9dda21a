//! Which requests are counted.

use std::str::FromStr;

pub use jiff::Timestamp as Moment;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;

use crate::line::{LineError, LogRecord};

/// Conditions, all of which a request must meet. An empty list is met by all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The methods.
    pub methods: Vec<String>,
    /// The statuses.
    pub statuses: Vec<StatusCondition>,
    /// The first moment.
    pub since: Option<Timestamp>,
    /// The moment after the last one.
    pub until: Option<Timestamp>,
}

/// A status such as 404, or a class such as `4xx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusCondition {
    first: u16,
    last: u16,
}

impl FromStr for StatusCondition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let class = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX"));
        let (digits, width) = class.map_or((text, 1), |class| (class, 100));
        let expected = if width == 1 { 3 } else { 1 };
        digits
            .parse::<u16>()
            .ok()
            .filter(|number| digits.len() == expected && (1..=5).contains(&(number * width / 100)))
            .map(|number| Self { first: number * width, last: number * width + width - 1 })
            .ok_or_else(|| "expected a status such as 404, or a class such as 5xx".into())
    }
}

impl Filter {
    /// Returns whether a request is counted.
    pub fn takes(&self, record: &LogRecord<'_>) -> Result<bool, LineError> {
        let takes_method = self.methods.is_empty()
            || self.methods.iter().any(|method| method.as_bytes() == &*record.method);
        let takes_status = self.statuses.is_empty()
            || self
                .statuses
                .iter()
                .any(|status| (status.first..=status.last).contains(&record.status));
        if !takes_method || !takes_status {
            return Ok(false);
        }
        if self.since.is_none() && self.until.is_none() {
            return Ok(true);
        }
        let moment = record.time.as_deref().and_then(moment_of_log).ok_or(LineError::NoTime)?;
        Ok(self.since.is_none_or(|since| moment >= since)
            && self.until.is_none_or(|until| moment < until))
    }
}

/// Parses a moment as a log has it: ISO 8601, that of the combined format, or seconds since 1970.
fn moment_of_log(text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= 64)?;
    if text.as_bytes().get(2) == Some(&b'/') {
        return strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).ok()?.to_timestamp().ok();
    }
    if let Ok(moment) = parse_moment(text) {
        return Some(moment);
    }
    let seconds: f64 = text.parse().ok()?;
    let millis = seconds * 1000.0;
    #[allow(clippy::cast_possible_truncation)]
    millis.is_finite().then_some(millis as i64).and_then(|ms| Timestamp::from_millisecond(ms).ok())
}

/// Parses a moment in ISO 8601. Without an offset it is UTC, and without a time it is midnight.
pub fn parse_moment(text: &str) -> Result<Timestamp, String> {
    text.parse::<Timestamp>()
        .ok()
        .or_else(|| {
            let civil: DateTime = text.parse().ok()?;
            civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
        })
        .ok_or_else(|| {
            "expected a time such as 2026-11-22, 2026-11-22T18:40 or 2026-11-22T18:40:01+09:00"
                .into()
        })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    #[test]
    fn statuses_and_classes_are_read_and_others_refused() {
        let status = |text: &str| text.parse::<StatusCondition>().ok();
        let range = |first, last| Some(StatusCondition { first, last });
        assert_eq!(status("404"), range(404, 404));
        assert_eq!(status("5xx"), range(500, 599));
        assert_eq!(status("2XX"), range(200, 299));
        for wrong in
            ["", "4", "40", "4040", "xx", "9xx", "0xx", "099", "40x", "-4xx", "44xx", "+44"]
        {
            assert_eq!(status(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn moments_of_all_formats_are_compared() {
        let expected = parse_moment("2026-11-22T18:40:01Z").expect("a moment");
        for text in [
            "22/Nov/2026:18:40:01 +0000",
            "22/Nov/2026:19:40:01 +0100",
            "2026-11-22T18:40:01.000+00:00",
            "2026-11-23T03:40:01+09:00",
            "2026-11-22T18:40:01",
            "2026-11-22 18:40:01Z",
            "1795372801",
            "1795372801.000",
        ] {
            assert_eq!(moment_of_log(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", "-", "x", "22/Nov/2026", "nan", "1e300", "99/Nov/2026:18:40:01 +0000"] {
            assert_eq!(moment_of_log(text.as_bytes()), None, "{text}");
        }
        assert!(parse_moment("yesterday").is_err());
        assert!(parse_moment("2026-11-22").is_ok() && parse_moment("2026-11-22T18:40").is_ok());
    }

    #[test]
    fn a_request_must_meet_all_conditions() {
        let filter = Filter {
            methods: vec!["GET".into()],
            statuses: vec![
                StatusCondition { first: 404, last: 404 },
                StatusCondition { first: 500, last: 599 },
            ],
            since: parse_moment("2026-11-22").ok(),
            until: parse_moment("2026-11-23").ok(),
        };
        for (method, status, time, expected) in [
            ("GET", 404, "2026-11-22T00:00:00Z", Some(true)),
            ("GET", 503, "2026-11-22T23:59:59Z", Some(true)),
            ("GET", 503, "2026-11-23T00:00:00Z", Some(false)),
            ("GET", 503, "2026-11-21T23:59:59Z", Some(false)),
            ("GET", 403, "2026-11-22T00:00:00Z", Some(false)),
            ("POST", 404, "2026-11-22T00:00:00Z", Some(false)),
            ("GET", 404, "never", None),
        ] {
            let record = LogRecord {
                method: Cow::Borrowed(method.as_bytes()),
                target: Cow::Borrowed(b"/"),
                status,
                bytes: None,
                micros: None,
                host: None,
                time: Some(Cow::Borrowed(time.as_bytes())),
                place: None,
                cache: None,
                is_cut: false,
            };
            assert_eq!(filter.takes(&record).ok(), expected, "{method} {status} {time}");
        }
    }
}
