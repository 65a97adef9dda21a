//! A client's connection on an event loop.
//!
//! A waiting connection owns its socket and a few words of state. The loop has one buffer for input
//! and one for output, which all its connections share. A connection takes memory of its own only
//! for an unfinished command and for answers that the client has not read.
//!
//! One request takes one `read` and one `write`.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BufMut;
use kirin_faults::{Errno, Point};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::counters::add;
use crate::execute::Executor;
use crate::output::OutputBuffer;
use crate::session::{Flow, MemcachedSession, SessionEnding};

static READ: Point = Point::new("memcached.read", &[Errno::CONNRESET, Errno::TIMEDOUT]);
static WRITE: Point = Point::new("memcached.write", &[Errno::CONNRESET, Errno::PIPE]);

/// The most bytes of one read.
const INPUT_BYTES: usize = 64 << 10;

/// An output buffer with a larger capacity in bytes is not kept for the next batch.
const OUTPUT_KEPT_BYTES: usize = 1 << 20;

/// If more bytes than this are missing in a data block, they are read directly into its memory.
const DIRECT_READ_BYTES: usize = INPUT_BYTES;

/// The most pieces of one `writev`.
const SLICES: usize = 64;

/// The two buffers that all connections of a loop share.
#[derive(Debug)]
pub(crate) struct LoopBuffers {
    input: RefCell<Box<[u8]>>,
    output: RefCell<Vec<u8>>,
}

impl LoopBuffers {
    pub(crate) fn new() -> LoopBuffers {
        LoopBuffers {
            input: RefCell::new(vec![0; INPUT_BYTES].into()),
            output: RefCell::new(Vec::with_capacity(INPUT_BYTES)),
        }
    }
}

/// The reason why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CloseReason {
    #[error("closed by the client")]
    ByClient,
    #[error("{0}")]
    Ended(SessionEnding),
    #[error("silent for too long")]
    Idle,
    #[error("another process serves it")]
    GivenAway,
    #[error("another process has the events")]
    WatchEnds,
    #[error(transparent)]
    Failed(#[from] io::Error),
}

impl CloseReason {
    /// Returns the reason as memcached tells it to watchers.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            CloseReason::ByClient
            | CloseReason::GivenAway
            | CloseReason::WatchEnds
            | CloseReason::Ended(SessionEnding::Quit) => "normal",
            CloseReason::Ended(_) | CloseReason::Failed(_) => "error",
            CloseReason::Idle => "idle_timeout",
        }
    }
}

/// A client's connection.
pub(crate) struct Connection<S> {
    stream: S,
    session: MemcachedSession,
    /// Answers that did not fit into the socket. While there are any, nothing is read.
    unsent: Option<Box<OutputBuffer>>,
    /// Whether commands wait until the client has read its answers.
    draining: bool,
    /// Whether other connections have had a turn since `draining` was set.
    has_yielded: bool,
    ending: Option<SessionEnding>,
}

impl<S: AsyncRead + AsyncWrite + AsRawFd + Unpin> Connection<S> {
    /// Returns the connection of a session, which is new or was begun in another process.
    pub(crate) fn new(stream: S, session: MemcachedSession) -> Connection<S> {
        Connection {
            stream,
            session,
            unsent: None,
            draining: false,
            has_yielded: false,
            ending: None,
        }
    }

    /// Returns the socket.
    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    /// Serves the client until one side closes the connection.
    pub(crate) async fn run(&mut self, executor: &Executor, buffers: &LoopBuffers) -> CloseReason {
        match executor.server().options().idle_timeout {
            None => loop {
                if let Err(closed) = poll_fn(|cx| self.poll_turn(cx, executor, buffers)).await {
                    return closed;
                }
            },
            // The box keeps the state of the timer out of connections that have none.
            Some(limit) => Box::pin(self.run_while_busy(limit, executor, buffers)).await,
        }
    }

    /// Serves the client until one side closes the connection, or the client is silent for `limit`.
    async fn run_while_busy(
        &mut self,
        limit: Duration,
        executor: &Executor,
        buffers: &LoopBuffers,
    ) -> CloseReason {
        loop {
            let turn = poll_fn(|cx| self.poll_turn(cx, executor, buffers));
            match tokio::time::timeout(limit, turn).await {
                Ok(Ok(())) => {}
                Ok(Err(closed)) => return closed,
                // A watcher says nothing. It is idle only if it does not read.
                Err(_) if self.session.watcher().is_some() && self.unsent.is_none() => {}
                // It is not the client that is silent.
                Err(_) if self.session.is_at_origin() => {}
                Err(_) => {
                    add(&executor.counters().idle_kicks, 1);
                    return CloseReason::Idle;
                }
            }
        }
    }

