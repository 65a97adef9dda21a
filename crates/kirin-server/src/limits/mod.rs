//! The limits of a listener on what its clients may use.

pub mod admission;
pub(crate) mod deadlines;

use std::sync::Arc;
use std::time::Duration;

use crate::limits::admission::Admission;
use kirin_http::client_bytes::ListenerBytes;
use kirin_http::request::HeadLimits;

/// The limits of a listener on what its clients may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Size of request heads.
    pub head: HeadLimits,
    /// How long a connection may be idle between requests.
    pub keep_alive: Duration,
    /// How long a head may take from its first byte to its last.
    pub head_time: Duration,
    /// How long a client may be silent inside a body.
    pub body_time: Duration,
    /// How long a client may take nothing of a response.
    pub write_time: Duration,
    /// Bytes a second that a client must send of a body and take of a response, averaged over the
    /// time that it was waited for beyond the first `body_time` or `write_time`; 0 for none.
    pub min_rate_bytes: u64,
    /// Who may have a connection; everybody if there is none. More than may be wait in the kernel's
    /// queue.
    pub admission: Option<Arc<Admission>>,
    /// How many bytes may be held for clients; without it they are not counted.
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
            client_bytes: None,
        }
    }
}
