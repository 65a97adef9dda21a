//! A body that is stored while it is sent: the client gets it as it comes, and whoever waits gets it whole from the store.
//!
//! A task of its own reads from the place, so that neither a slow client nor one that goes keeps it from being stored. What is
//! longer than may be stored is handed over to the client's connection, which reads the rest at its own pace. What is cut is
//! not stored, and cut for the client too. Trailers are for this client: they are not stored (RFC 9111 section 3.1).

use super::flights::{Flight, Landed};
use super::keep::Keep;
use super::{Cache, unix_now};
use bytes::Bytes;
use kirin_http::Trailers;
use kirin_http::body::{BodyStream, StreamError};
use kirin_store::Now;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What the client reads.
pub struct FillingBody {
    shared: Rc<RefCell<Shared>>,
    length: Option<u64>,
    may_have_trailers: bool,
    /// Pieces that have been read.
    read: usize,
}

/// Between the task and the client's connection, on one loop.
struct Shared {
    pieces: Vec<Bytes>,
    state: State,
    client: Option<Waker>,
}

enum State {
    Filling,
    /// The rest is between the place and the client.
    HandedOver(Box<dyn BodyStream>),
    Whole(Option<Trailers>),
    /// Why it was cut; said once.
    Cut(Option<StreamError>),
}

impl FillingBody {
    /// Begins to read `source`. Call on a `LocalSet`.
    pub fn start(source: Box<dyn BodyStream>, keep: Keep, cache: Rc<Cache>, flight: Option<Flight>) -> Self {
        let (length, may_have_trailers) = (source.length(), source.may_have_trailers());
        let shared = Shared { pieces: Vec::new(), state: State::Filling, client: None };
        let shared = Rc::new(RefCell::new(shared));
        tokio::task::spawn_local(fill(source, keep, cache, flight, Rc::clone(&shared)));
        Self { shared, length, may_have_trailers, read: 0 }
    }
}

impl BodyStream for FillingBody {
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        let mut shared = self.shared.borrow_mut();
        if let Some(piece) = shared.pieces.get(self.read) {
            self.read += 1;
            return Poll::Ready(Some(Ok(piece.clone())));
        }
        match &mut shared.state {
            State::Filling => {
                shared.client = Some(context.waker().clone());
                Poll::Pending
            }
            State::HandedOver(source) => {
                let next = source.poll_chunk(context);
                // What has been sent is of no use to anybody else.
                shared.pieces = Vec::new();
                self.read = 0;
                next
            }
            State::Whole(_) => Poll::Ready(None),
            State::Cut(error) => {
                let error = error.take().unwrap_or_else(|| StreamError("cut before".into()));
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn may_have_trailers(&self) -> bool {
        self.may_have_trailers
    }

    fn take_trailers(&mut self) -> Option<Trailers> {
        match &mut self.shared.borrow_mut().state {
            State::Whole(trailers) => trailers.take(),
            State::HandedOver(source) => source.take_trailers(),
            State::Filling | State::Cut(_) => None,
        }
    }
}

impl Shared {
    fn change(&mut self, state: State) {
        self.state = state;
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(client) = self.client.take() {
            client.wake();
        }
    }
}

async fn fill(
    mut source: Box<dyn BodyStream>,
    keep: Keep,
    cache: Rc<Cache>,
    flight: Option<Flight>,
    shared: Rc<RefCell<Shared>>,
) {
    let mut bytes = 0u64;
    loop {
        match poll_fn(|context| source.poll_chunk(context)).await {
            Some(Ok(piece)) => {
                bytes += piece.len() as u64;
                let mut shared = shared.borrow_mut();
                shared.pieces.push(piece);
                if !keep.has_room(&cache.store, bytes) {
                    shared.change(State::HandedOver(source));
                    cache.counters.not_stored.add();
                    keep.remember_pass(&cache.store, Now::from_unix_seconds(unix_now()));
                    if let Some(flight) = flight {
                        flight.land(Landed::NotStored);
                    }
                    return;
                }
                shared.wake();
            }
            Some(Err(error)) => return shared.borrow_mut().change(State::Cut(Some(error))),
            None => break,
        }
    }
    let mut shared = shared.borrow_mut();
    let is_stored = cache.store(&keep, &shared.pieces);
    if let Some(flight) = flight {
        flight.land(if is_stored { Landed::Stored } else { Landed::NotStored });
    }
    shared.change(State::Whole(source.take_trailers()));
}
