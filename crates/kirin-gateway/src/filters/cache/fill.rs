//! Storing a body while it is sent: the client gets it as it comes, and so does whoever asks for it
//! meanwhile.
//!
//! A task of its own reads from the place, so that neither a slow client nor one that goes keeps it
//! from being stored. What is longer than may be stored goes to those who read it already, for as
//! long as any of them does ([`super::filling_body`]). What is cut is not stored, and cut for all
//! of them.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use kirin_http::body::BodyStream;
use kirin_http::{ClientShare, Resource};
use kirin_store::Now;
use tokio::time::{Instant, timeout};

use super::filling_body::{Demand, Filler};
use super::flights::{Flight, Landed};
use super::patience::{GRACE, Patience};
use super::shared_response::SharedResponse;
use super::{Cache, steady_now};

/// Reads `source` to its end and stores it. What it takes until all have read it is counted for the
/// client with this `share`, who was the first to ask; if that finds no room it is not stored.
pub async fn fill(
    mut source: Box<dyn BodyStream>,
    (response, filler): (Arc<SharedResponse>, Filler),
    cache: Rc<Cache>,
    flight: Option<Flight>,
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
                    // First of all, so that nobody comes who would be too late.
                    filler.is_too_long();
                    cache.counters.not_stored.add();
                    if is_counted {
                        response
                            .keep
                            .remember_pass(&cache.store, Now::from_unix_seconds(steady_now()));
                    }
                    if let Some(flight) = flight {
                        flight.land(Landed::NotStored);
                    }
                    // With it goes the moment since when purges are remembered.
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
    if let Some(flight) = flight {
        flight.land(Landed::of(stored));
    }
    filler.end();
    poll_fn(|context| filler.poll_deserted(context)).await;
}

/// Reads the rest for those who read what came before: as fast as the fastest of them, and without
/// losing the slowest, unless that is so slow that it would be a way to keep others from getting
/// anything.
async fn pass_on(mut source: Box<dyn BodyStream>, filler: Filler, grace: Duration) {
    let mut patience = Patience::new(grace);
    loop {
        if poll_fn(|context| filler.poll_demand(context)).await == Demand::Nobody {
            return;
        }
        let began = Instant::now();
        if timeout(patience.left(), poll_fn(|context| filler.poll_room(context))).await.is_err() {
            filler.cut_slowest();
            patience = Patience::new(grace);
            continue;
        }
        patience.waited(began.elapsed());
        let next = poll_fn(|context| match filler.poll_deserted(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => Poll::Ready(Some(ready!(source.poll_chunk(context)))),
        });
        match next.await {
            // Nobody is there to be told.
            None => return,
            Some(Some(Ok(piece))) => {
                patience.got(piece.len());
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

    /// So many pieces of 16 KiB, and then an end or none.
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

    /// Reads to the end: the bytes, and whether that is one.
    async fn read(mut reader: impl BodyStream) -> (usize, bool) {
        let mut bytes = 0;
        loop {
            match poll_fn(|context| reader.poll_chunk(context)).await {
                Some(Ok(piece)) => bytes += piece.len(),
                end => return (bytes, end.is_none()),
            }
        }
    }

    /// A body that is too long, its first reader, and whether its source is still there.
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
    async fn all_readers_get_all_of_what_is_too_long() {
        let test = async {
            let (first, second, _) = passed_on(true, GRACE);
            let whole = (PIECES * PIECE_BYTES, true);
            assert_eq!(tokio::join!(read(first), read(second)), (whole, whole));
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_keeps_the_others_for_a_while_only() {
        let test = async {
            let (first, second, _) = passed_on(true, Duration::from_millis(1));
            assert_eq!(read(first).await, (PIECES * PIECE_BYTES, true));
            assert_eq!(read(second).await, (0, false));
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test]
    async fn what_nobody_reads_any_more_is_not_asked_for() {
        let test = async {
            for is_whole in [true, false] {
                let (mut first, second, is_there) = passed_on(is_whole, GRACE);
                assert!(poll_fn(|context| first.poll_chunk(context)).await.is_some());
                drop((first, second));
                while is_there.get() {
                    yield_now().await;
                }
            }
            // The same when the last piece has been read and the next one does not come.
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
