//! The deadlines of sockets. Each is a number that is checked once a second, so that an exchange
//! needs no timer.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

use crate::socket::Socket;

/// The sockets of one upstream on one event loop, and its clock.
#[derive(Default)]
pub(crate) struct SocketDeadlines {
    /// Seconds since the first request.
    seconds: Cell<u64>,
    sockets: RefCell<Vec<Weak<Socket>>>,
}

impl SocketDeadlines {
    /// Returns the present second.
    pub(crate) fn now(&self) -> u64 {
        self.seconds.get()
    }

    /// Returns the first second at which `limit` has passed completely.
    pub(crate) fn after(&self, limit: Duration) -> u64 {
        self.seconds.get().saturating_add(limit.as_secs()).saturating_add(1)
    }

    /// Checks the deadlines of `socket` from now on.
    pub(crate) fn add(&self, socket: &Rc<Socket>) {
        self.sockets.borrow_mut().push(Rc::downgrade(socket));
    }

    /// Advances the clock by a second, and shuts down the sockets whose deadline has passed.
    pub(crate) fn tick(&self) {
        let now = self.seconds.get() + 1;
        self.seconds.set(now);
        self.sockets.borrow_mut().retain(|socket| match socket.upgrade() {
            Some(socket) => {
                socket.end_if_overdue(now);
                true
            }
            None => false,
        });
    }
}
