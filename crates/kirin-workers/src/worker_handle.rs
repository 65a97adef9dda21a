//! The part of a worker that outlives the use of its connection: what the supervisor, the ring and
//! the status know of it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::net::Shutdown;

use crate::current_request::CurrentRequest;
use crate::worker_process::WorkerProcess;

/// The part of a worker's connection that the supervisor keeps while a request uses it.
pub(crate) struct WorkerHandle {
    pub(crate) pid: u32,
    pub(crate) generation: u64,
    /// What the connections of the worker share.
    pub(crate) process: Arc<WorkerProcess>,
    /// Whether the end of the connection of an attached worker has been seen.
    has_hung_up: AtomicBool,
    /// Whether the front has ended the connection, or has dropped it after its end.
    is_disconnected: AtomicBool,
    socket: OwnedFd,
    /// The request that the worker has on this connection.
    pub(crate) current: CurrentRequest,
    /// Milliseconds on the application's clock at which the present request is overdue; 0 for no
    /// request, `KILLED` after the deadline.
    deadline: AtomicU64,
}

const KILLED: u64 = u64::MAX;

impl WorkerHandle {
    /// Returns the handle of a worker that has greeted on `socket`.
    pub(crate) fn new(process: Arc<WorkerProcess>, socket: OwnedFd) -> Self {
        Self {
            pid: process.pid,
            generation: process.generation,
            process,
            has_hung_up: AtomicBool::new(false),
            is_disconnected: AtomicBool::new(false),
            socket,
            current: CurrentRequest::default(),
            deadline: AtomicU64::new(0),
        }
    }

    /// Ends the worker's connection. A reader sees the end.
    pub(crate) fn disconnect(&self) {
        self.is_disconnected.store(true, Ordering::Relaxed);
        // Fails only if the connection has ended already.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }

    pub(crate) fn is_disconnected(&self) -> bool {
        self.is_disconnected.load(Ordering::Relaxed)
    }

    /// Tells a worker that serves several requests that nobody waits for this one any more. The
    /// worker closes the connection then.
    pub(crate) fn give_up_request(&self) {
        // Fails only if the connection has ended already.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Write);
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.process.is_leaving()
    }

    /// Notes that the worker has ended its connection. What it sent before can still be read.
    pub(crate) fn note_hang_up(&self) {
        self.has_hung_up.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_hung_up(&self) -> bool {
        self.has_hung_up.load(Ordering::Relaxed)
    }

    /// Returns the socket of the worker's connection.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Marks the worker as killed because of a request in the ring. Returns false if it was killed
    /// already.
    pub(crate) fn condemn(&self) -> bool {
        self.deadline.swap(KILLED, Ordering::Relaxed) != KILLED
    }

    /// Sets the deadline of a new request.
    pub(crate) fn begin(&self, deadline_ms: u64) {
        self.deadline.store(deadline_ms.max(1), Ordering::Relaxed);
    }

    /// Sets a deadline, unless there is one.
    pub(crate) fn begin_if_none(&self, deadline_ms: u64) {
        let (deadline, relaxed) = (deadline_ms.max(1), Ordering::Relaxed);
        // Fails if a deadline runs, or if the worker has been killed.
        let _ = self.deadline.compare_exchange(0, deadline, relaxed, relaxed);
    }

    /// Removes the deadline. Returns false if the worker has been killed for it.
    pub(crate) fn end(&self) -> bool {
        self.deadline.swap(0, Ordering::Relaxed) != KILLED
    }

    /// Returns whether the worker has been killed because it took too long.
    pub(crate) fn is_killed(&self) -> bool {
        self.deadline.load(Ordering::Relaxed) == KILLED
    }

    /// Marks the worker as killed if its request is overdue. The request cannot end between the
    /// mark and the kill.
    pub(crate) fn condemn_if_overdue(&self, now_ms: u64) -> bool {
        let deadline = self.deadline.load(Ordering::Relaxed);
        let overdue = deadline != 0 && deadline != KILLED && deadline < now_ms;
        overdue
            && self
                .deadline
                .compare_exchange(deadline, KILLED, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}
