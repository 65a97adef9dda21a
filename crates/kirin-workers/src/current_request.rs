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
        // Only the holder of the connection writes, so no atomic addition is needed.
        self.requests.store(self.requests.load(Relaxed) + 1, Relaxed);
        let mut noted = self.noted.lock();
        noted.since = Some(now);
        noted.method.clear();
        noted.path.clear();
        for (name, value) in block.variables() {
            match name {
                b"REQUEST_METHOD" => noted.method.extend_from_slice(value),
                b"REQUEST_URI" => {
                    let end = value.iter().position(|byte| *byte == b'?').unwrap_or(value.len());
                    noted.path.extend_from_slice(&value[..end.min(PATH_BYTES)]);
                }
                _ => continue,
            }
            if !noted.method.is_empty() && !noted.path.is_empty() {
                break;
            }
        }
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
        Some(RunningRequest {
            running: now.saturating_duration_since(noted.since?),
            method: String::from_utf8_lossy(&noted.method).into_owned(),
            path: String::from_utf8_lossy(&noted.path).into_owned(),
        })
    }
}
