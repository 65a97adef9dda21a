//! Threads that compress bodies that would keep an event loop busy for too long.
//!
//! They are few, and nothing waits for a free one: while all are busy, responses are sent uncoded.
//! So compression never takes more than its share of the processor.

use std::sync::Arc;

use kirin_compress::{Coding, Effort, encode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The number of threads for each event loop.
const THREADS: usize = 2;

/// The largest body that is sent once and compressed on the event loop, in bytes: 0.15 ms for zstd,
/// 0.2 ms for gzip, 0.55 ms for brotli.
const INLINE_ONCE_BYTES: usize = 64 * 1024;

/// The threads of one event loop.
#[derive(Clone)]
pub struct CompressThreads(Arc<Semaphore>);

impl Default for CompressThreads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(THREADS)))
    }
}

impl CompressThreads {
    /// Returns a permit for a thread, or `None` while all are busy.
    pub fn free(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }

    /// Returns whether a body of this length that is sent once is compressed on the event loop.
    pub fn is_inline(length: usize) -> bool {
        length <= INLINE_ONCE_BYTES
    }

    /// Encodes a body that is sent once. Returns the body as it was if that makes it no smaller or
    /// all threads are busy.
    pub async fn encode_once(
        &self,
        coding: Coding,
        body: bytes::Bytes,
    ) -> Result<Vec<u8>, bytes::Bytes> {
        let encoded = if Self::is_inline(body.len()) {
            encode(coding, Effort::Once, &body).ok()
        } else {
            let Some(thread) = self.free() else { return Err(body) };
            let input = body.clone();
            let encoding = tokio::task::spawn_blocking(move || {
                let _thread = thread;
                encode(coding, Effort::Once, &input).ok()
            });
            encoding.await.ok().flatten()
        };
        encoded.filter(|encoded| encoded.len() < body.len()).ok_or(body)
    }
}
