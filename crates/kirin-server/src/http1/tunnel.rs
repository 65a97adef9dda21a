//! A connection after `101 Switching Protocols`: bytes in both directions until one side has ended.
//!
//! A tunnel may be silent for long, but it does not outlive its client: a reset ends it at once.
//! After the end of the client's sending the far side hears of that and may answer, as long as it
//! is not silent for [`FAREWELL`].

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::time::{Instant, Sleep};

use crate::connection::io::{Closed, Io};
use crate::connection::presence::Presence;
use crate::http1::output::Unsent;
use crate::http1::response_writer::write_status_line;
use crate::http1::sending;
use kirin_http::body::Tunnel;
use kirin_http::field_lines::FieldLines;
use kirin_http::pace::Pace;

/// Bytes that one direction holds between its two sides.
const BUFFER_BYTES: usize = 16 * 1024;

/// How long the far side may be silent after the client has ended its side.
const FAREWELL: Duration = Duration::from_secs(10);

/// Bytes on their way in one direction.
#[derive(Default)]
struct Transfer {
    buffer: Vec<u8>,
    /// The part of the buffer that is still to be written.
    start: usize,
    end: usize,
    total: u64,
    /// The side that is read has ended.
    read_ended: bool,
}

/// Which side of a direction failed.
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

    /// Whether the side that is written to does not take what is there.
    fn is_blocked(&self) -> bool {
        self.start < self.end
    }

    /// Moves what can be moved. Ready when the side that is read has ended and everything has been
    /// written.
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

/// Sends the 101 and then passes bytes on until the far side has ended or the client has gone.
/// Returns how many bytes the client was sent.
pub(crate) async fn run(io: &Io, fields: &FieldLines, tunnel: Box<dyn Tunnel>) -> io::Result<u64> {
    let mut head = Vec::with_capacity(fields.len_bytes() + 80);
    write_status_line(StatusCode::SWITCHING_PROTOCOLS, &mut head);
    fields.write_to(&mut head);
    head.extend_from_slice(b"Connection: Upgrade\r\n\r\n");
    sending::flush(io, &mut Unsent::one(Bytes::from(head))).await?;
    // Keepalive does not notice a client that vanished with something unacknowledged.
    io.limit_unacknowledged(Duration::from_secs(io.deadlines.writing.silence));

    let mut passage = Passage {
        io,
        tunnel,
        to_far: Transfer::new(io.unread.take()),
        to_client: Transfer::new(Vec::new()),
        far_takes_more: true,
        client_ended: false,
        farewell: None,
        pace: Pace::new(io.deadlines.writing),
        is_slow: false,
    };
    let passed = poll_fn(|context| passage.poll(context)).await;
    io.presence.take();
    passed?;
    Ok(passage.to_client.total)
}

/// Both directions of a tunnel.
struct Passage<'a> {
    io: &'a Io,
    tunnel: Box<dyn Tunnel>,
    to_far: Transfer,
    to_client: Transfer,
    /// Whether bytes still go to the far side.
    far_takes_more: bool,
    /// Whether the client sends no more.
    client_ended: bool,
    /// The end of the far side's time, once the client has ended.
    farewell: Option<Pin<Box<Sleep>>>,
    /// How fast the client takes what the far side says.
    pace: Pace,
    /// Whether the client is being waited for.
    is_slow: bool,
}

impl Passage<'_> {
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
                    // What the far side still has to say reaches the client even so.
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
            // Nobody reads from the client, so nothing else tells that it has gone.
            ready!(self.poll_client(context))?;
        } else {
            io.presence.take();
        }
        if self.client_ended {
            return self.poll_farewell(context, progress > 0);
        }
        Poll::Pending
    }

    /// Has the table of open connections end a connection whose client takes nothing, or too
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

    /// Looks whether the client has ended its side, or has gone, which is an error. Always ready
    /// otherwise.
    fn poll_client(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(*self.io.presence.borrow(), Presence::Gone) {
            match self.io.closed() {
                Closed::Whole => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                Closed::Half => self.client_ended = true,
                Closed::Nothing => {}
            }
        }
        let waker = context.waker().clone();
        let presence =
            if self.client_ended { Presence::Asked(waker) } else { Presence::Ending(waker) };
        self.io.presence.replace(presence);
        Poll::Ready(Ok(()))
    }

    /// Ready when the far side has been silent for too long after the client's end.
    fn poll_farewell(&mut self, context: &mut Context<'_>, progress: bool) -> Poll<io::Result<()>> {
        let farewell = self.farewell.get_or_insert_with(|| Box::pin(tokio::time::sleep(FAREWELL)));
        if progress {
            farewell.as_mut().reset(Instant::now() + FAREWELL);
        }
        ready!(farewell.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}
