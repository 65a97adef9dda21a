//! A crowd of HTTP/1.1 clients: visitors that make many requests one after another, and slow
//! readers beside them.
//!
//! It is made to find requests that are lost, so that each is accounted for: answered, failed in
//! one of five ways, or not answered when the time was over. `kirin-crowd` and the end-to-end tests
//! run it.

mod outcome;
mod response;
mod slow_reader;
mod visitor;

pub use outcome::{Failure, Outcome};

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;

/// Who comes and what they ask for.
pub struct Crowd {
    /// The server.
    pub address: SocketAddr,
    /// Number of visitors, each with one connection at a time.
    pub visitors: usize,
    /// Requests that each of them makes, one after another.
    pub requests: usize,
    /// What they ask for.
    pub path: String,
    /// Whether they keep their connections; otherwise each is for one request.
    pub keep_alive: bool,
    /// How long a visitor waits after an answer.
    pub pause: Duration,
    /// A request that has no complete answer within this has failed.
    pub timeout: Duration,
    /// The whole run, at most. Requests that have no answer then are counted as such.
    pub limit: Duration,
    /// Number of slow readers.
    pub slow_readers: usize,
    /// What they ask for: something large.
    pub slow_path: String,
}

/// How long visitors wait for the slow readers to have the beginning of their answers.
const SLOW_READERS_BEGIN_WITHIN: Duration = Duration::from_secs(3);

/// Runs it to its end, on this thread.
pub fn run(crowd: Crowd) -> io::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(LocalSet::new().block_on(&runtime, come(Rc::new(crowd))))
}

async fn come(crowd: Rc<Crowd>) -> Outcome {
    let mut slow_readers = slow_reader::SlowReaders::start(&crowd);
    slow_readers.wait_for_first_bytes(SLOW_READERS_BEGIN_WITHIN).await;

    let begin = Instant::now();
    let mut visitors = JoinSet::new();
    for _ in 0..crowd.visitors {
        visitors.spawn_local(visitor::visit(Rc::clone(&crowd), begin + crowd.limit));
    }
    let mut outcome = Outcome::default();
    while let Some(part) = visitors.join_next().await {
        match part {
            Ok(part) => outcome.append(part),
            Err(lost) => outcome.lost_visitor(crowd.requests, &lost),
        }
    }
    outcome.elapsed = begin.elapsed();
    (outcome.slow_served, outcome.slow_open) = slow_readers.end();
    outcome
}

#[cfg(test)]
mod tests;
