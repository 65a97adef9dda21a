//! The moment of a request as a log has it, and the forms that it may have.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime::{self, BrokenDownTime, Config, PosixCustom};
use jiff::tz::TimeZone;

/// The moment of a request as a line has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTime<'a> {
    /// The text of the line.
    pub text: Cow<'a, [u8]>,
    /// How the text is read.
    pub form: TimeForm,
}

/// The form of the times in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TimeForm {
    /// ISO 8601, the form of the combined format, or seconds since 1970.
    #[default]
    Usual,
    /// Milliseconds since 1970.
    Milliseconds,
    /// Microseconds since 1970.
    Microseconds,
    /// A format of strftime(3).
    Strftime(Arc<str>),
}

impl LogTime<'_> {
    /// Returns the moment, or `None` if the text is no time of this form.
    pub fn moment(&self) -> Option<Timestamp> {
        let text = std::str::from_utf8(&self.text).ok().filter(|text| text.len() <= 100)?;
        match &self.form {
            TimeForm::Usual => usual_moment(text),
            TimeForm::Milliseconds => Timestamp::from_millisecond(text.parse().ok()?).ok(),
            TimeForm::Microseconds => Timestamp::from_microsecond(text.parse().ok()?).ok(),
            TimeForm::Strftime(format) => strftime_moment(format, text),
        }
    }
}

/// Parses a moment as most logs have it.
fn usual_moment(text: &str) -> Option<Timestamp> {
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

/// Parses a moment in a format of strftime(3). Without an offset it is UTC, as Kirin writes it.
fn strftime_moment(format: &str, text: &str) -> Option<Timestamp> {
    let parsed = strtime::parse(format, text).ok()?;
    if let Ok(moment) = parsed.to_timestamp() {
        return Some(moment);
    }
    let civil = parsed.to_datetime().ok()?;
    civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// A time of a format: one directive, or several that stand side by side and make one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TimeValue {
    /// The form. `None` if the text cannot be read as a time.
    pub(super) form: Option<TimeForm>,
    /// The text for one moment. Its punctuation is that of all moments.
    pub(super) sample: String,
    /// Whether the punctuation is the same for all moments: no part is filled up with spaces.
    pub(super) is_regular: bool,
    /// The format to read it with, if a text and a further time may be appended.
    parse_format: Option<String>,
    /// Whether it is the end of the response.
    is_end: bool,
}

/// The second of the samples: 1994-11-16T08:49:37Z.
const SAMPLE_SECOND: i64 = 784_975_777;

impl TimeValue {
    /// Returns the time of `%t`, with its brackets.
    pub(super) fn common() -> Self {
        Self::strftime("[%d/%b/%Y:%H:%M:%S %z]", false)
    }

    /// Returns the time of Apache's and Kirin's `%{name}t`.
    pub(super) fn named(name: &str) -> Self {
        let (is_end, format) = match (name.strip_prefix("begin:"), name.strip_prefix("end:")) {
            (Some(format), _) => (false, format),
            (_, Some(format)) => (true, format),
            _ => (false, name),
        };
        let number = |form: Option<TimeForm>, sample: &str, parse_format: Option<&str>| Self {
            form,
            sample: sample.into(),
            is_regular: true,
            parse_format: parse_format.map(str::to_owned),
            is_end,
        };
        match format {
            "sec" => number(Some(TimeForm::Usual), "784975777", Some("%s")),
            "msec" => number(Some(TimeForm::Milliseconds), "784975777012", None),
            "usec" => number(Some(TimeForm::Microseconds), "784975777012345", None),
            "msec_frac" => number(None, "012", Some("%f")),
            "usec_frac" => number(None, "012345", Some("%f")),
            _ => Self::strftime(format, is_end),
        }
    }

    fn strftime(format: &str, is_end: bool) -> Self {
        let format = expanded(format);
        let sample = strftime_text(&format);
        let is_regular = sample.is_some()
            && !["%e", "%k", "%l", "%_", "%-", "%v", "%+"].iter().any(|part| format.contains(part));
        let form = sample.as_deref().and_then(|sample| form_of(&format, sample));
        let parse_format = sample.is_some().then_some(format);
        Self { form, sample: sample.unwrap_or_default(), is_regular, parse_format, is_end }
    }

    /// Appends a text and a further time, such as a fraction or a zone, if both make one time.
    /// Returns false if they do not.
    pub(super) fn join(&mut self, text: &[u8], other: &Self) -> bool {
        let (Some(format), Some(more)) = (&self.parse_format, &other.parse_format) else {
            return false;
        };
        let Ok(text) = std::str::from_utf8(text) else { return false };
        if other.form.is_some() || self.is_end != other.is_end {
            return false;
        }
        let is_regular = self.is_regular && other.is_regular;
        if text.contains('"') && !is_regular {
            return false;
        }
        let format = format!("{format}{}{more}", text.replace('%', "%%"));
        let sample = format!("{}{text}{}", self.sample, other.sample);
        let form = match &*format {
            // The library takes the seconds without the fraction.
            "%s.%f" => Some(TimeForm::Usual),
            _ => form_of(&format, &sample),
        };
        if self.form.is_some() && form.is_none() {
            return false;
        }
        let (parse_format, is_end) = (Some(format), self.is_end);
        *self = Self { form, sample, is_regular, parse_format, is_end };
        true
    }

    /// Returns how well the time says when a request began. The lowest number is the best.
    pub(super) fn rank(&self) -> Option<u8> {
        self.form.as_ref().map(|_| u8::from(self.is_end))
    }
}

/// Returns the form of a format, if its sample has a date and a time that can be read.
fn form_of(format: &str, sample: &str) -> Option<TimeForm> {
    let moment = strftime_moment(format, sample)?;
    (moment.as_second() == SAMPLE_SECOND).then(|| TimeForm::Strftime(format.into()))
}

/// Replaces conversions that stand for several others. They can be written, but not read.
fn expanded(format: &str) -> String {
    let mut expanded = String::with_capacity(format.len());
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            expanded.push(character);
            continue;
        }
        match characters.next() {
            Some('c') => expanded.push_str("%a %b %e %H:%M:%S %Y"),
            Some('x') => expanded.push_str("%m/%d/%y"),
            Some('X') => expanded.push_str("%H:%M:%S"),
            Some('r') => expanded.push_str("%I:%M:%S %p"),
            other => {
                expanded.push('%');
                expanded.extend(other);
            }
        }
    }
    expanded
}

