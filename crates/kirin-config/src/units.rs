//! Sizes and times as a user writes them: a number and a unit in a string.
//!
//! The crates `bytesize` and `humantime` read another syntax. In the first, `64MB` is 64,000,000
//! bytes and `64` alone is a size; in the second, `1h 30m` and `5 months` are times.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

use crate::schema::schema_of_string;
use crate::unit_suggestion::{SHORT_TIME, SIZE, TIME, rate_suggestion};

/// Bytes, written as `"512KB"`, `"64MB"`, `"2GB"`; 1 KB is 1,024 bytes, as in nginx and memcached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub u64);

/// A time of at least a second, written as `"30s"`, `"5m"`, `"1h"`, `"30d"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub u64);

/// A short time, written as `"100ms"` or `"2s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milliseconds(pub u64);

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<const MIN: u64, const MAX: u64>(u64);

/// A number of requests in a time, written as `"10/s"`, `"100/m"`, `"1000/h"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRate {
    /// The number of requests.
    pub requests: u64,
    /// The time in seconds.
    pub seconds: u64,
}

/// The highest rate. A higher one would not limit anything, and one nanosecond cannot hold it.
const MAX_RATE: u64 = 1_000_000;

const SIZE_UNITS: &[(&str, u64)] = &[("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];
const SHORT_TIME_UNITS: &[(&str, u64)] = &[("ms", 1), ("s", 1000)];
const TIME_UNITS: &[(&str, u64)] = &[("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];

impl<const MIN: u64, const MAX: u64> Number<MIN, MAX> {
    /// Makes the number; one that is too large or small is the nearest that is allowed.
    pub const fn new(value: u64) -> Self {
        Self(if value < MIN {
            MIN
        } else if value > MAX {
            MAX
        } else {
            value
        })
    }

    /// Returns the number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// Returns the number as a length. `MAX` fits into 64 bits, as a length does on Linux.
    pub fn length(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Number<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = i64::deserialize(deserializer)?;
        match u64::try_from(value) {
            Ok(number) if (MIN..=MAX).contains(&number) => Ok(Self(number)),
            // The caller adds the key before the message.
            _ => Err(D::Error::custom(format!("is {value}: allowed is {MIN} to {MAX}"))),
        }
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Number<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl std::str::FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text, SIZE_UNITS).map(Self).ok_or_else(|| {
            let form = "a number and B, KB, MB or GB, such as \"64MB\"";
            wrong(text, "size", SIZE.suggestion(text), form)
        })
    }
}

impl std::str::FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text, TIME_UNITS).filter(|seconds| *seconds > 0).map(Self).ok_or_else(|| {
            let form = "a number above 0 and s, m, h or d, such as \"30s\"";
            wrong(text, "time", TIME.suggestion(text), form)
        })
    }
}

impl std::str::FromStr for Milliseconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text, SHORT_TIME_UNITS).filter(|time| *time > 0).map(Self).ok_or_else(|| {
            let form = "a number above 0 and ms or s, such as \"100ms\"";
            wrong(text, "time", SHORT_TIME.suggestion(text), form)
        })
    }
}

impl From<Milliseconds> for Duration {
    fn from(time: Milliseconds) -> Self {
        Duration::from_millis(time.0)
    }
}

impl Serialize for Milliseconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}ms", self.0))
    }
}

impl std::str::FromStr for RequestRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(number, unit)| {
            let requests = parse(&format!("{}s", number.trim_end()), TIME_UNITS)?;
            let (_, seconds) = TIME_UNITS.iter().find(|(name, _)| *name == unit.trim_start())?;
            (1..=MAX_RATE).contains(&requests).then_some(Self { requests, seconds: *seconds })
        });
        parsed.ok_or_else(|| {
            let form = format!("a number up to {MAX_RATE}, / and s, m, h or d, such as \"10/s\"");
            let suggestion = rate_suggestion(text).filter(|meant| {
                meant.trim_matches('"') != text && meant.trim_matches('"').parse::<Self>().is_ok()
            });
            wrong(text, "rate", suggestion, &form)
        })
    }
}

/// Returns the error for a value in a wrong form: how to write what was meant, or else the form.
fn wrong(text: &str, kind: &str, meant: Option<String>, form: &str) -> String {
    format!("`{text}` is not a {kind}: write {}", meant.as_deref().unwrap_or(form))
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (unit, factor) = units.iter().find(|(unit, _)| text.ends_with(unit))?;
    let number = text[..text.len() - unit.len()].trim_end();
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Deserializes these types from strings. A number is an error too, which says how to write it.
macro_rules! deserialize_from_text {
    ($($value:ty = $example:literal),+) => {
        $(impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(TextOrNumber { example: $example })?
                    .parse().map_err(D::Error::custom)
            }
        })+
    };
}

deserialize_from_text!(
    ByteSize = "a size such as \"64MB\"",
    Seconds = "a time such as \"30s\"",
    Milliseconds = "a time such as \"100ms\"",
    RequestRate = "a rate such as \"10/s\""
);

