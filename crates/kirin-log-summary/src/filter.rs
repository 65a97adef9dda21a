//! Which requests are counted.

use std::str::FromStr;

pub use jiff::Timestamp as Moment;
use jiff::Timestamp;

pub use crate::line::parse_moment;
use crate::line::{LineError, LogRecord, LogTime};

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
        let moment = record.time.as_ref().and_then(LogTime::moment).ok_or(LineError::NoTime)?;
        Ok(self.since.is_none_or(|since| moment >= since)
            && self.until.is_none_or(|until| moment < until))
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::line::TimeForm;

    fn usual(text: &str) -> LogTime<'_> {
        LogTime { text: Cow::Borrowed(text.as_bytes()), form: TimeForm::Usual }
    }

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
            assert_eq!(usual(text).moment(), Some(expected), "{text}");
        }
        for text in ["", "-", "x", "22/Nov/2026", "nan", "1e300", "99/Nov/2026:18:40:01 +0000"] {
            assert_eq!(usual(text).moment(), None, "{text}");
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
                time: Some(usual(time)),
                place: None,
                cache: None,
                is_cut: false,
            };
            assert_eq!(filter.takes(&record).ok(), expected, "{method} {status} {time}");
        }
    }
}
