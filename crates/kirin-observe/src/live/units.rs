//! Numbers as an operator reads them, in at most seven columns.

/// Returns a count: `7`, `12.3k`, `4.56M`.
pub fn count(number: f64) -> String {
    scaled(number, 1000.0, &["", "k", "M", "G", "T"])
}

/// Returns bytes: `512B`, `12.3K`, `4.56M`, with units of 1,024.
pub fn bytes(number: f64) -> String {
    scaled(number, 1024.0, &["B", "K", "M", "G", "T"])
}

/// Returns a time that is given in milliseconds: `0.12ms`, `34ms`, `5.6s`, `2m05s`, `3h20m`.
pub fn time(milliseconds: f64) -> String {
    let seconds = milliseconds / 1000.0;
    match milliseconds {
        0.0 => "0".to_owned(),
        ..0.995 => format!("{milliseconds:.2}ms"),
        ..9.95 => format!("{milliseconds:.1}ms"),
        ..999.5 => format!("{milliseconds:.0}ms"),
        ..99_950.0 => format!("{seconds:.1}s"),
        _ => duration(seconds as u64),
    }
}

/// Returns a time that is given in seconds: `45s`, `2m05s`, `3h20m`, `5d07h`.
pub fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m{:02}s", seconds % 60),
        3600..86400 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

/// Returns a share as a percentage, and `-` for a share of nothing.
pub fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.0}%", 100.0 * part / whole) } else { "-".to_owned() }
}

/// Returns a number with three digits and a unit.
fn scaled(number: f64, step: f64, units: &[&str]) -> String {
    let (mut number, mut units) = (number, units);
    while let ([_, larger @ ..], true) = (units, number >= 999.5)
        && !larger.is_empty()
    {
        (number, units) = (number / step, larger);
    }
    let unit = units.first().copied().unwrap_or_default();
    match number {
        _ if number == number.trunc() && number < 999.5 => format!("{number:.0}{unit}"),
        ..9.995 => format!("{number:.2}{unit}"),
        ..99.95 => format!("{number:.1}{unit}"),
        _ => format!("{number:.0}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_with_three_digits_and_a_unit() {
        for (text, expected) in [
            (count(0.0), "0"),
            (count(0.25), "0.25"),
            (count(999.0), "999"),
            (count(1234.0), "1.23k"),
            (count(99_960.0), "100k"),
            (count(4_560_000.0), "4.56M"),
            (bytes(512.0), "512B"),
            (bytes(1024.0), "1K"),
            (bytes(1023.0), "1.00K"),
            (bytes(1_610_612_736.0), "1.50G"),
            (time(0.0), "0"),
            (time(0.123), "0.12ms"),
            (time(1.25), "1.2ms"),
            (time(34.4), "34ms"),
            (time(1500.0), "1.5s"),
            (time(125_000.0), "2m05s"),
            (duration(59), "59s"),
            (duration(12_000), "3h20m"),
            (duration(500_000), "5d18h"),
            (share(1.0, 3.0), "33%"),
            (share(0.0, 0.0), "-"),
        ] {
            assert_eq!(text, expected);
            assert!(text.len() <= 7, "{text}");
        }
    }
}
