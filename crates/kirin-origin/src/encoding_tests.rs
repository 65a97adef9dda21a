//! Tests of the values of keys in the engine.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn encode(head: &ItemHead, tags: &[&[u8]], value: &[u8]) -> Bytes {
    EncodedItem::encode(head, tags, value).expect("within the limits").into_bytes().into()
}

#[test]
fn an_item_has_the_documented_offsets() {
    let head = ItemHead {
        is_stale: true,
        is_won: true,
        is_tombstone: false,
        flags: 0x0102_0304,
        made: 0x11_1213_1415_1617,
        version: 0x0a_2223_2425_2627,
        chosen_cas: NonZeroU64::new(u64::MAX - 1),
    };
    let encoded = encode(&head, &[b"news", b""], b"value");
    assert_eq!(
        &encoded[..],
        b"\x01\x03\x04\x03\x02\x01\
          \x17\x16\x15\x14\x13\x12\x11\x00\x27\x26\x25\x24\x23\x22\x0a\x00\
          \xfe\xff\xff\xff\xff\xff\xff\xff\x02\x04news\x00value"
    );
}

#[test]
fn the_cas_unique_is_the_version_unless_a_client_chose_one() {
    let head = ItemHead { version: 7, ..ItemHead::default() };
    assert_eq!(head.cas_unique(), 7);
    let head = ItemHead { chosen_cas: NonZeroU64::new(9), ..head };
    assert_eq!(head.cas_unique(), 9);
}

#[test]
fn a_value_is_decoded_without_a_copy() {
    let encoded = encode(&ItemHead::default(), &[b"tag"], b"value");
    let item = DecodedItem::decode(&encoded).expect("an item");
    let place = encoded.as_ptr() as usize + encoded.len() - 5;
    assert_eq!(item.value.as_ptr() as usize, place);
    assert_eq!(item.tags().collect::<Vec<_>>(), [&b"tag"[..]]);
}

#[test]
fn nothing_over_a_limit_is_encoded() {
    let head = ItemHead::default();
    let tags = [&b"a"[..]; TAGS_PER_ITEM + 1];
    let long = [b'a'; TAG_LIMIT_BYTES + 1];
    let tombstone = ItemHead { is_tombstone: true, ..head };
    for (head, tags, value, error) in [
        (head, &tags[..], &b""[..], ItemLimitError::Tags(TAGS_PER_ITEM + 1)),
        (head, &[&long[..]], b"", ItemLimitError::TagLength(TAG_LIMIT_BYTES + 1)),
        (ItemHead { made: 1 << 53, ..head }, &[], b"", ItemLimitError::Number(1 << 53)),
        (ItemHead { version: u64::MAX, ..head }, &[], b"", ItemLimitError::Number(u64::MAX)),
        (tombstone, &[], b"a", ItemLimitError::Tombstone),
        (tombstone, &[b"a"], b"", ItemLimitError::Tombstone),
    ] {
        assert_eq!(EncodedItem::encode(&head, tags, value), Err(error), "{head:?} {tags:?}");
    }
    assert!(EncodedItem::encode(&head, &tags[1..], b"").is_ok());
    assert!(EncodedItem::encode(&head, &[&long[1..]], b"").is_ok());
}

#[test]
fn a_value_that_is_no_item_is_refused_with_the_reason() {
    let valid = encode(&ItemHead::default(), &[], b"");
    let with = |changes: &[(usize, u8)], more: &[u8]| {
        let mut encoded = [&valid[..], more].concat();
        for (offset, byte) in changes {
            encoded[*offset] = *byte;
        }
        Bytes::from(encoded)
    };
    let too_long = [&[251][..], &[b'a'; 251]].concat();
    for (encoded, error) in [
        (Bytes::new(), DecodeError::Truncated),
        (Bytes::from_static(b"\x02"), DecodeError::UnknownFormat(2)),
        (Bytes::from_static(b"hello"), DecodeError::UnknownFormat(b'h')),
        (valid.slice(..30), DecodeError::Truncated),
        (with(&[(1, 8)], b""), DecodeError::UnknownMarks(8)),
        (with(&[(12, 0x20)], b""), DecodeError::Limit(ItemLimitError::Number(1 << 53))),
        (with(&[(20, 0x20)], b""), DecodeError::Limit(ItemLimitError::Number(1 << 53))),
        (with(&[(30, 1)], b""), DecodeError::Truncated),
        (with(&[(30, 1)], b"\x02a"), DecodeError::Truncated),
        (with(&[(30, 2)], b"\x01a"), DecodeError::Truncated),
        (with(&[(30, 65)], b""), DecodeError::Limit(ItemLimitError::Tags(65))),
        (with(&[(30, 1)], &too_long), DecodeError::Limit(ItemLimitError::TagLength(251))),
        (with(&[(1, 4)], b"a"), DecodeError::Limit(ItemLimitError::Tombstone)),
    ] {
        assert_eq!(DecodedItem::decode(&encoded), Err(error), "{encoded:?}");
    }
    let tombstone = DecodedItem::decode(&with(&[(1, 4)], b"")).expect("a tombstone");
    assert!(tombstone.head.is_tombstone);
}

