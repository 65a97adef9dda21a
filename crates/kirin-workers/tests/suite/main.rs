//! Applications in Perl, supervised through the public interface of this crate.

mod failures;
mod kills;
mod lifecycle;
mod plack_suite;
mod responses;
mod support;
