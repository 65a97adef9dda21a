//! Which fields of responses go into the dynamic table.
//!
//! The table is small, and each new entry evicts an old one. So fields that hardly repeat go into
//! it only when they are seen for the second time.

use super::{hash::FieldHash, static_table};

/// The longest value that is indexed when it is seen for the first time, in octets.
const MOST_VALUE_BYTES: usize = 256;

/// How a field that is not in the table is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Indexing {
    /// It goes into the table.
    Always,
    /// It goes into the table if it was seen not long ago.
    WhenRepeated,
    /// It never goes into a table, nor into that of another hop (RFC 7541, section 7.1.3).
    Forbidden,
}

/// The indexing of each name in the static table. The place in this array is its first index.
static STATIC_NAMES: [Indexing; 64] = static_names();

const fn static_names() -> [Indexing; 64] {
    let mut table = [Indexing::Always; 64];
    let mut index = 1;
    while index <= 61 {
        table[index as usize] = match static_table::TABLE[index as usize].name {
            b"authorization" | b"proxy-authorization" | b"set-cookie" => Indexing::Forbidden,
            b"age" | b"content-length" | b"content-range" | b"etag" | b"expires"
            | b"last-modified" | b"location" => Indexing::WhenRepeated,
            _ => Indexing::Always,
        };
        index += 1;
    }
    table
}

/// Returns whether fields with a name of the static table must never go into a table.
#[inline]
pub(super) fn is_forbidden(index: u8) -> bool {
    STATIC_NAMES[usize::from(index & 63)] == Indexing::Forbidden
}

/// Returns the indexing of a name in the static table.
pub(super) fn of_static_name(index: u8, value: &[u8]) -> Indexing {
    let indexing = STATIC_NAMES[usize::from(index & 63)];
    if indexing == Indexing::Always { of_length(value) } else { indexing }
}

/// Returns the indexing of a name that is not in the static table.
pub(super) fn of_other_name(name: &[u8], value: &[u8]) -> Indexing {
    const HARDLY_REPEATED: [&[u8]; 5] =
        [b"traceparent", b"server-timing", b"x-request-id", b"x-runtime", b"x-trace-id"];
    let has_name = |other: &&[u8]| name.eq_ignore_ascii_case(other);
    if (9..=13).contains(&name.len()) && HARDLY_REPEATED.iter().any(has_name) {
        return Indexing::WhenRepeated;
    }
    of_length(value)
}

#[inline]
fn of_length(value: &[u8]) -> Indexing {
    if value.len() > MOST_VALUE_BYTES { Indexing::WhenRepeated } else { Indexing::Always }
}

/// The hashes of the last fields that were not indexed.
#[derive(Default, Debug)]
pub(super) struct RecentFields {
    hashes: [u32; 8],
    next: u8,
}

impl RecentFields {
    /// Returns whether a field was seen not long ago, and remembers it.
    pub(super) fn has_seen(&mut self, hash: FieldHash) -> bool {
        if self.hashes.contains(&hash.0) {
            return true;
        }
        self.hashes[usize::from(self.next & 7)] = hash.0;
        self.next = self.next.wrapping_add(1);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_decides_whether_a_field_is_indexed() {
        for (name, indexing) in [
            ("content-type", Indexing::Always),
            ("vary", Indexing::Always),
            ("etag", Indexing::WhenRepeated),
            ("content-length", Indexing::WhenRepeated),
            ("set-cookie", Indexing::Forbidden),
            ("authorization", Indexing::Forbidden),
        ] {
            let index = static_table::first_index(name.as_bytes());
            assert_eq!(of_static_name(index, b"value"), indexing, "{name}");
        }
        assert_eq!(of_other_name(b"X-Request-Id", b"1"), Indexing::WhenRepeated);
        assert_eq!(of_other_name(b"x-cache", b"1"), Indexing::Always);
        assert_eq!(of_other_name(b"x-cache", &[b'v'; 257]), Indexing::WhenRepeated);
    }

    #[test]
    fn a_field_is_remembered_until_eight_others_are_seen() {
        let mut recent = RecentFields::default();
        assert!(!recent.has_seen(FieldHash(1)));
        for hash in 2..=8 {
            assert!(!recent.has_seen(FieldHash(hash)));
        }
        assert!(recent.has_seen(FieldHash(1)));
        assert!(!recent.has_seen(FieldHash(9)));
        assert!(!recent.has_seen(FieldHash(1)));
    }
}
