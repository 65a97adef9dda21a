//! A connection after `101 Switching Protocols`: passes bytes in both directions until one side has
//! ended.
//!
//! A tunnel may be silent for long, but it does not outlive its client: a reset ends it at once.
//! When the client has ended its side, Kirin ends that direction to the far side too. The far side
//! may still answer, unless it is silent for [`FAR_SILENCE`].

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use kirin_http::body::Tunnel;
use kirin_http::field_lines::FieldLines;
use kirin_http::pace::Pace;
use tokio::time::{Instant, Sleep};

use crate::connection::io::{Closed, Io};
use crate::connection::presence::Presence;
use crate::http1::output::Unsent;
use crate::http1::response_writer::write_status_line;
use crate::http1::sending;

/// Bytes that one direction buffers.
const BUFFER_BYTES: usize = 16 * 1024;

/// How long the far side may be silent after the client has ended its side.
pub(crate) const FAR_SILENCE: Duration = Duration::from_secs(10);

/// The bytes of one direction.
#[derive(Default)]
struct Transfer {
    buffer: Vec<u8>,
    /// The start of the part of the buffer that is still to be written.
    start: usize,
    end: usize,
    total: u64,
    /// Whether the side that is read has ended.
    read_ended: bool,
}

/// The side on which a direction failed.
enum Failed {
    Reading(io::Error),
    Writing(io::Error),
}

impl From<Failed> for io::Error {
    fn from(failed: Failed) -> Self {
        let (Failed::Reading(error) | Failed::Writing(error)) = failed;
        error
    }
}

impl Transfer {
    fn new(unread: Vec<u8>) -> Self {
        let end = unread.len();
        let mut buffer = unread;
        buffer.resize(end.max(BUFFER_BYTES), 0);
        Self { buffer, end, ..Self::default() }
    }

    /// Returns whether the side that is written to does not take the bytes that are there.
    fn is_blocked(&self) -> bool {
        self.start < self.end
    }

    /// Moves the bytes that can be moved. Ready when the side that is read has ended and everything
    /// has been written.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        mut read: impl FnMut(&mut Context<'_>, &mut [u8]) -> Poll<io::Result<usize>>,
        mut write: impl FnMut(&mut Context<'_>, &[u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<Result<(), Failed>> {
        loop {
            while self.start < self.end {
                let written = ready!(write(context, &self.buffer[self.start..self.end]));
                let count = written.map_err(Failed::Writing)?;
                if count == 0 {
                    return Poll::Ready(Err(Failed::Writing(io::ErrorKind::WriteZero.into())));
                }
                self.start += count;
                self.total += count as u64;
            }
            if self.read_ended {
                return Poll::Ready(Ok(()));
            }
            (self.start, self.end) = (0, 0);
            self.end = ready!(read(context, &mut self.buffer)).map_err(Failed::Reading)?;
            self.read_ended = self.end == 0;
        }
    }
}

/// Sends the 101, then passes bytes until the far side has ended or the client has disconnected.
/// Returns the number of bytes that were sent to the client.
pub(crate) async fn run(io: &Io, fields: &FieldLines, tunnel: Box<dyn Tunnel>) -> io::Result<u64> {
    let mut head = Vec::with_capacity(fields.len_bytes() + 80);
    write_status_line(StatusCode::SWITCHING_PROTOCOLS, &mut head);
    fields.write_to(&mut head);
    head.extend_from_slice(b"Connection: Upgrade\r\n\r\n");
    sending::flush(io, &mut Unsent::one(Bytes::from(head))).await?;
    // TCP keepalive does not detect a client that vanished while bytes are unacknowledged.
    io.limit_unacknowledged(Duration::from_secs(io.deadlines().writing.silence));

    let mut open = OpenTunnel {
        io,
        tunnel,
        to_far: Transfer::new(io.unread.take()),
        to_client: Transfer::new(Vec::new()),
        far_takes_more: true,
        client_ended: false,
        far_limit: None,
        pace: Pace::new(io.deadlines().writing),
        is_slow: false,
    };
    let passed = poll_fn(|context| open.poll(context)).await;
    io.presence.take();
    passed?;
    Ok(open.to_client.total)
}

/// The two directions of a tunnel.
struct OpenTunnel<'a> {
    io: &'a Io,
    tunnel: Box<dyn Tunnel>,
    to_far: Transfer,
    to_client: Transfer,
    /// Whether bytes still go to the far side.
    far_takes_more: bool,
    /// Whether the client has ended its side.
    client_ended: bool,
    /// The time limit of the far side, once the client has ended.
    far_limit: Option<Pin<Box<Sleep>>>,
    /// The pace at which the client takes the bytes of the far side.
    pace: Pace,
    /// Whether the server waits for the client.
    is_slow: bool,
}

impl OpenTunnel<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (io, tunnel) = (self.io, &mut self.tunnel);
        if self.far_takes_more {
            let moved = self.to_far.poll(
                context,
                |context, buffer| io.poll_read(context, buffer),
                |context, bytes| tunnel.poll_write(context, bytes),
            );
            match moved {
                Poll::Ready(Err(Failed::Reading(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(moved) => {
                    // The bytes that the far side still sends reach the client nevertheless.
                    self.far_takes_more = false;
                    self.client_ended = moved.is_ok();
                    tunnel.end_writing();
                }
                Poll::Pending => {}
            }
        }
        let before = self.to_client.total;
        let moved = self.to_client.poll(
            context,
            |context, buffer| tunnel.poll_read(context, buffer),
            |context, bytes| io.poll_write(context, bytes),
        )?;
        let flushed = io.poll_flush(context)?;
        let progress = self.to_client.total - before;
        self.watch_pace(progress);
        if moved.is_ready() {
            return flushed.map(Ok);
        }
        if !self.far_takes_more || self.to_far.is_blocked() {
            // Nothing reads from the client, so only this check detects that it has disconnected.
            ready!(self.poll_client(context))?;
        } else {
            io.presence.take();
        }
        if self.client_ended {
            return self.poll_far_limit(context, progress > 0);
        }
        Poll::Pending
    }

    /// Has the table of open connections end the connection if the client takes nothing, or too
    /// little.
    fn watch_pace(&mut self, progress: u64) {
        match (self.to_client.is_blocked(), self.is_slow) {
            (true, false) => self.io.begin_wait(&mut self.pace),
            (true, true) => self.io.progress(&mut self.pace, progress as usize),
            (false, true) => self.io.end_wait(&mut self.pace),
            (false, false) => {}
        }
        self.is_slow = self.to_client.is_blocked();
    }

    /// Checks whether the client has ended its side or disconnected, which is an error. Otherwise
    /// always ready.
    fn poll_client(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(*self.io.presence.borrow(), Presence::Gone) {
            match self.io.closed() {
                Closed::Whole => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                Closed::Half => self.client_ended = true,
                Closed::Nothing => {}
            }
        }
        let waker = context.waker().clone();
        let presence = if self.client_ended {
            Presence::Probed(waker)
        } else {
            Presence::WatchedForEnd(waker)
        };
        self.io.presence.replace(presence);
        Poll::Ready(Ok(()))
    }

    /// Returns ready when the far side was silent for too long after the client's end.
    fn poll_far_limit(
        &mut self,
        context: &mut Context<'_>,
        progress: bool,
    ) -> Poll<io::Result<()>> {
        let far_limit =
            self.far_limit.get_or_insert_with(|| Box::pin(tokio::time::sleep(FAR_SILENCE)));
        if progress {
            far_limit.as_mut().reset(Instant::now() + FAR_SILENCE);
        }
        ready!(far_limit.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}
