//! Numbers with units, as people read them.

use indicatif::HumanCount;

/// Returns a number with a comma between groups of three digits.
pub fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Returns a number with a comma between groups of three digits, and the name of the things.
pub fn number_of(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Returns a number of bytes in the units of the configuration, in which a KB is 1024 bytes.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
    if number < 1024 {
        return format!("{number} B");
    }
    let mut scaled = number as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be printed as 1024.0.
    while scaled >= 1023.95 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let digits = if scaled >= 99.95 { 0 } else { 1 };
    let number = format!("{scaled:.digits$}");
    format!("{} {}", number.strip_suffix(".0").unwrap_or(&number), UNITS[unit])
}

/// Returns a time in its two largest units.
pub fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let (first, second) = match (days, hours, minutes) {
        (0, 0, 0) => (format!("{seconds} s"), None),
        (0, 0, _) => (format!("{minutes} min"), Some((seconds % 60, "s"))),
        (0, _, _) => (format!("{hours} h"), Some((minutes % 60, "min"))),
        (1, _, _) => ("1 day".into(), Some((hours % 24, "h"))),
        _ => (format!("{} days", count(days)), Some((hours % 24, "h"))),
    };
    match second {
        Some((number, unit)) if number > 0 => format!("{first} {number} {unit}"),
        _ => first,
    }
}

/// Returns a time that was measured in milliseconds.
pub fn latency(milliseconds: f64) -> String {
    match milliseconds {
        under if under < 10.0 => format!("{under:.2} ms"),
        under if under < 100.0 => format!("{under:.1} ms"),
        under if under < 10_000.0 => format!("{under:.0} ms"),
        long => format!("{:.1} s", long / 1000.0),
    }
}

/// Returns which part of `all` is `part`. There is no `100 %` and no `0 %` for a part that is not
/// all or nothing.
pub fn percent(part: u64, all: u64) -> String {
    if all == 0 {
        return "0 %".into();
    }
    let share = part as f64 / all as f64 * 100.0;
    match part {
        0 => "0 %".into(),
        part if part >= all => format!("{share:.0} %"),
        _ if share < 0.1 => "under 0.1 %".into(),
        _ if share > 99.9 => "over 99.9 %".into(),
        _ => format!("{share:.1} %"),
    }
}

/// Returns `text` without characters that control a terminal.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Returns `text` of several lines without characters that control a terminal.
pub fn plain_lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_largest_unit_that_fits() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(count(number), text);
        }
        for (number, text) in [(0, "0 dogs"), (1, "1 dog"), (2000, "2,000 dogs")] {
            assert_eq!(number_of(number, "dog"), text);
        }
        for (number, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KB"),
            (1536, "1.5 KB"),
            ((1 << 20) - 1, "1 MB"),
            (64 << 20, "64 MB"),
            (123_456_789, "118 MB"),
            (4 << 30, "4 GB"),
            (u64::MAX, "16384 PB"),
        ] {
            assert_eq!(bytes(number), text);
        }
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (61, "1 min 1 s"),
            (3600, "1 h"),
            (7500, "2 h 5 min"),
            (86_400, "1 day"),
            (90_000, "1 day 1 h"),
            (1_000_000_000, "11,574 days 1 h"),
        ] {
            assert_eq!(duration(seconds), text);
        }
        for (milliseconds, text) in [
            (0.0, "0.00 ms"),
            (0.25, "0.25 ms"),
            (12.34, "12.3 ms"),
            (1234.5, "1234 ms"),
            (61_000.0, "61.0 s"),
        ] {
            assert_eq!(latency(milliseconds), text);
        }
    }

    #[test]
    fn a_percentage_does_not_hide_what_is_rare() {
        for (part, all, text) in [
            (0, 0, "0 %"),
            (0, 5, "0 %"),
            (5, 5, "100 %"),
            (1, 3, "33.3 %"),
            (1, 1_000_000, "under 0.1 %"),
            (999_999, 1_000_000, "over 99.9 %"),
            (3, 2, "150 %"),
        ] {
            assert_eq!(percent(part, all), text);
        }
    }

    #[test]
    fn terminal_control_characters_are_replaced() {
        assert_eq!(plain("a\x1b[31m\n\u{9b}é"), "a\u{fffd}[31m\u{fffd}\u{fffd}é");
        assert_eq!(plain_lines("a\x1b\n  b\n"), "a\u{fffd}\n  b\n");
    }
}
