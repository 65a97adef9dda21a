//! Blocks that are not valid, lists that are too long, and blocks that are made to be expensive.

use proptest::prelude::*;

use super::{
    super::{Encoder, FieldBuffer, HpackError, Known, error::MOST_LIST_BYTES},
    Decoder, NO_LIMIT, decoded, hex, pairs,
};

#[test]
fn each_mistake_in_a_block_has_its_error() {
    for (block, error) in [
        ("80", HpackError::InvalidIndex),
        ("be", HpackError::InvalidIndex),
        ("82 ff 00", HpackError::InvalidIndex),
        ("7f 00 01 61", HpackError::InvalidIndex),
        ("ff ff ff ff ff 7f", HpackError::IntegerOverflow),
        ("ff 80 80 80 80 80 80 00", HpackError::IntegerOverflow),
        ("ff", HpackError::Truncated),
        ("ff 80", HpackError::Truncated),
        ("40", HpackError::Truncated),
        ("40 01", HpackError::Truncated),
        ("40 01 61", HpackError::Truncated),
        ("40 01 61 02 62", HpackError::Truncated),
        ("40 01 61 7f ff ff ff ff 0e 62", HpackError::Truncated),
        ("0f", HpackError::Truncated),
        ("41 81 ff", HpackError::InvalidHuffman),
        ("41 82 07 ff", HpackError::InvalidHuffman),
        ("00 81 00 01 61", HpackError::InvalidHuffman),
        ("41 84 ff ff ff ff", HpackError::InvalidHuffman),
        ("3f e2 1f", HpackError::TableSizeTooLarge),
        ("82 20", HpackError::MisplacedSizeUpdate),
        ("20 20 20", HpackError::MisplacedSizeUpdate),
        ("20 82 20", HpackError::MisplacedSizeUpdate),
        ("3f", HpackError::Truncated),
    ] {
        let result = decoded(&mut Decoder::new(4096), &hex(block));
        assert_eq!(result, Err(error), "{block}");
    }
    for block in ["", "20", "20 3f e1 1f", "20 82"] {
        let result = decoded(&mut Decoder::new(4096), &hex(block));
        assert!(result.is_ok(), "{block} {result:?}");
    }
}

#[test]
fn a_peer_may_use_as_large_a_table_as_is_announced() {
    let mut decoder = Decoder::new(4096);
    let entry = hex("40 01 61 01 62");
    assert!(decoded(&mut decoder, &entry.repeat(50)).is_ok());
    assert_eq!(decoded(&mut decoder, &hex("ef")), Ok(pairs(&[("a", "b")])));
    // A smaller one for a while, and the announced one again.
    assert_eq!(decoded(&mut decoder, &hex("3f 45")), Ok(Vec::new()));
    assert_eq!(decoded(&mut decoder, &hex("c1")), Err(HpackError::InvalidIndex));
    assert_eq!(decoded(&mut decoder, &hex("3f e1 1f")), Ok(Vec::new()));
    let result = decoded(&mut decoder, &hex("3f e2 1f"));
    assert_eq!(result, Err(HpackError::TableSizeTooLarge));

    let mut decoder = Decoder::new(65536);
    assert!(decoded(&mut decoder, &hex("3f e1 ff 03")).is_ok(), "65536");
    assert!(decoded(&mut decoder, &hex("3f e2 ff 03")).is_err(), "65537");
}

#[test]
fn names_and_values_are_judged_once_and_stay_so_in_the_table() {
    for (name, value, is_valid, known) in [
        ("a", "b", true, Known::Other),
        ("A", "b", false, Known::Other),
        ("a", "b\r", false, Known::Other),
        ("a", " b", false, Known::Other),
        ("a", "", true, Known::Other),
        ("", "b", false, Known::Other),
        ("te", "trailers", true, Known::Te),
        ("upgrade", "h2c", true, Known::ConnectionSpecific),
        (":x", "", true, Known::UnknownPseudo),
        (":path", "/\0", false, Known::Path),
    ] {
        let mut block = vec![0x40, name.len() as u8];
        block.extend_from_slice(name.as_bytes());
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
        // The entry, and a field with the same name and the value "ok".
        block.extend_from_slice(&hex("be 7e 02 6f 6b 0f 2f 02 6f 6b"));
        let mut fields = FieldBuffer::default();
        let mut decoder = Decoder::new(4096);
        decoder.decode(&block, NO_LIMIT, NO_LIMIT, &mut fields).expect("a block");
        let is_name_valid = !name.is_empty() && name != "A";
        let found: Vec<_> = fields.iter().map(|field| (field.is_valid, field.known)).collect();
        let (first, other) = ((is_valid, known), (is_name_valid, known));
        assert_eq!(found, [first, first, other, other], "{name:?}: {value:?}");
        assert!(fields.iter().all(|field| field.name_str() == name));
    }
}

