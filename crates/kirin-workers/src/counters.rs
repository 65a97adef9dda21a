//! What has happened in an application since its start.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counts, kept by all event loops.
        #[derive(Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        /// The counts at one moment.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct CounterValues {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl CounterValues {
            /// The counts with their names.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }

        impl Counters {
            pub(crate) fn values(&self) -> CounterValues {
                CounterValues { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Requests that came for the application.
    requests,
    /// Requests that had to wait for a worker.
    queued,
    /// Requests refused because the queue was full.
    refused_full,
    /// Requests refused because they had waited too long.
    refused_waited,
    /// Requests whose clients had gone before there was a worker.
    clients_gone,
    /// Requests given to a second worker because the first was lost.
    retried,
    /// Requests answered 502: their worker was lost or did not keep to the protocol.
    failed,
    /// Requests answered 504: their worker took too long and was killed.
    overdue,
    /// Workers killed because their cleanup after a response took too long.
    overdue_cleanups,
    /// Workers that said that they leave after a response: their number of requests was over, or
    /// the application wished it.
    workers_left,
    /// Workers replaced because of their age.
    replaced_by_age,
    /// Workers replaced because of their resident memory.
    replaced_by_memory,
    /// Workers that have ended.
    workers_ended,
    /// Request bodies, and responses to slow clients, that could not be written to a spool file.
    spool_failed,
}

/// One count.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}
