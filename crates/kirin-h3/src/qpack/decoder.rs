//! Decodes field sections (RFC 9204 section 4.5).

use kirin_h2::hpack::primitives::{read_integer, read_string};
use kirin_h2::hpack::{FieldBuffer, HpackError};

use super::static_table::ENTRIES;

/// The most bytes of a field list that is decoded, whatever the limit is for those that are kept.
const MOST_LIST_BYTES: usize = 1024 * 1024;

/// A mistake in a field section. The connection must end with `QPACK_DECOMPRESSION_FAILED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QpackError {
    /// An integer or a string is not valid.
    #[error(transparent)]
    Octets(#[from] HpackError),
    /// An index that the static table does not have.
    #[error("an index of the field section has no entry")]
    InvalidIndex,
    /// The dynamic table, which has no entries.
    #[error("the field section refers to the dynamic table, which is empty")]
    DynamicTable,
}

/// Decodes a complete field section and appends its fields to `fields`, which the caller has
/// cleared. `scratch` is memory that is used again and again.
///
/// If the list is longer than `most_bytes` or has more than `most_fields` fields, the rest is not
/// kept, and [`FieldBuffer::is_too_large`] says so.
///
/// # Errors
/// Returns what is wrong with the section.
pub fn decode(
    section: &[u8],
    most_bytes: usize,
    most_fields: usize,
    scratch: &mut Vec<u8>,
    fields: &mut FieldBuffer,
) -> Result<(), QpackError> {
    let (first, rest) = section.split_first().ok_or(HpackError::Truncated)?;
    let (insert_count, rest) = read_integer(*first, 0xff, rest)?;
    let (first, rest) = rest.split_first().ok_or(HpackError::Truncated)?;
    let (_, mut input) = read_integer(*first, 0x7f, rest)?;
    if insert_count != 0 {
        return Err(QpackError::DynamicTable);
    }
    while let Some((first, rest)) = input.split_first() {
        scratch.clear();
        input = match *first {
            // An indexed field line; its bit 0x40 stands for the static table.
            0xc0.. => {
                let (index, rest) = read_integer(*first, 0x3f, rest)?;
                let (name, value) = entry(index)?;
                fields.push(name.as_bytes(), value.as_bytes(), most_bytes, most_fields);
                rest
            }
            // A literal field line with a name reference; 0x10 stands for the static table.
            0x50..=0x5f | 0x70..=0x7f => {
                let (index, rest) = read_integer(*first, 0x0f, rest)?;
                let (name, _) = entry(index)?;
                let rest = read_value(rest, scratch)?;
                fields.push(name.as_bytes(), scratch, most_bytes, most_fields);
                rest
            }
            // A literal field line with a literal name.
            0x20..=0x3f => {
                let rest = read_string(*first, 0x07, rest, scratch)?;
                let name_length = scratch.len();
                let rest = read_value(rest, scratch)?;
                let (name, value) = scratch.split_at(name_length);
                fields.push(name, value, most_bytes, most_fields);
                rest
            }
            // Everything else refers to the dynamic table.
            _ => return Err(QpackError::DynamicTable),
        };
        // References to long entries make a short section into a long list.
        if fields.list_bytes() > MOST_LIST_BYTES {
            return Err(HpackError::ListTooLong.into());
        }
    }
    Ok(())
}

fn entry(index: u32) -> Result<(&'static str, &'static str), QpackError> {
    ENTRIES.get(index as usize).copied().ok_or(QpackError::InvalidIndex)
}

