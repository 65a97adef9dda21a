//! Includes. No page panics, and rendering ends with any results of its requests.
#![no_main]

mod itself;

use kirin_ssi::Syntax;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|page: &[u8]| itself::render(page, Syntax::SSI));
