//! Scans of bytes for what must not be among them, and tables of what may.

/// Returns a table that is true for ASCII letters and digits, and for `others`.
pub(crate) const fn alphanumeric_or(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    let mut byte = 0;
    while byte < 128 {
        table[byte] |= (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    table
}

/// Returns whether `is_wanted` holds for any byte. Sixteen bytes at a time are looked at without an
/// early end, so that the compiler compares them all at once.
#[inline]
pub(crate) fn any_byte(bytes: &[u8], is_wanted: impl Fn(u8) -> bool) -> bool {
    let (blocks, rest) = bytes.as_chunks::<16>();
    let in_block =
        |block: &[u8; 16]| block.iter().fold(false, |found, byte| found | is_wanted(*byte));
    blocks.iter().any(in_block) || rest.iter().any(|byte| is_wanted(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_found_at_each_place() {
        for length in 0..70 {
            let mut bytes = vec![b'.'; length];
            assert!(!any_byte(&bytes, |byte| byte == b'x'), "{length} bytes");
            for at in 0..length {
                bytes[at] = b'x';
                assert!(any_byte(&bytes, |byte| byte == b'x'), "{at} of {length} bytes");
                bytes[at] = b'.';
            }
        }
    }
}
