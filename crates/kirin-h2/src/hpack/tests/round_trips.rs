//! Random lists through the encoder and the decoder.

use proptest::prelude::*;

use super::{
    super::{Encoder, FieldBuffer},
    Decoder, Pair, decoded, pairs,
};

/// A step of a connection.
#[derive(Clone, Debug)]
enum Step {
    /// The client's settings change its table.
    Limit(u32),
    /// A response has these fields.
    Fields(u16, Vec<(String, Vec<u8>)>),
}

fn field() -> impl Strategy<Value = (String, Vec<u8>)> {
    let name = prop_oneof![
        "[a-cA-C]{1,2}",
        "[a-zA-Z0-9-]{1,30}",
        prop_oneof![
            Just("Content-Type"),
            Just("etag"),
            Just("Set-Cookie"),
            Just("date"),
            Just("X-Request-ID"),
            Just("location"),
        ]
        .prop_map(str::to_owned),
    ];
    let value = prop_oneof![
        "[ab]{0,2}".prop_map(String::into_bytes),
        "[ -~]{0,40}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..30),
        (0..1500usize).prop_map(|length| vec![b'x'; length]),
    ];
    (name, value)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => prop_oneof![0..300u32, 0..10_000u32].prop_map(Step::Limit),
        4 => (100..600u16, proptest::collection::vec(field(), 0..12))
            .prop_map(|(status, list)| Step::Fields(status, list)),
    ]
}

/// Returns the field that the decoder has to return.
fn expected(name: &str, value: &[u8]) -> Pair {
    (name.to_ascii_lowercase().into_bytes(), value.trim_ascii().to_vec())
}

proptest! {
    #[test]
    fn random_lists_survive_with_any_changes_of_the_table(
        table_bytes in prop_oneof![0..200u32, 0..9000u32],
        steps in proptest::collection::vec(step(), 1..30),
    ) {
        let mut encoder = Encoder::new(table_bytes);
        let mut decoder = Decoder::new(10_000);
        let mut block = Vec::new();
        for step in steps {
            let (status, list) = match step {
                Step::Limit(bytes) => {
                    encoder.set_client_limit(bytes);
                    continue;
                }
                Step::Fields(status, list) => (status, list),
            };
            block.clear();
            encoder.begin(&mut block);
            encoder.status(status, &mut block);
            let mut wanted = vec![(b":status".to_vec(), status.to_string().into_bytes())];
            for (name, value) in &list {
                encoder.field(name.as_bytes(), value, &mut block);
                wanted.push(expected(name, value));
            }
            encoder.content_length(u64::from(status) * 1000, &mut block);
            wanted.push((b"content-length".to_vec(), format!("{status}000").into_bytes()));
            prop_assert_eq!(decoded(&mut decoder, &block), Ok(wanted));
        }
        prop_assert!(encoder.held_bytes() <= 2 * table_bytes as usize + 1024);
    }

    #[test]
    fn the_decoder_follows_the_table_when_lists_are_too_large(
        lists in proptest::collection::vec(proptest::collection::vec(field(), 0..8), 1..20),
        limit in 0..600usize,
    ) {
        let mut encoder = Encoder::new(4096);
        let (mut cut, mut full) = (Decoder::new(4096), Decoder::new(4096));
        let mut fields = FieldBuffer::default();
        for list in lists {
            let mut block = Vec::new();
            encoder.begin(&mut block);
            for (name, value) in &list {
                encoder.field(name.as_bytes(), value, &mut block);
            }
            let complete = decoded(&mut full, &block).expect("a block");
            fields.clear();
            prop_assert_eq!(cut.decode(&block, limit, 5, &mut fields), Ok(()));
            let kept: Vec<Pair> =
                fields.iter().map(|field| (field.name.into(), field.value.into())).collect();
            prop_assert!(complete.starts_with(&kept));
            prop_assert_eq!(kept.len() < complete.len(), fields.is_too_large());
        }
        // The limits had no effect on the table.
        for index in 62..127u8 {
            let block = [0x80 | index];
            prop_assert_eq!(decoded(&mut cut, &block), decoded(&mut full, &block));
        }
    }
}

#[test]
fn tables_of_all_sizes_repeat_a_list_for_a_long_time() {
    for bytes in [0, 31, 64, 100, 256, 1000, 4096, 16384] {
        let mut encoder = Encoder::new(bytes);
        encoder.set_client_limit(bytes);
        let mut decoder = Decoder::new(16384);
        let mut block = Vec::new();
        for number in 0..500 {
            let (date, id) = (format!("date {}", number / 7), format!("id-{number}"));
            let list = [("date", &date[..]), ("x-id", &id), ("server", "kirin"), ("etag", "same")];
            block.clear();
            encoder.begin(&mut block);
            for (name, value) in list {
                encoder.field(name.as_bytes(), value.as_bytes(), &mut block);
            }
            assert_eq!(decoded(&mut decoder, &block), Ok(pairs(&list)), "{bytes} {number}");
        }
    }
}
