//! A response body that is hashed while it is sent.

use std::hash::RandomState;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kirin_advice::observation::{Observation, ObservedBody};
use kirin_advice::own_values::OwnValues;
use kirin_advice::pieces::Splitter;
use kirin_http::{StreamError, StreamObserver};

use super::sampling::{ObservedRoute, Run};

/// The most bytes of a body that are hashed.
pub const MAX_BODY_BYTES: u64 = 1 << 20;

/// An answer that is being observed. It is added to the run when it is dropped.
pub struct Observing {
    run: Arc<Run>,
    route: ObservedRoute,
    observation: Observation,
    /// The hashes so far. `None` if the body is not hashed.
    hashing: Option<Hashing>,
    bytes: u64,
    is_complete: bool,
}

struct Hashing {
    splitter: Splitter<RandomState>,
    own_values: OwnValues,
}

impl Observing {
    /// Observes an answer whose head has arrived.
    pub fn new(run: Arc<Run>, route: ObservedRoute, observation: Observation) -> Self {
        Self { run, route, observation, hashing: None, bytes: 0, is_complete: false }
    }

    /// Hashes the body, and looks for the visitor's own values in it.
    pub fn hash(&mut self, own_values: OwnValues) {
        let splitter = Splitter::new(self.run.key.clone());
        self.hashing = Some(Hashing { splitter, own_values });
    }

    /// Takes a body of which nothing is hashed.
    pub fn set_body(&mut self, body: ObservedBody) {
        self.observation.body = body;
    }

    /// Adds the next bytes of the body.
    pub fn add(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        if self.bytes > MAX_BODY_BYTES {
            if self.hashing.take().is_some() {
                self.observation.body = ObservedBody::TooLong;
            }
            return;
        }
        if let Some(hashing) = &mut self.hashing {
            hashing.splitter.add(chunk);
            hashing.own_values.search(chunk);
        }
    }

    /// Adds time that the place took.
    pub fn add_time(&mut self, time: Duration) {
        self.observation.place_time += time;
    }

    /// Notes that the body has ended.
    pub fn end(&mut self) {
        self.is_complete = true;
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        if let (Some(hashing), true) = (self.hashing.take(), self.is_complete) {
            let Hashing { splitter, own_values } = hashing;
            self.observation.body = ObservedBody::Complete {
                hashed: splitter.finish(),
                has_own_value: own_values.is_found(),
            };
        }
        self.observation.answered = self.run.elapsed();
        self.run.add(std::mem::take(&mut self.observation), &self.route);
    }
}

/// Hashes the body of a response while it is sent.
pub struct StreamHasher {
    /// None after the end.
    observing: Option<Observing>,
    /// Since when the place is waited for. A slow client is not the place's time.
    waits_since: Option<Instant>,
}

impl StreamHasher {
    /// Creates the observer of a response.
    pub fn new(observing: Observing) -> Self {
        Self { observing: Some(observing), waits_since: None }
    }
}

impl StreamObserver for StreamHasher {
    fn note(&mut self, polled: &Poll<Option<Result<Bytes, StreamError>>>) {
        let Poll::Ready(next) = polled else {
            self.waits_since.get_or_insert_with(Instant::now);
            return;
        };
        let Some(observing) = &mut self.observing else { return };
        if let Some(since) = self.waits_since.take() {
            observing.add_time(since.elapsed());
        }
        match next {
            Some(Ok(chunk)) => observing.add(chunk),
            Some(Err(_)) => self.observing = None,
            None => {
                observing.end();
                self.observing = None;
            }
        }
    }
}
