//! Includes: no page panics, literals and directives together are the page, and rendering ends.
#![no_main]

use bytes::Bytes;
use kirin_ssi::{Source, Template, render};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

/// Every key holds the page itself: the worst circle there is.
struct Itself(Arc<Template>);

impl Source for Itself {
    fn template(&mut self, _: &[u8]) -> Option<Arc<Template>> {
        Some(Arc::clone(&self.0))
    }
}

fuzz_target!(|page: &[u8]| {
    let template = Arc::new(Template::compile(&Bytes::copy_from_slice(page)));
    let _ = render(&template, &mut Itself(Arc::clone(&template)));
});
