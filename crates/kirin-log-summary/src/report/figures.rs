//! Figures as a person reads them, and as a program does.

/// Returns a count with commas: `1,234,567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a duration with three digits: `123µs`, `1.23ms`, `12.3s`, `1,234s`.
pub(super) fn duration(micros: u64) -> String {
    if micros < 1000 {
        return format!("{micros}µs");
    }
    // 999,500 µs and more round to a second.
    let (unit, name) = if micros < 999_500 { (1000, "ms") } else { (1_000_000, "s") };
    scaled(micros, unit, name)
}

/// Returns bytes with three digits: `999B`, `1.23KB`, `12.3MB`. A KB has 1,024 bytes.
pub(super) fn bytes(bytes: u64) -> String {
    const KB: u64 = 1 << 10;
    const MB: u64 = 1 << 20;
    const GB: u64 = 1 << 30;
    // 1,023.5 KB and more round to a MB.
    match bytes {
        0..KB => format!("{bytes}B"),
        KB..=1_048_063 => scaled(bytes, KB, "KB"),
        1_048_064..=1_073_217_535 => scaled(bytes, MB, "MB"),
        _ => scaled(bytes, GB, "GB"),
    }
}

#[allow(clippy::cast_precision_loss)]
fn scaled(number: u64, unit: u64, name: &str) -> String {
    let value = number as f64 / unit as f64;
    // Three digits after rounding: 9.995 is `10.0`.
    if value < 9.995 {
        format!("{value:.2}{name}")
    } else if value < 99.95 {
        format!("{value:.1}{name}")
    } else {
        format!("{}{name}", count(number / unit + u64::from(number % unit >= unit / 2)))
    }
}

/// Returns microseconds as seconds with six decimals.
pub(super) fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// Returns the share of a part in percent: `12.3%`. Returns nothing if the whole is 0.
#[allow(clippy::cast_precision_loss)]
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let percent = part as f64 * 100.0 / whole as f64;
    if percent < 99.95 { format!("{percent:.1}%") } else { format!("{percent:.0}%") }
}

/// Returns the change of a figure with its sign.
pub(super) fn change(before: u64, after: u64, show: fn(u64) -> String) -> String {
    match after.cmp(&before) {
        std::cmp::Ordering::Less => format!("-{}", show(before - after)),
        std::cmp::Ordering::Equal => "0".to_owned(),
        std::cmp::Ordering::Greater => format!("+{}", show(after - before)),
    }
}

/// Returns the change of a figure in percent of what it was. Returns nothing if it was 0.
#[allow(clippy::cast_precision_loss)]
pub(super) fn change_share(before: u64, after: u64) -> String {
    if before == 0 {
        return String::new();
    }
    let percent = (after as f64 - before as f64) * 100.0 / before as f64;
    if before == after { "0%".to_owned() } else { format!("{percent:+.1}%") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        for (micros, expected) in [
            (0, "0µs"),
            (999, "999µs"),
            (1000, "1.00ms"),
            (9_994, "9.99ms"),
            (9_995, "10.0ms"),
            (99_949, "99.9ms"),
            (99_950, "100ms"),
            (999_499, "999ms"),
            (999_500, "1.00s"),
            (1_234_567_890, "1,235s"),
        ] {
            assert_eq!(duration(micros), expected, "{micros}");
        }
        for (number, expected) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.00KB"),
            (12_595, "12.3KB"),
            (1_048_575, "1.00MB"),
            (5 << 30, "5.00GB"),
            (5 << 40, "5,120GB"),
            (u64::MAX, "17,179,869,184GB"),
        ] {
            assert_eq!(bytes(number), expected, "{number}");
        }
        for (number, expected) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")]
        {
            assert_eq!(count(number), expected);
        }
        assert_eq!(seconds(1_000_023), "1.000023");
        assert_eq!([share(1, 3), share(3, 3), share(1, 0)], ["33.3%", "100%", ""]);
        assert_eq!(change(5, 3, count), "-2");
        assert_eq!(change(3, 5000, duration), "+5.00ms");
        let shares = [change_share(4, 3), change_share(3, 3), change_share(0, 3)];
        assert_eq!(shares, ["-25.0%", "0%", ""]);
    }
}
