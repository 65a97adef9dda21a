//! Decimal numbers as memcached reads them, with C's `strtoul` family.
//!
//! Clients depend on these rules, so they are followed exactly:
//!
//! - leading white space and a sign are allowed;
//! - white space and then any other bytes may follow the digits;
//! - a value that does not fit in 64 bits is an error;
//! - the result is cut to the requested width.
//!
//! The source is `safe_strtoul` and its siblings in `util.c` of memcached 1.6.

use kirin_store::{Expires, Now};

/// An expiry time as the client wrote it. Its meaning depends on the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exptime(pub i32);

impl Exptime {
    /// Returns the expiry that it means at `now`.
    pub fn expires(self, now: Now) -> Expires {
        Expires::from_exptime(i64::from(self.0), now)
    }
}

/// Parses an unsigned number of 64 bits: a CAS unique or a delta.
pub fn parse_u64(token: &[u8]) -> Option<u64> {
    let digits = Digits::scan(token)?;
    let value = if digits.negative { digits.magnitude.wrapping_neg() } else { digits.magnitude };
    // "-1" would be u64::MAX. memcached checks the sign only if the value is that large.
    if value > i64::MAX as u64 && token.contains(&b'-') {
        return None;
    }
    Some(value)
}

/// Parses an unsigned number and cuts it to 32 bits: client flags, megabytes or a level.
pub fn parse_u32(token: &[u8]) -> Option<u32> {
    parse_u64(token).map(|value| value as u32)
}

/// Parses a signed number and cuts it to 32 bits: an expiry time or a length.
pub fn parse_i32(token: &[u8]) -> Option<i32> {
    let digits = Digits::scan(token)?;
    let limit = if digits.negative { 1 << 63 } else { i64::MAX as u64 };
    if digits.magnitude > limit {
        return None;
    }
    let value = digits.magnitude as i64;
    Some(if digits.negative { value.wrapping_neg() as i32 } else { value as i32 })
}

/// Parses a decimal fraction, as in `lru tune` and `slabs automove ratio`.
pub fn parse_f64(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.trim_ascii().parse().ok()
}

struct Digits {
    negative: bool,
    magnitude: u64,
}

impl Digits {
    fn scan(token: &[u8]) -> Option<Digits> {
        let blanks = token.iter().take_while(|byte| is_c_space(**byte)).count();
        let (negative, digits) = match &token[blanks..] {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        let mut magnitude: u64 = 0;
        let mut seen = 0;
        for byte in digits {
            match byte {
                b'0'..=b'9' => {
                    magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
                    seen += 1;
                }
                byte if is_c_space(*byte) => break,
                _ => return None,
            }
        }
        (seen > 0).then_some(Digits { negative, magnitude })
    }
}

/// Returns whether a byte is a space for C's `isspace` in the POSIX locale. Rust's
/// `is_ascii_whitespace` does not include the vertical tab.
fn is_c_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        let unsigned: &[(&[u8], Option<u64>)] = &[
            (b"0", Some(0)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"18446744073709551616", None),
            (b"-1", None),
            (b"-18446744073709551615", Some(1)),
            (b"+7", Some(7)),
            (b"\t7", Some(7)),
            (b"7\tx", Some(7)),
            (b"7x", None),
            (b"", None),
            (b"-", None),
            (b"x", None),
        ];
        for (token, expected) in unsigned {
            assert_eq!(parse_u64(token), *expected, "{:?}", String::from_utf8_lossy(token));
        }
        let signed: &[(&[u8], Option<i32>)] = &[
            (b"-1", Some(-1)),
            (b"2147483648", Some(i32::MIN)),
            (b"4294967296", Some(0)),
            (b"9223372036854775807", Some(-1)),
            (b"9223372036854775808", None),
            (b"-9223372036854775808", Some(0)),
            (b"1.5", None),
        ];
        for (token, expected) in signed {
            assert_eq!(parse_i32(token), *expected, "{:?}", String::from_utf8_lossy(token));
        }
        assert_eq!(parse_u32(b"4294967297"), Some(1), "cut to 32 bits");
    }
}
