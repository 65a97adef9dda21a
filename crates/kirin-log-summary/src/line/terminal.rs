//! The lines that Kirin writes for people, in the format `terminal`.
//!
//! ```text
//! 18:40:01 200 GET /memo/7  1.2 KB  3.41 ms  app:web cut
//! ```
//!
//! Sizes and durations are rounded, and the time has no date.

use std::borrow::Cow;

use crate::line::combined;
use crate::line::error::LineError;
use crate::line::log_time::{LogTime, TimeForm};
use crate::line::number;
use crate::line::record::{LogRecord, TimeUnit};
use crate::line::unescaped::unescaped;

/// Returns whether a line seems to have this format.
pub(super) fn is_terminal(line: &[u8]) -> bool {
    let is_digit = |at: usize| line.get(at).is_some_and(u8::is_ascii_digit);
    let is_time =
        line.get(8) == Some(&b' ') && [2, 5].iter().all(|at| line.get(*at) == Some(&b':'));
    is_time && [0, 1, 3, 4, 6, 7, 9, 10, 11].iter().all(|at| is_digit(*at))
}

/// Parses a line.
pub(super) fn parse(line: &[u8]) -> Result<LogRecord<'_>, LineError> {
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let mut next = || words.next().ok_or(LineError::OtherFormat);
    let (time, status, method, target) = (next()?, next()?, next()?, next()?);
    let (size, size_unit, duration, unit, place) = (next()?, next()?, next()?, next()?, next()?);
    let is_cut = match (words.next(), words.next()) {
        (None, _) => false,
        (Some(b"cut"), None) => true,
        _ => return Err(LineError::OtherFormat),
    };
    let status = number::unsigned(status).ok_or(LineError::NotANumber("the status"))?;
    let unit = match unit {
        b"ms" => TimeUnit::Milliseconds,
        b"s" => TimeUnit::Seconds,
        _ => return Err(LineError::OtherFormat),
    };
    Ok(LogRecord {
        method: Cow::Borrowed(method),
        target: unescaped(Cow::Borrowed(target)),
        status: combined::status(status)?,
        bytes: Some(bytes(size, size_unit)?),
        micros: Some(
            number::micros(duration, unit)
                .ok_or(LineError::NotANumber("the duration of the request"))?,
        ),
        host: None,
        time: Some(LogTime { text: Cow::Borrowed(time), form: TimeForm::Usual }),
        place: (place != b"-").then_some(Cow::Borrowed(place)),
        cache: None,
        is_cut,
    })
}

/// Returns the bytes of a size such as `1.2 KB`.
fn bytes(size: &[u8], unit: &[u8]) -> Result<u64, LineError> {
    let factor = match unit {
        b"B" => 1,
        b"KB" => 1 << 10,
        b"MB" => 1 << 20,
        b"GB" => 1 << 30,
        _ => return Err(LineError::OtherFormat),
    };
    let millionths = number::micros(size, TimeUnit::Seconds);
    millionths
        .and_then(|number| number.checked_mul(factor))
        .map(|number| number / 1_000_000)
        .ok_or(LineError::NotANumber("the size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_people_are_read() {
        for (line, expected) in [
            (
                "18:40:01 200 GET /memo/7?x  1.5 KB  3.41 ms  app:web",
                ("GET", "/memo/7?x", 200, 1536, 3410, Some("app:web"), false),
            ),
            (
                "18:40:01 499 POST /\\x22  0 B  1.25 s  proxy:api cut",
                ("POST", "/\"", 499, 0, 1_250_000, Some("proxy:api"), true),
            ),
            ("18:40:01 400 - -  2.0 GB  12 ms  -", ("-", "-", 400, 2 << 30, 12_000, None, false)),
        ] {
            assert!(is_terminal(line.as_bytes()), "{line}");
            let record = parse(line.as_bytes()).expect(line);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (method, target) = (text(&record.method), text(&record.target));
            let place = record.place.as_deref().map(text);
            let found = (
                &*method,
                &*target,
                record.status,
                record.bytes.expect("a size"),
                record.micros.expect("a duration"),
                place.as_deref(),
                record.is_cut,
            );
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn a_line_of_another_format_is_refused() {
        for line in [
            "18:40:01",
            "18:40:01 200 GET /  1 B  1 ms",
            "18:40:01 200 GET /  1 B  1 h  files",
            "18:40:01 200 GET /  1 XB  1 ms  files",
            "18:40:01 200 GET /  1 B  1 ms  files cut off",
            "18:40:01 200 GET /  1 B  1 ms  files off",
            "18:40:01 2xx GET /  1 B  1 ms  files",
        ] {
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
        assert!(!is_terminal(b"18-40-01 200") && !is_terminal(b"18:40:01 2") && !is_terminal(b""));
    }
}
