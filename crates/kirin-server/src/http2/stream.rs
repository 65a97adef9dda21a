//! The state of an open stream: the received part of its request, and what is still to be sent of
//! its response. The connection's task and the stream's task share it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::BytesMut;
use http::HeaderMap;
use kirin_h2::Reason;
use kirin_h2::hpack::FieldBuffer;

use super::connection::{Engine, Http2Connection};
use super::outgoing::{Outgoing, Sent, SourcePiece};
use super::response::write_trailers;
use crate::http1::sending::{LINGER_BYTES, LINGER_SECONDS, LINGER_SILENCE_SECONDS};
use crate::streams::stream_task::TaskWaker;
use crate::streams::trailers::header_map;

/// The received part of a request's body.
#[derive(Default)]
pub(super) struct Incoming {
    /// Data that was not read yet.
    pub(super) data: BytesMut,
    /// Whether nothing follows.
    pub(super) ended: bool,
    pub(super) trailers: Option<HeaderMap>,
    /// Whether it is dropped, because nobody needs it.
    pub(super) is_dropped: bool,
}

/// The time that a client has to end a request's body whose response is complete, in seconds of the
/// loop's clock.
#[derive(Clone, Copy)]
struct Linger {
    until: u64,
    /// It ends earlier if the client is silent.
    silent_until: u64,
    /// What the engine had left to drop when the client was last seen to send.
    left: Option<u32>,
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
    /// Limits the time for which the rest of the request's body is dropped.
    linger: Cell<Option<Linger>>,
    /// Wakes the stream's task.
    pub(super) task: TaskWaker,
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
            linger: Cell::new(None),
            task: TaskWaker::default(),
        })
    }

    /// Returns whether the stream has ended early.
    pub(super) fn is_reset(&self) -> bool {
        self.is_reset.get()
    }

    /// Notes that the stream has ended early. The engine does not have it any more.
    pub(super) fn reset(&self, connection: &Http2Connection<H>) {
        self.is_reset.set(true);
        if let Some(outgoing) = self.outgoing.take() {
            outgoing.end(self, true);
        }
        let unread = std::mem::take(&mut self.incoming.borrow_mut().data).len();
        connection.unread_bytes.set(connection.unread_bytes.get() - unread);
        connection.unneeded_bytes.set(connection.unneeded_bytes.get() + unread);
        self.task.wake();
    }

    /// Sends some of the response; it is the stream's turn.
    pub(super) fn send_some(&self, connection: &Http2Connection<H>, engine: &mut Engine<H>) {
        let mut slot = self.outgoing.borrow_mut();
        let Some(outgoing) = &mut *slot else { return engine.set_ready(self.id, false) };
        match outgoing.send_some(engine, self.id) {
            Sent::Some => {}
            Sent::Waits => {
                engine.set_ready(self.id, false);
                self.task.wake();
            }
            Sent::All => {
                let ended = slot.take();
                drop(slot);
                self.end_outgoing(ended, connection, engine);
                self.task.wake();
            }
            Sent::Failed => {
                drop(slot);
                engine.cut(self.id);
                self.reset(connection);
            }
        }
    }

    /// Notes that a response that was sent in turn is complete.
    fn end_outgoing(
        &self,
        outgoing: Option<Outgoing<H>>,
        connection: &Http2Connection<H>,
        engine: &mut Engine<H>,
    ) {
        if let Some(outgoing) = outgoing {
            outgoing.end(self, false);
        }
        self.end_response(connection, engine);
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
        let now = connection.io.clock.now();
        self.linger.set(Some(Linger {
            until: now + LINGER_SECONDS,
            silent_until: now + LINGER_SILENCE_SECONDS,
            left: engine.left_to_drop(self.id),
        }));
    }

    /// Returns whether the client has limited time for something.
    pub(super) fn is_timed(&self) -> bool {
        self.linger.get().is_some() || self.outgoing.borrow().is_some()
    }

    /// Returns whether the client has lingered for too long.
    fn has_lingered(&self, left: Option<u32>, now: u64) -> bool {
        let Some(mut linger) = self.linger.get() else { return false };
        if linger.left != left {
            linger.left = left;
            linger.silent_until = now + LINGER_SILENCE_SECONDS;
            self.linger.set(Some(linger));
        }
        linger.until.min(linger.silent_until) <= now
    }

    /// Ends the stream if the client was too slow. Called once a second.
    pub(super) fn check_time(&self, connection: &Http2Connection<H>, engine: &mut Engine<H>) {
        let now = connection.io.clock.now();
        if self.has_lingered(engine.left_to_drop(self.id), now) {
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
        state.task.wake();
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
            state.end_outgoing(ended, self, &mut engine);
        }
        drop(engine);
        self.wake();
        is_last
    }

    /// Notes that data of a body was read. The client gets room for as much.
    pub(super) fn release(&self, state: &StreamState<H>, bytes: usize) {
        self.unread_bytes.set(self.unread_bytes.get() - bytes);
        self.engine.borrow_mut().release(state.id, bytes);
        self.wake_to_send();
    }

    /// Wakes the connection's task if there is something to send.
    pub(super) fn wake_to_send(&self) {
        if self.engine.borrow().output_bytes() > 0 {
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
        state.task.wake();
    }
}
