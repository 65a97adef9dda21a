//! What the program offers scripts, beside the store.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use kirin_store::Now;

use crate::request::Called;

/// The program around the scripts. Every function may be called on any request, on the event loop:
/// none may block.
pub trait Host: 'static {
    /// The visitor's session as JSON text; none if there is none, or sessions are not known here.
    fn session(&self, _request: &Called, _now: Now) -> Option<Bytes> {
        None
    }

    /// Notes how long a script held the event loop. Not called for calls that did not look at the
    /// clock.
    fn ran(&self, _time: Duration) {}
}

/// A host that offers nothing.
impl Host for () {}

/// The second in which the call that runs is, for the store.
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