#[test]
fn a_pair_is_two_decimal_numbers() {
    let most = NUMBER_LIMIT - 1;
    for (text, pair) in [
        ("0:0", Some((0, 0))),
        ("12:7", Some((12, 7))),
        ("007:1", Some((7, 1))),
        (&format!("{most}:{most}"), Some((most, most))),
        (&format!("{NUMBER_LIMIT}:0"), None),
        (&format!("0:{NUMBER_LIMIT}"), None),
        ("99999999999999999999999:0", None),
        ("", None),
        ("1", None),
        (":", None),
        ("1:", None),
        (":1", None),
        ("+1:1", None),
        ("-1:1", None),
        (" 1:1", None),
        ("1:1\n", None),
        ("1:1:1", None),
        ("1.0:1", None),
    ] {
        let (purged, last) = (Purged::parse(text.as_bytes()), LastNumbers::parse(text.as_bytes()));
        assert_eq!(purged.map(|purged| (purged.hard, purged.soft)), pair, "{text}");
        assert_eq!(last.map(|last| (last.of_any, last.of_prefixes)), pair, "{text}");
    }
    assert_eq!(Purged::parse(b"\xff:1"), None);
    assert_eq!(Purged { hard: 1, soft: 20 }.to_string(), "1:20");
    assert_eq!(LastNumbers { of_any: 3, of_prefixes: 2 }.to_string(), "3:2");
}

type Content = (ItemHead, Vec<Vec<u8>>, Vec<u8>);

prop_compose! {
    fn heads()(
        (is_stale, is_won) in any::<(bool, bool)>(),
        flags in any::<u32>(),
        made in 0..NUMBER_LIMIT,
        version in 0..NUMBER_LIMIT,
        chosen_cas in any::<u64>(),
    ) -> ItemHead {
        let chosen_cas = NonZeroU64::new(chosen_cas);
        ItemHead { is_stale, is_won, is_tombstone: false, flags, made, version, chosen_cas }
    }
}

/// Makes items, and tombstones, which have neither tags nor a value.
fn contents() -> impl Strategy<Value = Content> {
    let tags = prop_oneof![
        4 => vec(vec(any::<u8>(), 0..9), 0..5),
        1 => vec(vec(any::<u8>(), 240..=TAG_LIMIT_BYTES), 0..=TAGS_PER_ITEM),
    ];
    prop_oneof![
        4 => (heads(), tags, vec(any::<u8>(), 0..64)),
        1 => heads().prop_map(|head| {
            (ItemHead { is_tombstone: true, ..head }, Vec::new(), Vec::new())
        }),
    ]
}

proptest! {
    #[test]
    fn an_item_is_decoded_as_it_was_encoded((head, tags, value) in contents()) {
        let tags: Vec<&[u8]> = tags.iter().map(Vec::as_slice).collect();
        let encoded = EncodedItem::encode(&head, &tags, &value).expect("within the limits");
        let encoded = encoded.into_bytes();
        prop_assert_eq!(encoded.capacity(), encoded.len());
        let item = DecodedItem::decode(&encoded.into()).expect("an item");
        prop_assert_eq!(item.head, head);
        prop_assert_eq!(item.tags().collect::<Vec<_>>(), tags);
        prop_assert_eq!(item.value, value);
    }

    #[test]
    fn the_start_of_an_item_has_a_shorter_value_or_fails((head, tags, value) in contents()) {
        let tags: Vec<&[u8]> = tags.iter().map(Vec::as_slice).collect();
        let encoded = encode(&head, &tags, &value);
        let before_value = encoded.len() - value.len();
        for length in 0..encoded.len() {
            let start = DecodedItem::decode(&encoded.slice(..length));
            if length < before_value {
                prop_assert_eq!(start, Err(DecodeError::Truncated));
            } else {
                let start = start.expect("an item with a shorter value");
                prop_assert_eq!(start.head, head);
                prop_assert_eq!(start.tags().collect::<Vec<_>>(), &tags[..]);
                prop_assert_eq!(&start.value[..], &value[..length - before_value]);
            }
        }
    }

    #[test]
    fn a_decoded_value_is_encoded_as_it_was(
        head in vec(0..8_u8, HEAD_BYTES),
        rest in vec(0..8_u8, 0..40),
    ) {
        let mut encoded = [head, rest].concat();
        encoded[0] = FORMAT;
        if let Ok(item) = DecodedItem::decode(&encoded.clone().into()) {
            let tags: Vec<Bytes> = item.tags().collect();
            let tags: Vec<&[u8]> = tags.iter().map(|tag| &tag[..]).collect();
            let again = EncodedItem::encode(&item.head, &tags, &item.value);
            prop_assert_eq!(again.map(EncodedItem::into_bytes), Ok(encoded));
        }
    }

    #[test]
    fn a_pair_is_parsed_as_it_was_written(hard in 0..NUMBER_LIMIT, soft in 0..NUMBER_LIMIT) {
        let purged = Purged { hard, soft };
        prop_assert_eq!(Purged::parse(purged.to_string().as_bytes()), Some(purged));
        let last = LastNumbers { of_any: hard, of_prefixes: soft };
        prop_assert_eq!(LastNumbers::parse(last.to_string().as_bytes()), Some(last));
    }
}
