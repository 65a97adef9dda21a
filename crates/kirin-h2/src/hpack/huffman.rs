//! Huffman strings (RFC 7541, section 5.2).

use super::{
    error::HpackError,
    huffman_table::{
        CODES, END_OF_STRING, GROUPS, LENGTHS, LONGEST, ORDER, PAIR_BITS, PAIRS, PairLengths,
    },
};

/// The number of pairs that are decoded from one word. Their codes must have at most 57 bits, and
/// their octets at most a word.
const PAIRS_IN_WORD: u32 = 4;
const _: () = assert!(PAIRS_IN_WORD * PAIR_BITS <= 57 && PAIRS_IN_WORD * 2 <= 8);

/// Returns the space that [`decode`] needs for a string of `octets` octets. The shortest code has
/// five bits. [`decode`] writes eight octets at a time.
#[inline]
pub(super) fn decoded_space(octets: usize) -> usize {
    octets.saturating_mul(8) / 5 + 8
}

/// Decodes `input` to the start of `out`, and returns the number of octets. `out` must have the
/// length that [`decoded_space`] returns.
pub(super) fn decode(input: &[u8], out: &mut [u8]) -> Result<usize, HpackError> {
    let (mut bit, mut count) = (0usize, 0usize);
    while let Some(word) = input.get(bit / 8..).and_then(|rest| rest.first_chunk::<8>()) {
        // The next bits of the string are the highest ones. At least 57 are valid.
        let mut window = u64::from_be_bytes(*word) << (bit % 8);
        let (mut symbols, mut lengths) = (0u64, PairLengths::default());
        for _ in 0..PAIRS_IN_WORD {
            let pair = PAIRS[(window >> (64 - PAIR_BITS)) as usize];
            if pair.is_long() {
                break;
            }
            symbols |= pair.symbols() << lengths.symbol_bits();
            window <<= pair.code_bits();
            lengths.add(pair);
        }
        if lengths.code_bits() == 0 {
            let (symbol, length) = long_symbol(window)?;
            *out.get_mut(count).ok_or(HpackError::InvalidHuffman)? = symbol;
            count += 1;
            bit += length as usize;
            continue;
        }
        let place = out.get_mut(count..).and_then(|rest| rest.first_chunk_mut::<8>());
        *place.ok_or(HpackError::InvalidHuffman)? = symbols.to_le_bytes();
        count += lengths.symbol_bits() as usize / 8;
        bit += lengths.code_bits() as usize;
    }
    let left = (input.len() * 8).saturating_sub(bit) as u32;
    decode_tail(last_bits(input, left), left, count, out)
}

/// Returns the last `left` bits of `input`, which are less than 64, followed by ones.
#[inline]
fn last_bits(input: &[u8], left: u32) -> u64 {
    let word = if let Some(word) = input.last_chunk::<8>() {
        u64::from_be_bytes(*word)
    } else {
        input.iter().fold(0, |word, octet| (word << 8) | u64::from(*octet))
    };
    // Two steps, because a shift by 64 is not possible.
    (word << (63 - left) << 1) | (u64::MAX >> left)
}

/// Decodes the last symbols of a string, and checks its padding.
#[inline]
fn decode_tail(
    mut window: u64,
    mut left: u32,
    mut count: usize,
    out: &mut [u8],
) -> Result<usize, HpackError> {
    while left >= 8 || window != u64::MAX {
        let pair = PAIRS[(window >> (64 - PAIR_BITS)) as usize];
        let (symbols, length, symbol_count);
        if pair.is_long() {
            let (symbol, bits) = long_symbol(window)?;
            (symbols, length, symbol_count) = (u16::from(symbol), bits, 1);
        } else if pair.code_bits() <= left {
            (symbols, length) = (pair.symbols() as u16, pair.code_bits());
            symbol_count = pair.symbol_bits() / 8;
        } else {
            let symbol = pair.symbols() as u8;
            (symbols, symbol_count) = (u16::from(symbol), 1);
            length = u32::from(LENGTHS[usize::from(symbol)]);
        }
        // The padding looks like the start of a symbol that is too long, or no symbol at all.
        left = left.checked_sub(length).ok_or(HpackError::InvalidHuffman)?;
        window = (window << length) | ((1 << length) - 1);
        let place = out.get_mut(count..).and_then(|rest| rest.first_chunk_mut::<2>());
        *place.ok_or(HpackError::InvalidHuffman)? = symbols.to_le_bytes();
        count += symbol_count as usize;
    }
    Ok(count)
}

