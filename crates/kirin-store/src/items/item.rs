//! What a reader gets: an item as it was when it was found.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::clock::{Expires, Now};
use crate::items::side_data::SideData;
use crate::memory::slab::mark;

/// An item as a reader found it.
///
/// Cheap to clone, and independent of the store: it stays whole when the item is replaced, expires
/// or is evicted meanwhile. While it lives, so does the value's memory, outside of the budget; do
/// not hoard them.
#[derive(Clone)]
pub struct ItemRef {
    /// Key and value, or the key alone when the value lies in `side`.
    pub(crate) content: Bytes,
    pub(crate) side: Option<Arc<SideData>>,
    pub(crate) cas: u64,
    pub(crate) expires: Expires,
    pub(crate) last_access: Now,
    pub(crate) flags: u32,
    pub(crate) key_len: u16,
    pub(crate) marks: u8,
}

impl ItemRef {
    /// The key.
    pub fn key(&self) -> &[u8] {
        self.content.get(..self.key_len as usize).unwrap_or_default()
    }

    /// The value, borrowed: for copying small values into an output buffer.
    pub fn value_slice(&self) -> &[u8] {
        match self.separate_value() {
            Some(value) => value,
            None => self.content.get(self.key_len as usize..).unwrap_or_default(),
        }
    }

    /// The value, without copying it.
    pub fn value(&self) -> Bytes {
        match self.separate_value() {
            Some(value) => value.clone(),
            None => self.content.slice(self.key_len as usize..),
        }
    }

    fn separate_value(&self) -> Option<&Bytes> {
        self.side.as_ref()?.value.as_ref()
    }

    /// Length of the value in bytes (meta `s`).
    pub fn value_len(&self) -> usize {
        self.value_slice().len()
    }

    /// Client flags (meta `f`).
    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// The CAS unique (meta `c`); never 0.
    pub fn cas(&self) -> u64 {
        self.cas
    }

    /// When it expires (meta `t`, with [`Expires::seconds_left`]).
    pub fn expires(&self) -> Expires {
        self.expires
    }

    /// When it was last accessed before this (meta `l`).
    pub fn last_access(&self) -> Now {
        self.last_access
    }

    /// Whether it had been fetched before this (meta `h`).
    pub fn was_fetched(&self) -> bool {
        self.marks & mark::FETCHED != 0
    }

    /// Whether it has been invalidated and is served all the same (meta `X`).
    pub fn is_stale(&self) -> bool {
        self.marks & mark::STALE != 0
    }

    /// Whether somebody had been told to recache it before this (meta `Z`).
    pub fn is_won(&self) -> bool {
        self.marks & mark::WON != 0
    }

    /// The tags it carries.
    pub fn tags(&self) -> impl Iterator<Item = &[u8]> {
        self.side.iter().flat_map(|side| side.tags.iter().map(|tag| tag.name()))
    }

    /// What [`Store::companion`](crate::Store::companion) keeps beside this item, when something of
    /// type `T` is there already.
    pub fn companion<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.side.as_ref()?.companion::<T>()
    }
}

impl AsRef<[u8]> for ItemRef {
    fn as_ref(&self) -> &[u8] {
        self.value_slice()
    }
}

impl fmt::Debug for ItemRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemRef")
            .field("key", &String::from_utf8_lossy(self.key()))
            .field("value_len", &self.value_len())
            .field("flags", &self.flags)
            .field("cas", &self.cas)
            .field("expires", &self.expires)
            .field("stale", &self.is_stale())
            .field("won", &self.is_won())
            .finish_non_exhaustive()
    }
}
