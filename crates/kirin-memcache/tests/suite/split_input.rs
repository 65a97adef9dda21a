//! The answers do not depend on how the network cuts the bytes, and no input makes the session
//! panic.

use proptest::prelude::*;

use crate::peer::{Conversation, show};

/// Makes a command or a data block, which is often valid.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let key = "[ab]{1,2}";
    prop_oneof![
        (key, "[a-z0-9]{0,40}").prop_map(|(key, value)| {
            format!("set {key} 1 0 {}\r\n{value}\r\n", value.len()).into_bytes()
        }),
        (key, 0..3000usize).prop_map(|(key, length)| {
            let mut set = format!("set {key} 1 0 {length}\r\n").into_bytes();
            set.extend((0..length).map(|at| b'a' + (at % 26) as u8));
            set.extend(b"\r\n");
            set
        }),
        // This is too large for the limit below.
        (key, 8000..9000usize).prop_map(|(key, length)| {
            [format!("ms {key} {length} T9\r\n").into_bytes(), vec![b'x'; length], b"\r\n".to_vec()]
                .concat()
        }),
        (key, "[a-z]{0,8}", 0..10usize).prop_map(|(key, value, length)| {
            format!("ms {key} {length} c k\r\n{value}\r\n").into_bytes()
        }),
        prop::collection::vec(key, 1..400)
            .prop_map(|keys| format!("gets {}\r\n", keys.join(" ")).into_bytes()),
        key.prop_map(|key| format!("mg {key} v c t\r\n").into_bytes()),
        key.prop_map(|key| format!("incr {key} 5\r\n").into_bytes()),
        key.prop_map(|key| format!("append {key} 0 0 2\r\nxy\r\n").into_bytes()),
        key.prop_map(|key| format!("delete {key}\n").into_bytes()),
        Just(b"\r\n".to_vec()),
        Just(b"version\r\n".to_vec()),
        "[ -~]{0,30}\r\n".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..20),
    ]
}

/// Starts a conversation with small limits, so that some input exceeds them.
fn conversation() -> Conversation {
    let limits = kirin_memcache::codec::CodecLimits { item_size_bytes: 4096, ..Default::default() };
    Conversation::with(kirin_memcache::ServerOptions { limits, ..Default::default() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_split_of_the_input_is_answered_like_the_whole(
        pieces in prop::collection::vec(piece(), 1..20),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        let input = pieces.concat();
        let whole = conversation().say(&input);

        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
        cuts.extend([0, input.len()]);
        cuts.sort_unstable();
        let mut split = conversation();
        let answer: Vec<u8> = cuts.windows(2).flat_map(|cut| split.say(&input[cut[0]..cut[1]])).collect();
        prop_assert_eq!(show(&answer), show(&whole));

        let mut bytewise = conversation();
        let answer: Vec<u8> = input.chunks(1).flat_map(|byte| bytewise.say(byte)).collect();
        prop_assert_eq!(show(&answer), show(&whole));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn arbitrary_bytes_cause_no_panic(input in prop::collection::vec(any::<u8>(), 0..300)) {
        conversation().say(&input);
    }

    #[test]
    fn almost_valid_lines_cause_no_panic(
        lines in prop::collection::vec("(m[gsdaen]|get|set|cas|incr|gat|stats|lru|slabs|verbosity|flush_all)( [ -~]{0,12}){0,24}\r?\n", 1..6),
    ) {
        conversation().say(lines.concat().as_bytes());
    }
}
