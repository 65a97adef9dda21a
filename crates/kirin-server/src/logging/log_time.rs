//! The times of a line. A format is used once a second; its result is kept.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::fmt::strtime::{BrokenDownTime, Config, PosixCustom};
use jiff::tz::TimeZone;

use super::escaping::Escaping;

/// The time of a line in the combined format.
pub const COMMON_TIME: &str = "[%d/%b/%Y:%H:%M:%S +0000]";

/// A time as a format writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeValue {
    /// The moment.
    pub moment: RequestMoment,
    /// Its form.
    pub form: TimeForm,
}

/// A moment of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestMoment {
    /// The arrival of the head.
    Begin,
    /// The end of the response.
    End,
}

/// The form of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeForm {
    /// A format of strftime(3), in UTC.
    Strftime(Box<str>),
    /// The same in the zone of the server.
    Local(Box<str>),
    /// ISO 8601 with milliseconds, in UTC.
    Iso,
    /// Seconds since the epoch.
    Seconds,
    /// Milliseconds since the epoch.
    Milliseconds,
    /// Microseconds since the epoch.
    Microseconds,
    /// The three digits of the milliseconds.
    MillisecondFraction,
    /// The six digits of the microseconds.
    MicrosecondFraction,
}

impl TimeForm {
    /// Returns the form that `text` names, as Apache's `%{text}t` has it. The error says what is
    /// wrong with a format of strftime(3).
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "sec" => Self::Seconds,
            "msec" => Self::Milliseconds,
            "usec" => Self::Microseconds,
            "msec_frac" => Self::MillisecondFraction,
            "usec_frac" => Self::MicrosecondFraction,
            _ => {
                let sample = strftime(text, 0, TimeZone::UTC)?;
                if sample.bytes().any(|byte| byte.is_ascii_control()) {
                    return Err("it makes a control character".into());
                }
                Self::Strftime(text.into())
            }
        })
    }

    /// Returns whether the form shows less than a second.
    pub fn is_precise(&self) -> bool {
        !matches!(self, Self::Strftime(_) | Self::Local(_) | Self::Seconds)
    }
}

/// The times of one request, since the epoch.
#[derive(Clone, Copy, Debug)]
pub struct RequestTimes {
    /// The time at which it began.
    pub begin: Duration,
    /// The time at which it ended.
    pub end: Duration,
}

impl RequestTimes {
    /// Returns the times of a request that has ended now and took so long.
    pub fn ended_now(took: Duration) -> Self {
        let end = since_epoch(SystemTime::now());
        Self { begin: end.saturating_sub(took), end }
    }

    /// Returns the times of a request that began and ended in the second that `now` has.
    pub fn in_second(now: SystemTime) -> Self {
        let now = since_epoch(now);
        Self { begin: now, end: now }
    }
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
}

/// The text of the last second for each value of a format. Each event loop has its own.
#[derive(Debug, Default)]
pub struct TimeTexts(Vec<TimeText>);

#[derive(Debug, Default)]
struct TimeText {
    second: Option<u64>,
    text: String,
}

impl TimeTexts {
    /// Returns the text of `second` for the value number `slot`.
    fn get(&mut self, slot: usize, second: u64, make: impl FnOnce() -> Option<String>) -> &str {
        if self.0.len() <= slot {
            self.0.resize_with(slot + 1, TimeText::default);
        }
        let Some(kept) = self.0.get_mut(slot) else { return "" };
        if kept.second != Some(second) {
            kept.text = make().unwrap_or_default();
            kept.second = Some(second);
        }
        &kept.text
    }
}

