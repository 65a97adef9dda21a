//! Defaults of keys. If the type that a key configures has the default, `defaults!` takes it from
//! there. Other defaults stand beside their keys, as in `#[serde(default = "seconds::<30>")]`.

use std::time::Duration;

use crate::units::{ByteSize, Milliseconds, Number, Seconds};
use crate::written::Written;

/// Declares functions for `#[serde(default = "KEY")]`. Each returns the default of the type that
/// the key configures.
macro_rules! defaults {
    ($($key:ident: $type:ty = $value:expr;)+) => {
        $(fn $key() -> $type {
            $value
        })+
    };
}
pub(crate) use defaults;

/// Returns a time of a crate's type, which is in whole seconds.
pub fn whole_seconds(time: Duration) -> Seconds {
    Seconds(time.as_secs())
}

/// Returns a short time of a crate's type, which is in whole milliseconds.
pub fn milliseconds(time: Duration) -> Milliseconds {
    Milliseconds(time.as_millis() as u64)
}

/// Returns a size of a crate's type.
pub fn size(bytes: usize) -> ByteSize {
    ByteSize(bytes as u64)
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
