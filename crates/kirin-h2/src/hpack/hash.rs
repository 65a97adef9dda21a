//! A short hash of a field for the encoder's table. It only saves comparisons: two fields are the
//! same if their octets are.

/// An odd factor with well-mixed bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The bit that differs between letters in upper and in lower case, in each octet.
const CASE_BITS: u64 = 0x2020_2020_2020_2020;

/// The hash of a field: that of the name in the upper half, that of the value in the lower one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FieldHash(pub(super) u32);

impl FieldHash {
    /// The bits of the name's hash.
    pub(super) const NAME: u32 = 0xffff_0000;
    /// The bits of the complete hash.
    pub(super) const FIELD: u32 = u32::MAX;

    /// Returns the hash of a field whose name has an index in the static table. The index stands
    /// for the name.
    #[inline]
    pub(super) fn with_static_name(index: u8, value: &[u8]) -> Self {
        Self::of(u64::from(index).wrapping_mul(FACTOR), value)
    }

    /// Returns the hash of a field. Upper-case letters of the name count as lower-case ones.
    #[inline]
    pub(super) fn with_name(name: &[u8], value: &[u8]) -> Self {
        Self::of(mix::<CASE_BITS>(name), value)
    }

    #[inline]
    fn of(name: u64, value: &[u8]) -> Self {
        Self(((name >> 32) as u32 & Self::NAME) | (mix::<0>(value) >> 48) as u32)
    }
}

/// Returns eight octets as a number. Upper-case letters become lower-case ones.
#[inline]
pub(super) fn folded_word(octets: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*octets) | CASE_BITS
}

/// Returns a hash with good upper bits. `SET` is added to each eight octets.
#[inline]
fn mix<const SET: u64>(octets: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| (hash ^ (word | SET)).wrapping_mul(FACTOR).rotate_left(29);
    let (chunks, rest) = octets.as_chunks::<8>();
    let mut hash = octets.len() as u64;
    for chunk in chunks {
        hash = step(hash, u64::from_le_bytes(*chunk));
    }
    let end = if let Some(end) = octets.last_chunk::<8>() {
        u64::from_le_bytes(*end)
    } else if let (Some(start), Some(end)) = (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        u64::from(u32::from_le_bytes(*start)) << 32 | u64::from(u32::from_le_bytes(*end))
    } else {
        rest.iter().fold(0, |word, octet| word << 8 | u64::from(*octet))
    };
    step(hash, end).wrapping_mul(FACTOR)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_case_of_a_name_does_not_count_but_that_of_a_value_does() {
        let hash = FieldHash::with_name;
        for name in ["a", "abc", "abcd", "x-cache", "x-cache-status", "x-content-type-options"] {
            let upper = name.to_ascii_uppercase();
            assert_eq!(hash(name.as_bytes(), b"v"), hash(upper.as_bytes(), b"v"), "{name}");
        }
        assert_ne!(hash(b"x", b"v"), hash(b"x", b"V"));
    }

    #[test]
    fn similar_fields_have_different_hashes() {
        let mut hashes = HashSet::new();
        for number in 0..1000u32 {
            let value = format!("Sun, 01 Nov 2026 12:34:56 GMT {number}");
            hashes.insert(FieldHash::with_static_name(33, value.as_bytes()).0);
            hashes.insert(FieldHash::with_static_name(34, number.to_string().as_bytes()).0);
            let name = format!("x-name-{number}");
            hashes.insert(FieldHash::with_name(name.as_bytes(), b"").0);
        }
        assert!(hashes.len() > 2950, "{} of 3000", hashes.len());
    }
}
