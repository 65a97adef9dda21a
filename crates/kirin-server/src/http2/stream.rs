//! The state of an open stream: the received part of its request, and what is still to be sent of
//! its response. The connection's task and the stream's task share it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};

use bytes::BytesMut;
use http::{HeaderMap, HeaderName, HeaderValue};
use kirin_h2::Reason;
use kirin_h2::hpack::FieldBuffer;

use super::connection::{Engine, Http2Connection};
use super::outgoing::{Outgoing, Sent, SourcePiece};
use super::response::write_trailers;
use crate::http1::sending::{LINGER_BYTES, LINGER_SECONDS};

/// The received part of a request's body.
#[derive(Default)]
pub(super) struct Incoming {
    /// Data that was not read yet.
    pub(super) data: BytesMut,
    /// Whether nothing follows.
    pub(super) ended: bool,
    pub(super) trailers: Option<HeaderMap>,
    /// Whether nobody reads it.
    is_dropped: bool,
}

/// An open stream.
pub(super) struct StreamState<H> {
    pub(super) id: u32,
    is_reset: Cell<bool>,
    pub(super) incoming: RefCell<Incoming>,
    /// Number of bytes of the request's body that have come.
    pub(super) received_bytes: Cell<u64>,
    /// Whether the response has begun.
    pub(super) is_answered: Cell<bool>,
    pub(super) outgoing: RefCell<Option<Outgoing<H>>>,
    /// The second until which the rest of the request's body is dropped. 0 for none.
    linger_until: Cell<u64>,
    /// Wakes the stream's task.
    task: Cell<Option<Waker>>,
}

impl<H> StreamState<H> {
    /// Returns the state of a stream. `ended`: its request has no body.
    pub(super) fn new(id: u32, ended: bool) -> Rc<Self> {
        Rc::new(Self {
            id,
            is_reset: Cell::new(false),
            incoming: RefCell::new(Incoming { ended, ..Incoming::default() }),
            received_bytes: Cell::new(0),
            is_answered: Cell::new(false),
            outgoing: RefCell::new(None),
            linger_until: Cell::new(0),
            task: Cell::new(None),
        })
    }

    /// Returns whether the stream has ended early.
    pub(super) fn is_reset(&self) -> bool {
        self.is_reset.get()
    }

    /// Notes the task that waits for something of this stream.
    pub(super) fn set_task(&self, context: &Context<'_>) {
        let task = self.task.take().filter(|task| task.will_wake(context.waker()));
        self.task.set(Some(task.unwrap_or_else(|| context.waker().clone())));
    }

    pub(super) fn wake(&self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    /// Notes that the stream has ended early. The engine does not have it any more.
    pub(super) fn reset(&self, connection: &Http2Connection<H>) {
        self.is_reset.set(true);
        if let Some(outgoing) = self.outgoing.take() {
            connection.timed.set(connection.timed.get() - 1);
            outgoing.end(self, true);
        }
        if self.linger_until.take() != 0 {
            connection.timed.set(connection.timed.get() - 1);
        }
        let unread = std::mem::take(&mut self.incoming.borrow_mut().data).len();
        connection.unread_bytes.set(connection.unread_bytes.get() - unread);
        connection.unneeded_bytes.set(connection.unneeded_bytes.get() + unread);
        self.wake();
    }

    /// Sends some of the response; it is the stream's turn.
    pub(super) fn send_some(&self, connection: &Http2Connection<H>, engine: &mut Engine<H>) {
        let mut slot = self.outgoing.borrow_mut();
        let Some(outgoing) = &mut *slot else { return engine.set_ready(self.id, false) };
        let sent = outgoing.send_some(engine, self.id);
        match sent {
            Sent::Some => return,
            Sent::Waits => {
                engine.set_ready(self.id, false);
                return self.wake();
            }
            Sent::All => {}
            Sent::Failed => {
                engine.cut(self.id);
                self.is_reset.set(true);
            }
        }
        let ended = slot.take();
        drop(slot);
        connection.timed.set(connection.timed.get() - 1);
        if let Some(outgoing) = ended {
            outgoing.end(self, !matches!(sent, Sent::All));
        }
        self.end_response(connection, engine);
        self.wake();
    }

    /// Drops the rest of a body that nobody reads. Some clients (curl 7.88) report an error if a
    /// stream is reset right behind its response, though RFC 9113 section 8.1 allows it. Most
    /// clients stop sending when they have the response.
    pub(super) fn drop_incoming(&self, connection: &Http2Connection<H>, engine: &mut Engine<H>) {
        let mut incoming = self.incoming.borrow_mut();
        let unread = std::mem::take(&mut incoming.data).len();
        incoming.is_dropped = true;
        drop(incoming);
        connection.unread_bytes.set(connection.unread_bytes.get() - unread);
        engine.drop_rest(self.id, u32::try_from(LINGER_BYTES).unwrap_or(u32::MAX));
        engine.release(self.id, unread);
    }

    /// Notes that the response is complete. A client that still sends has some time to end.
    pub(super) fn end_response(&self, connection: &Http2Connection<H>, engine: &mut Engine<H>) {
        if engine.state(self.id).is_none() {
            return;
        }
        if !self.incoming.borrow().is_dropped {
            self.drop_incoming(connection, engine);
        }
        if self.linger_until.get() == 0 {
            self.linger_until.set(connection.io.clock.now() + LINGER_SECONDS);
            connection.timed.set(connection.timed.get() + 1);
        }
    }

    /// Ends the stream if the client was too slow. Called once a second.
    pub(super) fn check_time(&self, connection: &Http2Connection<H>, engine: &mut Engine<H>) {
        let now = connection.io.clock.now();
        let linger_until = self.linger_until.get();
        if linger_until != 0 && linger_until <= now {
            engine.reset(self.id, Reason::NoError);
            return self.reset(connection);
        }
        let is_blocked = engine.room(self.id) == 0;
        let is_over = match &mut *self.outgoing.borrow_mut() {
            Some(outgoing) => outgoing.is_too_slow(is_blocked, now),
            None => false,
        };
        if is_over {
            engine.cut(self.id);
            self.reset(connection);
        }
    }
}

impl<H> Http2Connection<H> {
    /// Takes data of a request's body.
    pub(super) fn receive_data(&self, stream: u32, data: &[u8], ended: bool) {
        let mut engine = self.engine.borrow_mut();
        let Some(state) = engine.state(stream).cloned() else {
            return engine.release(stream, data.len());
        };
        drop(engine);
        let mut incoming = state.incoming.borrow_mut();
        incoming.ended |= ended;
        state.received_bytes.set(state.received_bytes.get() + data.len() as u64);
        incoming.data.extend_from_slice(data);
        self.unread_bytes.set(self.unread_bytes.get() + data.len());
        drop(incoming);
        state.wake();
    }