fn strftime_text(format: &str) -> Option<String> {
    let time = Timestamp::from_second(SAMPLE_SECOND).ok()?.to_zoned(TimeZone::UTC);
    let config = Config::new().custom(PosixCustom::new());
    BrokenDownTime::from(&time).to_string_with_config(&config, format).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(parts: &[(&str, &str)]) -> TimeValue {
        let mut time = TimeValue::named(parts[0].1);
        for (text, name) in &parts[1..] {
            assert!(time.join(text.as_bytes(), &TimeValue::named(name)), "{name}");
        }
        time
    }

    #[test]
    fn times_of_all_forms_are_read() {
        for (parts, text, expected) in [
            (&[("", "sec")][..], "1795372801", "2026-11-22T18:40:01Z"),
            (&[("", "msec")], "1795372801500", "2026-11-22T18:40:01.5Z"),
            (&[("", "usec")], "1795372801500000", "2026-11-22T18:40:01.5Z"),
            (&[("", "end:%Y-%m-%d %T")], "2026-11-22 18:40:01", "2026-11-22T18:40:01Z"),
            (&[("", "%d.%m.%y %H:%M:%S")], "22.11.26 18:40:01", "2026-11-22T18:40:01Z"),
            (&[("", "%c")], "Sun Nov 22 18:40:01 2026", "2026-11-22T18:40:01Z"),
            (&[("", "%c")], "Sun Nov  1 18:40:01 2026", "2026-11-01T18:40:01Z"),
            (&[("", "%x %r")], "11/22/26 06:40:01 PM", "2026-11-22T18:40:01Z"),
            (&[("", "%F"), ("|", "%T")], "2026-11-22|18:40:01", "2026-11-22T18:40:01Z"),
            (&[("", "sec"), (".", "usec_frac")], "1795372801.500000", "2026-11-22T18:40:01.5Z"),
            (
                &[("", "%d/%b/%Y %T"), (".", "msec_frac"), (" ", "%z")],
                "22/Nov/2026 19:40:01.500 +0100",
                "2026-11-22T18:40:01.5Z",
            ),
        ] {
            let form = time(parts).form.unwrap_or_else(|| panic!("{parts:?} has a form"));
            let time = LogTime { text: Cow::Borrowed(text.as_bytes()), form };
            let moment = time.moment().unwrap_or_else(|| panic!("{text} is a time"));
            assert_eq!(moment.to_string(), expected, "{parts:?}");
        }
    }

    #[test]
    fn a_time_without_a_date_is_no_moment() {
        for name in ["%T", "%Y-%m-%d", "msec_frac", "%H:%M", "%!", "%"] {
            assert_eq!(TimeValue::named(name).form, None, "{name}");
        }
    }

    #[test]
    fn two_complete_times_are_not_joined() {
        let mut time = TimeValue::common();
        assert!(!time.join(b" ", &TimeValue::named("sec")));
        assert!(!time.join(b" ", &TimeValue::named("msec")));
        assert!(!time.join(b" ", &TimeValue::named("end:msec_frac")));
    }

    #[test]
    fn a_time_that_can_be_read_alone_stays_so() {
        // The seconds would end behind the text.
        let mut time = TimeValue::named("sec");
        assert!(!time.join(b"5", &TimeValue::named("msec_frac")));
        assert_eq!(time, TimeValue::named("sec"));
    }
}
