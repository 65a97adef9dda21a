//! Frames with any type, flags, stream and payload.
#![no_main]

#[path = "http2/server.rs"]
mod server;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, Vec<(u8, u8, u8, &[u8])>)| {
    let (piece, frames) = input;
    let mut input = server::BEGIN.to_vec();
    for (kind, flags, stream, payload) in frames {
        let length = (payload.len().min(16_384) as u32).to_be_bytes();
        input.extend_from_slice(&length[1..]);
        // Most types are known ones, and most streams are few.
        input.extend_from_slice(&[kind % 18, flags]);
        input.extend_from_slice(&(u32::from(stream) % 16).to_be_bytes());
        input.extend_from_slice(&payload[..payload.len().min(16_384)]);
    }
    server::compare(&input, usize::from(piece) + 1);
});
