//! The octets that HTTP/2 allows in names and values of fields (RFC 9113, section 8.2.1).

/// 0x01 in each octet.
const ONES: u64 = 0x0101_0101_0101_0101;
/// 0x80 in each octet.
const HIGH: u64 = ONES << 7;

/// Whether an octet may be in a name: a token of RFC 9110, section 5.6.2, without upper case.
static NAME_OCTETS: [bool; 256] = name_octets();

const fn name_octets() -> [bool; 256] {
    let mut table = [false; 256];
    let mut octet = 0u8;
    while octet < 128 {
        table[octet as usize] = matches!(
            octet,
            b'a'..=b'z'
                | b'0'..=b'9'
                | b'!'
                | b'#'..=b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'..=b'`'
                | b'|'
                | b'~'
        );
        octet += 1;
    }
    table
}

/// Returns whether a name is not empty and is allowed. After the colon of a pseudo-header field,
/// only letters are.
pub(super) fn is_valid_name(name: &[u8]) -> bool {
    match name {
        [] => false,
        [b':', letters @ ..] => !letters.is_empty() && letters.iter().all(u8::is_ascii_lowercase),
        _ => name.iter().all(|octet| NAME_OCTETS[usize::from(*octet)]),
    }
}

/// Returns whether a method is a token (RFC 9110, section 5.6.2), which may have upper case.
pub(crate) fn is_valid_method(method: &[u8]) -> bool {
    !method.is_empty()
        && method.iter().all(|octet| NAME_OCTETS[usize::from(octet.to_ascii_lowercase())])
}

/// Returns whether a value is allowed: no control characters, and no space at its ends.
pub(super) fn is_valid_value(value: &[u8]) -> bool {
    let (Some(first), Some(last)) = (value.first(), value.last()) else { return true };
    if is_space(*first) || is_space(*last) {
        return false;
    }
    let (chunks, rest) = value.as_chunks::<8>();
    let mut suspects = 0;
    for chunk in chunks {
        suspects |= suspect_octets(u64::from_le_bytes(*chunk));
    }
    if let Some(end) = value.last_chunk::<8>() {
        suspects |= suspect_octets(u64::from_le_bytes(*end));
        suspects & HIGH == 0 || value.iter().all(|octet| is_valid_octet(*octet))
    } else {
        rest.iter().all(|octet| is_valid_octet(*octet))
    }
}

/// Returns a word whose highest bit of some octet is set if an octet of `word` may be forbidden.
/// Tabs are reported too.
#[inline]
fn suspect_octets(word: u64) -> u64 {
    let delete = word ^ (ONES * 0x7f);
    (word.wrapping_sub(ONES * 0x20) & !word) | (delete.wrapping_sub(ONES) & !delete)
}

fn is_valid_octet(octet: u8) -> bool {
    octet == b'\t' || (octet >= b' ' && octet != 0x7f)
}

/// Returns whether an octet is white space in a value.
#[inline]
fn is_space(octet: u8) -> bool {
    octet == b' ' || octet == b'\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_only_token_characters_in_lower_case() {
        for octet in 0..=255u8 {
            let token = b"!#$%&'*+-.^_`|~".contains(&octet);
            let expected = token || octet.is_ascii_lowercase() || octet.is_ascii_digit();
            assert_eq!(is_valid_name(&[b'x', octet]), expected, "{octet:#x}");
            assert_eq!(is_valid_name(&[octet]), expected, "{octet:#x}");
            assert_eq!(is_valid_name(&[b':', octet]), octet.is_ascii_lowercase(), "{octet:#x}");
        }
        for (name, expected) in [("", false), (":", false), ("a:", false), ("::a", false)] {
            assert_eq!(is_valid_name(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn every_octet_is_judged_at_every_place_of_a_value() {
        for octet in 0..=255u8 {
            for length in 1..20 {
                for place in 0..length {
                    let mut value = vec![b'v'; length];
                    value[place] = octet;
                    let is_end = place == 0 || place == length - 1;
                    let expected = match octet {
                        b'\t' | b' ' => !is_end,
                        0..=0x1f | 0x7f => false,
                        _ => true,
                    };
                    assert_eq!(is_valid_value(&value), expected, "{value:?}");
                }
            }
        }
        assert!(is_valid_value(b""));
    }
}
