//! The static table (RFC 7541, Appendix A).

use super::{dynamic_table::ENTRY_OVERHEAD, hash::folded_word, known::Known};

/// The number of entries. Dynamic entries have the indices after it.
pub(super) const STATIC_ENTRIES: u32 = 61;

/// The bits of a place in [`FIRST_INDICES`].
const PLACE_BITS: u32 = 7;

/// A factor for which no two names of the table have the same place in [`FIRST_INDICES`].
const FACTOR: u32 = 0xf0f7_7331;

/// An entry of the static table.
#[derive(Clone, Copy)]
pub(super) struct StaticEntry {
    /// The name in lower case.
    pub(super) name: &'static [u8],
    /// The value. Most are empty.
    pub(super) value: &'static [u8],
    /// The size of the entry (RFC 7541, section 4.1).
    pub(super) entry_size: u32,
    /// The rule for the name.
    pub(super) known: Known,
}

/// The entries. The place in this array is the index; index 0 is not in use.
static ENTRIES: [StaticEntry; 62] = TABLE;

/// The first index of each name, at the place that [`place`] computes. 0: no name has this place.
static FIRST_INDICES: [u8; 1 << PLACE_BITS] = first_indices();

/// Returns the entry with an index. Returns an empty entry for 0 and for an index above 61.
#[inline]
pub(super) fn entry(index: u8) -> &'static StaticEntry {
    ENTRIES.get(usize::from(index)).unwrap_or(&ENTRIES[0])
}

/// Returns the first index of a name, or 0 if the table does not have it. Upper-case letters equal
/// those in lower case. `name` must have token characters only.
#[inline]
pub(super) fn first_index(name: &[u8]) -> u8 {
    let (Some(first), Some(last)) = (name.first(), name.last()) else { return 0 };
    let middle = name.get(name.len() / 2).unwrap_or(first);
    let index = FIRST_INDICES[place(name.len(), *first, *middle, *last)];
    if equals_lower_case(name, entry(index).name) { index } else { 0 }
}

/// Returns the place of a name in [`FIRST_INDICES`]. It is less than the length of that array.
#[inline]
const fn place(length: usize, first: u8, middle: u8, last: u8) -> usize {
    let octets = [length as u8, first | 0x20, middle | 0x20, last | 0x20];
    (u32::from_le_bytes(octets).wrapping_mul(FACTOR) >> (32 - PLACE_BITS)) as usize
}

/// Returns whether `name` without regard to case equals `lower`, which must be in lower case.
#[inline]
fn equals_lower_case(name: &[u8], lower: &[u8]) -> bool {
    if name.len() != lower.len() {
        return false;
    }
    let (mut name_rest, mut lower_rest) = (name, lower);
    while let (Some((word, after)), Some((lower_word, lower_after))) =
        (name_rest.split_first_chunk::<8>(), lower_rest.split_first_chunk::<8>())
    {
        if folded_word(word) != u64::from_le_bytes(*lower_word) {
            return false;
        }
        (name_rest, lower_rest) = (after, lower_after);
    }
    if let (Some(end), Some(lower_end)) = (name.last_chunk::<8>(), lower.last_chunk::<8>()) {
        return folded_word(end) == u64::from_le_bytes(*lower_end);
    }
    name_rest.iter().zip(lower_rest).all(|(octet, lower_octet)| octet | 0x20 == *lower_octet)
}

const fn first_indices() -> [u8; 1 << PLACE_BITS] {
    let mut indices = [0; 1 << PLACE_BITS];
    let mut index = TABLE.len() - 1;
    // Goes down, so that the first index of a name is the one that stays.
    while index > 0 {
        let name = TABLE[index].name;
        let place = place(name.len(), name[0], name[name.len() / 2], name[name.len() - 1]);
        indices[place] = index as u8;
        index -= 1;
    }
    indices
}

const fn named(name: &'static str) -> StaticEntry {
    with_value(name, "")
}

const fn with_value(name: &'static str, value: &'static str) -> StaticEntry {
    StaticEntry {
        name: name.as_bytes(),
        value: value.as_bytes(),
        entry_size: (name.len() + value.len()) as u32 + ENTRY_OVERHEAD,
        known: Known::of(name.as_bytes()),
    }
}

/// The entries, for tables that are computed from them.
pub(super) const TABLE: [StaticEntry; 62] = [
    named(""),
    named(":authority"),
    with_value(":method", "GET"),
    with_value(":method", "POST"),
    with_value(":path", "/"),
    with_value(":path", "/index.html"),
    with_value(":scheme", "http"),
    with_value(":scheme", "https"),
    with_value(":status", "200"),
    with_value(":status", "204"),
    with_value(":status", "206"),
    with_value(":status", "304"),
    with_value(":status", "400"),
    with_value(":status", "404"),
    with_value(":status", "500"),
    named("accept-charset"),
    with_value("accept-encoding", "gzip, deflate"),
    named("accept-language"),
    named("accept-ranges"),
    named("accept"),
    named("access-control-allow-origin"),
    named("age"),
    named("allow"),
    named("authorization"),
    named("cache-control"),
    named("content-disposition"),
    named("content-encoding"),
    named("content-language"),
    named("content-length"),
    named("content-location"),
    named("content-range"),
    named("content-type"),
    named("cookie"),
    named("date"),
    named("etag"),
    named("expect"),
    named("expires"),
    named("from"),
    named("host"),
    named("if-match"),
    named("if-modified-since"),
    named("if-none-match"),
    named("if-range"),
    named("if-unmodified-since"),
    named("last-modified"),
    named("link"),
    named("location"),
    named("max-forwards"),
    named("proxy-authenticate"),
    named("proxy-authorization"),
    named("range"),
    named("referer"),
    named("refresh"),
    named("retry-after"),
    named("server"),
    named("set-cookie"),
    named("strict-transport-security"),
    named("transfer-encoding"),
    named("user-agent"),
    named("vary"),
    named("via"),
    named("www-authenticate"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_at_its_first_index_in_any_case() {
        for index in (1..=61u8).rev() {
            let name = entry(index).name;
            let found = first_index(name);
            assert_eq!(entry(found).name, name);
            assert!(found <= index && (1..found).all(|earlier| entry(earlier).name != name));
            assert_eq!(first_index(&name.to_ascii_uppercase()), found);
        }
    }

    #[test]
    fn other_names_are_not_found() {
        for name in ["", "x", "x-forwarded-for", "contant-type", "content-typf", "dat", "dates"] {
            assert_eq!(first_index(name.as_bytes()), 0, "{name}");
        }
        assert_eq!(first_index(&[b'a'; 300]), 0);
    }

    #[test]
    fn an_index_outside_of_the_table_is_an_empty_entry() {
        for index in [0, 62, 255] {
            assert_eq!(entry(index).name, b"");
        }
    }
}
