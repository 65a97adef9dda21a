//! A connection's task: reads, has the engine take the bytes, answers requests, lets streams send,
//! and writes.
//!
//! The bytes that one read brought are all answered before the first write. So the responses to
//! requests that came together leave in one write and one TLS record.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use kirin_client_bytes::Reservation;
use kirin_h2::{Connection, Event, Limits, Output};
use kirin_http::handler::Handler;
use tokio::time::Sleep;

use super::Http2Failure;
use super::stream::StreamState;
use super::waiting::WaitingOn;
use crate::connection::io::Io;
use crate::server::{InForce, Server};
use crate::streams::head::LIST_FIELDS;
use crate::streams::stream_task::{TaskWaker, yield_turn};
use crate::streams::{CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES, STREAMS, held_bytes};

/// Bytes that are gathered before they are sent. While the client does not take them, nothing more
/// is read from it.
pub(super) const GATHERED_BYTES: usize = 64 * 1024;

/// Bytes that are sent before other connections of the loop get their turn.
const TURN_BYTES: u64 = 128 * 1024;

/// Memory for output that is not kept for the next connection.
const LARGE_OUTPUT_BYTES: usize = 4 * GATHERED_BYTES;

thread_local! {
    /// The memory of a connection that has sent everything, for the next connection on this loop
    /// that has something to send.
    static SPARE: Cell<Output> = Cell::default();
}

/// The engine of a connection.
pub(super) type Engine<H> = Connection<Rc<StreamState<H>>>;

/// A connection, as its task, the tasks of its streams and the bodies of its requests share it.
pub(super) struct Http2Connection<H> {
    pub(super) io: Rc<Io>,
    pub(super) engine: RefCell<Engine<H>>,
    task: TaskWaker,
    /// Number of streams that are tasks.
    pub(super) tasks: Cell<usize>,
    /// The next second, if streams wait for their clients.
    tick: RefCell<Option<Pin<Box<Sleep>>>>,
    /// Number of bytes of request bodies that wait for their readers.
    pub(super) unread_bytes: Cell<usize>,
    /// Number of such bytes whose streams were reset. The client gets room for as many.
    pub(super) unneeded_bytes: Cell<usize>,
    /// Counts what is held for the client, if it is much.
    held: RefCell<Option<Reservation>>,
}

/// Gives memory to an output that has none.
fn lend_memory<H>(engine: &mut Engine<H>) {
    let output = engine.output();
    if output.capacity() == 0 {
        *output = SPARE.take();
    }
}

/// The result of one turn.
pub(super) enum Turn {
    /// The connection has ended well.
    Ended,
    /// There is nothing to do until something happens.
    Waits {
        /// Whether a request has come.
        has_request: bool,
        /// Whether the client has taken bytes.
        progress: bool,
        on: WaitingOn,
    },
}

impl<H> Http2Connection<H> {
    pub(super) fn new(server: &Server<H>, io: &Rc<Io>) -> Rc<Self> {
        let limits = Limits {
            streams: STREAMS,
            header_list_bytes: u32::try_from(server.limits.head.head_bytes).unwrap_or(u32::MAX),
            header_fields: LIST_FIELDS,
            stream_window_bytes: STREAM_WINDOW_BYTES,
            connection_window_bytes: CONNECTION_WINDOW_BYTES,
            extended_connect: true,
        };
        Rc::new(Self {
            io: Rc::clone(io),
            engine: RefCell::new(Connection::new(limits, io.clock.now())),
            task: TaskWaker::default(),
            tasks: Cell::new(0),
            tick: RefCell::default(),
            unread_bytes: Cell::new(0),
            unneeded_bytes: Cell::new(0),
            held: RefCell::default(),
        })
    }

    /// Has the connection's task send what others have put into the engine.
    pub(super) fn wake(&self) {
        self.task.wake();
    }

    /// Tells the client to send no more requests.
    pub(super) fn shut_down(&self) {
        self.engine.borrow_mut().shut_down();
    }

