//! The time that a program still has. It runs only while Kirin waits for the program, and not while
//! the program waits for a slow client.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The time that is left of a deadline.
pub(crate) struct TimeLeft {
    left: Duration,
    /// Since when it runs.
    since: Option<Instant>,
    over: Pin<Box<Sleep>>,
}

impl TimeLeft {
    /// Returns a deadline that does not run yet.
    pub(crate) fn new(left: Duration) -> Self {
        Self { left, since: None, over: Box::pin(tokio::time::sleep(left)) }
    }

    /// Lets the time run. Returns ready when none is left.
    pub(crate) fn poll_over(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.since.is_none() {
            let now = Instant::now();
            self.since = Some(now);
            // A deadline of years never comes.
            if let Some(end) = now.checked_add(self.left) {
                self.over.as_mut().reset(end);
            }
        }
        self.over.as_mut().poll(context)
    }

    /// Stops the time.
    pub(crate) fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.left = self.left.saturating_sub(since.elapsed());
        }
    }

    /// Returns what is left while the time does not run.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_runs_only_while_somebody_waits() {
        let mut time = TimeLeft::new(Duration::from_secs(10));
        let second = Duration::from_secs(1);
        assert!(tokio::time::timeout(4 * second, poll_fn(|c| time.poll_over(c))).await.is_err());
        time.pause();
        tokio::time::sleep(100 * second).await;
        assert_eq!(time.left(), 6 * second);
        assert!(tokio::time::timeout(5 * second, poll_fn(|c| time.poll_over(c))).await.is_err());
        assert!(tokio::time::timeout(2 * second, poll_fn(|c| time.poll_over(c))).await.is_ok());
    }
}
