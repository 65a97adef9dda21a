//! The functions of the program that scripts use, besides the store.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use kirin_store::{ItemRef, Namespace, Now};

use crate::request::Called;

/// The program around the scripts. Each function may be called at any request, on the event loop.
/// None may block.
pub trait Host: 'static {
    /// Returns the visitor's session. There is none if sessions are not configured.
    fn session(&self, _request: &Called, _now: Now) -> VisitorSession {
        VisitorSession::Nothing
    }

    /// Returns the JSON text of an item, if it is a session.
    fn session_text(&self, _item: &ItemRef, _now: Now) -> Option<Bytes> {
        None
    }

    /// Records how long a script occupied the event loop. It is not called for calls that did not
    /// look at the clock.
    fn ran(&self, _time: Duration) {}
}

/// The session of a visitor.
#[derive(Debug)]
pub enum VisitorSession {
    /// Its JSON text.
    Text(Bytes),
    /// There is none.
    Nothing,
    /// The server behind the store may have the item with this key.
    Unknown(Bytes),
}

/// A host without functions.
impl Host for () {}

/// What the store's functions need to know of the call that runs.
#[derive(Clone)]
pub(crate) struct RunningCall(Rc<CallState>);

struct CallState {
    now: Cell<Now>,
    namespace: RefCell<Namespace>,
}

impl Default for RunningCall {
    fn default() -> Self {
        let now = Cell::new(Now::from_unix_seconds(0));
        Self(Rc::new(CallState { now, namespace: RefCell::default() }))
    }
}

impl RunningCall {
    /// Returns the time for the store, in seconds.
    pub fn now(&self) -> Now {
        self.0.now.get()
    }

    /// Returns the part of the store that the call sees.
    pub fn namespace(&self) -> Ref<'_, Namespace> {
        self.0.namespace.borrow()
    }

    /// Starts or resumes a call.
    pub fn begin(&self, now: Now, namespace: &Namespace) {
        self.0.now.set(now);
        // Most scripts serve one site.
        if *self.0.namespace.borrow() != *namespace {
            *self.0.namespace.borrow_mut() = namespace.clone();
        }
    }
}
