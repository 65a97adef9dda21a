//! The Huffman code of RFC 7541, Appendix B, as lengths, and the tables that are computed from it.
//!
//! The code is canonical: codes of the same length count up in the order of their symbols, and
//! shorter codes stand before longer ones. So the lengths say everything.

/// The number of symbols: 256 octets and the end of the string.
const SYMBOLS: usize = 257;

/// The symbol that ends a string. A valid string contains only the start of its code, as padding.
pub(super) const END_OF_STRING: u16 = 256;

/// The length of the longest code in bits.
pub(super) const LONGEST: usize = 30;

/// The number of bits that [`PAIRS`] decodes in one step.
pub(super) const PAIR_BITS: u32 = 12;

/// The length of each symbol's code in bits.
#[rustfmt::skip]
pub(super) static LENGTHS: [u8; SYMBOLS] = CODE_LENGTHS;

#[rustfmt::skip]
const CODE_LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The code of a symbol.
#[derive(Clone, Copy)]
pub(super) struct Code {
    /// Holds the code in its lowest bits.
    pub(super) bits: u32,
    /// Holds the number of bits.
    pub(super) length: u32,
}

/// The codes of one length.
#[derive(Clone, Copy)]
pub(super) struct LengthGroup {
    /// The first code of this length, moved to the highest bits of 32.
    pub(super) first: u32,
    /// The last code of this length, followed by ones, moved likewise.
    pub(super) last: u32,
    /// The place of the first code's symbol in [`ORDER`].
    pub(super) order: u16,
    /// The length in bits. 0: no code has this length.
    pub(super) length: u8,
}

/// The one or two symbols that some bits start with, in one word: the length of their codes in the
/// lowest octet, eight for each symbol in the next one, then the symbols.
///
/// The word is 0 if the first code is longer than [`PAIR_BITS`].
#[derive(Clone, Copy)]
pub(super) struct Pair(u32);

impl Pair {
    /// Returns whether the first code is longer than [`PAIR_BITS`].
    #[inline]
    pub(super) fn is_long(self) -> bool {
        self.0 == 0
    }

    /// Returns the symbols, the first one in the lowest octet.
    #[inline]
    pub(super) fn symbols(self) -> u64 {
        u64::from(self.0 >> 16)
    }

    /// Returns the length of all codes together, in bits.
    #[inline]
    pub(super) fn code_bits(self) -> u32 {
        self.0 & 63
    }

    /// Returns the length of the symbols, in bits: 8 or 16.
    #[inline]
    pub(super) fn symbol_bits(self) -> u32 {
        (self.0 >> 8) & 0xff
    }
}

/// The sums of the lengths of up to four pairs, in one word like that of a pair.
#[derive(Clone, Copy, Default)]
pub(super) struct PairLengths(u32);

impl PairLengths {
    /// Adds the lengths of a pair.
    #[inline]
    pub(super) fn add(&mut self, pair: Pair) {
        self.0 += pair.0 & 0xffff;
    }

    /// Returns the length of all codes together, in bits.
    #[inline]
    pub(super) fn code_bits(self) -> u32 {
        self.0 & 0xff
    }

    /// Returns the length of all symbols together, in bits.
    #[inline]
    pub(super) fn symbol_bits(self) -> u32 {
        self.0 >> 8
    }
}

/// The symbols in the order of their codes.
pub(super) static ORDER: [u16; SYMBOLS] = SYMBOL_ORDER;
const SYMBOL_ORDER: [u16; SYMBOLS] = symbol_order();

/// The code of each octet.
pub(super) static CODES: [Code; 256] = codes();

/// The codes of each length. The place in this array is the length in bits.
pub(super) static GROUPS: [LengthGroup; LONGEST + 1] = LENGTH_GROUPS;
const LENGTH_GROUPS: [LengthGroup; LONGEST + 1] = length_groups();

/// The symbols that each combination of [`PAIR_BITS`] bits starts with.
pub(super) static PAIRS: [Pair; 1 << PAIR_BITS] = pairs();

