//! The observer that fills the live table of one event loop.
//!
//! Requests that waited for something are all counted. Answers that are there at once are counted
//! one by one up to [`EXACT_A_SECOND`]. Beyond that, one of [`WEIGHT`] is counted, and stands for
//! all of them: an answer from memory takes a few microseconds, of which this may take 20 ns.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use kirin_server::{EndedRequest, RequestObserver};
use kirin_url_patterns::ConfiguredPattern;
use parking_lot::Mutex;

use crate::live::route_sites::RouteSites;
use crate::live::url_table::{PART_SECONDS, UrlTable};

/// The answers at once in a second that are all counted.
const EXACT_A_SECOND: u32 = 1000;

/// The number of answers at once for which one stands after that.
const WEIGHT: u32 = 16;

/// The live table of one event loop, which readers share.
pub struct LiveLoop {
    started: Instant,
    /// All requests, sampled or not.
    requests: AtomicU64,
    table: Mutex<UrlTable>,
}

impl LiveLoop {
    /// Returns an empty table. All loops have the same `started`.
    pub fn new(
        started: Instant,
        configured: Vec<ConfiguredPattern>,
        sites: Arc<RouteSites>,
    ) -> Self {
        let table = Mutex::new(UrlTable::new(configured, sites));
        Self { started, requests: AtomicU64::new(0), table }
    }

    /// Returns the number of all requests.
    pub fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// Returns the start of the program.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Counts the requests that end from now on by other patterns and sites. Other patterns begin
    /// an empty table.
    pub fn count_by(&self, configured: Option<Vec<ConfiguredPattern>>, sites: Arc<RouteSites>) {
        let mut table = self.table.lock();
        match configured {
            Some(configured) => *table = UrlTable::new(configured, sites),
            None => table.set_sites(sites),
        }
    }

    /// Calls `read` with the table. The event loop waits for it, so this must be short.
    pub(super) fn with<R>(&self, read: impl FnOnce(&UrlTable) -> R) -> R {
        read(&self.table.lock())
    }
}

/// The observer of one event loop.
pub struct LiveObserver {
    live: Arc<LiveLoop>,
    /// The answers at once that are counted one by one before the sampling begins.
    exact_left: Cell<u32>,
    /// The second since the start in which `exact_left` was full.
    second: Cell<u64>,
    /// The answers at once up to the next one that is counted.
    until_sample: Cell<u32>,
    random: Cell<u32>,
}

impl LiveObserver {
    /// Returns the observer that fills `live`.
    pub fn new(live: Arc<LiveLoop>) -> Self {
        Self {
            live,
            exact_left: Cell::new(EXACT_A_SECOND),
            second: Cell::new(0),
            until_sample: Cell::new(1),
            random: Cell::new(0x9e37_79b9),
        }
    }

    /// Returns the distance to the next answer that is counted: from 1 to 31, 16 on average. A
    /// constant distance could always meet the same file of a page.
    fn next_distance(&self) -> u32 {
        // A linear congruential generator (Numerical Recipes). An attacker gains nothing by
        // predicting it.
        let random = self.random.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.random.set(random);
        1 + ((u64::from(random) * u64::from(2 * WEIGHT - 1)) >> 32) as u32
    }

    /// Learns that there is a request. Returns for how many requests it stands; 0 if it is left
    /// out. `waits` says whether the answer was not there at once.
    fn weight(&self, waits: bool) -> u32 {
        // Only this thread writes, so no atomic addition is needed.
        self.live.requests.store(self.live.requests.load(Relaxed) + 1, Relaxed);
        if waits {
            return 1;
        }
        if let Some(left) = self.exact_left.get().checked_sub(1) {
            self.exact_left.set(left);
            return 1;
        }
        match self.until_sample.get() {
            0 | 1 => {
                self.until_sample.set(self.next_distance());
                WEIGHT
            }
            distance => {
                self.until_sample.set(distance - 1);
                0
            }
        }
    }
}

impl RequestObserver for LiveObserver {
    fn request_ended(&self, request: &EndedRequest<'_>) {
        let weight = self.weight(request.steps.is_some());
        if weight == 0 {
            return;
        }
        let ended = request.started + request.took;
        let second = ended.saturating_duration_since(self.live.started).as_secs();
        if second != self.second.replace(second) {
            self.exact_left.set(EXACT_A_SECOND);
        }
        self.live.table.lock().add(request, weight, second / PART_SECONDS);
    }
}

#[cfg(test)]
#[path = "observer_tests.rs"]
mod tests;