fn read_value<'a>(input: &'a [u8], scratch: &mut Vec<u8>) -> Result<&'a [u8], QpackError> {
    let (first, rest) = input.split_first().ok_or(HpackError::Truncated)?;
    Ok(read_string(*first, 0x7f, rest, scratch)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::FieldWriter;
    use super::*;

    fn fields_of(section: &[u8]) -> Result<Vec<(String, String)>, QpackError> {
        let mut fields = FieldBuffer::default();
        decode(section, 10_000, 100, &mut Vec::new(), &mut fields)?;
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        Ok(fields.iter().map(|field| (text(field.name), text(field.value))).collect())
    }

    #[test]
    fn the_example_of_appendix_b_1_is_decoded() {
        let section = b"\x00\x00\x51\x0b/index.html";
        assert_eq!(fields_of(section), Ok(vec![(":path".into(), "/index.html".into())]));
    }

    #[test]
    fn all_forms_that_need_no_dynamic_table_are_decoded() {
        let section = b"\x00\x00\xd1\xc1\x23abc\x03xyz\x37\x00zzzzzzz\x00\x5f\x50\x01u";
        let fields = fields_of(section).unwrap();
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [
            (":method", "GET"),
            (":path", "/"),
            ("abc", "xyz"),
            ("zzzzzzz", ""),
            ("user-agent", "u"),
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn references_to_the_dynamic_table_and_mistakes_are_errors() {
        for (section, error) in [
            (&b""[..], HpackError::Truncated.into()),
            (b"\x00", HpackError::Truncated.into()),
            (b"\x01\x00", QpackError::DynamicTable),
            (b"\x00\x00\x80", QpackError::DynamicTable),
            (b"\x00\x00\x40\x00", QpackError::DynamicTable),
            (b"\x00\x00\x10", QpackError::DynamicTable),
            (b"\x00\x00\x00\x00", QpackError::DynamicTable),
            (b"\x00\x00\xff\x24", QpackError::InvalidIndex),
            (b"\x00\x00\x23ab", HpackError::Truncated.into()),
            (b"\x00\x00\x23abc", HpackError::Truncated.into()),
            (b"\x00\x00\x51\x81\x00", HpackError::InvalidHuffman.into()),
            (b"\x00\x00\xff\xff\xff\xff\xff\xff\x7f", HpackError::IntegerOverflow.into()),
        ] {
            assert_eq!(fields_of(section), Err(error), "{section:x?}");
        }
    }

    #[test]
    fn a_list_above_the_limit_is_not_kept_and_a_bomb_is_an_error() {
        let mut fields = FieldBuffer::default();
        let section = [&b"\x00\x00"[..], &b"\x23abc\x03xyz".repeat(10)].concat();
        decode(&section, 200, 100, &mut Vec::new(), &mut fields).unwrap();
        assert!(fields.is_too_large() && fields.len() == 5);
        let bomb = [&b"\x00\x00"[..], &b"\xff\x16".repeat(20_000)].concat();
        assert_eq!(fields_of(&bomb), Err(HpackError::ListTooLong.into()));
    }

    #[test]
    fn decoding_costs_no_more_than_the_octets() {
        let mut table = kirin_doubling::Table::new();
        for (name, line) in [
            ("static", &b"\xd1"[..]),
            ("literal", b"\x23abc\x03xyz"),
            ("huffman", b"\x50\x88\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xff"),
        ] {
            let section = |count: usize| [&b"\x00\x00"[..], &line.repeat(count)].concat();
            table.check(name, 12, section, |section| {
                let mut fields = FieldBuffer::default();
                decode(section, 1 << 20, 1 << 20, &mut Vec::new(), &mut fields).ok()?;
                Some(fields.len())
            });
        }
        table.finish();
    }

    proptest! {
        #[test]
        fn what_is_written_is_decoded(
            fields in proptest::collection::vec(
                ("[A-Za-z-]{1,20}|content-type|Cache-Control|vary", "[ -~]{0,40}|no-cache|text/html; charset=utf-8"),
                0..10,
            ),
        ) {
            let mut section = Vec::new();
            let mut writer = FieldWriter::response(200, &mut section);
            for (name, value) in &fields {
                writer.field(name.as_bytes(), value.as_bytes());
            }
            let mut expected = vec![(":status".to_owned(), "200".to_owned())];
            expected.extend(fields.into_iter().map(|(name, value)| (name.to_lowercase(), value)));
            prop_assert_eq!(fields_of(&section), Ok(expected));
        }

        #[test]
        fn any_octets_are_decoded_or_refused(
            section in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let _ = fields_of(&section);
        }
    }
}
