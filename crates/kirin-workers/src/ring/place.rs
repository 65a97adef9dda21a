//! The right to put a request into a ring.

use std::sync::Arc;

use crate::ring::owner::Parked;
use crate::ring::shared_ring::SharedRing;

/// The right to put one request into a ring. Dropping it gives it up.
pub(crate) struct RingPlace<C: Parked> {
    ring: Arc<SharedRing<C>>,
    /// Whether a request has it.
    is_kept: bool,
}

impl<C: Parked> RingPlace<C> {
    /// Returns a place that `ring` has counted.
    pub(super) fn counted(ring: Arc<SharedRing<C>>) -> Self {
        Self { ring, is_kept: false }
    }

    pub(crate) fn ring(&self) -> &Arc<SharedRing<C>> {
        &self.ring
    }

    /// Gives the place to a request in the ring, which goes on counting it.
    pub(super) fn keep_counted(mut self) {
        self.is_kept = true;
    }
}

impl<C: Parked> Drop for RingPlace<C> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.ring.uncount_place();
        }
    }
}
