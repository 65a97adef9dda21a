//! The workers that are attached to a ring, by their seats.

use std::sync::Arc;

use crate::ring::liveness::Liveness;
use crate::ring::owner::Parked;
use crate::worker_handle::WorkerHandle;

/// The state of all seats.
pub(super) struct Seats<C> {
    seats: Vec<Seat<C>>,
    free: Vec<u16>,
}

/// The state of a seat.
struct Seat<C> {
    /// The process id of the worker, from its greeting to the end of its process.
    pid: Option<u32>,
    /// The worker, from its attachment to the end of its connection.
    worker: Option<Arc<WorkerHandle>>,
    /// The connection of the worker, unless a request has it.
    connection: Option<C>,
    liveness: Liveness,
}

impl<C> Default for Seat<C> {
    fn default() -> Self {
        Self { pid: None, worker: None, connection: None, liveness: Liveness::default() }
    }
}

/// An attached worker with its seat, and its connection unless a request has it.
type Attached<'a, C, L> = (u16, &'a Arc<WorkerHandle>, Option<&'a C>, L);

impl<C: Parked> Seats<C> {
    pub(super) fn new(count: usize) -> Self {
        Self {
            seats: (0..count).map(|_| Seat::default()).collect(),
            free: (0..count as u16).rev().collect(),
        }
    }

    /// Takes a free seat for a process.
    pub(super) fn take(&mut self, pid: u32) -> Option<u16> {
        let seat = self.free.pop()?;
        let state = &mut self.seats[usize::from(seat)];
        debug_assert!(state.pid.is_none(), "seat {seat} is free, and {:?} has it", state.pid);
        debug_assert!(state.worker.is_none(), "seat {seat} is free, and a worker is in it");
        state.pid = Some(pid);
        Some(seat)
    }

    /// Returns the seat of a process.
    pub(super) fn of_process(&self, pid: u32) -> Option<u16> {
        self.seats.iter().position(|seat| seat.pid == Some(pid)).map(|seat| seat as u16)
    }

    /// Frees a seat whose process has ended, or is to get another one. Returns its connection.
    pub(super) fn free(&mut self, seat: u16) -> Option<C> {
        let state = std::mem::take(&mut self.seats[usize::from(seat)]);
        debug_assert!(state.worker.is_none(), "the worker in seat {seat} is still counted");
        if state.pid.is_some() {
            debug_assert!(self.free.len() < self.seats.len(), "seat {seat} is free already");
            self.free.push(seat);
        }
        state.connection
    }

    /// Returns the worker in a seat.
    pub(super) fn worker(&self, seat: u16) -> Option<&Arc<WorkerHandle>> {
        self.seats.get(usize::from(seat))?.worker.as_ref()
    }

    /// Returns whether a seat is that of `worker`, which may not be known here yet.
    pub(super) fn is_of(&self, seat: u16, worker: &Arc<WorkerHandle>) -> bool {
        let state = &self.seats[usize::from(seat)];
        match &state.worker {
            Some(present) => Arc::ptr_eq(present, worker),
            None => state.pid == Some(worker.pid),
        }
    }

    /// Returns the attached workers with their seats.
    pub(super) fn workers(&self) -> impl Iterator<Item = (u16, &Arc<WorkerHandle>)> {
        let seats = self.seats.iter().enumerate();
        seats.filter_map(|(number, seat)| Some((number as u16, seat.worker.as_ref()?)))
    }

    /// Returns the attached workers with what is known of them.
    pub(super) fn attached(&self) -> impl Iterator<Item = Attached<'_, C, &Liveness>> {
        let seats = (0..).zip(&self.seats);
        seats.filter_map(|(number, seat)| {
            Some((number, seat.worker.as_ref()?, seat.connection.as_ref(), &seat.liveness))
        })
    }

    /// Returns the same, for a look at each worker.
    pub(super) fn attached_mut(&mut self) -> impl Iterator<Item = Attached<'_, C, &mut Liveness>> {
        let seats = (0..).zip(&mut self.seats);
        seats.filter_map(|(number, seat)| {
            Some((number, seat.worker.as_ref()?, seat.connection.as_ref(), &mut seat.liveness))
        })
    }

    /// Keeps the connection of a worker that nobody uses. Returns it if it has ended or the
    /// seat is not that worker's any more, and whether the worker is new.
    pub(super) fn park(&mut self, seat: u16, connection: C) -> Result<bool, C> {
        let state = &mut self.seats[usize::from(seat)];
        let worker = connection.handle();
        let is_here = state.pid == Some(worker.pid) && !worker.has_hung_up();
        if !is_here || state.connection.is_some() {
            return Err(connection);
        }
        let is_new = state.worker.is_none();
        if is_new {
            state.liveness = Liveness::default();
        }
        state.worker = Some(Arc::clone(connection.handle()));
        state.connection = Some(connection);
        Ok(is_new)
    }

    /// Takes the connection of a worker out, for a request that it has claimed. Another worker may
    /// have its seat by now.
    pub(super) fn check_out(&mut self, seat: u16, worker: &Arc<WorkerHandle>) -> Option<C> {
        let connection = &mut self.seats.get_mut(usize::from(seat))?.connection;
        connection.take_if(|connection| Arc::ptr_eq(connection.handle(), worker))
    }

    /// Notes that the connection of a worker has ended. Returns `None` if the worker was not there
    /// any more, otherwise its connection, unless a request has it.
    pub(super) fn lose(&mut self, seat: u16, worker: &Arc<WorkerHandle>) -> Option<Option<C>> {
        let state = self.seats.get_mut(usize::from(seat))?;
        state.worker.take_if(|present| Arc::ptr_eq(present, worker))?;
        debug_assert!(state.pid.is_some(), "seat {seat} had a worker and no process");
        Some(state.connection.take())
    }
}
