//! The objects of a trace. The number of an object fixes its key and its size.

use std::collections::HashSet;
use std::str::FromStr;

/// The first part of a key. Ten digits follow, the most that a `u32` has.
const KEY_PREFIX: &str = "trace:";
/// The length of every key in bytes.
pub const KEY_BYTES: usize = KEY_PREFIX.len() + 10;

/// The sizes of the values, spread evenly by order of magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSizes {
    smallest_bytes: u32,
    largest_bytes: u32,
}

impl ValueSizes {
    /// Returns the size in bytes of the object with this number.
    pub fn of(self, object: u32) -> usize {
        let ratio = f64::from(self.largest_bytes) / f64::from(self.smallest_bytes);
        let bytes = f64::from(self.smallest_bytes) * ratio.powf(share(object));
        bytes.round() as usize
    }

    /// Returns the size in bytes of the largest object.
    pub fn largest_bytes(self) -> usize {
        self.largest_bytes as usize
    }
}

/// Returns a number from 0 up to but not including 1 for an object. It depends on the number of the
/// object but not on its popularity (this is the finaliser of MurmurHash3).
fn share(object: u32) -> f64 {
    let mut hash = object ^ (object >> 16);
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^= hash >> 16;
    f64::from(hash) / (f64::from(u32::MAX) + 1.0)
}

impl FromStr for ValueSizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok().filter(|&bytes: &u32| bytes > 0);
        let (smallest, largest) = text.split_once('-').unwrap_or((text, text));
        match (number(smallest), number(largest)) {
            (Some(smallest_bytes), Some(largest_bytes)) if smallest_bytes <= largest_bytes => {
                Ok(Self { smallest_bytes, largest_bytes })
            }
            _ => Err("a size is needed, or SMALLEST-LARGEST".to_owned()),
        }
    }
}

/// Appends the key of an object.
pub fn append_key(object: u32, to: &mut Vec<u8>) {
    to.extend_from_slice(KEY_PREFIX.as_bytes());
    let mut digits = [b'0'; KEY_BYTES - KEY_PREFIX.len()];
    let mut rest = object;
    for digit in digits.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    to.extend_from_slice(&digits);
}

/// Returns the object that has this key.
pub fn object_of(key: &[u8]) -> Option<u32> {
    str::from_utf8(key.strip_prefix(KEY_PREFIX.as_bytes())?).ok()?.parse().ok()
}

/// The content at the end of the trace of a cache that never evicts.
#[derive(Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The number of requested objects. A cache misses each of them at least once.
    pub objects: usize,
    /// The number of those objects that the second half of the trace requests first.
    pub first_requests_later: usize,
    /// The number of bytes in their keys and values.
    pub bytes: usize,
}

/// Returns the footprint of a trace.
pub fn footprint(requests: &[u32], values: ValueSizes) -> Footprint {
    let mut seen = HashSet::new();
    let mut footprint = Footprint { objects: 0, first_requests_later: 0, bytes: 0 };
    for (index, &object) in requests.iter().enumerate() {
        if seen.insert(object) {
            footprint.objects += 1;
            footprint.first_requests_later += usize::from(index >= requests.len() / 2);
            footprint.bytes += KEY_BYTES + values.of(object);
        }
    }
    footprint
}

#[cfg(test)]
mod tests {
    use super::{Footprint, KEY_BYTES, ValueSizes, append_key, footprint, object_of};

    #[test]
    fn a_key_leads_back_to_its_object() {
        for object in [0, 1, 1_000_000, u32::MAX] {
            let mut key = Vec::new();
            append_key(object, &mut key);
            assert_eq!((key.len(), object_of(&key)), (KEY_BYTES, Some(object)));
        }
        assert_eq!(object_of(b"trace:x"), None);
        assert_eq!(object_of(b"other:0000000001"), None);
    }

    #[test]
    fn sizes_are_within_their_bounds_and_even_by_order_of_magnitude() {
        let sizes: ValueSizes = "100-10000".parse().expect("two sizes");
        let below_1000 = (0..10_000).filter(|&object| sizes.of(object) < 1000).count();
        assert!((4800..5200).contains(&below_1000), "{below_1000} of 10,000");
        assert!((0..10_000).all(|object| (100..=10_000).contains(&sizes.of(object))));
        let one: ValueSizes = "100".parse().expect("a size");
        assert!((0..1000).all(|object| one.of(object) == 100));
        for text in ["", "0", "-", "5-", "10-5", "a"] {
            assert!(text.parse::<ValueSizes>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_footprint_counts_each_object_once() {
        let values: ValueSizes = "100".parse().expect("a size");
        let expected =
            Footprint { objects: 3, first_requests_later: 1, bytes: 3 * (KEY_BYTES + 100) };
        assert_eq!(footprint(&[7, 8, 7, 9, 8, 7], values), expected);
    }
}
