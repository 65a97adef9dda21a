//! Any bytes behind the preface, in one piece and in many: the same events, bounded memory, no
//! panic.
#![no_main]

#[path = "http2/server.rs"]
mod server;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let mut input = server::BEGIN.to_vec();
    input.extend_from_slice(bytes);
    server::compare(&input, usize::from(piece) + 1);
});
