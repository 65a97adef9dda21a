//! Connections to one server that wait for the next request, on one loop. The one that was used
//! last is taken first, so that those that are not needed grow old.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::config::PoolLimits;
use crate::deadlines::Deadlines;
use crate::socket::Socket;

/// A connection. Whoever holds it has it for itself.
pub(crate) struct Connection {
    pub(crate) socket: Rc<Socket>,
    /// Responses that have come by it.
    pub(crate) served: u64,
    /// The second of the place's clock at which it was made.
    pub(crate) born: u64,
}

struct Idle {
    connection: Connection,
    /// The second at which it has been idle for too long.
    until: u64,
}

/// Idle connections, the last used last.
#[derive(Default)]
pub(crate) struct Pool(RefCell<Vec<Idle>>);

impl Pool {
    /// A connection that the server has not ended, as far as anybody can know.
    pub(crate) fn take(
        &self,
        deadlines: &Deadlines,
        limits: &PoolLimits,
        context: &mut Context<'_>,
    ) -> Option<Connection> {
        let now = deadlines.now();
        loop {
            let idle = self.0.borrow_mut().pop()?;
            if is_usable(&idle, now, limits, context) {
                return Some(idle.connection);
            }
        }
    }

    /// Keeps a connection for the next request, if it is good for one. `server_time` is for how
    /// long the server says that it keeps it.
    pub(crate) fn put(
        &self,
        connection: Connection,
        deadlines: &Deadlines,
        limits: &PoolLimits,
        server_time: Option<Duration>,
    ) {
        let is_worn = limits.max_requests > 0 && connection.served >= limits.max_requests;
        let mut idle = self.0.borrow_mut();
        if is_worn || idle.len() >= limits.idle {
            return;
        }
        // What the server is about to close is not worth the risk: a second less than it says.
        let time = match server_time {
            Some(Duration::ZERO) => return,
            Some(time) => limits.idle_time.min(time.saturating_sub(Duration::from_secs(1))),
            None => limits.idle_time,
        };
        let until = deadlines.now() + time.as_secs();
        idle.push(Idle { connection, until });
    }

    /// Closes what is old or has been closed.
    pub(crate) fn sweep(&self, now: u64, limits: &PoolLimits) {
        let context = &mut Context::from_waker(Waker::noop());
        self.0.borrow_mut().retain(|idle| is_usable(idle, now, limits, context));
    }

    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

fn is_usable(idle: &Idle, now: u64, limits: &PoolLimits, context: &mut Context<'_>) -> bool {
    let age = now.saturating_sub(idle.connection.born);
    idle.until >= now
        && limits.max_age.is_none_or(|limit| age < limit.as_secs())
        && idle.connection.socket.is_waiting(context)
}
