//! What few items have and the rest should not pay for: tags, a large value, companions.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

use crate::invalidation::tag::Tag;
use crate::memory::region::region_bytes;
use crate::memory::size_class::allocated_bytes;

/// The part of an item that lives beside its slot. Never changed once readers can see it; a change
/// makes a new one.
#[derive(Clone, Default)]
pub(crate) struct SideData {
    /// A value that is too large for the log.
    pub(crate) value: Option<Bytes>,
    /// The tags the item carries.
    pub(crate) tags: Box<[Arc<Tag>]>,
    /// The item's number when its CAS was given by the client and does not say when it was stored.
    pub(crate) sequence: Option<u64>,
    /// What was computed from the value, one of a type.
    pub(crate) companions: Vec<Companion>,
}

/// Something computed from a value and kept beside it.
#[derive(Clone)]
pub(crate) struct Companion {
    pub(crate) made: Arc<dyn Any + Send + Sync>,
    /// What its maker says it holds.
    pub(crate) bytes: usize,
    /// Bytes of a copy that it was made from, and may hold: the item was in a page being filled. It
    /// goes when that is full.
    pub(crate) copied_bytes: usize,
}

impl Companion {
    /// What it takes from the budget.
    pub(crate) fn charged_bytes(&self) -> usize {
        let own = self.bytes.saturating_add(self.copied_bytes);
        allocated_bytes(own.saturating_add(size_of::<Companion>() + 16))
    }
}

/// Allocated around every side: the `Arc` and its place in the shard's map.
const SIDE_FIXED_BYTES: usize =
    size_of::<SideData>() + 16 + 2 * (size_of::<u32>() + size_of::<usize>());

impl SideData {
    /// Whether there is anything in it.
    pub(crate) fn is_needed(&self) -> bool {
        self.value.is_some()
            || !self.tags.is_empty()
            || self.sequence.is_some()
            || !self.companions.is_empty()
    }

    /// What it takes from the budget.
    pub(crate) fn bytes(&self) -> usize {
        let value = self.value.as_ref().map_or(0, |value| region_bytes(value.len()));
        let companions: usize = self.companions.iter().map(Companion::charged_bytes).sum();
        allocated_bytes(SIDE_FIXED_BYTES)
            + value
            + allocated_bytes(self.tags.len() * size_of::<Arc<Tag>>())
            + companions
    }

    /// The companion of type `T`, when there is one.
    pub(crate) fn companion<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        // Asked before it is counted: most items have more than one, and readers share the counts.
        let made =
            self.companions.iter().map(|companion| &companion.made).find(|made| made.is::<T>())?;
        Arc::clone(made).downcast::<T>().ok()
    }
}
