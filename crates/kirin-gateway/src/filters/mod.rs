//! The filters around the places of a route: the cache, pushed pages, includes and compression.

pub mod cache;
pub mod coded_fields;
pub mod compress;
pub mod compress_codings;
pub mod compress_threads;
pub mod push;
pub mod ssi;
