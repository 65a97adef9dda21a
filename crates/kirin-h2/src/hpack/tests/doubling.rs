//! The cost of the parsers for strangers' input is linear in it.

use kirin_doubling::Table;

use super::{
    super::{Encoder, FieldBuffer, huffman},
    Decoder, NO_LIMIT, hex,
};

/// Decodes a block with the given limit, and returns the size of the list.
fn list_bytes(block: &[u8], limit: usize, fields: &mut FieldBuffer) -> usize {
    let mut decoder = Decoder::new(4096);
    fields.clear();
    // A list that is much too long is an error.
    let _ = decoder.decode(block, limit, NO_LIMIT, fields);
    fields.list_bytes()
}

#[test]
fn the_cost_of_a_block_is_linear_in_its_length() {
    let mut fields = FieldBuffer::default();
    let mut table = Table::new();
    let large_entry = || [hex("40 01 61 7f b1 1e"), vec![b'v'; 4016]].concat();
    let large_name = || [hex("40 7f b1 1e"), vec![b'n'; 4016], hex("01 61")].concat();
    for (name, start, repeated) in [
        ("static entries", Vec::new(), hex("82")),
        ("literals", Vec::new(), hex("00 01 61 01 62")),
        ("new entries", Vec::new(), hex("40 01 61 01 62")),
        ("a large entry", large_entry(), hex("be")),
        ("a large name", large_name(), hex("0f 2f 01 62")),
        ("new entries with a large name", large_name(), hex("7e 01 62")),
    ] {
        for limit in [NO_LIMIT, 16 << 10] {
            let shape = |count: usize| [&start[..], &repeated.repeat(count)].concat();
            table.check(name, 500, shape, |block| list_bytes(block, limit, &mut fields));
        }
    }
    table.finish();
}

#[test]
fn the_cost_of_a_huffman_string_is_linear_in_its_length() {
    let mut table = Table::new();
    for (name, text) in [("short codes", &b"0"[..]), ("long codes", b"\n\x16"), ("text", b"a/Z!")] {
        let shape = |count: usize| {
            let mut code = Vec::new();
            huffman::encode::<false>(&text.repeat(count), &mut code);
            code
        };
        let mut out = vec![0; huffman::decoded_space(1 << 16)];
        table.check(name, 1000, shape, |code| huffman::decode(code, &mut out));
    }
    table.finish();
}

#[test]
fn the_cost_of_encoding_is_linear_in_the_fields() {
    let mut table = Table::new();
    let fields = |count: usize| -> Vec<String> {
        (0..count).map(|number| format!("x-{}", number % 1000)).collect()
    };
    table.check("fields", 500, fields, |fields| {
        let mut encoder = Encoder::new(4096);
        let mut out = Vec::new();
        for name in fields {
            encoder.field(name.as_bytes(), name.as_bytes(), &mut out);
        }
        out
    });
    let values = |count: usize| vec![b'v'; count];
    table.check("a value", 1000, values, |value| {
        let mut out = Vec::new();
        Encoder::new(4096).field(b"x-value", value, &mut out);
        out
    });
    table.finish();
}
