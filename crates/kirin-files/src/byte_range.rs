//! `Range` (RFC 9110 section 14): one range of bytes. Several ranges get the whole file, as section 14.2 allows.

/// What part of a representation is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it: 200.
    Whole,
    /// `length` bytes (at least 1) from `start` on: 206.
    Range { start: u64, length: u64 },
    /// None, the range begins behind its end: 416.
    Unsatisfiable,
}

/// The part that `value` asks for of a representation of `size` bytes. What is malformed, of another unit, or several
/// ranges is as if it had not been sent.
pub(crate) fn part(value: &[u8], size: u64) -> Part {
    match parse(value) {
        None => Part::Whole,
        Some(Spec::From { first, last }) => {
            if first >= size {
                return Part::Unsatisfiable;
            }
            let last = last.unwrap_or(u64::MAX).min(size - 1);
            Part::Range { start: first, length: last - first + 1 }
        }
        Some(Spec::Suffix(0)) => Part::Unsatisfiable,
        // Satisfiable, but no Content-Range can say "no bytes of none".
        Some(Spec::Suffix(_)) if size == 0 => Part::Whole,
        Some(Spec::Suffix(length)) => {
            let length = length.min(size);
            Part::Range { start: size - length, length }
        }
    }
}

enum Spec {
    From { first: u64, last: Option<u64> },
    Suffix(u64),
}

fn parse(value: &[u8]) -> Option<Spec> {
    let (unit, set) = value.split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let set = set.trim_ascii();
    let dash = set.iter().position(|byte| *byte == b'-')?;
    let (first, last) = (&set[..dash], &set[dash + 1..]);
    match (first.is_empty(), last.is_empty()) {
        (true, _) => Some(Spec::Suffix(number(last)?)),
        (false, true) => Some(Spec::From { first: number(first)?, last: None }),
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            // A number that is cut to the largest still is in order.
            (first <= last).then_some(Spec::From { first, last: Some(last) })
        }
    }
}

/// `1*DIGIT`; what does not fit is as good as the largest that does.
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
        Part::Range { start, length }
    }

    #[test]
    fn one_range_is_cut_to_the_size_and_everything_else_is_the_whole() {
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
            ("bytes=0-1,3-4", 10, Part::Whole),
            ("bytes=0-1, 3-4", 10, Part::Whole),
            ("bytes=0-1,", 10, Part::Whole),
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

    proptest! {
        #[test]
        fn a_range_is_never_empty_and_never_outside(
            value in prop_oneof!["bytes=[0-9]{0,20}-[0-9]{0,20}", "bytes=[0-9]{0,3}-[0-9]{0,3}", ".*"],
            size in prop_oneof![0u64..1000, any::<u64>()],
        ) {
            if let Part::Range { start, length } = part(value.as_bytes(), size) {
                prop_assert!(length > 0);
                prop_assert!(start.checked_add(length).is_some_and(|end| end <= size), "{start}+{length} of {size}");
            }
        }
    }
}
