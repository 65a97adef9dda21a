//! A crowd of HTTP/1.1 clients: visitors that make many requests one after another, and slow
//! readers beside them.
//!
//! The crowd finds lost requests. It therefore counts every request: as answered, as failed in one
//! of five ways, or as left over when the time was over. `kirin-crowd` and the end-to-end tests run
//! it.

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

/// The clients and their requests.
pub struct Crowd {
    /// The address of the server.
    pub address: SocketAddr,
    /// The number of visitors. Each has one connection at a time.
    pub visitors: usize,
    /// The number of requests of each visitor. It makes them one after another.
    pub requests: usize,
    /// The path that visitors request.
    pub path: String,
    /// Whether visitors keep their connections. Otherwise each connection is for one request.
    pub keep_alive: bool,
    /// How long a visitor waits after a response.
    pub pause: Duration,
    /// The time in which a complete response must arrive. After it the request has failed.
    pub timeout: Duration,
    /// The most time that the run takes. Requests without a response at its end are counted as left
    /// over.
    pub limit: Duration,
    /// The number of slow readers.
    pub slow_readers: usize,
    /// The path of a large response, which slow readers request.
    pub slow_path: String,
}

/// How long visitors wait until the slow readers have the first bytes of their responses.
const SLOW_READERS_BEGIN_WITHIN: Duration = Duration::from_secs(3);

/// Runs the crowd to its end on this thread.
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
