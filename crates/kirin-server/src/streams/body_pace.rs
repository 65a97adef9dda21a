//! How long a client may be silent while the body of its request is read.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use kirin_http::pace::{MinimumPace, Pace};
use tokio::time::Sleep;

use crate::clock::Clock;

/// The pace of a client that sends a body.
pub(crate) struct BodyPace {
    pace: Pace,
    /// The time limit of the current wait.
    time_limit: Option<Pin<Box<Sleep>>>,
}

impl BodyPace {
    pub(crate) fn new(minimum: MinimumPace) -> Self {
        Self { pace: Pace::new(minimum), time_limit: None }
    }

    /// Begins a new wait. The one before it may have been given up.
    pub(crate) fn begin_wait(&mut self) {
        self.time_limit = None;
    }

    /// Returns ready if the client was silent for too long. Called when it has sent nothing.
    pub(crate) fn poll_silence(&mut self, clock: &Clock, context: &mut Context<'_>) -> Poll<()> {
        let pace = &mut self.pace;
        let time_limit = self.time_limit.get_or_insert_with(|| {
            let now = clock.now();
            let seconds = pace.begin(now).saturating_sub(now);
            Box::pin(tokio::time::sleep(Duration::from_secs(seconds)))
        });
        time_limit.as_mut().poll(context)
    }

    /// Ends the wait for the client, if there was one: it has sent `bytes`, or ended the body.
    pub(crate) fn end_wait(&mut self, bytes: usize, clock: &Clock) {
        if self.time_limit.take().is_some() {
            self.pace.end(clock.now());
        }
        if bytes > 0 {
            self.pace.moved(bytes as u64, clock.now());
        }
    }
}
