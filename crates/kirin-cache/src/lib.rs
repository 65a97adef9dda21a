#![forbid(unsafe_code)]
//! The rules of a shared HTTP cache (RFC 9111), without I/O, clock or store.
//!
//! A response goes through these files:
//!
//! 1. [`directives`] and [`cache_control`] read its directives. [`surrogate`] and [`targeted`] read
//!    the fields that an application addresses to this cache only.
//! 2. [`storable`] decides whether it is stored, and makes its [`Policy`].
//! 3. [`stored`] is its form in memory, and [`key`] and [`vary`] give its key.
//!
//! A later request goes through [`reuse`]. If the response must be validated, [`validation`] makes
//! the conditions and merges the answer. [`collapse`] decides whether the request shares a response
//! that is still being received.
//!
//! [`invalidation`] is the effect of a POST on stored responses. [`cache_status`] tells clients how
//! a request was handled.
//!
//! The gateway's cache filter calls these rules. It has the store, the pending requests and the
//! clock.

pub mod cache_control;
pub mod cache_status;
pub mod collapse;
pub mod directives;
#[cfg(test)]
mod doubling_tests;
pub mod invalidation;
pub mod key;
pub mod policy;
pub mod reuse;
pub mod storable;
pub mod stored;
pub mod surrogate;
pub mod targeted;
pub mod validation;
pub mod vary;

pub use cache_control::{RequestDirectives, ResponseDirectives};
pub use cache_status::{CacheStatus, Forwarded};
pub use collapse::{Collapse, collapse};
pub use policy::{Policy, Staleness};
pub use reuse::{Reuse, reuse};
pub use storable::{StorableRequest, StorageRules, Unstorable, policy_of};
pub use stored::Stored;
pub use vary::Vary;
