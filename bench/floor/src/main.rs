#![forbid(unsafe_code)]
//! placeholder
fn main() {}
