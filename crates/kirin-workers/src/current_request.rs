//! The request that a worker has now.
//!
//! The exchange notes it, and a worker that is given back has none. That costs a lock that nobody
//! else has, and a copy of the path: well below a microsecond of the 40 that a small request takes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use kirin_cgi::RequestBlock;
use parking_lot::Mutex;

/// The most bytes of a path that are noted.
const PATH_BYTES: usize = 256;

/// The request that a worker has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningRequest {
    /// The method.
    pub method: String,
    /// The path as the client sent it, without the query. At most 256 bytes of it.
    pub path: String,
    /// The time since the worker got it.
    pub running: Duration,
}

impl RunningRequest {
    /// Returns the request in a block that a worker may have changed.
    pub(crate) fn from_block(block: &[u8], running: Duration) -> Self {
        let mut noted = Noted::default();
        let start = block.iter().position(|byte| *byte == b':').map_or(0, |colon| colon + 1);
        let mut parts = block[start..].split(|byte| *byte == 0);
        while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
            if noted.note(name, value) {
                break;
            }
        }
        noted.to_running(running)
    }
}

/// The request that a worker has, and the number of those that it got.
#[derive(Default)]
pub(crate) struct CurrentRequest {
    noted: Mutex<Noted>,
    requests: AtomicU64,
}

/// The request. Its memory is kept for the next one.
#[derive(Default)]
struct Noted {
    since: Option<Instant>,
    method: Vec<u8>,
    path: Vec<u8>,
}

impl CurrentRequest {
    /// Notes a request.
    pub(crate) fn begin(&self, block: &RequestBlock, now: Instant) {
        self.requests.fetch_add(1, Relaxed);
        let mut noted = self.noted.lock();
        noted.since = Some(now);
        noted.method.clear();
        noted.path.clear();
        for (name, value) in block.variables() {
            if noted.note(name, value) {
                break;
            }
        }
    }

    /// Counts a request that came through the ring.
    pub(crate) fn count(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    /// Returns whether the worker has a request.
    pub(crate) fn is_running(&self) -> bool {
        self.noted.lock().since.is_some()
    }

    /// Notes that the worker is idle.
    pub(crate) fn end(&self) {
        self.noted.lock().since = None;
    }

    /// Returns the number of requests.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// Returns the request.
    pub(crate) fn running(&self, now: Instant) -> Option<RunningRequest> {
        let noted = self.noted.lock();
        let running = now.saturating_duration_since(noted.since?);
        Some(noted.to_running(running))
    }
}

impl Noted {
    /// Notes a variable of the request, if it is one that matters. Returns whether all are known.
    fn note(&mut self, name: &[u8], value: &[u8]) -> bool {
        match name {
            b"REQUEST_METHOD" => {
                self.method.clear();
                self.method.extend_from_slice(&value[..value.len().min(PATH_BYTES)]);
            }
            b"REQUEST_URI" => {
                let end = value.iter().position(|byte| *byte == b'?').unwrap_or(value.len());
                self.path.clear();
                self.path.extend_from_slice(&value[..end.min(PATH_BYTES)]);
            }
            _ => {}
        }
        !self.method.is_empty() && !self.path.is_empty()
    }

    fn to_running(&self, running: Duration) -> RunningRequest {
        RunningRequest {
            method: String::from_utf8_lossy(&self.method).into_owned(),
            path: String::from_utf8_lossy(&self.path).into_owned(),
            running,
        }
    }
}
