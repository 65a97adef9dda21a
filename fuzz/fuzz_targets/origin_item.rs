//! Values and names that a Redis server sends. No input panics, and what was decoded is encoded to
//! the same bytes.
#![no_main]

use bytes::Bytes;
use kirin_origin::encoding::{DecodedItem, EncodedItem, LastNumbers, Purged};
use kirin_origin::names::{DEFAULT_KEY_PREFIX, Name, Names};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(item) = DecodedItem::decode(&Bytes::copy_from_slice(input)) {
        let tags: Vec<Bytes> = item.tags().collect();
        let tags: Vec<&[u8]> = tags.iter().map(|tag| &tag[..]).collect();
        let again = EncodedItem::encode(&item.head, &tags, &item.value).expect("it was decoded");
        assert_eq!(again.as_bytes(), input);
    }
    if let Some(purged) = Purged::parse(input) {
        assert_eq!(Purged::parse(purged.to_string().as_bytes()), Some(purged));
    }
    if let Some(numbers) = LastNumbers::parse(input) {
        assert_eq!(LastNumbers::parse(numbers.to_string().as_bytes()), Some(numbers));
    }
    let names = Names::new(DEFAULT_KEY_PREFIX).expect("the default");
    let again = names.parse(input).map(|name| match name {
        Name::Number => names.number().to_vec(),
        Name::Purges => names.purges().to_vec(),
        Name::Tag(tag) => names.tag(tag),
        Name::Item(key) => names.item(key),
        Name::Record(record) => names.record(record),
    });
    assert!(again.is_none_or(|again| again == input));
});
