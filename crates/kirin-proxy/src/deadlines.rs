//! How long a loop waits for servers: a number a socket, looked at once a second, so that an
//! exchange sets no timer.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

use crate::socket::Socket;

/// The sockets of one place on one loop, and its clock.
#[derive(Default)]
pub(crate) struct Deadlines {
    /// Seconds since the place was opened.
    seconds: Cell<u64>,
    sockets: RefCell<Vec<Weak<Socket>>>,
}

impl Deadlines {
    /// The second that is now.
    pub(crate) fn now(&self) -> u64 {
        self.seconds.get()
    }

    /// The first second after `limit` has passed whole.
    pub(crate) fn after(&self, limit: Duration) -> u64 {
        self.seconds.get().saturating_add(limit.as_secs()).saturating_add(1)
    }

    /// Looks after `socket` from now on.
    pub(crate) fn add(&self, socket: &Rc<Socket>) {
        self.sockets.borrow_mut().push(Rc::downgrade(socket));
    }

    /// A second has passed: ends the sockets whose time is over.
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
