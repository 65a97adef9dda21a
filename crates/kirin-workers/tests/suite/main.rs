//! Applications in Perl, supervised through the public interface of this crate.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod failures;
mod kills;
mod lifecycle;
mod many_requests;
mod plack_suite;
mod responses;
mod support;