    /// Ends all streams, because nothing can be sent any more.
    pub(super) fn end_streams(&self) {
        let ended: Vec<_> = self.engine.borrow_mut().end_all().collect();
        for stream in ended {
            stream.reset(self);
        }
    }

    /// Sends the output. Ready when the kernel has taken all of it.
    pub(super) fn poll_send(&self, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let mut engine = self.engine.borrow_mut();
        let output = engine.output();
        while !output.is_empty() {
            match ready!(self.io.poll_write(context, output.as_slice()))? {
                0 => return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into())),
                count => output.remove_first(count),
            }
        }
        let mut memory = std::mem::take(output);
        drop(engine);
        let spare = SPARE.take();
        if (spare.capacity()..=LARGE_OUTPUT_BYTES).contains(&memory.capacity()) {
            memory.clear();
            SPARE.set(memory);
        } else {
            SPARE.set(spare);
        }
        self.io.poll_flush(context)
    }

    /// Returns whether so much waits to be sent that nothing more is read or gathered.
    fn has_gathered(&self) -> bool {
        self.engine.borrow().output_bytes() >= GATHERED_BYTES
    }

    /// Counts what is held for the client. If the account has no room, the connection ends.
    fn count_held(&self) -> std::io::Result<()> {
        let bytes = self.engine.borrow().held_bytes()
            + self.unread_bytes.get()
            + self.io.unread.borrow().capacity();
        let share = || self.io.share.borrow().clone();
        held_bytes::count(&mut self.held.borrow_mut(), bytes as u64, share)
            .map_err(std::io::Error::other)
    }
}

impl<H: Handler> Http2Connection<H> {
    /// Does everything that can be done now.
    pub(super) fn poll_turn(
        self: &Rc<Self>,
        in_force: &InForce<H>,
        context: &mut Context<'_>,
    ) -> Result<Turn, Http2Failure> {
        self.task.set(context);
        self.poll_tick(context);
        let sent_before = self.io.sent.get();
        let mut has_request = false;
        let mut is_stalled;
        loop {
            let mut is_drained = true;
            let was_full = self.has_gathered();
            if !was_full {
                match self.poll_receive(in_force, context, &mut has_request)? {
                    Poll::Ready(true) => is_drained = false,
                    Poll::Ready(false) => return Ok(Turn::Ended),
                    Poll::Pending => {}
                }
            }
            self.release_unneeded();
            self.let_streams_send();
            is_stalled = self.poll_send(context)?.is_pending();
            // Nothing was read while the client took too little, and nobody waits for what it has
            // sent meanwhile.
            is_drained &= !was_full || is_stalled;
            let has_more = !is_stalled && self.engine.borrow().next_sender().is_some();
            if is_drained && !has_more {
                break;
            }
            // Other connections get their turn, and the client has time to take what it got.
            if self.io.sent.get() - sent_before >= TURN_BYTES {
                yield_turn(context);
                break;
            }
        }
        self.count_held()?;
        self.arm_tick(context);
        let is_idle = self.engine.borrow().open_streams() == 0 && self.tasks.get() == 0;
        if !is_stalled && is_idle && self.engine.borrow().has_ended() {
            return Ok(Turn::Ended);
        }
        let on = if is_stalled {
            WaitingOn::Socket
        } else if is_idle {
            WaitingOn::Request
        } else {
            WaitingOn::Work
        };
        Ok(Turn::Waits { has_request, progress: self.io.sent.get() > sent_before, on })
    }

