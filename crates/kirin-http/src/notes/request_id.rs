//! Request ids: texts that tell requests apart in logs, workers and upstreams.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::rc::Rc;

/// The longest id that is taken from a trusted proxy, in bytes.
pub const MAX_TAKEN_BYTES: usize = 128;

/// The id of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestId {
    /// A number that Kirin has made. Its text has 32 hexadecimal digits, so that it can be the id
    /// of a trace, too (W3C Trace Context section 3.2.2.3).
    Made(u128),
    /// The text of a trusted proxy.
    Taken(Rc<str>),
}

impl RequestId {
    /// Returns the id in a field value of a trusted proxy. Returns `None` if it is empty, too long,
    /// or has a character that would need escaping in a log.
    pub fn from_proxy(value: &[u8]) -> Option<Self> {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~:/+=@$!".contains(byte);
        let is_valid = (1..=MAX_TAKEN_BYTES).contains(&value.len()) && value.iter().all(is_plain);
        let text = std::str::from_utf8(value).ok().filter(|_| is_valid)?;
        Some(Self::Taken(text.into()))
    }

    /// Appends the text. Each request for a worker or an upstream has one, and [`std::fmt`] is
    /// several times slower.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Made(number) => {
                let mut text = [0; 32];
                let digit = |half: u8| b"0123456789abcdef"[usize::from(half & 15)];
                for (pair, byte) in text.as_chunks_mut().0.iter_mut().zip(number.to_be_bytes()) {
                    *pair = [digit(byte >> 4), digit(byte)];
                }
                out.extend_from_slice(&text);
            }
            Self::Taken(text) => out.extend_from_slice(text.as_bytes()),
        }
    }
}

impl Default for RequestId {
    fn default() -> Self {
        Self::Made(0)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made(number) => write!(formatter, "{number:032x}"),
            Self::Taken(text) => formatter.write_str(text),
        }
    }
}

/// Makes the ids of one event loop.
pub struct RequestIds {
    /// A random number, the same in all ids of the loop.
    random: u64,
    /// A random number to which each id adds.
    count: Cell<u64>,
}

impl Default for RequestIds {
    fn default() -> Self {
        let keys = RandomState::new();
        Self { random: keys.hash_one(0_u8), count: Cell::new(keys.hash_one(1_u8)) }
    }
}

impl RequestIds {
    /// Returns a number that no other request has, on this loop or another.
    pub fn next_number(&self) -> u128 {
        u128::from(self.random) << 64 | u128::from(self.next_half())
    }

    /// Returns a number that this loop has not returned before.
    pub fn next_half(&self) -> u64 {
        // An odd number, so that all 2^64 values come before one comes again.
        let count = self.count.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.count.set(count);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_differ_within_a_loop_and_between_loops() {
        let (loops, mut seen) = ([RequestIds::default(), RequestIds::default()], HashSet::new());
        for number in 0..2000 {
            let id = RequestId::Made(loops[number % 2].next_number()).to_string();
            assert_eq!(id.len(), 32, "{id}");
            assert!(seen.insert(id.clone()), "{id}");
        }
    }

    #[test]
    fn the_text_of_an_id_is_the_same_in_both_ways() {
        let random = RequestIds::default().next_number();
        for id in [
            RequestId::Made(0),
            RequestId::Made(u128::MAX - 15),
            RequestId::Made(random),
            RequestId::Taken("7b1f-22".into()),
        ] {
            let mut written = b"id: ".to_vec();
            id.write_to(&mut written);
            assert_eq!(String::from_utf8(written).unwrap(), format!("id: {id}"));
        }
    }

    #[test]
    fn only_plain_ids_are_taken() {
        for (value, is_taken) in [
            ("7b1f-22", true),
            ("Root=1-67891233-abcdef012345678912345678", true),
            ("YXNkZg==", true),
            ("", false),
            ("a b", false),
            ("a\tb", false),
            ("a\"b", false),
            ("a,b", false),
            ("\u{e4}", false),
        ] {
            assert_eq!(RequestId::from_proxy(value.as_bytes()).is_some(), is_taken, "{value:?}");
        }
        assert!(RequestId::from_proxy(&[b'a'; MAX_TAKEN_BYTES]).is_some());
        assert!(RequestId::from_proxy(&[b'a'; MAX_TAKEN_BYTES + 1]).is_none());
    }
}
