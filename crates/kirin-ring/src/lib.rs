#![deny(unsafe_code)]
// The tests of loom take the steps of the protocol alone.
#![cfg_attr(feature = "loom", allow(dead_code))]
//! The hand-over of requests and answers through memory that a front and its workers share, without
//! a system call while both are busy. `docs/worker-protocol.md` ("The ring") describes it.
//!
//! [`Ring`] is the memory. All threads of the front read from it: which slots have been finished,
//! which worker has claimed a slot, what the answer is. [`Queue`] is the front's own account of
//! free slots and positions. One thread at a time changes it.
//!
//! Workers are not trusted. Each number that comes from the memory is checked before it is used,
//! and an answer is copied before anybody parses it.

mod claim;
mod layout;
mod protocol;
mod words;
pub mod worker;

// The memory itself: loom has its own.
#[cfg(not(feature = "loom"))]
mod copy;
#[cfg(not(feature = "loom"))]
mod mapping;
#[cfg(not(feature = "loom"))]
mod queue;
#[cfg(not(feature = "loom"))]
mod ring;

#[cfg(all(test, feature = "loom"))]
mod loom_tests;

pub use claim::{Claim, Phase};
pub use layout::{BadSizes, MAX_LOOPS, Sizes};
#[cfg(not(feature = "loom"))]
pub use queue::{NoPlace, Queue};
#[cfg(not(feature = "loom"))]
pub use ring::{BadAnswer, Ring};
