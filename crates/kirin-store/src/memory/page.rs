//! Pages of a shard's log: memory that records are packed into.

use std::sync::{Arc, Weak};

use bytes::Bytes;

use crate::memory::region::Region;

/// Slot number, key length and value length before each record.
pub(crate) const HEADER_BYTES: usize = 8;

/// A record in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) slot: u32,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl Record<'_> {
    pub(crate) fn bytes(&self) -> usize {
        record_bytes(self.key.len() + self.value.len())
    }
}

/// What a record of key and value takes in its page.
pub(crate) const fn record_bytes(len: usize) -> usize {
    HEADER_BYTES + len
}

#[derive(Debug, Default)]
pub(crate) enum Contents {
    #[default]
    Vacant,
    /// Being filled; the number is how far.
    Open(Region, usize),
    /// Full; readers may hold it.
    Closed(Bytes, Weak<()>),
}

/// A full page. The token tells whether it still exists: `Bytes` does not.
struct Full {
    region: Region,
    _token: Arc<()>,
}

impl AsRef<[u8]> for Full {
    fn as_ref(&self) -> &[u8] {
        &self.region
    }
}

#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) contents: Contents,
    /// Bytes of the records in it that are still needed.
    pub(crate) live_bytes: usize,
}

impl Page {
    /// Makes the page being filled a full one, of which the first `bytes` count.
    pub(crate) fn close(&mut self, bytes: usize) {
        self.contents = match std::mem::take(&mut self.contents) {
            Contents::Open(region, _) => {
                let token = Arc::new(());
                let exists = Arc::downgrade(&token);
                Contents::Closed(
                    Bytes::from_owner(Full { region, _token: token }).slice(..bytes),
                    exists,
                )
            }
            other => other,
        };
    }

    pub(crate) fn written(&self) -> &[u8] {
        match &self.contents {
            Contents::Vacant => &[],
            Contents::Open(region, written) => region.get(..*written).unwrap_or_default(),
            Contents::Closed(written, _) => written,
        }
    }
    /// The record at an offset.
    pub(crate) fn record_at(&self, offset: u32) -> Option<Record<'_>> {
        let (slot, rest) = self.written().get(offset as usize..)?.split_first_chunk::<4>()?;
        let (key_len, rest) = rest.split_first_chunk::<2>()?;
        let (value_len, rest) = rest.split_first_chunk::<2>()?;
        let (key, rest) = rest.split_at_checked(u16::from_le_bytes(*key_len).into())?;
        let value = rest.get(..u16::from_le_bytes(*value_len).into())?;
        Some(Record { slot: u32::from_le_bytes(*slot), key, value })
    }
}
