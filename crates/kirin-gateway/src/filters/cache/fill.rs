//! Stores a body while it is sent to the client, and to other clients that request it at the same
//! time.
//!
//! A task of its own reads from the place. So the response is stored even if a client is slow or
//! disconnects. A body that is too long to be stored is still sent to its readers, as long as it
//! has readers ([`super::filling_body`]). A body that is cut is not stored, and is cut for all of
//! them.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use kirin_client_bytes::{ClientShare, Resource};
use kirin_http::body::BodyStream;
use kirin_store::Now;
use tokio::time::{Instant, timeout};

use super::filling_body::{Demand, Filler};
use super::memory::Cache;
use super::pending_fetches::{FetchOutcome, PendingFetch};
use super::shared_response::SharedResponse;
use super::slow_reader_allowance::{GRACE, SlowReaderAllowance};

/// Reads `source` to its end and stores it. Until all have read it, its memory counts for the
/// client of `share`, which asked first. If that client has no room left, the body is not stored.
pub async fn fill(
    mut source: Box<dyn BodyStream>,
    response: Arc<SharedResponse>,
    filler: Filler,
    cache: Rc<Cache>,
    pending: Option<PendingFetch>,
    share: ClientShare,
) {
    let Ok(mut reserved) = share.reserve(Resource::Memory, 0) else { return };
    let mut bytes = 0u64;
    loop {
        match poll_fn(|context| source.poll_chunk(context)).await {
            Some(Ok(piece)) => {
                bytes += piece.len() as u64;
                filler.push(piece);
                let is_counted = reserved.resize(bytes).is_ok();
                if !is_counted || !response.keep.has_room(&cache.store, bytes) {
                    // This comes first, so that no reader joins too late.
                    filler.is_too_long();
                    cache.counters.not_stored.add();
                    if is_counted {
                        response.keep.remember_pass(&cache.store, Now::on_steady_clock());
                    }
                    if let Some(pending) = pending {
                        pending.finish(FetchOutcome::NotStored);
                    }
                    // This also ends the moment since which purges are remembered.
                    drop(response);
                    pass_on(source, filler, GRACE).await;
                    return drop(reserved);
                }
            }
            Some(Err(error)) => return filler.cut(&error),
            None => break,
        }
    }
    let stored = cache.store(&response.keep, &filler.pieces());
    if let Some(pending) = pending {
        pending.finish(FetchOutcome::from_stored(stored));
    }
    filler.end();
    poll_fn(|context| filler.poll_deserted(context)).await;
}

/// Reads the rest of a body for its readers, as fast as the fastest of them reads. The slowest
/// reader keeps its place, unless it is so slow that it would keep the others from getting
/// anything.
async fn pass_on(mut source: Box<dyn BodyStream>, filler: Filler, grace: Duration) {
    let mut allowance = SlowReaderAllowance::new(grace);
    loop {
        if poll_fn(|context| filler.poll_demand(context)).await == Demand::Nobody {
            return;
        }
        let began = Instant::now();
        if timeout(allowance.left(), poll_fn(|context| filler.poll_room(context))).await.is_err() {
            filler.cut_slowest();
            allowance = SlowReaderAllowance::new(grace);
            continue;
        }
        allowance.waited(began.elapsed());
        let next = poll_fn(|context| match filler.poll_deserted(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => Poll::Ready(Some(ready!(source.poll_chunk(context)))),
        });
        match next.await {
            // There are no readers left.
            None => return,
            Some(Some(Ok(piece))) => {
                allowance.got(piece.len());
                filler.push(piece);
            }
            Some(Some(Err(error))) => return filler.cut(&error),
            Some(None) => {
                filler.end();
                return poll_fn(|context| filler.poll_deserted(context)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::filling_body::FillingBody;
    use super::*;
    use bytes::Bytes;
    use kirin_http::body::StreamError;
    use std::cell::Cell;
    use std::task::Context;
    use tokio::task::{LocalSet, spawn_local, yield_now};

    /// A source with so many pieces of 16 KiB, and then an end or none.
    struct Pieces {
        left: usize,
        is_whole: bool,
        is_there: Rc<Cell<bool>>,
    }

    const PIECE_BYTES: usize = 16 * 1024;
    const PIECES: usize = 100;

    impl BodyStream for Pieces {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
            match self.left.checked_sub(1) {
                None if self.is_whole => Poll::Ready(None),
                None => Poll::Pending,
                Some(left) => {
                    self.left = left;
                    Poll::Ready(Some(Ok(Bytes::from(vec![b'x'; PIECE_BYTES]))))
                }
            }
        }

        fn length(&self) -> Option<u64> {
            None
        }
    }

    impl Drop for Pieces {
        fn drop(&mut self) {
            self.is_there.set(false);
        }
    }

    /// Reads to the end. Returns the number of bytes, and whether there was an end.
    async fn read(mut reader: impl BodyStream) -> (usize, bool) {
        let mut bytes = 0;
        loop {
            match poll_fn(|context| reader.poll_chunk(context)).await {
                Some(Ok(piece)) => bytes += piece.len(),
                end => return (bytes, end.is_none()),
            }
        }
    }

    /// Returns two readers of a body that is too long, and whether its source is still there.
    fn passed_on(
        is_whole: bool,
        grace: Duration,
    ) -> (impl BodyStream, impl BodyStream, Rc<Cell<bool>>) {
        let (body, filler, first) = FillingBody::new(None, 4 * PIECE_BYTES as u64);
        let second = body.reader(None).expect("it has just begun");
        filler.is_too_long();
        let is_there = Rc::new(Cell::new(true));
        let source = Pieces { left: PIECES, is_whole, is_there: Rc::clone(&is_there) };
        spawn_local(pass_on(Box::new(source), filler, grace));
        (first, second, is_there)
    }

    #[tokio::test]
    async fn all_readers_get_all_of_a_body_that_is_too_long() {
        let test = async {
            let (first, second, _) = passed_on(true, GRACE);
            let whole = (PIECES * PIECE_BYTES, true);
            assert_eq!(tokio::join!(read(first), read(second)), (whole, whole));
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_delays_others_for_a_limited_time() {
        let test = async {
            let (first, second, _) = passed_on(true, Duration::from_millis(1));
            assert_eq!(read(first).await, (PIECES * PIECE_BYTES, true));
            assert_eq!(read(second).await, (0, false));
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test]
    async fn a_body_without_readers_is_not_read_on() {
        let test = async {
            for is_whole in [true, false] {
                let (mut first, second, is_there) = passed_on(is_whole, GRACE);
                assert!(poll_fn(|context| first.poll_chunk(context)).await.is_some());
                drop((first, second));
                while is_there.get() {
                    yield_now().await;
                }
            }
            // The same happens when the last piece has been read and the next one does not come.
            let (mut first, second, is_there) = passed_on(false, GRACE);
            drop(second);
            for _ in 0..PIECES {
                assert!(poll_fn(|context| first.poll_chunk(context)).await.is_some());
            }
            assert!(is_there.get());
            drop(first);
            while is_there.get() {
                yield_now().await;
            }
        };
        LocalSet::new().run_until(test).await;
    }
}
