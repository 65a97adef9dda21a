//! Responses of a FastCGI server. No input panics, and the pieces in which it arrives make no
//! difference.
#![no_main]

use bytes::BytesMut;
use kirin_cgi::fastcgi::{Decoder, FastCgiEvent};
use kirin_cgi::parse_head;
use libfuzzer_sys::fuzz_target;

/// Returns the complete response, and whether it ended in an error.
fn read(pieces: impl Iterator<Item = impl AsRef<[u8]>>) -> (Vec<u8>, Vec<u8>, usize, bool) {
    let (mut decoder, mut input) = (Decoder::default(), BytesMut::new());
    let (mut out, mut errors, mut ends) = (Vec::new(), Vec::new(), 0);
    for piece in pieces {
        input.extend_from_slice(piece.as_ref());
        loop {
            match decoder.next(&mut input) {
                Ok(Some(FastCgiEvent::Stdout(bytes))) => out.extend_from_slice(&bytes),
                Ok(Some(FastCgiEvent::Stderr(bytes))) => errors.extend_from_slice(&bytes),
                Ok(Some(FastCgiEvent::End)) => ends += 1,
                Ok(None) => break,
                Err(_) => return (out, errors, ends, true),
            }
        }
    }
    (out, errors, ends, false)
}

fuzz_target!(|input: &[u8]| {
    let whole = read(std::iter::once(input));
    let pieces = read(input.chunks(1));
    assert_eq!(whole, pieces);
    if let Ok(Some((_, length))) = parse_head(&whole.0) {
        assert!(length <= whole.0.len());
    }
    let _ = parse_head(input);
});
