//! Defaults that stand beside their keys, as in `#[serde(default = "seconds::<30>")]`.

use crate::units::{ByteSize, Number, Seconds};
use crate::written::Written;

/// Returns a size in units of 1 byte.
pub fn bytes<const BYTES: u64>() -> ByteSize {
    ByteSize(BYTES)
}

/// Returns a size in units of 1,024 bytes.
pub fn kilobytes<const KILOBYTES: u64>() -> ByteSize {
    ByteSize(KILOBYTES << 10)
}

/// Returns a size in units of 1,048,576 bytes.
pub fn megabytes<const MEGABYTES: u64>() -> ByteSize {
    ByteSize(MEGABYTES << 20)
}

/// Returns a time.
pub fn seconds<const SECONDS: u64>() -> Seconds {
    Seconds(SECONDS)
}

/// Returns a time for a key that may not be written for every kind of server.
pub fn unwritten_seconds<const SECONDS: u64>() -> Written<Seconds> {
    Written::default_value(Seconds(SECONDS))
}

/// Returns a number from `MIN` to `MAX`.
pub fn number<const VALUE: u64, const MIN: u64, const MAX: u64>() -> Number<MIN, MAX> {
    Number::new(VALUE)
}

/// Returns a number for a key that may not be written for every kind of server.
pub fn unwritten_number<const VALUE: u64, const MIN: u64, const MAX: u64>()
-> Written<Number<MIN, MAX>> {
    Written::default_value(Number::new(VALUE))
}

/// Returns `true`.
pub fn yes() -> bool {
    true
}