/// Reads a value with a unit as text, and a number as if it were in quotes.
struct TextOrNumber {
    example: &'static str,
}

impl Visitor<'_> for TextOrNumber {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.example)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<String, E> {
        Ok(number.to_string())
    }
}

impl ByteSize {
    /// Returns the size as a length. A larger one than can be addressed is the largest length.
    pub fn length(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl From<Seconds> for Duration {
    fn from(seconds: Seconds) -> Self {
        Duration::from_secs(seconds.0)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in(f, self.0, SIZE_UNITS)
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in(f, self.0, TIME_UNITS)
    }
}

/// Writes `value` in the largest unit that divides it.
fn write_in(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let whole = units.iter().find(|(_, factor)| value.is_multiple_of(*factor) && value >= *factor);
    let (unit, factor) = whole.or(units.last()).copied().unwrap_or(("", 1));
    write!(f, "{}{unit}", value / factor)
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<const MIN: u64, const MAX: u64> schemars::JsonSchema for Number<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        u64::json_schema(generator)
    }
}

schema_of_string!(ByteSize, Seconds, Milliseconds, RequestRate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read_and_written_alike() {
        for (text, bytes) in
            [("0B", 0), ("1KB", 1024), ("64MB", 64 << 20), ("3GB", 3 << 30), ("1500B", 1500)]
        {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)));
            assert_eq!(ByteSize(bytes).to_string(), text);
        }
        for (text, seconds) in
            [("1s", 1), ("90s", 90), ("2m", 120), ("1h", 3600), ("365d", 31_536_000)]
        {
            assert_eq!(text.parse(), Ok(Seconds(seconds)));
            assert_eq!(Seconds(seconds).to_string(), text);
        }
    }

    #[test]
    fn rates_are_a_number_in_a_time() {
        for (text, requests, seconds) in [("10/s", 10, 1), ("100/m", 100, 60), ("1 / h", 1, 3600)] {
            assert_eq!(text.parse(), Ok(RequestRate { requests, seconds }));
        }
        for text in ["", "/s", "10/", "10/w", "0/s", "-1/s", "1.5/s", "10/ss", "2000000/s"] {
            assert!(text.parse::<RequestRate>().unwrap_err().contains("10/s"), "{text}");
        }
    }

    #[test]
    fn an_invalid_size_names_the_units() {
        for text in ["", "MB", "-1MB", "99999999999999GB"] {
            assert!(text.parse::<ByteSize>().unwrap_err().contains("such as \"64MB\""), "{text}");
        }
        for (text, time) in [("100ms", 100), ("2s", 2000)] {
            assert_eq!(text.parse(), Ok(Milliseconds(time)));
        }
        for text in ["", "0ms", "-1s"] {
            assert!(text.parse::<Milliseconds>().unwrap_err().contains("100ms"), "{text}");
        }
        for text in ["", "0s", "1y", "-1s"] {
            assert!(text.parse::<Seconds>().unwrap_err().contains("30s"), "{text}");
        }
    }

    #[test]
    fn a_number_without_a_unit_says_how_to_write_it() {
        use crate::check::tests::{LISTENER, check_text};
        for (key, expected) in [
            (
                "[store]\nmemory = 64000000",
                "`64000000` is not a size: write \"64000000B\", or \"61MB\"",
            ),
            (
                "[store]\nmemory = \"64000000\"",
                "write \"64000000B\", or \"61MB\" for about as much",
            ),
            ("[store]\nmemory = 67108864", "write \"67108864B\" or \"64MB\""),
            ("[store]\nmemory = 64", "write \"64B\", \"64KB\" or \"64MB\""),
            ("[store]\nmemory = 1.5", "`1.5` is not a size: write a number and B, KB, MB or GB"),
            ("[store]\nmemory = true", "`memory` is true: allowed is a size such as \"64MB\""),
            ("[store]\nmemory = -1", "`-1` is not a size: write a number and B"),
            ("[store]\nmemory = \"64m\"", "`64m` is not a size: write \"64MB\"\n"),
            ("[store]\nstampede_guard = 30", "`30` is not a time: write \"30s\"\n"),
            ("[store]\nstampede_guard = \"5 min\"", "`5 min` is not a time: write \"5m\"\n"),
            ("[lua]\ntime_limit = 100", "`100` is not a time: write \"100ms\"\n"),
            (
                "[[route]]\npath = \"/a\"\ntry = [\"store\"]\nrate_limit = [{ rate = 10 }]",
                "`10` is not a rate: write \"10/s\"\n",
            ),
            (
                "[[route]]\npath = \"/a\"\ntry = [\"store\"]\nrate_limit = [{ rate = \"10r/m\" }]",
                "write \"10/m\"\n",
            ),
        ] {
            let text = format!("{LISTENER}[[route]]\npath = \"/\"\ntry = [\"store\"]\n{key}\n");
            let said = check_text(&text).expect_err(key);
            assert!(said.contains(expected), "{key}: {said}");
        }
    }
}