impl TimeValue {
    /// Appends the time. `slot` is the number of this value in its format.
    pub fn write(
        &self,
        times: RequestTimes,
        slot: usize,
        texts: &mut TimeTexts,
        escaping: Escaping,
        out: &mut Vec<u8>,
    ) {
        let time = match self.moment {
            RequestMoment::Begin => times.begin,
            RequestMoment::End => times.end,
        };
        let second = time.as_secs();
        match &self.form {
            TimeForm::Strftime(format) => {
                let text = texts.get(slot, second, || strftime(format, second, TimeZone::UTC).ok());
                escaping.write(text.as_bytes(), out);
            }
            TimeForm::Local(format) => {
                let text =
                    texts.get(slot, second, || strftime(format, second, TimeZone::system()).ok());
                escaping.write(text.as_bytes(), out);
            }
            TimeForm::Iso => {
                let make = || strftime("%Y-%m-%dT%H:%M:%S", second, TimeZone::UTC).ok();
                let mut text = *b"0000-00-00T00:00:00.000+00:00";
                let kept = texts.get(slot, second, make).as_bytes();
                if let Some(part) = text.get_mut(..kept.len()) {
                    part.copy_from_slice(kept);
                }
                if let Some(part) = text.get_mut(20..23) {
                    part.copy_from_slice(&digits::<3>(time.subsec_millis()));
                }
                escaping.write_plain(&text, out);
            }
            TimeForm::Seconds => write_number(second, out),
            TimeForm::Milliseconds => write_number(rounded_down(time.as_millis()), out),
            TimeForm::Microseconds => write_number(rounded_down(time.as_micros()), out),
            TimeForm::MillisecondFraction => {
                out.extend_from_slice(&digits::<3>(time.subsec_millis()));
            }
            TimeForm::MicrosecondFraction => {
                out.extend_from_slice(&digits::<6>(time.subsec_micros()));
            }
        }
    }
}

/// Appends seconds with six decimals, such as `0.001234`.
pub fn write_seconds(time: Duration, out: &mut Vec<u8>) {
    write_number(time.as_secs(), out);
    out.push(b'.');
    out.extend_from_slice(&digits::<6>(time.subsec_micros()));
}

/// Appends a number.
pub fn write_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Returns the number of milliseconds or microseconds. It fits for the next 500,000 years.
pub fn rounded_down(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Returns the last `COUNT` digits of a number.
fn digits<const COUNT: usize>(mut number: u32) -> [u8; COUNT] {
    let mut digits = [b'0'; COUNT];
    for digit in digits.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    digits
}

fn strftime(format: &str, second: u64, zone: TimeZone) -> Result<String, String> {
    let wrong = |error: jiff::Error| error.to_string();
    let second = i64::try_from(second).unwrap_or(i64::MAX);
    let time = Timestamp::from_second(second).map_err(wrong)?.to_zoned(zone);
    // The library has the names of Unicode; servers run in the POSIX locale.
    let config = Config::new().custom(PosixCustom::new());
    BrokenDownTime::from(&time).to_string_with_config(&config, format).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(form: TimeForm, micros: u64) -> String {
        let time = Duration::from_micros(micros);
        let (times, mut out) = (RequestTimes { begin: time, end: time }, Vec::new());
        let value = TimeValue { moment: RequestMoment::Begin, form };
        value.write(times, 0, &mut TimeTexts::default(), Escaping::Text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_form_of_a_time_is_written_as_apache_does() {
        let micros = 784_111_777_012_345;
        for (form, expected) in [
            ("sec", "784111777"),
            ("msec", "784111777012"),
            ("usec", "784111777012345"),
            ("msec_frac", "012"),
            ("usec_frac", "012345"),
            ("%Y-%m-%d %H:%M:%S %z %Z", "1994-11-06 08:49:37 +0000 UTC"),
            ("%c|%x|%X|%r", "Sun Nov  6 08:49:37 1994|11/06/94|08:49:37|08:49:37 AM"),
            (
                "%a %A %b %B %e %j %U %u %V %W %w %y %C %I %p %s",
                "Sun Sunday Nov November  6 310 45 7 44 44 0 94 19 08 AM 784111777",
            ),
        ] {
            assert_eq!(write(TimeForm::parse(form).unwrap(), micros), expected, "{form}");
        }
        let common = TimeForm::Strftime(COMMON_TIME.into());
        assert_eq!(write(common, micros), "[06/Nov/1994:08:49:37 +0000]");
        assert_eq!(write(TimeForm::Iso, micros), "1994-11-06T08:49:37.012+00:00");
    }

    #[test]
    fn a_malformed_time_format_is_refused() {
        for (format, expected) in [("%!", ""), ("%", ""), ("%n", "control character")] {
            assert!(TimeForm::parse(format).unwrap_err().contains(expected), "{format}");
        }
    }

    #[test]
    fn a_formatted_time_is_reused_only_within_its_second() {
        let (mut texts, mut out) = (TimeTexts::default(), Vec::new());
        let value =
            TimeValue { moment: RequestMoment::End, form: TimeForm::Strftime("%S ".into()) };
        for second in [7, 7, 8, 7] {
            let times = RequestTimes { begin: Duration::ZERO, end: Duration::from_secs(second) };
            value.write(times, 3, &mut texts, Escaping::Text, &mut out);
        }
        assert_eq!(out, b"07 07 08 07 ");
    }
}
