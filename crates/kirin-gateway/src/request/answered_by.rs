//! Labels of the responses that the gateway itself makes. The crates of the other places have
//! theirs.

use kirin_http::AnsweredBy;

/// Pages and other items of the store.
pub const STORE: AnsweredBy = AnsweredBy::new("store");

/// Stored responses of the cache.
pub const CACHE: AnsweredBy = AnsweredBy::new("cache");
