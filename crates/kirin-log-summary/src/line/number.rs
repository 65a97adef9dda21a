//! Numbers in logs: counts, and durations in microseconds.

use crate::line::record::TimeUnit;

/// Parses a decimal number without sign.
pub(super) fn unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Parses a duration such as `0.001234`, and returns microseconds.
pub(super) fn micros(text: &[u8], unit: TimeUnit) -> Option<u64> {
    let end = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let (whole, fraction) = (&text[..end], text.get(end + 1..).unwrap_or_default());
    let is_plain = whole.len() <= 9 && text.len() <= 40 && fraction.iter().all(u8::is_ascii_digit);
    if !is_plain {
        return rare_micros(text, unit);
    }
    let mut number = if whole.is_empty() && !fraction.is_empty() { 0 } else { unsigned(whole)? };
    for at in 0..unit.decimals() {
        let digit = fraction.get(at).map_or(0, |byte| u64::from(byte - b'0'));
        number = number * 10 + digit;
    }
    // Further decimals round.
    if fraction.get(unit.decimals()).is_some_and(|byte| *byte >= b'5') {
        number += 1;
    }
    Some(number)
}

/// Adds up durations such as `0.1, 0.2 : 0.3`, which nginx writes if it asked several servers, and
/// returns microseconds. A `-` is no duration. Returns `Some(None)` if there is none, and `None`
/// for a text that is not a list of durations.
pub(super) fn total_micros(text: &[u8], unit: TimeUnit) -> Option<Option<u64>> {
    if memchr::memchr2(b',', b' ', text).is_none() {
        return micros(text, unit).map(Some);
    }
    let mut total = None;
    for item in text.split(|byte| matches!(byte, b',' | b':')) {
        match item.trim_ascii() {
            b"-" => {}
            item => total = Some(micros(item, unit)?.saturating_add(total.unwrap_or(0))),
        }
    }
    Some(total)
}

/// Parses exponents and very long numbers.
fn rare_micros(text: &[u8], unit: TimeUnit) -> Option<u64> {
    let is_number = text.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.');
    if !is_number || text.len() > 40 {
        return None;
    }
    float_micros(std::str::from_utf8(text).ok()?.parse().ok()?, unit)
}

/// Converts a duration to microseconds. Returns `None` for what is no duration.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn float_micros(number: f64, unit: TimeUnit) -> Option<u64> {
    let micros = number * unit.micros();
    // A conversion of a larger number would be the largest integer.
    (micros.is_finite() && (0.0..=1e15).contains(&micros)).then(|| micros.round() as u64)
}

impl TimeUnit {
    fn decimals(self) -> usize {
        match self {
            Self::Seconds => 6,
            Self::Milliseconds => 3,
            Self::Microseconds => 0,
        }
    }

    fn micros(self) -> f64 {
        match self {
            Self::Seconds => 1e6,
            Self::Milliseconds => 1e3,
            Self::Microseconds => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_in_their_unit() {
        use TimeUnit::{Microseconds, Milliseconds, Seconds};
        for (text, unit, expected) in [
            ("0.001234", Seconds, Some(1234)),
            ("0", Seconds, Some(0)),
            ("12", Seconds, Some(12_000_000)),
            ("1.", Seconds, Some(1_000_000)),
            (".5", Seconds, Some(500_000)),
            ("0.0000005", Seconds, Some(1)),
            ("0.0000004", Seconds, Some(0)),
            ("1.2e-05", Seconds, Some(12)),
            ("1.5", Milliseconds, Some(1500)),
            ("1234", Microseconds, Some(1234)),
            ("1234.5", Microseconds, Some(1235)),
            ("999999999999", Seconds, None),
            ("", Seconds, None),
            (".", Seconds, None),
            ("-", Seconds, None),
            ("-1", Seconds, None),
            ("1.2.3", Seconds, None),
            ("1,2", Seconds, None),
            ("0x10", Seconds, None),
            ("nan", Seconds, None),
            ("inf", Seconds, None),
            ("1e999", Seconds, None),
        ] {
            assert_eq!(micros(text.as_bytes(), unit), expected, "{text} {unit:?}");
        }
    }

    #[test]
    fn the_durations_of_several_servers_are_added_up() {
        for (text, expected) in [
            ("0.5", Some(Some(500_000))),
            ("0.1, 0.2 : 0.3", Some(Some(600_000))),
            ("-, 0.25", Some(Some(250_000))),
            ("- : -", Some(None)),
            ("0.1, x", None),
            ("0.1,", None),
            ("0.1 0.2", None),
        ] {
            assert_eq!(total_micros(text.as_bytes(), TimeUnit::Seconds), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn micros_agree_with_floating_point(whole in 0_u64..1_000_000, fraction in "[0-9]{0,9}") {
            let text = format!("{whole}.{fraction}");
            let exact: f64 = text.parse().expect("a number");
            let parsed = micros(text.as_bytes(), TimeUnit::Seconds).expect("a duration");
            prop_assert!((parsed as f64 - exact * 1e6).abs() <= 0.51, "{text} {parsed}");
        }

        #[test]
        fn unsigned_agrees_with_the_standard_library(text in "[0-9]{0,22}|[0-9a +-]{0,4}") {
            let expected = text.parse::<u64>().ok().filter(|_| !text.starts_with('+') && text.len() <= 20);
            prop_assert_eq!(unsigned(text.as_bytes()), expected);
        }
    }
}
