//! Cache-Control and other cache fields of a response. No input panics, a directive against storing
//! is obeyed, and a stored response is read back unchanged.
#![no_main]

use http::{Method, StatusCode};
use kirin_cache::{
    ResponseDirectives, StorableRequest, StorageRules, Stored, policy_of, stored, surrogate,
};
use kirin_http::FieldLines;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = Stored::read(input);
    // Each line of the input is a field. The first letter chooses which.
    let mut fields = FieldLines::new();
    for line in input.split(|byte| *byte == b'\n') {
        let Some((kind, value)) = line.split_first() else { continue };
        let name = match kind % 8 {
            0 => "Surrogate-Control",
            1 => "CDN-Cache-Control",
            2 => "Vary",
            3 => "Expires",
            4 => "Age",
            5 => "Surrogate-Key",
            _ => "Cache-Control",
        };
        let _ = fields.try_push(name.as_bytes(), value);
    }
    let _ = surrogate::tags(&fields);
    let asked = StorableRequest {
        method: &Method::GET,
        has_authorization: false,
        has_cookie: true,
        no_store: false,
    };
    let rules = StorageRules { default_ttl: Some(60), ..StorageRules::default() };
    let Ok(policy) = policy_of(asked, StatusCode::OK, &fields, &rules, 1_000_000, 0) else {
        return;
    };
    assert!(policy.serves_cookies);
    if surrogate::targeted_directives(&fields).is_none() {
        let said = ResponseDirectives::from_fields(&fields, "cache-control");
        assert!(!said.no_store || said.must_understand);
    }
    let line = stored::response_line(&policy);
    assert_eq!(Stored::read(line.as_bytes()), Some(Stored::Response { policy, at: line.len() }));
});
