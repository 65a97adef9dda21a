//! What became of each request.

use std::time::Duration;

use tokio::task::JoinError;

use crate::latency::Latencies;

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection: refused, or reset while it was made.
    Connect,
    /// The connection ended before a byte of the answer came.
    Unanswered,
    /// The connection ended inside the answer, or the answer was no HTTP.
    Cut,
    /// A status other than 200.
    Status,
    /// No complete answer in time.
    Timeout,
}

impl Failure {
    const ALL: [(Self, &str); 5] = [
        (Self::Connect, "connect"),
        (Self::Unanswered, "unanswered"),
        (Self::Cut, "cut"),
        (Self::Status, "status"),
        (Self::Timeout, "timeout"),
    ];
}

/// A run, or one visitor's part of it.
#[derive(Default)]
pub struct Outcome {
    /// Length of the run.
    pub elapsed: Duration,
    /// Of each answered request, from its beginning (the connection, if one had to be made) to its
    /// answer's last byte.
    pub latencies: Latencies,
    /// Failed requests, in the order of [`Failure`].
    pub failures: [usize; 5],
    /// Requests without an answer when the time was over, and those that nobody came to make.
    pub left_over: usize,
    /// Kept connections that the server had ended, in its right, between two requests.
    pub reconnects: usize,
    /// Slow readers that got the beginning of their answers.
    pub slow_served: usize,
    /// Those of them whose connections were still open at the end.
    pub slow_open: usize,
}

impl Outcome {
    /// Counts a failed request.
    pub fn fail(&mut self, failure: Failure) {
        self.failures[failure as usize] += 1;
    }

    /// Returns the number of failed requests of all kinds.
    pub fn failed(&self) -> usize {
        self.failures.iter().sum()
    }

    /// Adds another visitor's part.
    pub fn append(&mut self, part: Self) {
        self.latencies.append(part.latencies);
        for (sum, count) in self.failures.iter_mut().zip(part.failures) {
            *sum += count;
        }
        self.left_over += part.left_over;
        self.reconnects += part.reconnects;
    }

    /// Counts the requests of a visitor whose task has panicked. None of them counts as answered.
    pub fn lost_visitor(&mut self, requests: usize, why: &JoinError) {
        eprintln!("a visitor is lost: {why}");
        self.left_over += requests;
    }

    /// Returns all numbers with their names.
    pub fn report(&mut self) -> Vec<(&'static str, String)> {
        let seconds = self.elapsed.as_secs_f64();
        let answered = self.latencies.len();
        let mut lines = vec![
            ("seconds", format!("{seconds:.3}")),
            ("answered", answered.to_string()),
            ("failed", self.failed().to_string()),
        ];
        for (failure, name) in Failure::ALL {
            lines.push((name, self.failures[failure as usize].to_string()));
        }
        lines.push(("left_over", self.left_over.to_string()));
        lines.push(("reconnects", self.reconnects.to_string()));
        lines.push(("requests_per_second", format!("{:.0}", answered as f64 / seconds)));
        for (name, latency) in self.latencies.percentiles() {
            lines.push((name, format!("{:.1}", latency.as_secs_f64() * 1e6)));
        }
        lines.push(("slow_served", self.slow_served.to_string()));
        lines.push(("slow_open", self.slow_open.to_string()));
        lines
    }
}
