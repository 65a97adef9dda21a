//! The limits of a listener on what its clients may use.

pub mod admission;
pub mod blocked;
pub(crate) mod deadlines;

use std::sync::Arc;
use std::time::Duration;

use kirin_client_bytes::ListenerBytes;
use kirin_http::request::HeadLimits;

use crate::limits::admission::ConnectionAdmission;
use crate::limits::blocked::BlockedAddresses;

/// The limits of a listener on what its clients may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The size of a request head.
    pub head: HeadLimits,
    /// How long a connection may be idle between two requests.
    pub keep_alive: Duration,
    /// How long a request head may take from its first byte to its last.
    pub head_time: Duration,
    /// How long a client may send nothing of a request body.
    pub body_time: Duration,
    /// How long a client may read nothing while the server sends it a response.
    pub write_time: Duration,
    /// The least bytes a second that a client must send of a body or take of a response; 0 for no
    /// such limit. It is an average over the time that the server waited for the client. The first
    /// `body_time` or `write_time` does not count.
    pub min_rate_bytes: u64,
    /// Limits the number of connections; `None` for no limit. Connections above the limit wait in
    /// the kernel's queue.
    pub admission: Option<Arc<ConnectionAdmission>>,
    /// The addresses whose connections are closed at once.
    pub blocked: Arc<BlockedAddresses>,
    /// Limits the bytes that are held for clients. Without it, they are not counted.
    pub client_bytes: Option<Arc<ListenerBytes>>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: HeadLimits::default(),
            keep_alive: Duration::from_secs(75),
            head_time: Duration::from_secs(60),
            body_time: Duration::from_secs(60),
            write_time: Duration::from_secs(60),
            min_rate_bytes: 240,
            admission: None,
            blocked: Arc::default(),
            client_bytes: None,
        }
    }
}
