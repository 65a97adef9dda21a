//! The filters around the places of a route: the mirror, observation, stored pages, the cache,
//! includes and compression.
//! [`chain::Filters`] is all of them for one route.

pub mod advise;
pub mod backend;
pub mod cache;
pub mod chain;
pub mod coded_fields;
pub mod compress;
pub mod compress_codings;
pub mod compress_threads;
pub mod mirror;
pub mod push;
pub mod ssi;
#[cfg(test)]
mod test_fields;
