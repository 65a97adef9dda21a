//! The integers and strings of HPACK, which QPACK has too (RFC 9204, section 4.1).

use super::{error::HpackError, huffman, integer};

/// Reads an integer whose prefix is `mask` of the octet `first`. Returns it, and what follows in
/// `rest` (RFC 7541, section 5.1).
///
/// # Errors
/// The integer is cut off, or needs more than 32 bits.
pub fn read_integer(first: u8, mask: u8, rest: &[u8]) -> Result<(u32, &[u8]), HpackError> {
    integer::decode(first, mask, rest)
}

/// Writes an integer into the `mask` of an octet with the bits `pattern`, and behind it.
pub fn write_integer(value: u32, pattern: u8, mask: u8, out: &mut Vec<u8>) {
    integer::encode(value, pattern, mask, out);
}

/// Reads a string whose length has the prefix `mask` of the octet `first`; the bit above the prefix
/// says whether it is a Huffman string (RFC 7541, section 5.2). Appends its octets to `out`, and
/// returns what follows it in `rest`.
///
/// # Errors
/// The string is cut off, or is not a valid Huffman string.
pub fn read_string<'a>(
    first: u8,
    mask: u8,
    rest: &'a [u8],
    out: &mut Vec<u8>,
) -> Result<&'a [u8], HpackError> {
    let (length, rest) = integer::decode(first, mask, rest)?;
    let (string, rest) = rest.split_at_checked(length as usize).ok_or(HpackError::Truncated)?;
    if first & (mask + 1) == 0 {
        out.extend_from_slice(string);
        return Ok(rest);
    }
    let start = out.len();
    out.resize(start + huffman::decoded_space(string.len()), 0);
    let count = huffman::decode(string, out.get_mut(start..).unwrap_or_default())?;
    out.truncate(start + count);
    Ok(rest)
}
