//! What has happened in an application since its start.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The counters, shared by all event loops.
        #[derive(Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        /// The counters at one moment.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct CounterValues {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl CounterValues {
            /// Returns the counters with their names.
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
    /// Requests to the application.
    requests,
    /// Requests that had to wait for a worker.
    queued,
    /// Requests that were refused because the queue was full.
    refused_full,
    /// Requests that were refused because they had waited too long.
    refused_waited,
    /// Requests whose clients had gone before a worker was free.
    clients_gone,
    /// Requests that were given to another worker because the first was lost.
    retried,
    /// Requests that were answered with 502, because their worker was lost or broke the protocol.
    failed,
    /// Requests that were answered with 504, because their worker took too long and was killed.
    overdue,
    /// Requests that took longer than `slow`.
    slow,
    /// Workers that were killed because their cleanup after a response took too long.
    overdue_cleanups,
    /// Workers that were killed because they did not look for a request in time.
    silent_workers,
    /// Workers that left after a response, because they had served enough requests or the
    /// application wished it.
    workers_left,
    /// Workers that were replaced because of their age.
    replaced_by_age,
    /// Workers that were replaced because of their resident memory.
    replaced_by_memory,
    /// Workers that have ended.
    workers_ended,
    /// Workers that have ended although neither Kirin nor they themselves wanted it.
    workers_crashed,
    /// App parents that have ended and were started again.
    parents_restarted,
    /// Reloads after which a new generation served.
    reloads,
    /// Reloads that failed, so that the old generation keeps serving.
    reloads_failed,
    /// Trials after which the new code serves everybody.
    trials_promoted,
    /// Trials in which the new code did worse and was given up.
    trials_given_up,
    /// Request bodies and responses that could not be written to a spool file.
    spool_failed,
}

/// One counter.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}
