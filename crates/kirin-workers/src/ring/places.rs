//! Places: how many requests may be in the ring. A request needs one to be put there.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::ring::owner::{Parked, RingOwner};
use crate::ring::place::RingPlace;
use crate::ring::shared_ring::SharedRing;

impl<C: Parked> SharedRing<C> {
    pub(super) fn uncount_place(&self) {
        let places = self.places.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(places > 0, "a place that was not counted is given up");
    }

    /// Decides how many places there should be. Requests that wait in the ring take room of the
    /// application's queue.
    fn set_most_places(&self, app: &impl RingOwner<C>) -> usize {
        let most = if self.is_retired() {
            0
        } else {
            let (workers, ahead) = {
                let state = self.state.lock();
                (state.workers, state.service.ahead(state.workers))
            };
            let length = app.queue_length();
            let room = self.ring.sizes().slots.saturating_sub(workers);
            let ahead = ahead.min(length).min(room);
            debug_assert!(workers + ahead <= self.ring.sizes().slots, "{workers} and {ahead}");
            if workers + ahead != self.most_places.load(Ordering::Relaxed) {
                app.set_queue_length(self.generation(), length - ahead);
            }
            workers + ahead
        };
        self.most_places.store(most, Ordering::Relaxed);
        most
    }

    /// Gives a place back whose request has left the ring.
    pub(super) fn release_place(self: &Arc<Self>, app: &impl RingOwner<C>) {
        // The request that has left the ring has kept it.
        debug_assert!(self.places() > 0, "a place that was not counted is given back");
        let place = RingPlace::counted(Arc::clone(self));
        let most = self.most_places.load(Ordering::Relaxed);
        if self.places.load(Ordering::Relaxed) <= most {
            app.release_place(place);
        }
    }

    /// Makes the places that are missing.
    pub(super) fn offer_places(self: &Arc<Self>, app: &impl RingOwner<C>) {
        let most = self.set_most_places(app);
        // If the generation is replaced meanwhile, the application drops the places and they stay
        // missing.
        for _ in self.places()..most {
            self.places.fetch_add(1, Ordering::Relaxed);
            app.release_place(RingPlace::counted(Arc::clone(self)));
        }
    }

    /// Returns how many places there are.
    pub(super) fn places(&self) -> usize {
        self.places.load(Ordering::Relaxed)
    }

    /// Takes idle places away until there are only as many as workers can use.
    pub(super) fn trim_places(self: &Arc<Self>, app: &impl RingOwner<C>) {
        let most = self.set_most_places(app);
        let (own, surplus) = (Arc::as_ptr(self), Cell::new(0));
        let excess = self.places.load(Ordering::Relaxed).saturating_sub(most);
        app.remove_places(|place| {
            let is_surplus = std::ptr::eq(Arc::as_ptr(place.ring()), own) && surplus.get() < excess;
            surplus.set(surplus.get() + usize::from(is_surplus));
            is_surplus
        });
        self.offer_places(app);
    }
}
