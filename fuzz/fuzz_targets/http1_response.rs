//! Response heads of workers and stored responses. No input panics, and no framing field is passed
//! on.
#![no_main]

use kirin_http::response_head::{Field, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(Some((head, length))) = parse(input, |_, _| Field::Keep) else { return };
    assert!(length <= input.len());
    let mut wire = Vec::new();
    head.fields.write_to(&mut wire);
    for (name, value) in head.fields.iter() {
        assert!(!value.contains(&b'\r') && !value.contains(&b'\n') && !value.contains(&0));
        for framing in ["content-length", "transfer-encoding", "connection", "keep-alive"] {
            assert!(!name.eq_ignore_ascii_case(framing.as_bytes()));
        }
    }
    // The lines that are passed on are read as the same lines again.
    let again = [b"HTTP/1.1 200 OK\r\n", &wire[..], b"\r\n"].concat();
    if let Ok(Some((second, _))) = parse(&again, |_, _| Field::Keep) {
        assert!(second.fields.iter().eq(head.fields.iter()));
    }
});
