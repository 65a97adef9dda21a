//! Integers with a prefix of some bits (RFC 7541, section 5.1).

use super::error::HpackError;

/// The shift of the last octet that an integer of 32 bits can have.
const LAST_SHIFT: u32 = 28;

/// Decodes an integer whose prefix is the bits `mask` of `first`. `input` follows `first`. Returns
/// the integer and what follows it.
#[inline]
pub(super) fn decode(first: u8, mask: u8, input: &[u8]) -> Result<(u32, &[u8]), HpackError> {
    let prefix = first & mask;
    if prefix < mask { Ok((u32::from(prefix), input)) } else { decode_rest(mask, input) }
}

/// Decodes an integer that does not fit into its prefix.
#[cold]
#[inline(never)]
pub(super) fn decode_rest(mask: u8, mut input: &[u8]) -> Result<(u32, &[u8]), HpackError> {
    let mut value = u64::from(mask);
    let mut shift = 0;
    loop {
        let (octet, rest) = input.split_first().ok_or(HpackError::Truncated)?;
        input = rest;
        value += u64::from(octet & 0x7f) << shift;
        if octet & 0x80 == 0 {
            let value = u32::try_from(value).map_err(|_| HpackError::IntegerOverflow)?;
            return Ok((value, input));
        }
        if shift == LAST_SHIFT {
            return Err(HpackError::IntegerOverflow);
        }
        shift += 7;
    }
}

/// Appends an integer. Its prefix is the bits `mask` of the first octet. The other bits of that
/// octet are `pattern`.
#[inline]
pub(super) fn encode(value: u32, pattern: u8, mask: u8, out: &mut Vec<u8>) {
    if value < u32::from(mask) {
        out.push(pattern | value.to_le_bytes()[0]);
    } else {
        encode_rest(value - u32::from(mask), pattern | mask, out);
    }
}

/// Appends an integer that does not fit into its prefix. `rest` is what exceeds the prefix.
#[inline(never)]
fn encode_rest(mut rest: u32, first: u8, out: &mut Vec<u8>) {
    out.push(first);
    while rest >= 0x80 {
        out.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: u32, mask: u8) -> Vec<u8> {
        let mut out = Vec::new();
        encode(value, 0, mask, &mut out);
        out
    }

    fn decoded(mask: u8, bytes: &[u8]) -> Result<(u32, usize), HpackError> {
        let (first, rest) = bytes.split_first().ok_or(HpackError::Truncated)?;
        decode(*first, mask, rest).map(|(value, rest)| (value, rest.len()))
    }

    #[test]
    fn the_examples_of_appendix_c_1_are_encoded_and_decoded() {
        for (value, mask, bytes) in
            [(10, 0x1f, &[10][..]), (1337, 0x1f, &[31, 154, 10]), (42, 0xff, &[42])]
        {
            assert_eq!(encoded(value, mask), bytes);
            assert_eq!(decoded(mask, bytes), Ok((value, 0)), "{bytes:?}");
        }
    }

    #[test]
    fn every_prefix_encodes_the_borders_of_an_integer() {
        for bits in 4..=7 {
            let mask = (1u8 << bits) - 1;
            let near = u32::from(mask);
            for value in [0, near - 1, near, near + 1, near + 127, near + 128, u32::MAX] {
                let bytes = encoded(value, mask);
                assert_eq!(decoded(mask, &bytes), Ok((value, 0)), "{mask} {bytes:?}");
                for end in 1..bytes.len() {
                    assert_eq!(decoded(mask, &bytes[..end]), Err(HpackError::Truncated));
                }
            }
        }
    }

    #[test]
    fn an_integer_of_more_than_32_bits_or_too_many_octets_is_an_error() {
        for bytes in [
            &[0x7f, 0xff, 0xff, 0xff, 0xff, 0x0f][..],
            &[0x7f, 0x80, 0x80, 0x80, 0x80, 0x10],
            &[0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
            &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(decoded(0x7f, bytes), Err(HpackError::IntegerOverflow), "{bytes:?}");
        }
        assert_eq!(decoded(0x7f, &[0x7f, 0x80, 0x80, 0x80, 0x80, 0x00]), Ok((127, 0)));
    }
}
