//! The outcome of each request.

use std::time::Duration;

use tokio::task::JoinError;

use crate::latency::Latencies;

/// The reason why a request has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The connection was refused, or reset while it was made.
    Connect,
    /// The connection ended before the first byte of the response.
    Unanswered,
    /// The connection ended inside the response, or the response was not HTTP.
    Cut,
    /// The response had a status other than 200.
    Status,
    /// The response was not complete in time.
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

/// The numbers of a run, or of one visitor's part of it.
#[derive(Default)]
pub struct Outcome {
    /// The length of the run.
    pub elapsed: Duration,
    /// The latency of each answered request. It begins with the request, or with its connection if
    /// a new one was made, and ends with the last byte of the response.
    pub latencies: Latencies,
    /// The numbers of failed requests, in the order of [`Failure`].
    pub failures: [usize; 5],
    /// The number of requests that had no response when the time was over, or that were never made.
    pub left_over: usize,
    /// The number of kept connections that the server closed between two requests, as it may.
    pub reconnects: usize,
    /// The number of slow readers that got the first byte of their responses.
    pub slow_served: usize,
    /// The number of those slow readers whose connections were still open at the end.
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
