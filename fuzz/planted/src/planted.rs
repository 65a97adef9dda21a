//! A target that fails with inputs that begin with `KIRIN`. Chance alone does not find one of 2^40,
//! so a run that finds one has followed the coverage.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut bytes = input.iter();
    let mut is_next = |byte| bytes.next() == Some(&byte);
    if is_next(b'K') && is_next(b'I') && is_next(b'R') && is_next(b'I') && is_next(b'N') {
        panic!("this is the planted bug");
    }
});
