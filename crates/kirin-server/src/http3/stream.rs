//! A stream with a request: the received part, and what is to be sent. The endpoint's task and the
//! task of the request share it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use kirin_h3::Code;
use kirin_h3::request_stream::{Part, RequestReader};
use quinn_proto::{ReadError, StreamId, VarInt, WriteError};

use super::connection::Http3Connection;
use crate::streams::stream_task::TaskWaker;

/// The most bytes that are taken out of QUIC at once.
const PIECE_BYTES: usize = 64 * 1024;

/// The client does not want the response any more, or the connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client has given the request up")]
pub(super) struct GivenUp;

/// What [`Http3Connection::read`] has found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Bytes(Bytes),
    /// Nothing is there now.
    Nothing,
    /// The client has ended its side.
    End,
    /// The client has cut its side off.
    Reset,
}

/// An open stream with a request.
pub(super) struct StreamState {
    pub(super) id: StreamId,
    pub(super) reader: RefCell<RequestReader>,
    /// Bytes that came behind what was needed last.
    pub(super) unread: RefCell<Bytes>,
    /// Whether nothing more comes from the client.
    pub(super) has_ended: Cell<bool>,
    /// The length of the body that the client has announced.
    pub(super) announced: Cell<Option<u64>>,
    /// Number of bytes of the request's body that have come.
    pub(super) received_bytes: Cell<u64>,
    pub(super) trailers: RefCell<Option<HeaderMap>>,
    /// The second at which the head must be complete. 0 when it is.
    pub(super) head_deadline: Cell<u64>,
    /// Whether the response has begun.
    pub(super) is_answered: Cell<bool>,
    /// Whether the client has given the request up.
    is_given_up: Cell<bool>,
    /// Whether QUIC has all of the response, or the response was cut.
    is_sent: Cell<bool>,
    /// What QUIC has not taken yet.
    outbox: RefCell<VecDeque<Bytes>>,
    /// Number of bytes that QUIC has taken.
    pub(super) taken_bytes: Cell<u64>,
    /// Number of bytes that were put and are not of the body: heads and frame headers.
    frame_bytes: Cell<u64>,
    /// Wakes the stream's task.
    pub(super) task: TaskWaker,
}

impl StreamState {
    /// Returns a new stream. A field section may have `most_section_bytes` in its compressed form.
    pub(super) fn new(id: StreamId, most_section_bytes: u64, head_deadline: u64) -> Self {
        Self {
            id,
            reader: RefCell::new(RequestReader::new(most_section_bytes)),
            unread: RefCell::default(),
            has_ended: Cell::new(false),
            announced: Cell::default(),
            received_bytes: Cell::new(0),
            trailers: RefCell::default(),
            head_deadline: Cell::new(head_deadline),
            is_answered: Cell::new(false),
            is_given_up: Cell::new(false),
            is_sent: Cell::new(false),
            outbox: RefCell::default(),
            taken_bytes: Cell::new(0),
            frame_bytes: Cell::new(0),
            task: TaskWaker::default(),
        }
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.is_given_up.get()
    }

    pub(super) fn is_sent(&self) -> bool {
        self.is_sent.get()
    }

    /// Notes that the client does not wait for the response any more.
    pub(super) fn give_up(&self) {
        self.is_given_up.set(true);
        self.is_sent.set(true);
        self.outbox.borrow_mut().clear();
        self.task.wake();
    }

    /// Puts a head or the header of a frame behind what waits to be sent.
    pub(super) fn put_frame(&self, bytes: Bytes) {
        self.frame_bytes.set(self.frame_bytes.get() + bytes.len() as u64);
        self.put(bytes);
    }

    /// Returns how many bytes of the body QUIC has taken.
    pub(super) fn body_bytes(&self) -> u64 {
        self.taken_bytes.get().saturating_sub(self.frame_bytes.get())
    }

    /// Puts bytes of the body behind what waits to be sent.
    pub(super) fn put(&self, bytes: Bytes) {
        if !bytes.is_empty() && !self.is_given_up() {
            self.outbox.borrow_mut().push_back(bytes);
        }
    }

