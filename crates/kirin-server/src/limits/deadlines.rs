//! How long the connections of a listener may take for each thing that they do, and the clock that
//! tells when the time is over.

use crate::clock::Clock;
use crate::limits::Limits;
use kirin_http::pace::Demand;

/// The times of a listener, in whole seconds, with the clock of the loop.
pub(crate) struct Deadlines {
    pub(crate) clock: Clock,
    /// How long a connection may be idle between requests.
    pub(crate) keep_alive: u64,
    /// How long a request head may take.
    pub(crate) head: u64,
    /// How fast a client must send a request body.
    pub(crate) reading: Demand,
    /// How fast a client must take a response.
    pub(crate) writing: Demand,
}

impl Deadlines {
    /// Returns the times that `limits` sets. None of them is shorter than a second.
    pub(crate) fn new(limits: &Limits) -> Self {
        let demand = |silence: u64| Demand { silence: silence.max(1), rate: limits.min_rate_bytes };
        Self {
            clock: Clock::default(),
            keep_alive: limits.keep_alive.as_secs().max(1),
            head: limits.head_time.as_secs().max(1),
            reading: demand(limits.body_time.as_secs()),
            writing: demand(limits.write_time.as_secs()),
        }
    }
}