    /// Takes one turn: sends what is unsent, or else reads, carries out and answers.
    fn poll_turn(
        &mut self,
        cx: &mut Context<'_>,
        executor: &Executor,
        buffers: &LoopBuffers,
    ) -> Poll<Result<(), CloseReason>> {
        if let Some(unsent) = &mut self.unsent {
            ready!(poll_send(&mut self.stream, cx, unsent, executor))?;
            self.unsent = None;
        }
        if let Some(ending) = self.ending.take() {
            return Poll::Ready(Err(CloseReason::Ended(ending)));
        }
        if executor.server().has_successor() {
            if self.session.watcher().is_some() {
                return Poll::Ready(Err(CloseReason::WatchEnds));
            }
            if !self.draining && self.session.is_between_commands() {
                return Poll::Ready(Err(CloseReason::GivenAway));
            }
        }
        if self.session.watcher().is_some() {
            return self.poll_watch(cx, executor, buffers);
        }
        ready!(executor.server().poll_unpaused(cx));
        if self.draining && !self.has_yielded {
            self.has_yielded = true;
            // The first poll wakes the task after the loop has looked at its sockets. A plain wake
            // would let only the tasks run that are ready already.
            return pin!(tokio::task::yield_now()).poll(cx).map(Ok);
        }
        executor.set_descriptor(self.stream.as_raw_fd());
        let mut output = OutputBuffer::in_buffer(buffers.output.take());
        let flow = if self.session.is_at_origin() {
            self.session.poll_origin(cx, executor, &mut output).map(Ok)
        } else if self.draining {
            executor.tick();
            Poll::Ready(Ok(self.session.feed(&[], executor, &mut output)))
        } else {
            self.poll_receive(cx, executor, buffers, &mut output)
        };
        let sent = match flow {
            Poll::Ready(Ok(flow)) => {
                self.draining = flow == Flow::Drain;
                self.has_yielded = false;
                if let Flow::Close(ending) = flow {
                    self.ending = Some(ending);
                }
                self.send_now(cx, executor, &mut output)
            }
            Poll::Ready(Err(closed)) => Poll::Ready(Err(closed)),
            Poll::Pending => Poll::Pending,
        };
        let buffer = output.into_buffer();
        if buffer.capacity() <= OUTPUT_KEPT_BYTES {
            buffers.output.replace(buffer);
        }
        sent
    }

    /// Sends the lines that have come in for a watcher. Notices that it disconnects, and ignores
    /// what it says.
    fn poll_watch(
        &mut self,
        cx: &mut Context<'_>,
        executor: &Executor,
        buffers: &LoopBuffers,
    ) -> Poll<Result<(), CloseReason>> {
        if let Some(watcher) = self.session.watcher()
            && let Poll::Ready(lines) = watcher.poll_lines(cx)
        {
            let mut output = OutputBuffer::of_text(lines.into_bytes());
            return self.send_now(cx, executor, &mut output);
        }
        let mut input = buffers.input.borrow_mut();
        let mut read = ReadBuf::new(&mut input);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        match read.filled().len() {
            0 => Poll::Ready(Err(CloseReason::ByClient)),
            count => {
                add(&executor.counters().bytes_read, count as u64);
                Poll::Ready(Ok(()))
            }
        }
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        executor: &Executor,
        buffers: &LoopBuffers,
        output: &mut OutputBuffer,
    ) -> Poll<Result<Flow, CloseReason>> {
        if let Some((block, missing)) = self.session.block_mut()
            && missing > DIRECT_READ_BYTES
        {
            ready!(READ.poll(cx))?;
            let count = ready!(poll_read_block(&mut self.stream, cx, block, missing))?;
            if count == 0 {
                return Poll::Ready(Err(CloseReason::ByClient));
            }
            add(&executor.counters().bytes_read, count as u64);
            executor.tick();
            return Poll::Ready(Ok(self.session.block_grew(executor, output)));
        }
        ready!(READ.poll(cx))?;
        let mut input = buffers.input.borrow_mut();
        let most = READ.shorten(input.len());
        let mut read = ReadBuf::new(&mut input[..most]);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        let received = read.filled();
        if received.is_empty() {
            return Poll::Ready(Err(CloseReason::ByClient));
        }
        add(&executor.counters().bytes_read, received.len() as u64);
        executor.tick();
        Poll::Ready(Ok(self.session.feed(received, executor, output)))
    }

    /// Sends what the socket takes now, and keeps the rest.
    fn send_now(
        &mut self,
        cx: &mut Context<'_>,
        executor: &Executor,
        output: &mut OutputBuffer,
    ) -> Poll<Result<(), CloseReason>> {
        if !output.is_empty() {
            match poll_send(&mut self.stream, cx, output, executor) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => {
                    debug_assert!(self.unsent.is_none(), "earlier answers would be lost");
                    self.unsent = Some(Box::new(output.split_unsent()));
                    if self.draining {
                        add(&executor.counters().conn_yields, 1);
                    }
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Sends all of `output`. Pending if the socket is full.
fn poll_send<S: AsyncWrite + Unpin>(
    stream: &mut S,
    cx: &mut Context<'_>,
    output: &mut OutputBuffer,
    executor: &Executor,
) -> Poll<io::Result<()>> {
    while !output.is_empty() {
        ready!(WRITE.poll(cx))?;
        let sent = match output.as_text() {
            Some(text) => {
                let text = &text[..WRITE.shorten(text.len())];
                ready!(Pin::new(&mut *stream).poll_write(cx, text))?
            }
            None => {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let count = output.slices(&mut slices);
                let slices = slices.get(..WRITE.shorten(count)).unwrap_or_default();
                ready!(Pin::new(&mut *stream).poll_write_vectored(cx, slices))?
            }
        };
        if sent == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        add(&executor.counters().bytes_written, sent as u64);
        output.advance(sent);
    }
    Poll::Ready(Ok(()))
}

/// Reads the missing part of a data block, and no more, into its buffer. The buffer grows with the
/// bytes that have arrived, not with the announced length.
fn poll_read_block<S: AsyncRead + Unpin>(
    stream: &mut S,
    cx: &mut Context<'_>,
    block: &mut Vec<u8>,
    missing: usize,
) -> Poll<io::Result<usize>> {
    if block.len() == block.capacity() {
        block.reserve_exact(missing.min(block.len().max(INPUT_BYTES)));
    }
    let room = missing.min(block.capacity() - block.len());
    let mut room = block.limit(room);
    pin!(stream.read_buf(&mut room)).poll(cx)
}
