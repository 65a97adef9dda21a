//! Threads that compress what would keep an event loop too long.
//!
//! They are few, and nobody waits for a free one: while all are at work, answers go out as they
//! are. So compression never takes more than its share of the processor, whatever is asked for.

use std::sync::Arc;

use kirin_compress::{Coding, Effort, encode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Threads at a time, for each event loop.
const THREADS: usize = 2;

/// Up to here a body that is sent once is compressed on the event loop: 0.15 ms for zstd, 0.2 ms
/// for gzip, 0.55 ms for brotli.
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
    /// Leave to use a thread; `None` while all are at work.
    pub fn free(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }

    /// Whether a body of this length that is sent once is compressed where it is, without a thread.
    pub fn is_inline(length: usize) -> bool {
        length <= INLINE_ONCE_BYTES
    }

    /// Encodes a body that is sent once. Gives it back as it was when that makes it no smaller or
    /// all threads are at work.
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
