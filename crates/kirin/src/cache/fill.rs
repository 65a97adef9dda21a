//! Storing a body while it is sent: the client gets it as it comes, and so does whoever asks for it meanwhile.
//!
//! A task of its own reads from the place, so that neither a slow client nor one that goes keeps it from being stored. What is
//! longer than may be stored goes to those who read it already, for as long as any of them does ([`super::filling_body`]). What
//! is cut is not stored, and cut for all of them.

use super::filling_body::{Demand, Filler};
use super::flights::{Flight, Landed};
use super::patience::Patience;
use super::shared_response::SharedResponse;
use super::{Cache, unix_now};
use kirin_http::body::BodyStream;
use kirin_store::Now;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use tokio::time::{Instant, timeout};

/// Reads `source` to its end and stores it.
pub async fn fill(
    mut source: Box<dyn BodyStream>,
    (response, filler): (Arc<SharedResponse>, Filler),
    cache: Rc<Cache>,
    flight: Option<Flight>,
) {
    let keep = &response.keep;
    let mut bytes = 0u64;
    loop {
        match poll_fn(|context| source.poll_chunk(context)).await {
            Some(Ok(piece)) => {
                bytes += piece.len() as u64;
                filler.push(piece);
                if !keep.has_room(&cache.store, bytes) {
                    // First of all, so that nobody comes who would be too late.
                    filler.is_too_long();
                    cache.counters.not_stored.add();
                    keep.remember_pass(&cache.store, Now::from_unix_seconds(unix_now()));
                    if let Some(flight) = flight {
                        flight.land(Landed::NotStored);
                    }
                    return pass_on(source, filler).await;
                }
            }
            Some(Err(error)) => return filler.cut(&error),
            None => break,
        }
    }
    let is_stored = cache.store(keep, &filler.pieces());
    if let Some(flight) = flight {
        flight.land(if is_stored { Landed::Stored } else { Landed::NotStored });
    }
    filler.end();
}

/// Reads the rest for those who read what came before: as fast as the fastest of them, and without losing the slowest, unless
/// that is so slow that it would be a way to keep others from getting anything.
async fn pass_on(mut source: Box<dyn BodyStream>, filler: Filler) {
    let mut patience = Patience::default();
    loop {
        if poll_fn(|context| filler.poll_demand(context)).await == Demand::Nobody {
            return;
        }
        let began = Instant::now();
        if timeout(patience.left(), poll_fn(|context| filler.poll_room(context))).await.is_err() {
            filler.cut_slowest();
            patience = Patience::default();
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
            Some(None) => return filler.end(),
        }
    }
}
