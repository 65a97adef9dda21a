//! What the encoder writes, and what it puts into its table.

use super::{super::Encoder, Decoder, decoded, hex, pairs};

/// Returns the blocks of a connection that writes the same list several times.
fn repeated(list: &[(&str, &str)], times: usize) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(4096);
    let mut decoder = Decoder::new(4096);
    (0..times)
        .map(|_| {
            let mut block = Vec::new();
            encoder.begin(&mut block);
            for (name, value) in list {
                encoder.field(name.as_bytes(), value.as_bytes(), &mut block);
            }
            assert_eq!(decoded(&mut decoder, &block), Ok(pairs(list)), "{block:x?}");
            block
        })
        .collect()
}

#[test]
fn a_field_that_repeats_becomes_an_index() {
    let long = "v".repeat(300);
    for (name, value, is_index) in [
        ("content-type", "text/html", [false, true, true]),
        ("x-cache", "HIT", [false, true, true]),
        ("etag", "\"1234\"", [false, false, true]),
        ("x-request-id", "1234", [false, false, true]),
        ("location", "/", [false, false, true]),
        ("x-long", &long, [false, false, true]),
        ("set-cookie", "a=b", [false, false, false]),
        ("authorization", "abcd", [false, false, false]),
    ] {
        let blocks = repeated(&[(name, value)], 3);
        let found: Vec<bool> = blocks.iter().map(|block| block.len() == 1).collect();
        assert_eq!(found, is_index, "{name} {blocks:x?}");
    }
}

#[test]
fn a_large_entry_is_never_indexed() {
    let value = "v".repeat(1024 - 32);
    let blocks = repeated(&[("x", &value)], 4);
    assert!(blocks.iter().all(|block| block.len() > 800));
    let blocks = repeated(&[("x", &value[1..])], 4);
    assert_eq!(blocks[3].len(), 1);
}

#[test]
fn secrets_are_marked_for_every_hop() {
    for (name, start) in
        [("set-cookie", "1f 28"), ("authorization", "1f 08"), ("Proxy-Authorization", "1f 22")]
    {
        let mut block = Vec::new();
        Encoder::new(4096).field(name.as_bytes(), b"x", &mut block);
        assert_eq!(block, hex(&format!("{start} 01 78")), "{name}");
    }
}

#[test]
fn a_name_of_the_table_is_written_as_its_index() {
    let mut encoder = Encoder::new(4096);
    let mut block = Vec::new();
    encoder.field(b"X-Cache", b"HIT", &mut block);
    block.clear();
    encoder.field(b"x-cache", b"MIS", &mut block);
    assert_eq!(block, hex("7e 03 4d 49 53"));
}

#[test]
fn the_common_statuses_are_one_octet_and_others_are_indexed() {
    let mut encoder = Encoder::new(4096);
    let mut block = Vec::new();
    for status in [200, 204, 206, 304, 400, 404, 500] {
        encoder.status(status, &mut block);
    }
    assert_eq!(block, hex("88 89 8a 8b 8c 8d 8e"));
    block.clear();
    encoder.status(302, &mut block);
    encoder.status(302, &mut block);
    assert_eq!(block, hex("48 03 33 30 32 be"));
}

#[test]
fn a_content_length_leaves_the_table_as_it_is() {
    for (length, block) in [
        (0, "0f 0d 01 30"),
        (1234, "0f 0d 04 31 32 33 34"),
        (u64::MAX, "0f 0d 14 31 38 34 34 36 37 34 34 30 37 33 37 30 39 35 35 31 36 31 35"),
    ] {
        let mut encoder = Encoder::new(4096);
        let mut out = Vec::new();
        encoder.content_length(length, &mut out);
        assert_eq!((out, encoder.held_bytes()), (hex(block), 0));
    }
}

#[test]
fn owed_size_updates_are_written_once() {
    for (table_bytes, limits, block) in [
        (4096, &[][..], ""),
        (65536, &[], ""),
        (0, &[], ""),
        (256, &[], ""),
        (4096, &[4096], ""),
        (4096, &[65536], ""),
        (65536, &[65536], "3f e1 ff 03"),
        (4096, &[0], "20"),
        (4096, &[0, 4096], "20 3f e1 1f"),
        (4096, &[8000, 4096], ""),
        (4096, &[10, 0, 20], "20 34"),
        (256, &[128, 4096], "3f 61 3f e1 01"),
        (256, &[2048], "3f e1 01"),
    ] {
        let mut encoder = Encoder::new(table_bytes);
        for limit in limits {
            encoder.set_client_limit(*limit);
        }
        let mut out = Vec::new();
        encoder.begin(&mut out);
        assert_eq!(out, hex(block), "{table_bytes} {limits:?}");
        encoder.begin(&mut out);
        assert_eq!(out, hex(block), "{table_bytes} {limits:?}");
    }
}
