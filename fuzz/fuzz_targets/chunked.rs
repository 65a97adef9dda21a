//! The chunked coding: no input panics, and any split gives the same data and the same end.
#![no_main]

use kirin_http::chunked::{ChunkedDecoder, ChunkedError, Event};
use libfuzzer_sys::fuzz_target;

/// Returns the data, and whether the body has ended.
fn decode(pieces: &[&[u8]]) -> Result<(Vec<u8>, bool), ChunkedError> {
    let mut decoder = ChunkedDecoder::new();
    let mut data = Vec::new();
    for piece in pieces {
        let mut input = *piece;
        loop {
            match decoder.decode(input)? {
                Event::Data { start, end } => {
                    assert!(start < end && end <= input.len());
                    data.extend_from_slice(&input[start..end]);
                    input = &input[end..];
                }
                Event::NeedMore => break,
                Event::End { consumed } => {
                    assert!(consumed <= input.len());
                    return Ok((data, true));
                }
            }
        }
    }
    Ok((data, decoder.is_done()))
}

fuzz_target!(|input: (usize, &[u8])| {
    let (cut, bytes) = input;
    let (first, second) = bytes.split_at(cut.checked_rem(bytes.len() + 1).unwrap_or(0));
    assert_eq!(decode(&[bytes]), decode(&[first, second]));
});
