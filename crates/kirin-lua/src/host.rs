//! The functions of the program that scripts use, besides the store.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use kirin_store::Now;

use crate::request::Called;

/// The program around the scripts. Each function may be called at any request, on the event loop.
/// None may block.
pub trait Host: 'static {
    /// Returns the visitor's session as JSON text. Returns `None` without a session, or if sessions
    /// are not configured.
    fn session(&self, _request: &Called, _now: Now) -> Option<Bytes> {
        None
    }

    /// Records how long a script occupied the event loop. It is not called for calls that did not
    /// look at the clock.
    fn ran(&self, _time: Duration) {}
}

/// A host without functions.
impl Host for () {}

/// The time of the running call for the store, in seconds.
#[derive(Clone)]
pub(crate) struct Moment(Rc<Cell<Now>>);

impl Default for Moment {
    fn default() -> Self {
        Self(Rc::new(Cell::new(Now::from_unix_seconds(0))))
    }
}

impl Moment {
    pub fn now(&self) -> Now {
        self.0.get()
    }

    pub fn set(&self, now: Now) {
        self.0.set(now);
    }
}
