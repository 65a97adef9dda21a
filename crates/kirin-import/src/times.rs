//! Times, from the words of other servers to the whole seconds of a `kirin.toml`.

use toml::Value;

/// The units of times in the configurations of other servers, in milliseconds. `M` is nginx's.
const TIME_UNITS: [(&str, u64); 8] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 604_800_000),
    ("M", 2_592_000_000),
    ("y", 31_536_000_000),
];

/// The longest time, in seconds.
const MAX_SECONDS: u64 = 100 * 365 * 86_400;

/// Returns the milliseconds of a time such as `30`, `1m` or `1h30m`. A number alone is seconds.
pub(crate) fn milliseconds(word: &str) -> Option<u64> {
    let (mut total, mut rest) = (0_u64, word.trim());
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at_checked(digits)?;
        let unit_length = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(unit_length)?;
        let unit = match unit {
            "" => 1000,
            unit => TIME_UNITS.iter().find(|(name, _)| *name == unit)?.1,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        rest = after.trim_start();
    }
    Some(total.min(MAX_SECONDS * 1000))
}

/// Returns the seconds of a time, at least one. A part of a second counts as a whole one.
pub(crate) fn seconds(word: &str) -> Option<u64> {
    milliseconds(word).map(|time| time.div_ceil(1000).max(1))
}

/// Returns a time of whole seconds as Kirin writes it, such as `"75s"` and `"1h"`.
pub(crate) fn time(seconds: u64) -> Value {
    let (number, unit) = match seconds {
        s if s % 86_400 == 0 && s > 0 => (s / 86_400, "d"),
        s if s % 3600 == 0 && s > 0 => (s / 3600, "h"),
        s if s % 60 == 0 && s > 60 => (s / 60, "m"),
        s => (s.max(1), "s"),
    };
    Value::String(format!("{number}{unit}"))
}

/// Returns the time that a word stands for as Kirin writes it.
pub(crate) fn time_of(word: &str) -> Option<Value> {
    seconds(word).map(time)
}

/// Returns a time with its unit as Kirin writes it, for configurations where a number alone is no
/// time. A time of nothing is none, because Kirin has no such time.
pub(crate) fn time_with_unit(word: &str) -> Option<Value> {
    word.ends_with(|c: char| c.is_ascii_alphabetic()).then_some(())?;
    milliseconds(word).filter(|time| *time > 0)?;
    time_of(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_units_of_other_servers() {
        for (word, expected) in [
            ("30", Some("30s")),
            ("1m", Some("60s")),
            ("90m", Some("90m")),
            ("1h30m", Some("90m")),
            ("1h 30m", Some("90m")),
            ("500ms", Some("1s")),
            ("1y", Some("365d")),
            ("", None),
            ("x", None),
            ("1q", None),
        ] {
            let found = time_of(word);
            assert_eq!(found.as_ref().and_then(Value::as_str), expected, "{word}");
        }
        for (word, expected) in [
            ("500ms", Some("1s")),
            ("1m30s", Some("90s")),
            ("1w", Some("7d")),
            ("1y", Some("365d")),
            ("30", None),
            ("1m30", None),
            ("0s", None),
            ("0ms", None),
            ("s", None),
            ("", None),
            ("{$X}s", None),
        ] {
            let found = time_with_unit(word);
            assert_eq!(found.as_ref().and_then(Value::as_str), expected, "{word}");
        }
    }
}
