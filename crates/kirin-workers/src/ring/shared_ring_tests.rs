//! What the places of a ring are worth while its generation is replaced.

use std::task::{Context, Poll};

use super::*;
use crate::ring::place::RingPlace;
use crate::ring::requests::NotPut;
use crate::ring::room;
use crate::worker_handle::WorkerHandle;

/// The connection of a worker, of which there is none.
enum NoConnection {}

impl Parked for NoConnection {
    fn handle(&self) -> &Arc<WorkerHandle> {
        match *self {}
    }

    fn place(&mut self) -> &mut Option<RingPlace<Self>> {
        match *self {}
    }
}

type TestRing = SharedRing<NoConnection>;

/// An application that keeps places, and whose generation is replaced before it gets the one with
/// this number.
struct TestApp {
    retired_at: Option<usize>,
    offered: AtomicUsize,
    kept: Mutex<Vec<RingPlace<NoConnection>>>,
}

impl TestApp {
    fn new(retired_at: Option<usize>) -> Self {
        Self { retired_at, offered: AtomicUsize::new(0), kept: Mutex::new(Vec::new()) }
    }
}

impl RingOwner<NoConnection> for TestApp {
    fn release_place(&self, place: RingPlace<NoConnection>) {
        let number = self.offered.fetch_add(1, Ordering::Relaxed);
        if self.retired_at == Some(number) {
            place.ring().is_retired.store(true, Ordering::Relaxed);
        }
        if !place.ring().is_retired() {
            self.kept.lock().push(place);
        }
    }

    fn remove_places(&self, is_surplus: impl Fn(&RingPlace<NoConnection>) -> bool) {
        let surplus: Vec<_> = self.kept.lock().extract_if(.., |place| is_surplus(place)).collect();
        drop(surplus);
    }

    fn queue_length(&self) -> usize {
        100
    }

    fn set_queue_length(&self, _: u64, _: usize) {}

    fn log_slow_cleanup(&self, _: u32) {}

    fn log_silent(&self, _: u32) {}
}

fn ring(workers: usize) -> Arc<TestRing> {
    let ring = TestRing::create("test", 1, 8 * room::SLOT_BYTES, 1).expect("a ring");
    ring.state.lock().workers = workers;
    ring
}

#[test]
fn places_are_offered_once_if_the_generation_is_replaced_meanwhile() {
    let (ring, app) = (ring(4), TestApp::new(Some(2)));
    ring.offer_places(&app);
    assert_eq!(app.offered.load(Ordering::Relaxed), 4);
    assert_eq!(ring.places(), 2, "the application keeps those from before");
    ring.retire(&app);
    assert_eq!(ring.places(), 0);
}

#[test]
fn a_request_with_a_place_of_a_replaced_generation_is_not_put() {
    let (ring, app) = (ring(2), TestApp::new(None));
    ring.offer_places(&app);
    let mut places = std::mem::take(&mut *app.kept.lock());
    let (late, early) = (places.pop().expect("a place"), places.pop().expect("a place"));
    let (slot, must_wait) = ring.put(early, None, Instant::now()).expect("a slot");
    assert!(!must_wait);
    ring.retire(&app);
    let context = Context::from_waker(Waker::noop());
    assert!(matches!(ring.poll(slot, &context), Poll::Ready(Outcome::Withdrawn)));
    assert_eq!(ring.put(late, None, Instant::now()), Err(NotPut::Retired));
    ring.take_note(&app, slot);
    assert_eq!(ring.places(), 0);
}
