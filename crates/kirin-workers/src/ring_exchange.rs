//! One request through the ring. What does not fit goes over the connection of the worker that
//! claims the request.

use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use kirin_client_bytes::ClientShare;
use kirin_http::{ClientWatch, Response, StepKind, StepPeer};
use kirin_ring::Phase;
use kirin_spool::SpooledBody;

use crate::app::App;
use crate::exchange::{self, Begun, Failure, WorkerRequest};
use crate::pool::Refused;
use crate::ring::{self, NotPut, Outcome, REQUEST_BYTES};
use crate::slow_watch;
use crate::worker::{Place, Ring};
use crate::worker_handle::WorkerHandle;
use crate::worker_response::{Afterwards, ProtocolError};

/// Puts `request` into the ring of `place` and returns the response.
pub(crate) async fn exchange(
    app: &Arc<App>,
    place: Place,
    request: &WorkerRequest,
    body: &SpooledBody,
    share: &ClientShare,
    client: Option<&ClientWatch>,
) -> Result<Response, Failure> {
    let pending = Pending::put(app, place, request, body)?;
    let claimer = OnceCell::new();
    let answered = answer_to(&pending, request, body, share, client, &claimer);
    match app.config().slow {
        None => answered.await,
        Some(limit) => {
            let who = || claimer.get().cloned().or_else(|| pending.ring.claimer(pending.slot));
            slow_watch::watch(app, request, limit, who, answered).await
        }
    }
}

/// Waits until the request has left the ring, and returns the response. `claimer` gets the worker
/// if it continues over its connection, with the time of its claim.
async fn answer_to(
    pending: &Pending<'_>,
    request: &WorkerRequest,
    body: &SpooledBody,
    share: &ClientShare,
    client: Option<&ClientWatch>,
    claimer: &OnceCell<(Arc<WorkerHandle>, Instant)>,
) -> Result<Response, Failure> {
    let (app, ring, slot) = (pending.app, &pending.ring, pending.slot);
    let outcome = pending.outcome(client).await?;
    let (seat, worker) = match outcome {
        Outcome::Finished { seat, worker } => (seat, worker),
        Outcome::Lost { pid, has_run: false } => return Err(Failure::NotRead { pid }),
        Outcome::Lost { pid, has_run: true } => return Err(Failure::NoResponse { pid }),
        Outcome::Overdue { pid } => return Err(Failure::Overdue { pid }),
        Outcome::Expired => return Err(Failure::Refused(Refused::WaitedTooLong)),
        Outcome::Withdrawn => {
            let put_at = pending.put_at;
            request.steps.add(StepKind::Queue, app.label(), None, put_at, Instant::now());
            return Err(Failure::Withdrawn { put_at });
        }
    };
    // The worker may have hung up since.
    let Some(worker) = worker else { return Err(Failure::NoResponse { pid: 0 }) };
    let claimed_at = ring.claimed_at(slot, pending.put_at);
    if pending.must_wait {
        request.steps.add(StepKind::Queue, app.label(), None, pending.put_at, claimed_at);
    }
    let pid = worker.pid;
    let protocol = |error: ProtocolError| Failure::Protocol { pid, error };
    let phase = ring.phase(slot);
    if phase == Phase::OverConnection {
        let connection = ring.check_out(&**app, slot, seat, &worker);
        pending.is_noted.set(true);
        let connection = connection.ok_or(Failure::NoResponse { pid })?;
        // A cell that is set only here is empty.
        let _ = claimer.set((worker, claimed_at));
        let begun = match pending.is_in_slot {
            true => Begun::Read { claimed_at },
            false => Begun::NotSent,
        };
        return exchange::over_connection(app, connection, request, body, share, begun).await;
    }
    let answer = ring.answer(slot);
    pending.take_note();
    worker.current.count();
    let step = (StepKind::Worker, app.label(), Some(StepPeer::Process(pid)));
    request.steps.add(step.0, step.1, step.2, claimed_at, Instant::now());
    let answer = answer.map_err(|error| ProtocolError::Ring(error.to_string()));
    let taken_apart = answer.and_then(|bytes| ring::parse_answer(bytes, request.is_head));
    let (mut head, data) = match taken_apart {
        Ok(parts) => parts,
        Err(error) => {
            // Nobody can know what else such a worker does.
            worker.process.leave();
            ring.let_leaving_go();
            return Err(protocol(error));
        }
    };
    if head.afterwards == Afterwards::Leaves {
        app.note_leaving(&worker.process);
    }
    match head.file.take() {
        Some(file) => {
            exchange::file_response(app, request, head, file, pid, worker.process.is_same_user())
        }
        None => Ok(exchange::whole_response(head, data)),
    }
}

/// A request in the ring. Dropping it takes it back, or leaves its answer to nobody.
struct Pending<'a> {
    app: &'a Arc<App>,
    ring: Arc<Ring>,
    slot: u16,
    put_at: Instant,
    /// Whether all workers were busy.
    must_wait: bool,
    /// Whether the request is in the slot, and not to be sent over the connection.
    is_in_slot: bool,
    /// Whether the ring knows that the answer has been taken.
    is_noted: Cell<bool>,
}

impl<'a> Pending<'a> {
    fn put(
        app: &'a Arc<App>,
        place: Place,
        request: &WorkerRequest,
        body: &SpooledBody,
    ) -> Result<Self, Failure> {
        let head = request.block.as_bytes();
        let parts = match body {
            SpooledBody::Memory { bytes, .. } if !request.upgrade => Some([head, &bytes[..]]),
            _ => None,
        };
        let parts = parts.filter(|[head, body]| head.len() + body.len() <= REQUEST_BYTES);
        let put_at = Instant::now();
        let ring = Arc::clone(place.ring());
        let put = ring.put(place, parts, put_at);
        let (slot, must_wait) = put.map_err(|error| match error {
            NotPut::Full => Failure::Refused(Refused::Full),
            NotPut::Retired => Failure::Withdrawn { put_at },
        })?;
        if must_wait {
            app.counters.queued.add(1);
        }
        let is_in_slot = parts.is_some();
        Ok(Self { app, ring, slot, put_at, must_wait, is_in_slot, is_noted: Cell::new(false) })
    }

    /// Waits until the request has left the ring. Takes it back if the client goes before a worker
    /// has claimed it.
    async fn outcome(&self, client: Option<&ClientWatch>) -> Result<Outcome, Failure> {
        let mut outcome = pin!(poll_fn(|context| self.poll(context)));
        if let (true, Some(client)) = (self.must_wait, client) {
            tokio::select! {
                biased;
                outcome = outcome.as_mut() => return Ok(outcome),
                () = client.gone() => {}
            }
            if self.ring.claimer(self.slot).is_none() {
                return Err(Failure::Refused(Refused::ClientGone));
            }
        }
        Ok(outcome.await)
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Outcome> {
        self.ring.poll(self.slot, context)
    }

    fn take_note(&self) {
        self.is_noted.set(true);
        self.ring.take_note(&**self.app, self.slot);
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.is_noted.get() {
            self.ring.abandon(&**self.app, self.slot);
        }
    }
}
