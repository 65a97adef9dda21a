//! The value that a user probably meant by a size, time or rate without a unit, or in the form of
//! another program: `64000000`, `64m`, `1.5GB`, `1h30m`, `10r/s`.
//!
//! Kirin does not guess: a value has one form. But the error says how to write what was meant.

/// The notation of a kind of value: its units.
pub struct Notation {
    /// The units that are allowed, the largest first, with their length in the smallest quantity
    /// that `others` have.
    allowed: &'static [(&'static str, u64)],
    /// The units that other programs have, in lower case.
    others: &'static [(&'static [&'static str], u64)],
    /// The unit of a number that has none.
    bare: &'static str,
    /// The units that a small number may have.
    bare_small: &'static [&'static str],
}

const KB: u64 = 1 << 10;
const MB: u64 = 1 << 20;
const GB: u64 = 1 << 30;

/// The notation of sizes. The smallest quantity is a byte.
pub const SIZE: Notation = Notation {
    allowed: &[("GB", GB), ("MB", MB), ("KB", KB), ("B", 1)],
    others: &[
        (&["b", "byte", "bytes"], 1),
        (&["k", "kb", "kib"], KB),
        (&["m", "mb", "mib"], MB),
        (&["g", "gb", "gib"], GB),
        (&["t", "tb", "tib"], 1 << 40),
    ],
    bare: "B",
    bare_small: &["B", "KB", "MB"],
};

const TIMES: &[(&[&str], u64)] = &[
    (&["ms", "msec", "millis", "milliseconds"], 1),
    (&["s", "sec", "secs", "second", "seconds"], 1000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
    (&["w", "week", "weeks"], 7 * 86_400_000),
];

/// The notation of times in seconds. The smallest quantity is a millisecond.
pub const TIME: Notation = Notation {
    allowed: &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)],
    others: TIMES,
    bare: "s",
    bare_small: &["s"],
};

/// The notation of times in milliseconds. The smallest quantity is a millisecond.
pub const SHORT_TIME: Notation =
    Notation { allowed: &[("s", 1000), ("ms", 1)], others: TIMES, bare: "ms", bare_small: &["ms"] };

/// The units of rates.
const RATES: [(&str, &[&str]); 4] = [
    ("s", &["s", "sec", "second"]),
    ("m", &["m", "min", "minute"]),
    ("h", &["h", "hour"]),
    ("d", &["d", "day"]),
];

/// Below this number, a size without a unit was hardly meant in bytes.
const SMALL: u128 = 1024;

impl Notation {
    /// Returns how to write the value that `text` probably means, as the rest of a sentence:
    /// `"64000000B"`, or `"61MB"` for about as much.
    pub fn suggestion(&self, text: &str) -> Option<String> {
        let text = text.trim().replace('_', "").to_ascii_lowercase();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.suggestion_for_number(text.parse().ok()?);
        }
        let quantity = self.quantity(&text)?;
        let (_, smallest) = self.allowed.last()?;
        let rounded = quantity.div_ceil(u128::from(*smallest)) * u128::from(*smallest);
        let written = self.exact(rounded)?;
        Some(if rounded == quantity { written } else { about(&written) })
    }

    fn suggestion_for_number(&self, number: u64) -> Option<String> {
        let quantity = u128::from(number) * u128::from(self.length_of(self.bare)?);
        if number == 0 || u64::try_from(quantity).is_err() {
            return None;
        }
        if u128::from(number) < SMALL {
            let forms: Vec<String> =
                self.bare_small.iter().map(|unit| format!("\"{number}{unit}\"")).collect();
            return Some(match forms.split_last() {
                Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
                _ => forms.concat(),
            });
        }
        let bare = format!("\"{number}{}\"", self.bare);
        // A unit of which there are ten or more is off by a twentieth at most.
        let enough = |(_, length): &&(&str, u64)| quantity >= 10 * u128::from(*length);
        let (unit, length) = self.allowed.iter().find(enough)?;
        let length = u128::from(*length);
        if quantity.is_multiple_of(length) {
            let exact = self.exact(quantity)?;
            return Some(if exact == bare { bare } else { format!("{bare} or {exact}") });
        }
        let rounded = (quantity + length / 2) / length;
        Some(format!("{bare}, or {}", about(&format!("\"{rounded}{unit}\""))))
    }

    /// Returns the quantity of a text such as `1.5gb` or `1h 30m`.
    fn quantity(&self, text: &str) -> Option<u128> {
        let mut quantity = 0_u128;
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (number, behind) = rest.split_at(digits);
            let behind = behind.trim_start();
            let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
            let (word, behind) = behind.split_at(end);
            let (_, length) = self.others.iter().find(|(words, _)| words.contains(&word))?;
            quantity = quantity.checked_add(times(number, *length)?)?;
            rest = behind.trim_start();
        }
        (1..=u128::from(u64::MAX)).contains(&quantity).then_some(quantity)
    }

    /// Returns the quantity in the largest unit that divides it.
    fn exact(&self, quantity: u128) -> Option<String> {
        let divides = |(_, length): &&(&str, u64)| quantity.is_multiple_of(u128::from(*length));
        let (unit, length) = self.allowed.iter().find(divides)?;
        Some(format!("\"{}{unit}\"", quantity / u128::from(*length)))
    }

    fn length_of(&self, unit: &str) -> Option<u64> {
        self.allowed.iter().find(|(other, _)| *other == unit).map(|(_, length)| *length)
    }
}

