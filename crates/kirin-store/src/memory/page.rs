//! The pages of a shard's log, into which records are packed.

use std::sync::{Arc, Weak};

use bytes::Bytes;

use crate::memory::region::Region;

/// The bytes before each record: slot number, key length and value length.
pub(crate) const HEADER_BYTES: usize = 8;

/// A record: the key and the value of an item, and its slot.
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

/// Returns the bytes that a record takes in its page. `len` is the length of key and value.
pub(crate) const fn record_bytes(len: usize) -> usize {
    HEADER_BYTES + len
}

#[derive(Debug, Default)]
pub(crate) enum PageContents {
    #[default]
    Vacant,
    /// A page that is being filled, and the number of bytes written so far.
    Open(Region, usize),
    /// A full page. Readers may hold slices of it.
    Closed(Bytes, Weak<()>),
}

/// The memory of a full page. The token tells whether it still exists, which `Bytes` does not.
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
pub(crate) struct LogPage {
    pub(crate) contents: PageContents,
    /// Bytes of the records that are still needed.
    pub(crate) live_bytes: usize,
}

impl LogPage {
    /// Closes the page that is being filled. Readers see its first `bytes`.
    pub(crate) fn close(&mut self, bytes: usize) {
        self.contents = match std::mem::take(&mut self.contents) {
            PageContents::Open(region, _) => {
                let token = Arc::new(());
                let exists = Arc::downgrade(&token);
                PageContents::Closed(
                    Bytes::from_owner(Full { region, _token: token }).slice(..bytes),
                    exists,
                )
            }
            other => other,
        };
    }

    #[inline]
    pub(crate) fn written(&self) -> &[u8] {
        match &self.contents {
            PageContents::Vacant => &[],
            PageContents::Open(region, written) => region.get(..*written).unwrap_or_default(),
            PageContents::Closed(written, _) => written,
        }
    }
    /// Returns the record at an offset.
    #[inline]
    pub(crate) fn record_at(&self, offset: u32) -> Option<Record<'_>> {
        let (slot, rest) = self.written().get(offset as usize..)?.split_first_chunk::<4>()?;
        let (key_len, rest) = rest.split_first_chunk::<2>()?;
        let (value_len, rest) = rest.split_first_chunk::<2>()?;
        let (key, rest) = rest.split_at_checked(u16::from_le_bytes(*key_len).into())?;
        let value = rest.get(..u16::from_le_bytes(*value_len).into())?;
        Some(Record { slot: u32::from_le_bytes(*slot), key, value })
    }
}
