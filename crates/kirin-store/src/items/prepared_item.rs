//! An item that is about to go into a shard.

use std::borrow::Cow;

use bytes::Bytes;

use crate::clock::{Expires, Now};
use crate::items::side_data::SideData;
use crate::memory::page::record_bytes;

/// An item that has no slot yet.
pub(crate) struct PreparedItem<'a> {
    pub(crate) key: &'a [u8],
    /// The value. It is empty if the value is in `side`.
    pub(crate) value: Cow<'a, [u8]>,
    pub(crate) side: SideData,
    pub(crate) cas: u64,
    pub(crate) expires: Expires,
    pub(crate) last_access: Now,
    pub(crate) flags: u32,
    pub(crate) marks: u8,
}

impl<'a> PreparedItem<'a> {
    /// Prepares an item with this value and nothing else.
    pub(crate) fn new(key: &'a [u8], value: PlacedValue<'a>) -> PreparedItem<'a> {
        let mut side = SideData::default();
        let value = match value {
            PlacedValue::Packed(value) => value,
            PlacedValue::Separate(value) => {
                side.value = Some(value);
                Cow::Borrowed(&[][..])
            }
        };
        let (expires, last_access) = (Expires::NEVER, Now::from_unix_seconds(0));
        PreparedItem { key, value, side, cas: 0, expires, last_access, flags: 0, marks: 0 }
    }

    pub(crate) fn value_len(&self) -> usize {
        self.side.value.as_ref().map_or(self.value.len(), Bytes::len)
    }

    /// Returns the bytes of key and value in the log.
    pub(crate) fn packed_len(&self) -> usize {
        self.key.len() + self.value.len()
    }

    /// Returns the bytes that the item takes, without its slot and its entry in the table.
    pub(crate) fn bytes(&self) -> usize {
        record_bytes(self.packed_len()) + self.side_bytes()
    }

    pub(crate) fn side_bytes(&self) -> usize {
        if self.side.is_needed() { self.side.bytes() } else { 0 }
    }
}

/// A value that is packed into a page or has an allocation of its own.
pub(crate) enum PlacedValue<'a> {
    Packed(Cow<'a, [u8]>),
    Separate(Bytes),
}