    /// Takes what was read and not used, or reads once. Returns false at the end of the connection.
    fn poll_receive(
        self: &Rc<Self>,
        in_force: &InForce<H>,
        context: &mut Context<'_>,
        has_request: &mut bool,
    ) -> Result<Poll<bool>, Http2Failure> {
        let unread = self.io.unread.take();
        if !unread.is_empty() {
            let used = self.take(in_force, context, &unread, has_request)?;
            self.keep_unread(unread.get(used..).unwrap_or_default());
            return Ok(Poll::Ready(true));
        }
        let state = Rc::clone(&in_force.borrow().state);
        let mut scratch = state.scratch.borrow_mut();
        let count = match self.io.poll_read(context, &mut scratch)? {
            Poll::Ready(0) => return Ok(Poll::Ready(false)),
            Poll::Ready(count) => count,
            Poll::Pending => return Ok(Poll::Pending),
        };
        self.io.clock.now();
        let received = scratch.get(..count).unwrap_or_default();
        let used = self.take(in_force, context, received, has_request)?;
        self.keep_unread(received.get(used..).unwrap_or_default());
        Ok(Poll::Ready(true))
    }

    fn keep_unread(&self, rest: &[u8]) {
        if !rest.is_empty() {
            self.io.unread.replace(rest.to_vec());
        }
    }

    /// Has the engine take `input`, and does what it asks for. Stops when the client does not take
    /// the responses. Returns the number of bytes that were used.
    fn take(
        self: &Rc<Self>,
        in_force: &InForce<H>,
        context: &mut Context<'_>,
        input: &[u8],
        has_request: &mut bool,
    ) -> Result<usize, Http2Failure> {
        lend_memory(&mut self.engine.borrow_mut());
        let server = in_force.current();
        let mut fields = server.state.header_fields.borrow_mut();
        let now = self.io.clock.last();
        let mut at = 0;
        while let Some(rest @ [_, ..]) = input.get(at..) {
            let received = self.engine.borrow_mut().receive(rest, now, &mut fields)?;
            let start = at;
            at += received.used;
            match received.event {
                None => {}
                Some(Event::Request { stream, ended, is_too_large }) => {
                    *has_request = true;
                    let request = (stream, ended, is_too_large);
                    self.begin(&server, request, &fields);
                }
                Some(Event::Data { stream, data, ended }) => {
                    let data = input.get(start + data.start..start + data.end);
                    self.receive_data(stream, data.unwrap_or_default(), ended);
                }
                Some(Event::Trailers { stream }) => self.receive_trailers(stream, &fields),
                Some(Event::Reset { state, .. }) => state.reset(self),
            }
            if self.has_gathered() {
                if self.poll_send(context)?.is_pending() {
                    break;
                }
                lend_memory(&mut self.engine.borrow_mut());
            }
        }
        Ok(at)
    }

    fn release_unneeded(&self) {
        let bytes = self.unneeded_bytes.take();
        if bytes > 0 {
            // The streams do not exist any more.
            self.engine.borrow_mut().release(0, bytes);
        }
    }

    /// Lets streams send as much as is gathered before it is written.
    fn let_streams_send(&self) {
        let mut engine = self.engine.borrow_mut();
        while engine.output_bytes() < GATHERED_BYTES {
            let Some(stream) = engine.next_sender() else { return };
            lend_memory(&mut engine);
            let Some(state) = engine.state(stream).cloned() else { return };
            state.send_some(self, &mut engine);
        }
    }

    /// Checks once a second which streams have waited too long for the client.
    fn poll_tick(&self, context: &mut Context<'_>) {
        let mut tick = self.tick.borrow_mut();
        let Some(second) = &mut *tick else { return };
        if second.as_mut().poll(context).is_pending() {
            return;
        }
        *tick = None;
        let mut engine = self.engine.borrow_mut();
        let streams: Vec<_> = engine.states().map(|(_, state)| Rc::clone(state)).collect();
        for stream in streams {
            stream.check_time(self, &mut engine);
        }
    }

    /// Begins to wait for the next second if a stream waits for its client.
    fn arm_tick(&self, context: &mut Context<'_>) {
        let mut tick = self.tick.borrow_mut();
        if tick.is_none() && self.engine.borrow().states().any(|(_, state)| state.is_timed()) {
            let second = tick.insert(Box::pin(tokio::time::sleep(Duration::from_secs(1))));
            if second.as_mut().poll(context).is_ready() {
                context.waker().wake_by_ref();
            }
        }
    }
}
