//! The metrics of the origin of the store.

use std::sync::atomic::{AtomicU64, Ordering};

use kirin_metrics::{Exposition, Family};
use kirin_origin::{OriginCounters, OriginState};

use super::Metrics;
use super::families as f;

/// A counter of an origin.
type Counter = fn(&OriginCounters) -> &AtomicU64;

/// The counters of an origin.
const COUNTERS: &[(&Family, Counter)] = &[
    (&f::ORIGIN_CONNECTIONS, |counters| &counters.connections),
    (&f::ORIGIN_READS, |counters| &counters.reads),
    (&f::ORIGIN_READ_HITS, |counters| &counters.read_hits),
    (&f::ORIGIN_COPIES_REFUSED, |counters| &counters.copies_refused),
    (&f::ORIGIN_WRITES, |counters| &counters.writes),
    (&f::ORIGIN_WRITE_CONFLICTS, |counters| &counters.write_conflicts),
    (&f::ORIGIN_PURGES, |counters| &counters.purges),
    (&f::ORIGIN_INVALIDATIONS, |counters| &counters.invalidations),
    (&f::ORIGIN_TIMEOUTS, |counters| &counters.timeouts),
    (&f::ORIGIN_FAILURES, |counters| &counters.failures),
];

impl Metrics {
    /// Writes the metrics of the origin. Without one there are none.
    pub(super) fn write_origin(&self, out: &mut Exposition, machines: Option<u64>) {
        let Some(origin) = &self.origin else { return };
        let is_connected = matches!(origin.state(), OriginState::Connected { .. });
        out.sample(&f::ORIGIN_CONNECTED, &[], is_connected);
        if let Some(machines) = machines {
            out.sample(&f::ORIGIN_MACHINES, &[], machines);
        }
        for (family, counter) in COUNTERS {
            out.sample(family, &[], counter(origin.counters()).load(Ordering::Relaxed));
        }
    }
}
