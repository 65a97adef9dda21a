//! The time limits of the connections of a listener for each step, and the clock that checks them.

use std::rc::Rc;

use kirin_http::pace::MinimumPace;

use crate::clock::Clock;
use crate::limits::Limits;

/// The time limits of a listener, in whole seconds, with the clock of the event loop.
pub(crate) struct Deadlines {
    pub(crate) clock: Rc<Clock>,
    /// How long a connection may be idle between requests.
    pub(crate) keep_alive: u64,
    /// How long a request head may take.
    pub(crate) head: u64,
    /// How fast a client must send a request body.
    pub(crate) reading: MinimumPace,
    /// How fast a client must take a response.
    pub(crate) writing: MinimumPace,
}

impl Deadlines {
    /// Returns the times that `limits` sets, by this clock. None of them is shorter than a second.
    pub(crate) fn new(limits: &Limits, clock: Rc<Clock>) -> Self {
        let minimum =
            |silence: u64| MinimumPace { silence: silence.max(1), rate: limits.min_rate_bytes };
        Self {
            clock,
            keep_alive: limits.keep_alive.as_secs().max(1),
            head: limits.head_time.as_secs().max(1),
            reading: minimum(limits.body_time.as_secs()),
            writing: minimum(limits.write_time.as_secs()),
        }
    }
}