/// Returns how to write the rate that `text` probably means.
pub fn rate_suggestion(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let (number, unit) = text.split_once('/').unwrap_or((&text, "s"));
    let number = number.trim().trim_end_matches('r').trim_end().replace('_', "");
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    let (unit, _) = RATES.iter().find(|(_, words)| words.contains(&unit.trim()))?;
    Some(format!("\"{number}/{unit}\""))
}

fn about(written: &str) -> String {
    format!("{written} for about as much")
}

/// Returns the decimal `number` times `length`, rounded up.
fn times(number: &str, length: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // More digits than these make no difference, and would not fit.
    if whole.len() > 20 || fraction.len() > 15 || whole.len() + fraction.len() == 0 {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let scaled: u128 = [whole, fraction].concat().parse().ok()?;
    Some(scaled.checked_mul(u128::from(length))?.div_ceil(scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_suggested_as_it_was_meant() {
        for (text, expected) in [
            ("64000000", "\"64000000B\", or \"61MB\" for about as much"),
            ("1500000000", "\"1500000000B\", or \"1431MB\" for about as much"),
            ("5000000", "\"5000000B\", or \"4883KB\" for about as much"),
            ("67108864", "\"67108864B\" or \"64MB\""),
            ("64_000_000", "\"64000000B\", or \"61MB\" for about as much"),
            ("1500", "\"1500B\""),
            ("64", "\"64B\", \"64KB\" or \"64MB\""),
            ("64m", "\"64MB\""),
            ("64M", "\"64MB\""),
            ("64mb", "\"64MB\""),
            ("64 MiB", "\"64MB\""),
            ("1.5GB", "\"1536MB\""),
            (".5k", "\"512B\""),
            ("2TB", "\"2048GB\""),
            ("0.3KB", "\"308B\""),
        ] {
            assert_eq!(SIZE.suggestion(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "0", "MB", "-1MB", "64XB", "1.2.3MB", "1e6", "99999999999999GB", "5 5MB"] {
            assert_eq!(SIZE.suggestion(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_is_suggested_as_it_was_meant() {
        for (text, expected) in [
            ("30", "\"30s\""),
            ("3600", "\"3600s\" or \"1h\""),
            ("4000", "\"4000s\", or \"67m\" for about as much"),
            ("30S", "\"30s\""),
            ("5min", "\"5m\""),
            ("1.5h", "\"90m\""),
            ("1h30m", "\"90m\""),
            ("1h 30m", "\"90m\""),
            ("2w", "\"14d\""),
            ("1500ms", "\"2s\" for about as much"),
            ("2000ms", "\"2s\""),
        ] {
            assert_eq!(TIME.suggestion(text).as_deref(), Some(expected), "{text}");
        }
        for (text, expected) in [
            ("100", "\"100ms\""),
            ("2000", "\"2000ms\" or \"2s\""),
            ("1m", "\"60s\""),
            ("0.5s", "\"500ms\""),
        ] {
            assert_eq!(SHORT_TIME.suggestion(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "0", "0s", "s", "-1s", "1y", "soon"] {
            assert_eq!(TIME.suggestion(text), None, "{text}");
        }
    }

    #[test]
    fn a_rate_is_suggested_as_it_was_meant() {
        for (text, expected) in [
            ("10", "\"10/s\""),
            ("10r/s", "\"10/s\""),
            ("5 / min", "\"5/m\""),
            ("7/hour", "\"7/h\""),
        ] {
            assert_eq!(rate_suggestion(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "0", "-1/s", "1.5/s", "10/w", "/s"] {
            assert_eq!(rate_suggestion(text), None, "{text}");
        }
    }

    #[test]
    fn every_suggestion_is_an_allowed_value() {
        use crate::units::{ByteSize, Milliseconds, RequestRate, Seconds};
        let allowed = |suggestion: &str, is_allowed: &dyn Fn(&str) -> bool| {
            let written = suggestion.split('"').skip(1).step_by(2);
            let wrong: Vec<_> = written.filter(|written| !is_allowed(written)).collect();
            assert!(wrong.is_empty(), "{suggestion}: {wrong:?}");
        };
        for number in ["1", "7", "1023", "1024", "1025", "86400", "64000000", "18446744073709"] {
            let suggestion = SIZE.suggestion(number).unwrap();
            allowed(&suggestion, &|text| text.parse::<ByteSize>().is_ok());
            allowed(&TIME.suggestion(number).unwrap(), &|text| text.parse::<Seconds>().is_ok());
            let suggestion = SHORT_TIME.suggestion(number).unwrap();
            allowed(&suggestion, &|text| text.parse::<Milliseconds>().is_ok());
        }
        allowed(&rate_suggestion("10r/s").unwrap(), &|text| text.parse::<RequestRate>().is_ok());
    }
}
