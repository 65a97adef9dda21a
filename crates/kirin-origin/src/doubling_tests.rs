//! The cost of what the configuration and the engine send grows with its length
//! (`kirin-doubling`).

use bytes::Bytes;
use kirin_doubling::Table;

use crate::address::Address;
use crate::encoding::{DecodedItem, EncodedItem, ItemHead, LastNumbers, Purged};
use crate::names::{DEFAULT_KEY_PREFIX, Names};

#[test]
fn values_of_the_engine_cost_no_more_than_their_bytes() {
    let mut table = Table::new();
    let head = ItemHead::default();
    let values = |length: usize| {
        let encoded = EncodedItem::encode(&head, &[b"tag"], &vec![b'a'; length]);
        Bytes::from(encoded.expect("an item").into_bytes())
    };
    table.check("decoded value", 1000, values, DecodedItem::decode);
    table.check("encoded value", 4000, values, |value| {
        EncodedItem::encode(&head, &[], value).is_ok()
    });
    // At most 64 tags are allowed.
    for tag in [&b""[..], b"a", &[b'a'; 250]] {
        let tags = |count: usize| vec![tag; count];
        table.check(&format!("encoded tags of {}", tag.len()), 8, tags, |tags| {
            EncodedItem::encode(&head, tags, b"").is_ok()
        });
        let items = |count: usize| {
            let encoded = EncodedItem::encode(&head, &vec![tag; count], b"");
            Bytes::from(encoded.expect("an item").into_bytes())
        };
        table.check(&format!("decoded tags of {}", tag.len()), 8, items, |item| {
            DecodedItem::decode(item).map(|item| item.tags().count())
        });
    }
    for piece in ["0", "7", ":", "1:", "\u{e4}"] {
        let text = |count: usize| piece.repeat(count);
        table
            .check(&format!("hard:soft {piece}"), 300, text, |text| Purged::parse(text.as_bytes()));
        table.check(&format!("N:M {piece}"), 300, text, |text| LastNumbers::parse(text.as_bytes()));
    }
    table.finish();
}

#[test]
fn names_cost_no_more_than_their_bytes() {
    let mut table = Table::new();
    let names = Names::new(DEFAULT_KEY_PREFIX).expect("the default");
    for piece in ["a", ":", "{", "kirin:", "kirin:i:", "{kirin:}n"] {
        let text = |count: usize| piece.repeat(count).into_bytes();
        table.check(&format!("parsed {piece}"), 300, text, |name| names.parse(name).is_some());
        table.check(&format!("made of {piece}"), 4000, text, |key| names.item(key).len());
    }
    table.finish();
}

#[test]
fn an_address_costs_no_more_than_its_bytes() {
    let mut table = Table::new();
    for scheme in ["redis", "redis+unix", "redis-sentinel", "redis-cluster"] {
        for piece in ["a", "a,", ",", ":", "a:1,", "[::1],", "[", "@", "a@", "%", "%41", "/", "?"] {
            let text = |count: usize| format!("{scheme}://{}", piece.repeat(count));
            table.check(&format!("{scheme} {piece}"), 300, text, |text| {
                text.parse::<Address>().map(|address| address.to_string())
            });
        }
    }
    table.finish();
}
