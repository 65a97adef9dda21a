//! The value of a stored item: a line of the cache and then the response.
//!
//! The line is `kirin-cache 1 RECEIVED AGE LIFETIME SWR SIE FLAGS CR LF`. Status line, field lines,
//! an empty line and the body follow it, as in any stored response.
//!
//! If the responses to a target vary, the item of the target names the fields (`kirin-vary 1
//! NAMES`), and the responses have keys with the values of these fields. A target whose responses
//! are not stored has `kirin-pass 1`.

use crate::policy::{Policy, Staleness};

/// A parsed item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// A response.
    Response {
        /// The policy of the response.
        policy: Policy,
        /// The offset in bytes at which the response begins.
        at: usize,
    },
    /// The responses to this target vary.
    Varies {
        /// The names of the request fields by which they vary.
        by: Vec<String>,
    },
    /// Requests for this target are forwarded at once and do not wait for each other.
    Pass,
}

const RESPONSE: &str = "kirin-cache 1";
const VARIES: &str = "kirin-vary 1";
const PASS: &str = "kirin-pass 1";

/// The longest first line in bytes. It has room for 16 field names.
const MAX_LINE_BYTES: usize = 4096;

const VALIDATE_ALWAYS: u64 = 1;
const SERVES_COOKIES: u64 = 2;
const SERVES_AUTHORIZATION: u64 = 4;
const AS_DIRECTED: u64 = 8;
const FORBIDDEN: u64 = 16;

impl Stored {
    /// Parses a value. Returns `None` if it is not one of the cache.
    pub fn read(value: &[u8]) -> Option<Self> {
        let window = value.get(..value.len().min(MAX_LINE_BYTES))?;
        let end = window.windows(2).position(|pair| pair == b"\r\n")?;
        let line = std::str::from_utf8(window.get(..end)?).ok()?;
        if line == PASS {
            return Some(Stored::Pass);
        }
        if let Some(words) = line.strip_prefix(VARIES) {
            let by = words.strip_prefix(' ')?.split(',').map(str::to_owned).collect();
            return Some(Stored::Varies { by });
        }
        let mut numbers =
            line.strip_prefix(RESPONSE)?.strip_prefix(' ')?.split(' ').map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        let mut policy = Policy {
            received: next()?,
            initial_age: next()?,
            lifetime: next()?,
            stale_while_revalidate: next()?,
            stale_if_error: next()?,
            ..Policy::default()
        };
        let flags = next()?;
        policy.validate_always = flags & VALIDATE_ALWAYS != 0;
        policy.serves_cookies = flags & SERVES_COOKIES != 0;
        policy.serves_authorization = flags & SERVES_AUTHORIZATION != 0;
        policy.staleness = match flags {
            _ if flags & FORBIDDEN != 0 => Staleness::Forbidden,
            _ if flags & AS_DIRECTED != 0 => Staleness::AsDirected,
            _ => Staleness::Allowed,
        };
        Some(Stored::Response { policy, at: end + 2 })
    }
}

/// Returns the line before a response.
pub fn response_line(policy: &Policy) -> String {
    let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
    let flags = flag(policy.validate_always, VALIDATE_ALWAYS)
        | flag(policy.serves_cookies, SERVES_COOKIES)
        | flag(policy.serves_authorization, SERVES_AUTHORIZATION)
        | flag(policy.staleness == Staleness::AsDirected, AS_DIRECTED)
        | flag(policy.staleness == Staleness::Forbidden, FORBIDDEN);
    let Policy { received, initial_age, lifetime, stale_while_revalidate, stale_if_error, .. } =
        policy;
    format!(
        "{RESPONSE} {received} {initial_age} {lifetime} {stale_while_revalidate} {stale_if_error} {flags}\r\n"
    )
}

/// Returns the item of a target whose responses vary, or `None` if the names are too long.
pub fn varies(by: &[String]) -> Option<String> {
    let line = format!("{VARIES} {}\r\n", by.join(","));
    (line.len() <= MAX_LINE_BYTES).then_some(line)
}

/// Returns the item of a target whose responses are not stored.
pub fn pass() -> String {
    format!("{PASS}\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_of_other_writers_are_not_read() {
        for value in [
            "",
            "\r\n",
            "text/html\r\nx",
            "kirin-cache 1",
            "kirin-cache 2 1 2 3 4 5 6\r\n",
            "kirin-cache 1 1 2 3 4 5\r\n",
            "kirin-cache 1 1 2 3 4 5 x\r\n",
            "kirin-cache 1 -1 2 3 4 5 6\r\n",
            "kirin-vary 1\r\n",
            "kirin-vary 2 a\r\n",
            "kirin-pass 1 \r\n",
        ] {
            assert_eq!(Stored::read(value.as_bytes()), None, "{value}");
        }
        assert_eq!(Stored::read(pass().as_bytes()), Some(Stored::Pass));
        assert_eq!(varies(&vec!["x".repeat(1000); 16]), None);
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(
            numbers: [u64; 5], flags: [bool; 3], staleness in 0..3, body: Vec<u8>,
            by in prop::collection::vec("[a-z-]{1,9}", 1..17),
        ) {
            let policy = Policy {
                received: numbers[0],
                initial_age: numbers[1],
                lifetime: numbers[2],
                stale_while_revalidate: numbers[3],
                stale_if_error: numbers[4],
                validate_always: flags[0],
                serves_cookies: flags[1],
                serves_authorization: flags[2],
                staleness: [Staleness::Allowed, Staleness::AsDirected, Staleness::Forbidden][staleness as usize],
            };
            let line = response_line(&policy);
            let value = [line.as_bytes(), &body].concat();
            prop_assert_eq!(Stored::read(&value), Some(Stored::Response { policy, at: line.len() }));
            let value = varies(&by).unwrap();
            prop_assert_eq!(Stored::read(value.as_bytes()), Some(Stored::Varies { by }));
        }

        #[test]
        fn any_bytes_can_be_read(value: Vec<u8>) {
            let _ = Stored::read(&value);
            let _ = Stored::read(&[b"kirin-cache 1 ", &value[..]].concat());
        }
    }
}