/// Returns the symbol whose code `window` starts with, and the length of the code in bits. The code
/// must be longer than [`PAIR_BITS`].
fn long_symbol(window: u64) -> Result<(u8, u32), HpackError> {
    let bits = (window >> 32) as u32;
    let group = GROUPS
        .iter()
        .skip(PAIR_BITS as usize + 1)
        .find(|group| bits <= group.last && group.length != 0)
        .unwrap_or(&GROUPS[LONGEST]);
    let length = u32::from(group.length);
    let place =
        usize::from(group.order) + (bits.wrapping_sub(group.first) >> (32 - length)) as usize;
    let symbol = ORDER.get(place).copied().unwrap_or(END_OF_STRING);
    u8::try_from(symbol).map(|symbol| (symbol, length)).map_err(|_| HpackError::InvalidHuffman)
}

/// Returns the number of octets of the string that [`encode`] appends for `text`.
pub(super) fn encoded_length<const LOWER_CASE: bool>(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|octet| usize::from(LENGTHS[usize::from(folded::<LOWER_CASE>(*octet))]))
        .sum();
    bits.div_ceil(8)
}

/// Appends the code of `text`. With `LOWER_CASE`, upper-case letters are appended in lower case.
pub(super) fn encode<const LOWER_CASE: bool>(text: &[u8], out: &mut Vec<u8>) {
    // The lowest `count` bits of `bits` are not yet appended. They are fewer than 32.
    let (mut bits, mut count) = (0u64, 0u32);
    for octet in text {
        let code = CODES[usize::from(folded::<LOWER_CASE>(*octet))];
        bits = (bits << code.length) | u64::from(code.bits);
        count += code.length;
        if count >= 32 {
            count -= 32;
            out.extend_from_slice(&((bits >> count) as u32).to_be_bytes());
        }
    }
    if count > 0 {
        let padded = ((bits << 32) | u64::from(u32::MAX)) >> count;
        let octets = (padded as u32).to_be_bytes();
        out.extend(octets.iter().take(count.div_ceil(8) as usize));
    }
}

#[inline]
fn folded<const LOWER_CASE: bool>(octet: u8) -> u8 {
    if LOWER_CASE { octet.to_ascii_lowercase() } else { octet }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = vec![0; decoded_space(input.len())];
        let count = decode(input, &mut out)?;
        out.truncate(count);
        Ok(out)
    }

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode::<false>(text, &mut out);
        assert_eq!(out.len(), encoded_length::<false>(text), "{text:?}");
        out
    }

    #[test]
    fn examples_of_appendix_c_are_encoded_and_decoded() {
        for (text, code) in [
            (&b""[..], &[][..]),
            (
                b"www.example.com",
                &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff],
            ),
            (b"no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            (b"custom-value", &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf]),
        ] {
            assert_eq!(encoded(text), code);
            assert_eq!(decoded(code).as_deref(), Ok(text));
        }
    }

    #[test]
    fn every_octet_is_decoded_alone_and_between_others() {
        for octet in 0..=255 {
            for text in [vec![octet], vec![octet; 2], vec![octet; 9], vec![b'a', octet, b'Z']] {
                assert_eq!(decoded(&encoded(&text)), Ok(text.clone()), "{text:?}");
            }
        }
    }

    #[test]
    fn bad_padding_and_the_end_of_the_string_are_errors() {
        for code in [
            &[0xff][..],
            &[0xff, 0xff, 0xff, 0xff],
            &[0xff; 40],
            // "0" with zeros, and with eight and more ones.
            &[0x00, 0x00, 0x3f, 0xff],
            &[0b0000_0011],
            &[0b0000_0110],
            &[0x07, 0xff],
            &[0x07, 0xff, 0xff],
            // A long code without its end.
            &[0xff, 0xfe],
            // "0", then the end of the string, then zeros.
            &[0x07, 0xff, 0xff, 0xff, 0xf8, 0, 0, 0],
        ] {
            assert_eq!(decoded(code), Err(HpackError::InvalidHuffman), "{code:x?}");
        }
        assert_eq!(decoded(&[0b0000_0111]).as_deref(), Ok(&b"0"[..]));
    }

    #[test]
    fn upper_case_letters_are_encoded_in_lower_case_if_asked_for() {
        let mut out = Vec::new();
        encode::<true>(b"X-Custom", &mut out);
        assert_eq!(decoded(&out).as_deref(), Ok(&b"x-custom"[..]));
        assert_eq!(out.len(), encoded_length::<true>(b"X-Custom"));
    }

    proptest! {
        #[test]
        fn any_text_survives(text in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(decoded(&encoded(&text)), Ok(text));
        }

        #[test]
        fn what_is_decoded_from_random_octets_encodes_to_the_same(
            code in proptest::collection::vec(any::<u8>(), 0..12),
        ) {
            if let Ok(text) = decoded(&code) {
                prop_assert_eq!(encoded(&text), code);
            }
        }
    }
}
