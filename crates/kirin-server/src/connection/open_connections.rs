//! The table of the open connections of an event loop. Each has one deadline, which is checked once
//! a second.
//!
//! A timer for each connection would cost memory, and work for every request. A pass over the table
//! costs nanoseconds for each connection and second. A connection is ended by `shutdown(2)` on its
//! socket: its task wakes up and sees the end.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::sync::Notify;

use crate::connection::counters::{OpenCounts, TimeoutCounts};
use crate::connection::idle_connection::IdleConnection;
use crate::connection::io::{ConnectionPhase, Io};
use crate::connection::presence::{self, Presence};

/// The open connections of one server on one event loop.
#[derive(Default)]
pub(crate) struct OpenConnections {
    slots: RefCell<Slots>,
    emptied: Notify,
}

#[derive(Default)]
struct Slots {
    connections: Vec<Option<Rc<Io>>>,
    free: Vec<usize>,
}

/// An entry of the table. Dropping it removes the connection.
pub(crate) struct OpenConnection {
    table: Rc<OpenConnections>,
    slot: usize,
}

impl OpenConnections {
    /// Adds a connection to the table.
    pub(crate) fn enter(table: &Rc<Self>, io: &Rc<Io>) -> OpenConnection {
        let mut slots = table.slots.borrow_mut();
        let slot = match slots.free.pop() {
            Some(slot) => slot,
            None => {
                slots.connections.push(None);
                slots.connections.len() - 1
            }
        };
        slots.connections[slot] = Some(Rc::clone(io));
        OpenConnection { table: Rc::clone(table), slot }
    }

    /// Returns the number of connections.
    pub(crate) fn count(&self) -> usize {
        let slots = self.slots.borrow();
        slots.connections.len() - slots.free.len()
    }

    /// Ends every connection whose deadline is at or before `now`, and counts it.
    pub(crate) fn end_overdue(&self, now: u64, counts: &TimeoutCounts) {
        self.end_if(|io| {
            let is_overdue = io.deadline.get() != 0 && io.deadline.get() <= now;
            if is_overdue {
                // It is counted once, even if its task takes time to end.
                io.clear_deadline();
                match io.phase.get() {
                    ConnectionPhase::Idle if io.has_begun.get() => &counts.keep_alive,
                    ConnectionPhase::Idle => &counts.first_request,
                    ConnectionPhase::Busy => &counts.slow,
                    ConnectionPhase::Streams => &counts.http2,
                }
                .add();
            }
            is_overdue
        });
    }

    /// Counts the connections by what they do now.
    pub(crate) fn count_phases(&self, counts: &OpenCounts) {
        let (mut idle, mut busy, mut http2) = (0, 0, 0);
        for io in self.slots.borrow().connections.iter().flatten() {
            match io.phase.get() {
                ConnectionPhase::Idle => idle += 1,
                ConnectionPhase::Busy => busy += 1,
                ConnectionPhase::Streams => http2 += 1,
            }
        }
        counts.idle.set(idle);
        counts.busy.set(busy);
        counts.http2.set(http2);
    }

    /// Checks whether clients that are watched have disconnected.
    pub(crate) fn check_watched(&self) {
        for io in self.slots.borrow().connections.iter().flatten() {
            if !matches!(*io.presence.borrow(), Presence::Unwatched | Presence::Gone) {
                presence::check(io);
            }
        }
    }

    /// Ends the busy connections of the client with this address. Returns how many.
    pub(crate) fn end_busy_of(&self, address: u64) -> usize {
        let mut ended = 0;
        self.end_if(|io| {
            let is_meant = io.phase.get() != ConnectionPhase::Idle
                && io.share.borrow().address() == Some(address);
            ended += usize::from(is_meant);
            is_meant
        });
        ended
    }

    /// Ends every connection that waits for a request; with `but_movable` only those that another
    /// process cannot serve.
    pub(crate) fn end_idle(&self, but_movable: bool) {
        self.end_if(|io| {
            io.phase.get() == ConnectionPhase::Idle && !(but_movable && io.can_move())
        });
    }

    /// Ends every connection.
    pub(crate) fn end_all(&self) {
        self.end_if(|_| true);
    }

    /// Takes the next idle connection behind `cursor` out of this process
    /// ([`Io::take_idle`]), and moves the cursor.
    pub(crate) fn take_idle(
        &self,
        cursor: &mut usize,
        needs_header: bool,
    ) -> Option<IdleConnection> {
        let slots = self.slots.borrow();
        while let Some(slot) = slots.connections.get(*cursor) {
            *cursor += 1;
            if let Some(taken) = slot.as_ref().and_then(|io| io.take_idle(needs_header)) {
                return Some(taken);
            }
        }
        None
    }

    /// Waits until no connection is left.
    pub(crate) async fn empty(&self) {
        while self.count() > 0 {
            self.emptied.notified().await;
        }
    }

    fn end_if(&self, mut condition: impl FnMut(&Io) -> bool) {
        for io in self.slots.borrow().connections.iter().flatten() {
            if condition(io) {
                io.shutdown_both();
            }
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut slots = self.table.slots.borrow_mut();
        slots.connections[self.slot] = None;
        slots.free.push(self.slot);
        if slots.connections.len() == slots.free.len() {
            self.table.emptied.notify_one();
        }
    }
}