const fn symbol_order() -> [u16; SYMBOLS] {
    let mut order = [0; SYMBOLS];
    let (mut next, mut length) = (0, 1);
    while length <= LONGEST {
        let mut symbol: u16 = 0;
        while (symbol as usize) < SYMBOLS {
            if CODE_LENGTHS[symbol as usize] as usize == length {
                order[next] = symbol;
                next += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    order
}

const fn length_groups() -> [LengthGroup; LONGEST + 1] {
    let mut groups = [LengthGroup { first: 0, last: 0, order: 0, length: 0 }; LONGEST + 1];
    let (mut next, mut code, mut last_length) = (0, 0u32, 0);
    while next < SYMBOLS {
        let length = CODE_LENGTHS[SYMBOL_ORDER[next] as usize];
        code <<= length - last_length;
        last_length = length;
        let shift = 32 - length as u32;
        let group = &mut groups[length as usize];
        if group.length == 0 {
            *group = LengthGroup { first: code << shift, last: 0, order: next as u16, length };
        }
        group.last = (code << shift) | ((1 << shift) - 1);
        code += 1;
        next += 1;
    }
    groups
}

const fn codes() -> [Code; 256] {
    let mut codes = [Code { bits: 0, length: 0 }; 256];
    let mut next = 0;
    while next < SYMBOLS {
        let symbol = SYMBOL_ORDER[next] as usize;
        if symbol < codes.len() {
            let length = CODE_LENGTHS[symbol] as u32;
            let group = LENGTH_GROUPS[length as usize];
            let bits = (group.first >> (32 - length)) + (next as u32 - group.order as u32);
            codes[symbol] = Code { bits, length };
        }
        next += 1;
    }
    codes
}

/// Returns the symbol that the highest of `bits` bits of `window` are the code of, and the length
/// of that code. Returns the length 0 if the code is longer.
const fn first_symbol(window: u32, bits: u32) -> (u16, u32) {
    let mut length = 1;
    while length <= bits {
        let group = LENGTH_GROUPS[length as usize];
        if group.length != 0 && window <= group.last {
            let place = group.order as u32 + ((window - group.first) >> (32 - length));
            return (SYMBOL_ORDER[place as usize], length);
        }
        length += 1;
    }
    (0, 0)
}

const fn pairs() -> [Pair; 1 << PAIR_BITS] {
    let mut pairs = [Pair(0); 1 << PAIR_BITS];
    let mut bits = 0;
    while bits < pairs.len() {
        let window = (bits as u32) << (32 - PAIR_BITS);
        let (one, length) = first_symbol(window, PAIR_BITS);
        if length != 0 {
            let (two, more) = first_symbol(window << length, PAIR_BITS - length);
            let symbol_bits = if more == 0 { 8 } else { 16 };
            let symbols = one as u32 | ((two as u32) << 8);
            pairs[bits] = Pair((length + more) | (symbol_bits << 8) | (symbols << 16));
        }
        bits += 1;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_fill_the_space_of_all_codes_exactly() {
        let sum: u64 = LENGTHS.iter().map(|length| 1 << (LONGEST - usize::from(*length))).sum();
        assert_eq!(sum, 1 << LONGEST, "Kraft's sum must be one");
    }

    #[test]
    fn no_code_is_the_start_of_another_code() {
        let end = Code { bits: (1 << LONGEST) - 1, length: 30 };
        let codes: Vec<Code> = CODES.iter().copied().chain([end]).collect();
        for (place, one) in codes.iter().enumerate() {
            for other in codes.iter().skip(place + 1) {
                let length = one.length.min(other.length);
                let (left, right) =
                    (one.bits >> (one.length - length), other.bits >> (other.length - length));
                assert_ne!(left, right, "{:x} and {:x}", one.bits, other.bits);
            }
        }
    }

    #[test]
    fn some_codes_are_those_of_appendix_b() {
        for (symbol, bits, length) in [
            (0, 0x1ff8, 13),
            (10, 0x3fff_fffc, 30),
            (22, 0x3fff_fffe, 30),
            (32, 0x14, 6),
            (48, 0, 5),
            (90, 0xfd, 8),
            (92, 0x7fff0, 19),
            (97, 3, 5),
            (122, 0x7b, 7),
            (127, 0xfff_fffc, 28),
            (128, 0xfffe6, 20),
            (199, 0x1ff_ffec, 25),
            (249, 0xfff_fffe, 28),
            (255, 0x3ff_ffee, 26),
        ] {
            let code = CODES[symbol];
            assert_eq!((code.bits, code.length), (bits, length), "symbol {symbol}");
        }
    }
}
