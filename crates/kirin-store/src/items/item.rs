//! An item as a reader gets it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::clock::{Expires, Now};
use crate::items::side_data::SideData;
use crate::memory::slab::mark;

/// An item as a reader found it.
///
/// It is cheap to clone and independent of the store. It stays complete even if the item is
/// replaced, expires or is evicted. As long as it lives, the memory of the value stays allocated,
/// outside of the budget. So it should not be kept for long.
#[derive(Clone)]
pub struct ItemRef {
    /// Key and value. If the value is in `side`, the key alone.
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
    /// Returns the key.
    pub fn key(&self) -> &[u8] {
        self.content.get(..self.key_len as usize).unwrap_or_default()
    }

    /// Borrows the value, for copying a small value into an output buffer.
    pub fn value_slice(&self) -> &[u8] {
        match self.separate_value() {
            Some(value) => value,
            None => self.content.get(self.key_len as usize..).unwrap_or_default(),
        }
    }

    /// Returns the value without copying it.
    pub fn value(&self) -> Bytes {
        match self.separate_value() {
            Some(value) => value.clone(),
            None => self.content.slice(self.key_len as usize..),
        }
    }

    fn separate_value(&self) -> Option<&Bytes> {
        self.side.as_ref()?.value.as_ref()
    }

    /// Returns the length of the value in bytes (meta `s`).
    pub fn value_len(&self) -> usize {
        self.value_slice().len()
    }

    /// Returns the client flags (meta `f`).
    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// Returns the CAS unique, which is never 0 (meta `c`).
    pub fn cas(&self) -> u64 {
        self.cas
    }

    /// Returns the item's sequence number in its store. It changes whenever the item does, and is
    /// the CAS unique unless a client chose that.
    pub fn sequence(&self) -> u64 {
        self.side.as_ref().and_then(|side| side.sequence).unwrap_or(self.cas)
    }

    /// Returns the expiry (meta `t`, with [`Expires::seconds_left`]).
    pub fn expires(&self) -> Expires {
        self.expires
    }

    /// Returns the time of the last access before this one (meta `l`).
    pub fn last_access(&self) -> Now {
        self.last_access
    }

    /// Returns whether the item was fetched before this access (meta `h`).
    pub fn was_fetched(&self) -> bool {
        self.marks & mark::FETCHED != 0
    }

    /// Returns whether the item is stale: invalidated, but still served (meta `X`).
    pub fn is_stale(&self) -> bool {
        self.marks & mark::STALE != 0
    }

    /// Returns whether another client has won the right to recache the item before this access
    /// (meta `Z`).
    pub fn is_won(&self) -> bool {
        self.marks & mark::WON != 0
    }

    /// Lists the tags of the item.
    pub fn tags(&self) -> impl Iterator<Item = &[u8]> {
        self.side.iter().flat_map(|side| side.tags.iter().map(|tag| tag.name()))
    }

    /// Returns the companion of type `T` if there is one, see
    /// [`Store::companion`](crate::Store::companion).
    pub fn companion<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.side.as_ref()?.companion::<T>()
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
