//! Sizes and times as a user writes them: a number and a unit in a string.
//!
//! The crates `bytesize` and `humantime` read another syntax. In the first, `64MB` is 64,000,000
//! bytes and `64` alone is a size; in the second, `1h 30m` and `5 months` are times.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

use crate::schema::schema_of_string;

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
            // The key is put before the message.
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
            format!("`{text}` is not a size: write a number and B, KB, MB or GB, such as \"64MB\"")
        })
    }
}

impl std::str::FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text, TIME_UNITS).filter(|seconds| *seconds > 0).map(Self).ok_or_else(|| {
            format!(
                "`{text}` is not a time: write a number above 0 and s, m, h or d, such as \"30s\""
            )
        })
    }
}

impl std::str::FromStr for Milliseconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text, SHORT_TIME_UNITS).filter(|time| *time > 0).map(Self).ok_or_else(|| {
            format!("`{text}` is not a time: write a number above 0 and ms or s, such as \"100ms\"")
        })
    }
}

impl<'de> Deserialize<'de> for Milliseconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
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
            format!(
                "`{text}` is not a rate: write a number up to {MAX_RATE}, / and s, m, h or d, such as \"10/s\""
            )
        })
    }
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (unit, factor) = units.iter().find(|(unit, _)| text.ends_with(unit))?;
    let number = text[..text.len() - unit.len()].trim_end();
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for RequestRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
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
        for text in ["", "10", "/s", "10/", "10/w", "0/s", "-1/s", "1.5/s", "10/ss", "2000000/s"] {
            assert!(text.parse::<RequestRate>().unwrap_err().contains("10/s"), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_or_time_says_what_is() {
        for text in ["", "64", "MB", "-1MB", "1.5MB", "64mb", "99999999999999GB"] {
            assert!(text.parse::<ByteSize>().unwrap_err().contains("64MB"), "{text}");
        }
        for (text, time) in [("100ms", 100), ("2s", 2000)] {
            assert_eq!(text.parse(), Ok(Milliseconds(time)));
        }
        for text in ["", "30", "0ms", "1m", "-1s"] {
            assert!(text.parse::<Milliseconds>().unwrap_err().contains("100ms"), "{text}");
        }
        for text in ["", "30", "0s", "1w", "-1s"] {
            assert!(text.parse::<Seconds>().unwrap_err().contains("30s"), "{text}");
        }
    }
}
