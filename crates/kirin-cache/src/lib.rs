#![forbid(unsafe_code)]
//! The rules of a shared HTTP cache (RFC 9111), without a cache: no I/O, no clock, no store.
//!
//! A reader can follow a response through the files in this order: [`directives`] and
//! [`cache_control`] read what it says,
//! [`storable`] decides whether it is kept and makes its [`Policy`], [`stored`] is the form in
//! which it lies in memory, [`key`] and [`vary`] say under which key. A later request goes through
//! [`reuse`]; if that says to ask again, [`validation`] makes the question and merges the answer;
//! [`collapse`] says whether it shares what is still coming. [`invalidation`] is what a POST does
//! to what is stored, [`cache_status`] what clients are told of all this, and [`surrogate`] and
//! [`targeted`] what an application can say that only we read.
//!
//! Called by `kirin/src/cache/`, which has the store, the requests under way and the clock.

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
pub use storable::{Asked, StorageRules, Unstorable, policy_of};
pub use stored::Stored;
pub use vary::Vary;
