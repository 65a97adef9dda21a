//! The streams of an HTTP/3 connection in pieces of any size: no panic, no more memory than the
//! limit of a field section, and the same result whatever the pieces are.
#![no_main]

use bytes::Bytes;
use kirin_h2::hpack::FieldBuffer;
use kirin_h2::request::{check_request, check_trailers};
use kirin_h3::control::ControlReader;
use kirin_h3::qpack;
use kirin_h3::qpack_streams::{DecoderStreamReader, EncoderStreamReader};
use kirin_h3::request_stream::{Part, RequestReader};
use libfuzzer_sys::fuzz_target;

const SECTION_BYTES: u64 = 4096;

/// Reads a request, and returns its parts with the pieces of DATA joined.
fn request(pieces: &[&[u8]]) -> Result<(Vec<Vec<u8>>, bool), kirin_h3::Failure> {
    let mut reader = RequestReader::new(SECTION_BYTES);
    let (mut parts, mut is_data) = (Vec::new(), false);
    for piece in pieces {
        let mut input = Bytes::copy_from_slice(piece);
        while let Some(part) = reader.take(&mut input)? {
            match part {
                Part::TooLarge => return Ok((parts, true)),
                Part::Head(section) => parts.push(section.to_vec()),
                Part::Trailers(section) => {
                    is_data = false;
                    parts.push(section.to_vec());
                }
                Part::Data(data) => {
                    match parts.last_mut() {
                        Some(last) if is_data => last.extend_from_slice(&data),
                        _ => parts.push(data.to_vec()),
                    }
                    is_data = true;
                }
            }
            assert!(reader.held_bytes() as u64 <= 4 * SECTION_BYTES);
        }
    }
    reader.end().map(|()| (parts, false))
}

fuzz_target!(|pieces: Vec<&[u8]>| {
    let whole = pieces.concat();
    assert_eq!(request(&pieces), request(&[&whole]));
    if let Ok((parts, _)) = request(&[&whole]) {
        let mut fields = FieldBuffer::default();
        for section in parts {
            fields.clear();
            if qpack::decode(&section, 8192, 100, &mut Vec::new(), &mut fields).is_ok() {
                _ = check_request(&fields, false, true);
                _ = check_trailers(&fields);
            }
        }
    }
    let mut control = ControlReader::default();
    let (mut encoder, mut decoder) = (EncoderStreamReader::default(), DecoderStreamReader::default());
    for mut piece in pieces {
        _ = encoder.take(piece);
        _ = decoder.take(piece);
        while let Ok(Some(_)) = control.take(&mut piece) {}
    }
});