#[test]
fn a_list_is_cut_at_its_limits_and_the_table_still_fits() {
    // Four fields of 34 octets. Each goes into the table.
    let block = hex("40 01 61 01 31 40 01 62 01 32 40 01 63 01 33 40 01 64 01 34");
    for (bytes, count, kept) in [(136, 4, 4), (135, 4, 3), (136, 3, 3), (34, 9, 1), (33, 9, 0)] {
        let mut decoder = Decoder::new(4096);
        let mut fields = FieldBuffer::default();
        decoder.decode(&block, bytes, count, &mut fields).expect("a block");
        let list: Vec<_> = fields.iter().map(|field| field.name).collect();
        assert_eq!(list, [b"a", b"b", b"c", b"d"][..kept]);
        assert_eq!((fields.is_too_large(), fields.list_bytes()), (kept < 4, 136));
        let all = pairs(&[("d", "4"), ("c", "3"), ("b", "2"), ("a", "1")]);
        assert_eq!(decoded(&mut decoder, &hex("be bf c0 c1")), Ok(all));
        fields.clear();
        assert!(fields.is_empty() && !fields.is_too_large() && fields.list_bytes() == 0);
    }
}

#[test]
fn a_bomb_of_references_to_a_large_entry_keeps_almost_nothing_and_ends() {
    let mut decoder = Decoder::new(4096);
    let mut block = hex("40 01 61 7f b1 1e");
    block.extend_from_slice(&[b'v'; 4016]);
    assert_eq!(decoded(&mut decoder, &block).map(|list| list.len()), Ok(1));
    let mut fields = FieldBuffer::default();
    let bomb = vec![0xbe; 16 << 10];
    let ended = decoder.decode(&bomb, 16 << 10, 100, &mut fields);
    assert_eq!(ended, Err(HpackError::ListTooLong));
    assert!(fields.is_too_large());
    assert_eq!((fields.len(), fields.list_bytes() / 4049), (4, MOST_LIST_BYTES / 4049 + 1));
    // The same with a new value: the name is large, the value is in the block.
    let mut block = hex("40 7f b1 1e");
    block.extend_from_slice(&[b'n'; 4016]);
    block.extend_from_slice(&hex("01 61"));
    assert_eq!(decoded(&mut decoder, &block).map(|list| list.len()), Ok(1));
    for bomb in [hex("0f 2f 01 62").repeat(4 << 10), hex("7e 01 62").repeat(5 << 10)] {
        fields.clear();
        let ended = decoder.decode(&bomb, 16 << 10, 100, &mut fields);
        assert_eq!(ended, Err(HpackError::ListTooLong));
        assert!(fields.is_too_large());
        assert_eq!(fields.len(), 4);
    }
    assert!(decoder.held_bytes() < 6000, "{}", decoder.held_bytes());
}

#[test]
fn a_new_connection_holds_no_memory() {
    let decoder = Decoder::new(4096);
    let mut encoder = Encoder::new(4096);
    let mut out = Vec::new();
    encoder.begin(&mut out);
    encoder.status(200, &mut out);
    encoder.content_length(10, &mut out);
    assert_eq!((decoder.held_bytes(), encoder.held_bytes()), (0, 0));
}

proptest! {
    #[test]
    fn random_octets_never_panic(
        blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 1..8),
        limits in (0..300usize, 0..10usize),
        table_bytes in 0..5000u32,
    ) {
        let mut decoder = Decoder::new(table_bytes);
        let mut fields = FieldBuffer::default();
        for block in blocks {
            let _ = decoder.decode(&block, limits.0, limits.1, &mut fields);
            prop_assert!(fields.iter().count() == fields.len() && fields.len() <= limits.1);
            prop_assert!(decoder.held_bytes() < 16 << 10);
        }
    }

    #[test]
    fn random_representations_never_panic(
        // Prefers short lengths and indices that exist.
        blocks in proptest::collection::vec(
            proptest::collection::vec(
                prop_oneof![0..8u8, 0x3d..0x48u8, 0x7e..0x84u8, 0xb8..0xc8u8, any::<u8>()],
                0..40,
            ),
            1..20,
        ),
    ) {
        let mut decoder = Decoder::new(4096);
        let mut fields = FieldBuffer::default();
        for block in blocks {
            fields.clear();
            let _ = decoder.decode(&block, 500, 20, &mut fields);
            prop_assert!(fields.iter().map(|field| field.value.len() + 32).sum::<usize>() <= 500);
        }
    }

    #[test]
    fn a_truncated_block_is_an_error_or_a_shorter_list(
        list in proptest::collection::vec(("[a-z-]{1,9}", "[!-~]{0,20}"), 0..12),
    ) {
        let mut block = Vec::new();
        let mut encoder = Encoder::new(1000);
        encoder.begin(&mut block);
        for (name, value) in &list {
            encoder.field(name.as_bytes(), value.as_bytes(), &mut block);
        }
        let complete = decoded(&mut Decoder::new(4096), &block).expect("a block");
        for end in 0..block.len() {
            match decoded(&mut Decoder::new(4096), &block[..end]) {
                Ok(start) => prop_assert!(complete.starts_with(&start)),
                Err(error) => prop_assert_eq!(error, HpackError::Truncated),
            }
        }
    }
}
