//! Integers of variable length (RFC 9000 section 16).

/// The largest number that has a form.
pub const MOST: u64 = (1 << 62) - 1;

/// Reads an integer. Returns it and its length, or `None` if its octets are not all there.
pub fn read(input: &[u8]) -> Option<(u64, usize)> {
    let first = *input.first()?;
    let length = 1 << (first >> 6);
    let octets = input.get(1..length)?;
    let number = octets
        .iter()
        .fold(u64::from(first & 0x3f), |number, octet| (number << 8) | u64::from(*octet));
    Some((number, length))
}

/// Writes an integer in its shortest form. Numbers above [`MOST`] become that.
pub fn write(number: u64, out: &mut Vec<u8>) {
    let number = number.min(MOST);
    let octets = number.to_be_bytes();
    let (length, mark) = match number {
        0..=0x3f => (1, 0),
        0x40..=0x3fff => (2, 0x40),
        0x4000..=0x3fff_ffff => (4, 0x80),
        _ => (8, 0xc0),
    };
    let start = out.len();
    out.extend(octets.iter().skip(8 - length));
    if let Some(first) = out.get_mut(start) {
        *first |= mark;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_appendix_a_1_are_read() {
        for (octets, number) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            assert_eq!(read(octets), Some((number, octets.len())));
            for end in 0..octets.len() {
                assert_eq!(read(&octets[..end]), None);
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number in 0..=MOST, shift in 0_u32..62) {
            let number = number >> shift;
            let mut out = Vec::new();
            write(number, &mut out);
            prop_assert_eq!(read(&out), Some((number, out.len())));
        }
    }
}
