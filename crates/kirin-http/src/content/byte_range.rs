//! The `Range` field (RFC 9110 section 14): which bytes of a representation a client gets. Pure.

use crate::field_list::members;
use crate::preconditions::{Validators, range_applies};
use crate::request_fields::RequestFields;

/// The most ranges in one request. A request with more gets the complete representation. Download
/// managers and PDF readers ask for a few.
const MAX_RANGES: usize = 32;

/// A gap of this size between two ranges is sent, too, because the head of another part is longer
/// (RFC 9110 section 15.3.7.2 names 80 bytes).
const COALESCED_GAP_BYTES: u64 = 80;

/// `length` bytes (at least 1) from `start` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// Number of bytes.
    pub length: u64,
}

/// The part of a representation that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it: status 200.
    Whole,
    /// One range: status 206.
    Range(ByteRange),
    /// At least two separate ranges, in the order of the request: status 206 with a body of several
    /// parts.
    Several(Vec<ByteRange>),
    /// None, because every range begins behind the end: status 416.
    Unsatisfiable,
}

impl ByteRange {
    /// Returns the offset of the byte behind the range.
    pub fn end(self) -> u64 {
        self.start + self.length
    }

    /// Returns the value of `Content-Range` for a representation of `size` bytes.
    pub fn content_range(self, size: u64) -> String {
        format!("bytes {}-{}/{size}", self.start, self.end() - 1)
    }
}

/// Returns the part that a request asks for, of a representation of `size` bytes. This is the last
/// step of RFC 9110 section 13.2.2. HEAD has no ranges (section 14.2).
pub fn part_of(
    fields: &RequestFields<'_>,
    is_head: bool,
    validators: Validators<'_>,
    size: u64,
) -> Part {
    match &fields.range {
        Some(range) if !is_head && range_applies(fields.if_range.as_deref(), validators) => {
            part(range, size)
        }
        _ => Part::Whole,
    }
}

/// Returns the part that the value of `Range` asks for. A value is ignored if it is malformed, has
/// another unit, or has more than [`MAX_RANGES`] ranges. Ranges that overlap or nearly touch become
/// one, so that a response is hardly longer than the representation. (In CVE-2011-3192, a request
/// asked for the same bytes a thousand times.)
pub fn part(value: &[u8], size: u64) -> Part {
    let Some(ranges) = parse(value, size) else { return Part::Whole };
    let ranges = coalesce(ranges);
    match ranges[..] {
        [] => Part::Unsatisfiable,
        [range] => Part::Range(range),
        _ => Part::Several(ranges),
    }
}

/// Returns the satisfiable ranges, or `None` if the field must be ignored.
fn parse(value: &[u8], size: u64) -> Option<Vec<ByteRange>> {
    let (unit, set) = value.split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let mut ranges = Vec::new();
    let mut count = 0;
    for spec in members(set) {
        count += 1;
        if count > MAX_RANGES {
            return None;
        }
        match satisfy(spec, size)? {
            Satisfied::Range(range) => ranges.push(range),
            Satisfied::Not => {}
            Satisfied::Whole => return None,
        }
    }
    (count > 0).then_some(ranges)
}

enum Satisfied {
    Range(ByteRange),
    Not,
    /// Content-Range cannot describe a part of an empty representation.
    Whole,
}