    /// Returns the number of waiting bytes that nobody else holds.
    pub(super) fn waiting_bytes(&self) -> u64 {
        let outbox = self.outbox.borrow();
        outbox.iter().filter(|bytes| bytes.is_unique()).map(|bytes| bytes.len() as u64).sum()
    }
}

impl<H> Http3Connection<H> {
    /// Takes the next bytes of a stream out of QUIC. The client gets room for as many.
    pub(super) fn read(&self, id: StreamId) -> Read {
        let mut quic = self.quic.borrow_mut();
        let mut stream = quic.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return Read::Reset };
        let read = match chunks.next(PIECE_BYTES) {
            Ok(Some(chunk)) => Read::Bytes(chunk.bytes),
            Ok(None) => Read::End,
            Err(ReadError::Blocked) => Read::Nothing,
            Err(ReadError::Reset(_)) => Read::Reset,
        };
        let must_send = chunks.finalize().should_transmit();
        drop(quic);
        if must_send {
            self.touch();
        }
        read
    }

    /// Gives waiting bytes to QUIC. Returns whether it has taken all.
    pub(super) fn flush(&self, stream: &StreamState) -> Result<bool, GivenUp> {
        if stream.is_given_up() {
            return Err(GivenUp);
        }
        let mut outbox = stream.outbox.borrow_mut();
        if outbox.is_empty() {
            return Ok(true);
        }
        let mut quic = self.quic.borrow_mut();
        let mut sender = quic.send_stream(stream.id);
        let mut taken = 0;
        let result = loop {
            if outbox.is_empty() {
                break Ok(true);
            }
            match sender.write_chunks(outbox.make_contiguous()) {
                Ok(written) => {
                    taken += written.bytes as u64;
                    outbox.drain(..written.chunks);
                }
                Err(WriteError::Blocked) => break Ok(false),
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => break Err(GivenUp),
            }
        };
        drop((quic, outbox));
        if taken > 0 {
            stream.taken_bytes.set(stream.taken_bytes.get() + taken);
            self.unconfirmed_bytes.set(self.unconfirmed_bytes.get() + taken);
            self.touch();
        }
        if result.is_err() {
            stream.give_up();
        }
        result
    }

    /// Does the same, and is ready when QUIC has taken all.
    pub(super) fn poll_flush(
        &self,
        stream: &StreamState,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), GivenUp>> {
        stream.task.set(context);
        match self.flush(stream) {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Ends a response. QUIC has taken all of it.
    pub(super) fn finish(&self, stream: &StreamState) {
        // It fails if the client has given the request up, which its task finds out.
        _ = self.quic.borrow_mut().send_stream(stream.id).finish();
        stream.is_sent.set(true);
        self.count_good_end();
        self.stop_receiving(stream, Code::NoError);
        self.touch();
    }

    /// Cuts a response that cannot be completed, and the request.
    pub(super) fn cut(&self, stream: &StreamState, code: Code) {
        let number = VarInt::from_u32(code.number());
        // It fails if the stream has ended.
        _ = self.quic.borrow_mut().send_stream(stream.id).reset(number);
        stream.give_up();
        self.stop_receiving(stream, code);
        self.touch();
        self.forget(stream.id);
    }

    /// Tells the client to send no more of a request, if it has not ended it.
    pub(super) fn stop_receiving(&self, stream: &StreamState, code: Code) {
        if !stream.has_ended.replace(true) {
            let number = VarInt::from_u32(code.number());
            _ = self.quic.borrow_mut().recv_stream(stream.id).stop(number);
            self.note_end_of_request();
        }
        // What has come must be right, though nobody needs it.
        let mut unread = stream.unread.take();
        while !unread.is_empty() {
            match stream.reader.borrow_mut().take(&mut unread) {
                Ok(Some(Part::TooLarge)) => break,
                Ok(_) => {}
                Err(failure) => return self.fail(failure),
            }
        }
    }
}
