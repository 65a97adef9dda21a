//! Request heads: no input panics, and no cut of the input changes what it is read as.
#![no_main]

use kirin_http::request::{HeadLimits, MAX_FIELDS, Parsed, parse};
use libfuzzer_sys::fuzz_target;
use std::mem::MaybeUninit;

/// What a head came to: its length and meaning, a refusal, or nothing yet.
fn outcome(input: &[u8]) -> Result<Option<(usize, String)>, u16> {
    let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    match parse(input, &mut storage, &HeadLimits::default()) {
        Ok(Parsed::Complete(head, length)) => {
            assert!(length <= input.len());
            assert!(head.path.starts_with('/') || head.path == "*");
            Ok(Some((length, format!("{head:?}"))))
        }
        Ok(Parsed::Partial) => Ok(None),
        Err(reject) => Err(reject.status().as_u16()),
    }
}

fuzz_target!(|input: &[u8]| {
    let whole = outcome(input);
    if let Ok(Some((length, head))) = &whole {
        // What comes behind a head has no part in it.
        assert_eq!(outcome(&input[..*length]), Ok(Some((*length, head.clone()))));
        // And no shorter input is taken for it.
        for end in length.saturating_sub(8)..*length {
            assert_eq!(outcome(&input[..end]), Ok(None));
        }
    }
});
