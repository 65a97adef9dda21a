//! A connection after `101 Switching Protocols`: bytes in both directions until one side has ended.

use crate::field_lines::FieldLines;
use crate::io::Io;
use crate::output::Unsent;
use crate::response_writer::write_status_line;
use crate::sending;
use crate::server::Deadlines;
use bytes::Bytes;
use http::StatusCode;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

/// Bytes that one direction holds between its two sides.
const BUFFER_BYTES: usize = 16 * 1024;

/// The far side of a tunnel: an application worker, or an upstream.
pub trait Tunnel: 'static {
    /// Reads what is there into `buffer`; 0 at the end.
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes some of `bytes`.
    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// The client sends no more.
    fn end_writing(&mut self);
}

/// Bytes on their way in one direction.
#[derive(Default)]
struct Transfer {
    buffer: Vec<u8>,
    /// What of the buffer is still to be written.
    start: usize,
    end: usize,
    total: u64,
    /// The side that is read has ended.
    read_ended: bool,
}

impl Transfer {
    fn new(unread: Vec<u8>) -> Self {
        let end = unread.len();
        let mut buffer = unread;
        buffer.resize(end.max(BUFFER_BYTES), 0);
        Self { buffer, end, ..Self::default() }
    }

    /// Moves what can be moved; ready when the side that is read has ended and all of it has been written.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        mut read: impl FnMut(&mut Context<'_>, &mut [u8]) -> Poll<io::Result<usize>>,
        mut write: impl FnMut(&mut Context<'_>, &[u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<()>> {
        loop {
            while self.start < self.end {
                let count = std::task::ready!(write(context, &self.buffer[self.start..self.end]))?;
                if count == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.start += count;
                self.total += count as u64;
            }
            if self.read_ended {
                return Poll::Ready(Ok(()));
            }
            (self.start, self.end) = (0, 0);
            self.end = std::task::ready!(read(context, &mut self.buffer))?;
            self.read_ended = self.end == 0;
        }
    }
}

/// Sends the 101 and then passes bytes on until the far side has ended. Returns how many the client was sent. There is no
/// time limit but that of stopping: a tunnel may be silent for long.
pub(crate) async fn run(
    io: &Io,
    deadlines: &Deadlines,
    fields: &FieldLines,
    mut tunnel: Box<dyn Tunnel>,
) -> io::Result<u64> {
    let mut head = Vec::with_capacity(fields.len_bytes() + 80);
    write_status_line(StatusCode::SWITCHING_PROTOCOLS, &mut head);
    fields.write_to(&mut head);
    head.extend_from_slice(b"Connection: Upgrade\r\n\r\n");
    sending::flush(io, deadlines, &mut Unsent::one(Bytes::from(head))).await?;

    let mut to_far = Transfer::new(io.unread.take());
    let mut to_client = Transfer::new(Vec::new());
    let mut client_ended = false;
    poll_fn(|context| {
        if !client_ended {
            let moved = to_far.poll(
                context,
                |context, buffer| io.poll_read(context, buffer),
                |context, bytes| tunnel.poll_write(context, bytes),
            );
            if let Poll::Ready(moved) = moved {
                // What the far side still has to say reaches the client even so.
                client_ended = true;
                tunnel.end_writing();
                if let Err(error) = moved {
                    tracing::debug!(peer = %io.peer, %error, "tunnel");
                }
            }
        }
        let moved = to_client.poll(
            context,
            |context, buffer| tunnel.poll_read(context, buffer),
            |context, bytes| io.poll_write(context, bytes),
        )?;
        let flushed = io.poll_flush(context)?;
        if moved.is_ready() { flushed.map(Ok::<(), io::Error>) } else { Poll::Pending }
    })
    .await?;
    Ok(to_client.total)
}
