//! A connection that one request has for itself, and what happens to it after the response.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_http::InRequest;

use crate::local_upstream::{LocalUpstream, ServerConnections};
use crate::pool::ServerConnection;
use crate::server::ProxiedServer;
use crate::timed_attempt::TimedAttempt;

/// The most bytes that [`LeasedConnection::linger`] drops before it closes the connection.
const MAX_EXCESS_BYTES: usize = 1024 * 1024;

/// A connection that one request has for itself. Dropping it closes the connection.
pub(crate) struct LeasedConnection {
    pub(crate) connection: ServerConnection,
    pub(crate) server: Arc<ProxiedServer>,
    /// The request's slot at the server, held until the response is complete.
    pub(crate) attempt: Rc<TimedAttempt>,
    connections: Rc<ServerConnections>,
}

impl LeasedConnection {
    /// Leases `connection` to the request that holds `attempt`, and marks the request as sent.
    pub(crate) fn new(
        connection: ServerConnection,
        server: &Arc<ProxiedServer>,
        attempt: &Rc<TimedAttempt>,
        connections: &Rc<ServerConnections>,
    ) -> Self {
        attempt.sent(Instant::now());
        Self {
            connection,
            server: Arc::clone(server),
            attempt: Rc::clone(attempt),
            connections: Rc::clone(connections),
        }
    }

    /// Keeps the connection for another request. `server_time` is how long the server says that it
    /// keeps an idle connection.
    pub(crate) fn release(mut self, local: &Rc<LocalUpstream>, server_time: Option<Duration>) {
        if let Some(records) = self.connection.socket.records() {
            if !records.borrow_mut().has_ended() {
                tokio::task::spawn_local(InRequest::of_current(self.linger(Rc::clone(local))));
                return;
            }
            if !records.borrow_mut().begin_next() {
                return;
            }
        }
        self.connection.served += 1;
        self.connection.socket.read_deadline.set(0);
        let limits = &local.config().pool;
        self.connections.idle.put(self.connection, &local.deadlines, limits, server_time);
    }

    /// Waits until a FastCGI server has ended a request whose response is complete for the client.
    ///
    /// The script may work on after its output, or write more than it has announced. Closing the
    /// connection would end the script. So this reads and drops what comes, for as long as the
    /// server may be silent, and then keeps the connection.
    async fn linger(self, local: Rc<LocalUpstream>) {
        let socket = Rc::clone(&self.connection.socket);
        let mut dropped = 0;
        let mut excess = [0; 4096];
        while dropped < MAX_EXCESS_BYTES {
            socket.read_deadline.set(local.deadlines.after(local.config().timeouts.idle));
            match poll_fn(|context| socket.poll_read(context, &mut excess)).await {
                Ok(count @ 1..) => dropped += count,
                Ok(_) => return self.release(&local, None),
                Err(_) => return,
            }
        }
    }

    /// Logs bytes that arrived after the end of a response. They belong to no request, so the
    /// connection is closed.
    pub(crate) fn log_excess(&self, local: &LocalUpstream, bytes: usize) {
        let (upstream, server) = (local.upstream.name(), &self.server);
        self.attempt.warnings.warn("excess", || {
            tracing::warn!(
                upstream, %server, bytes,
                "bytes after the end of a response; connection closed"
            );
        });
    }
}