    /// Cuts a response that cannot be completed.
    pub(super) fn cut(&self, state: &StreamState<H>) {
        self.engine.borrow_mut().cut(state.id);
        state.reset(self);
        self.wake();
    }

    /// Gives a piece of a body to the connection. Returns whether nothing follows.
    pub(super) fn bring(&self, state: &StreamState<H>, piece: SourcePiece) -> bool {
        let mut engine = self.engine.borrow_mut();
        let mut slot = state.outgoing.borrow_mut();
        let Some(outgoing) = &mut *slot else { return true };
        let is_last = piece.end.is_some();
        if !piece.bytes.is_empty() {
            let waits = engine.room(state.id) < piece.bytes.len();
            let put = outgoing.put(piece, waits);
            if put.is_err() {
                drop(slot);
                engine.reset(state.id, Reason::EnhanceYourCalm);
                drop(engine);
                state.reset(self);
                self.wake();
                return true;
            }
            engine.set_ready(state.id, true);
        } else if let Some(trailers) = piece.end {
            // Flow control is for data only.
            match trailers {
                Some(trailers) => write_trailers(&mut engine, state.id, trailers),
                None => engine.data(state.id, b"", true),
            }
            let ended = slot.take();
            drop(slot);
            self.timed.set(self.timed.get() - 1);
            if let Some(outgoing) = ended {
                outgoing.end(state, false);
            }
            state.end_response(self, &mut engine);
        }
        drop(engine);
        self.wake();
        is_last
    }

    /// Notes that data of a body was read. The client gets room for as much.
    pub(super) fn release(&self, state: &StreamState<H>, bytes: usize) {
        self.unread_bytes.set(self.unread_bytes.get() - bytes);
        let mut engine = self.engine.borrow_mut();
        engine.release(state.id, bytes);
        let must_send = engine.output_bytes() > 0;
        drop(engine);
        if must_send {
            self.wake();
        }
    }

    /// Takes the trailers of a request, which end its body.
    pub(super) fn receive_trailers(&self, stream: u32, fields: &FieldBuffer) {
        let Some(state) = self.engine.borrow().state(stream).cloned() else { return };
        let mut incoming = state.incoming.borrow_mut();
        incoming.ended = true;
        incoming.trailers = Some(header_map(fields));
        drop(incoming);
        state.wake();
    }
}

/// Returns the fields of trailers.
fn header_map(fields: &FieldBuffer) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(fields.len());
    for field in fields.iter() {
        let name = HeaderName::from_bytes(field.name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(field.value)) {
            let _ = map.try_append(name, value);
        }
    }
    map
}