/// Parses one range-spec. Returns `None` if it is malformed.
fn satisfy(spec: &[u8], size: u64) -> Option<Satisfied> {
    let dash = spec.iter().position(|byte| *byte == b'-')?;
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    if first.is_empty() {
        return Some(match number(last)? {
            0 => Satisfied::Not,
            _ if size == 0 => Satisfied::Whole,
            length => {
                let length = length.min(size);
                Satisfied::Range(ByteRange { start: size - length, length })
            }
        });
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    if first > last {
        return None;
    }
    if first >= size {
        return Some(Satisfied::Not);
    }
    Some(Satisfied::Range(ByteRange { start: first, length: last.min(size - 1) - first + 1 }))
}

/// Joins ranges that overlap or nearly touch, at the position of the first of them.
fn coalesce(ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    let mut apart: Vec<ByteRange> = Vec::with_capacity(ranges.len());
    for mut range in ranges {
        let mut at = apart.len();
        // A range that has grown may touch others that it did not touch before.
        while let Some(near) = apart.iter().position(|other| is_near(*other, range)) {
            let other = apart.remove(near);
            let start = other.start.min(range.start);
            range = ByteRange { start, length: other.end().max(range.end()) - start };
            at = at.min(near);
        }
        apart.insert(at.min(apart.len()), range);
    }
    apart
}

fn is_near(one: ByteRange, other: ByteRange) -> bool {
    one.start <= other.end().saturating_add(COALESCED_GAP_BYTES)
        && other.start <= one.end().saturating_add(COALESCED_GAP_BYTES)
}

/// Parses `1*DIGIT`. A number that is too large becomes the largest number.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(number.saturating_mul(10).saturating_add(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn range(start: u64, length: u64) -> Part {
        Part::Range(ByteRange { start, length })
    }

    #[test]
    fn one_range_is_cut_to_the_size_and_what_is_malformed_is_the_whole() {
        for (value, size, expected) in [
            ("bytes=0-0", 10, range(0, 1)),
            ("bytes=0-9", 10, range(0, 10)),
            ("bytes=0-10", 10, range(0, 10)),
            ("bytes=2-5", 10, range(2, 4)),
            ("bytes=9-9", 10, range(9, 1)),
            ("bytes=9-", 10, range(9, 1)),
            ("bytes=0-", 10, range(0, 10)),
            ("bytes=-1", 10, range(9, 1)),
            ("bytes=-10", 10, range(0, 10)),
            ("bytes=-11", 10, range(0, 10)),
            ("BYTES=1-2", 10, range(1, 2)),
            ("bytes= 1-2 ", 10, range(1, 2)),
            ("bytes=007-8", 10, range(7, 2)),
            ("bytes=0-99999999999999999999999", 10, range(0, 10)),
            ("bytes=-99999999999999999999999", 10, range(0, 10)),
            ("bytes=10-", 10, Part::Unsatisfiable),
            ("bytes=10-11", 10, Part::Unsatisfiable),
            ("bytes=99999999999999999999999-", 10, Part::Unsatisfiable),
            ("bytes=99999999999999999999999-99999999999999999999999", 10, Part::Unsatisfiable),
            ("bytes=-0", 10, Part::Unsatisfiable),
            ("bytes=0-", 0, Part::Unsatisfiable),
            ("bytes=0-0", 0, Part::Unsatisfiable),
            ("bytes=-0", 0, Part::Unsatisfiable),
            ("bytes=-5", 0, Part::Whole),
            ("bytes=5-2", 10, Part::Whole),
            ("bytes=0-1,", 10, range(0, 2)),
            ("bytes=,, 0-1 ,\t,", 10, range(0, 2)),
            ("bytes=,", 10, Part::Whole),
            ("bytes=0-1,x", 10, Part::Whole),
            ("bytes=0-1,5-2", 10, Part::Whole),
            ("bytes=0-1;3-4", 10, Part::Whole),
            ("bytes=", 10, Part::Whole),
            ("bytes=-", 10, Part::Whole),
            ("bytes=--1", 10, Part::Whole),
            ("bytes=a-b", 10, Part::Whole),
            ("bytes=1 -2", 10, Part::Whole),
            ("bytes=+1-2", 10, Part::Whole),
            ("bytes=0x1-2", 10, Part::Whole),
            ("bytes 0-1", 10, Part::Whole),
            ("bytes", 10, Part::Whole),
            ("lines=0-1", 10, Part::Whole),
            ("bytess=0-1", 10, Part::Whole),
            ("", 10, Part::Whole),
            ("bytes=0-18446744073709551615", u64::MAX, range(0, u64::MAX)),
            ("bytes=18446744073709551614-", u64::MAX, range(u64::MAX - 1, 1)),
        ] {
            assert_eq!(part(value.as_bytes(), size), expected, "{value} of {size}");
        }
    }

    #[test]
    fn several_ranges_are_kept_apart_in_the_order_asked_for_and_joined_when_they_are_near() {
        for (value, expected) in [
            ("bytes=0-9,1000-1009", &[(0, 10), (1000, 10)][..]),
            ("bytes=1000-1009, 0-9", &[(1000, 10), (0, 10)]),
            ("bytes=0-0,-1", &[(0, 1), (9999, 1)]),
            ("bytes=0-9,99999-,1000-1009", &[(0, 10), (1000, 10)]),
            // Ranges that overlap, touch, are near, and are far apart.
            ("bytes=0-9,5-19", &[(0, 20)]),
            ("bytes=0-9,10-19", &[(0, 20)]),
            ("bytes=0-9,90-99", &[(0, 100)]),
            ("bytes=0-9,91-99", &[(0, 10), (91, 9)]),
            ("bytes=0-,0-,0-", &[(0, 10_000)]),
            // A range that joins two others has the position of the first of them.
            ("bytes=500-509,5000-5009,0-9,400-620", &[(400, 221), (5000, 10), (0, 10)]),
            ("bytes=0-9,1000-1009,5-1005", &[(0, 1010)]),
            ("bytes=20000-,30000-", &[]),
        ] {
            let expected: Vec<_> =
                expected.iter().map(|&(start, length)| ByteRange { start, length }).collect();
            let expected = match expected[..] {
                [] => Part::Unsatisfiable,
                [range] => Part::Range(range),
                _ => Part::Several(expected),
            };
            assert_eq!(part(value.as_bytes(), 10_000), expected, "{value}");
        }
    }

    #[test]
    fn too_many_ranges_are_the_whole() {
        let ask = |count: usize| {
            let specs: Vec<_> = (0..count).map(|n| format!("{}-{}", n * 1000, n * 1000)).collect();
            part(format!("bytes={}", specs.join(",")).as_bytes(), 1_000_000)
        };
        assert!(matches!(ask(MAX_RANGES), Part::Several(ranges) if ranges.len() == MAX_RANGES));
        assert_eq!(ask(MAX_RANGES + 1), Part::Whole);
        let attack = format!("bytes=0-{}", ",5-".repeat(1300));
        assert_eq!(part(attack.as_bytes(), 1_000_000), Part::Whole);
    }

    proptest! {
        #[test]
        fn a_range_is_never_empty_and_never_outside(
            value in prop_oneof!["bytes=[0-9]{0,20}-[0-9]{0,20}", "bytes=[0-9]{0,3}-[0-9]{0,3}", ".*"],
            size in prop_oneof![0u64..1000, any::<u64>()],
        ) {
            if let Part::Range(ByteRange { start, length }) = part(value.as_bytes(), size) {
                prop_assert!(length > 0);
                prop_assert!(start.checked_add(length).is_some_and(|end| end <= size), "{start}+{length} of {size}");
            }
        }

        #[test]
        fn all_that_was_asked_for_is_there_once_and_no_more_than_the_gaps(
            asked in prop::collection::vec((0u64..5000, 0u64..400), 1..20),
            size in 1u64..6000,
        ) {
            let specs: Vec<_> = asked.iter().map(|(first, more)| format!("{first}-{}", first + more)).collect();
            let ranges = match part(format!("bytes={}", specs.join(", ")).as_bytes(), size) {
                Part::Range(range) => vec![range],
                Part::Several(ranges) => ranges,
                Part::Unsatisfiable => vec![],
                Part::Whole => panic!("whole"),
            };
            let mut sent = vec![0; size as usize];
            for range in &ranges {
                prop_assert!(range.length > 0 && range.end() <= size);
                sent[range.start as usize..range.end() as usize].iter_mut().for_each(|byte| *byte += 1);
            }
            prop_assert!(sent.iter().all(|times| *times <= 1), "{:?}", ranges);
            for (first, more) in asked {
                for byte in first..(first + more + 1).min(size) {
                    prop_assert_eq!(sent[byte as usize], 1, "byte {} of {:?}", byte, ranges);
                }
            }
            let apart = |a: &ByteRange, b: &ByteRange| a == b || !is_near(*a, *b);
            prop_assert!(ranges.iter().all(|a| ranges.iter().all(|b| apart(a, b))), "{:?}", ranges);
        }
    }
}
