//! Data that only some items have: tags, a large value, companions. Other items do not pay for
//! them.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

use crate::invalidation::tag::ItemTag;
use crate::memory::region::region_bytes;
use crate::memory::size_class::allocated_bytes;

/// The part of an item that is kept beside its slot. It never changes once readers can see it. A
/// change makes a new one.
#[derive(Clone, Default)]
pub(crate) struct SideData {
    /// A value that is too large for the log.
    pub(crate) value: Option<Bytes>,
    /// The tags of the item.
    pub(crate) tags: Box<[Arc<ItemTag>]>,
    /// The item's sequence number, if a client chose the CAS unique. Then the CAS unique does not
    /// tell when the item was stored.
    pub(crate) sequence: Option<u64>,
    /// The companions, at most one of each type.
    pub(crate) companions: Vec<Companion>,
}

/// A value that was computed from the item's value and is kept beside it.
#[derive(Clone)]
pub(crate) struct Companion {
    pub(crate) made: Arc<dyn Any + Send + Sync>,
    /// The bytes that it holds, as its maker counts them.
    pub(crate) bytes: usize,
    /// The bytes of the copy that it was made from, and may hold. The item was in a page that was
    /// being filled. The companion is dropped when that page is full. 0 if there was no copy.
    pub(crate) copied_bytes: usize,
}

impl Companion {
    /// Returns the bytes that it takes from the budget.
    pub(crate) fn charged_bytes(&self) -> usize {
        let own = self.bytes.saturating_add(self.copied_bytes);
        allocated_bytes(own.saturating_add(size_of::<Companion>() + 16))
    }
}

/// The bytes that each side data allocates: the `Arc` and its entry in the shard's map.
const SIDE_FIXED_BYTES: usize =
    size_of::<SideData>() + 16 + 2 * (size_of::<u32>() + size_of::<usize>());

impl SideData {
    /// Returns whether there is any data.
    pub(crate) fn is_needed(&self) -> bool {
        self.value.is_some()
            || !self.tags.is_empty()
            || self.sequence.is_some()
            || !self.companions.is_empty()
    }

    /// Returns the bytes that it takes from the budget.
    pub(crate) fn bytes(&self) -> usize {
        let value = self.value.as_ref().map_or(0, |value| region_bytes(value.len()));
        let companions: usize = self.companions.iter().map(Companion::charged_bytes).sum();
        allocated_bytes(SIDE_FIXED_BYTES)
            + value
            + allocated_bytes(self.tags.len() * size_of::<Arc<ItemTag>>())
            + companions
    }

    /// Returns the companion of type `T` if there is one.
    pub(crate) fn companion<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        // The type is checked before the reference is counted. Most items have several companions,
        // and readers share the counts.
        let made =
            self.companions.iter().map(|companion| &companion.made).find(|made| made.is::<T>())?;
        Arc::clone(made).downcast::<T>().ok()
    }
}
