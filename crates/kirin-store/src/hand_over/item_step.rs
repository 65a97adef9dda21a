//! A change of an item that keeps the rest of it.

use crate::clock::Expires;

/// A change of an item that keeps the rest of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemStep {
    /// It counts up by so much.
    Up(u64),
    /// It counts down by so much.
    Down(u64),
    /// It gets another expiry.
    Touch(Expires),
}
