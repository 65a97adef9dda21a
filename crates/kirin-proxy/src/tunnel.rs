//! A server that has switched to another protocol. Its connection belongs to the client until it
//! ends.

use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use kirin_http::Tunnel;

use crate::pool::ServerConnection;
use crate::pooled_buffer::PooledBuffer;
use crate::timed_attempt::TimedAttempt;

/// The server's side of a tunnel.
pub(crate) struct ProxyTunnel {
    pub(crate) connection: ServerConnection,
    /// The bytes that came with the head.
    pub(crate) unused: Option<PooledBuffer>,
    /// The slot at the server, held until the tunnel ends.
    pub(crate) _attempt: Rc<TimedAttempt>,
}

impl Tunnel for ProxyTunnel {
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(unused) = &mut self.unused {
            let count = unused.take_into(buffer);
            if unused.is_empty() {
                self.unused = None;
            }
            if count > 0 {
                return Poll::Ready(Ok(count));
            }
        }
        self.connection.socket.poll_read(context, buffer)
    }

    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let socket = &self.connection.socket;
        let count = ready!(socket.poll_write(context, &[IoSlice::new(bytes)]))?;
        // Encrypted bytes that the socket does not take now are sent with the next write.
        if let Poll::Ready(Err(error)) = socket.poll_flush(context) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(count))
    }

    fn end_writing(&mut self) {
        self.connection.socket.end_writing();
    }
}
