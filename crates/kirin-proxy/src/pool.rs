//! Idle connections to one server, on one event loop.
//!
//! The connection that was used last is taken first. So connections that are not needed stay idle
//! and are closed.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::config::PoolLimits;
use crate::deadlines::SocketDeadlines;
use crate::socket::Socket;

/// A connection. Its holder has it for itself.
pub(crate) struct ServerConnection {
    pub(crate) socket: Rc<Socket>,
    /// Responses that came by this connection.
    pub(crate) served: u64,
    /// The second on the upstream's clock at which it was opened.
    pub(crate) created_at: u64,
}

struct Idle {
    connection: ServerConnection,
    /// The second at which it has been idle too long.
    expires_at: u64,
}

/// Idle connections. The one that was used last is last.
#[derive(Default)]
pub(crate) struct ConnectionPool(RefCell<Vec<Idle>>);

impl ConnectionPool {
    /// Takes a connection that the server has not closed, as far as Kirin can know.
    pub(crate) fn take(
        &self,
        deadlines: &SocketDeadlines,
        limits: &PoolLimits,
        context: &mut Context<'_>,
    ) -> Option<ServerConnection> {
        let now = deadlines.now();
        loop {
            let idle = self.0.borrow_mut().pop()?;
            if is_usable(&idle, now, limits, context) {
                return Some(idle.connection);
            }
        }
    }

    /// Keeps a connection for the next request, if the limits allow it. `server_time` is how long
    /// the server says that it keeps an idle connection.
    pub(crate) fn put(
        &self,
        connection: ServerConnection,
        deadlines: &SocketDeadlines,
        limits: &PoolLimits,
        server_time: Option<Duration>,
    ) {
        let is_worn = limits.max_requests > 0 && connection.served >= limits.max_requests;
        let mut idle = self.0.borrow_mut();
        if is_worn || idle.len() >= limits.idle {
            return;
        }
        // The server may close the connection at the moment in which it is used again. So Kirin
        // closes it a second before that.
        let time = match server_time {
            Some(Duration::ZERO) => return,
            Some(time) => limits.idle_time.min(time.saturating_sub(Duration::from_secs(1))),
            None => limits.idle_time,
        };
        let expires_at = deadlines.now() + time.as_secs();
        idle.push(Idle { connection, expires_at });
    }

    /// Closes connections that are old or that the server has closed.
    pub(crate) fn sweep(&self, now: u64, limits: &PoolLimits) {
        let context = &mut Context::from_waker(Waker::noop());
        self.0.borrow_mut().retain(|idle| is_usable(idle, now, limits, context));
    }

    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

fn is_usable(idle: &Idle, now: u64, limits: &PoolLimits, context: &mut Context<'_>) -> bool {
    let age = now.saturating_sub(idle.connection.created_at);
    idle.expires_at >= now
        && limits.max_age.is_none_or(|limit| age < limit.as_secs())
        && idle.connection.socket.is_waiting(context)
}
