//! The memcached text and meta protocols over [`kirin_store`].
//!
//! [`codec`] turns bytes into commands and does no I/O.
#![forbid(unsafe_code)]

pub mod codec;
