//! Tests of the decoder and the encoder together.

mod doubling;
mod encoding;
mod examples;
mod mistakes;
mod round_trips;

use super::{Decoder, FieldBuffer, HpackError};

/// A limit that no list of a test exceeds.
const NO_LIMIT: usize = 1 << 24;

/// A name and a value.
type Pair = (Vec<u8>, Vec<u8>);

/// Returns the pairs of texts as octets.
fn pairs(texts: &[(&str, &str)]) -> Vec<Pair> {
    texts.iter().map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into())).collect()
}

/// Decodes a block and returns its fields.
fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<Pair>, HpackError> {
    let mut fields = FieldBuffer::default();
    decoder.decode(block, NO_LIMIT, NO_LIMIT, &mut fields)?;
    assert!(!fields.is_too_large());
    let list: Vec<Pair> =
        fields.iter().map(|field| (field.name.into(), field.value.into())).collect();
    let bytes: usize = list.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
    assert_eq!((fields.len(), fields.list_bytes()), (list.len(), bytes));
    Ok(list)
}

/// Returns the octets of hexadecimal digits. Spaces do not count.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|octet| *octet != b' ').collect();
    digits
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(pair, 16).expect("hexadecimal digits")
        })
        .collect()
}
