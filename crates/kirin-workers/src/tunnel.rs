//! A worker that has switched to another protocol. Its connection belongs to the client until it
//! ends.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll};

use kirin_http::Tunnel;

use crate::app::App;
use crate::worker::WorkerConnection;

/// The worker's side of a tunnel.
pub(crate) struct WorkerTunnel {
    pub(crate) connection: WorkerConnection,
    pub(crate) app: Arc<App>,
}

impl Tunnel for WorkerTunnel {
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let connection = &mut self.connection;
        if connection.buffered().is_empty() {
            return connection.poll_read(context, buffer);
        }
        // These bytes came with the head.
        Poll::Ready(Ok(connection.buffer().take_into(buffer)))
    }

    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.connection.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn end_writing(&mut self) {
        self.connection.end_writing();
    }
}

impl Drop for WorkerTunnel {
    /// Starts the deadline of the worker, which has as long as for a request. If it does not come
    /// back, it is killed.
    fn drop(&mut self) {
        self.app.deadlines.begin_to_return(&self.connection.handle);
    }
}
