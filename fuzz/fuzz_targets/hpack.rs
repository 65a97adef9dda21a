//! Any header blocks of one connection: no panic, bounded memory, and what was decoded is the same
//! after it was encoded and decoded again.
#![no_main]

use kirin_h2::hpack::{Decoder, Encoder, FieldBuffer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, Vec<&[u8]>)| {
    let (table, blocks) = input;
    let mut decoder = Decoder::new(4096);
    let mut fields = FieldBuffer::default();
    let mut encoder = Encoder::new(u32::from(table));
    let mut again = Decoder::new(4096);
    for block in blocks {
        fields.clear();
        if decoder.decode(block, 8192, 100, &mut fields).is_err() {
            return;
        }
        assert!(decoder.held_bytes() < 20_000, "{} are held", decoder.held_bytes());
        let mut out = Vec::new();
        encoder.begin(&mut out);
        let valid = || fields.iter().filter(|field| field.is_valid);
        valid().for_each(|field| encoder.field(field.name, field.value, &mut out));
        let mut decoded = FieldBuffer::default();
        assert_eq!(again.decode(&out, 1 << 20, 1000, &mut decoded), Ok(()));
        let pairs = |list: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>| list.collect::<Vec<_>>();
        let before = pairs(&mut valid().map(|field| (field.name.to_vec(), field.value.to_vec())));
        let after =
            pairs(&mut decoded.iter().map(|field| (field.name.to_vec(), field.value.to_vec())));
        assert_eq!(before, after);
    }
});
