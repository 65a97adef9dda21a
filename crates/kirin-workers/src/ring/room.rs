//! How much memory a request and its answer have in a ring.

/// The longest request in a slot, in bytes. A longer one goes over the worker's connection.
pub(crate) const REQUEST_BYTES: usize = 16 * 1024;

/// The longest answer in a slot, in bytes.
pub(crate) const ANSWER_BYTES: usize = 48 * 1024;

/// The memory that a request and its answer take in a ring, in bytes.
pub const SLOT_BYTES: u64 = (REQUEST_BYTES + ANSWER_BYTES) as u64;
