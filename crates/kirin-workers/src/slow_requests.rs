//! The last slow requests of an application: those that took longer than `slow`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// How many slow requests are kept.
const KEPT: usize = 10;

/// The most calls of a stack that are kept, the innermost ones.
pub(crate) const MAX_CALLS: usize = 50;

/// The longest method, host, path, query or call that is kept, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 512;

/// A request that took longer than `slow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowRequest {
    /// When its stack was read, in Unix seconds.
    pub time: u64,
    /// The method.
    pub method: String,
    /// The host as the client sent it.
    pub host: String,
    /// The path as the client sent it, without the query.
    pub path: String,
    /// The query as the client sent it, without its `?`. It may have secrets, so it is for
    /// operators only.
    pub query: Option<String>,
    /// How long the worker took; for a request that has not ended, until its stack was read.
    pub elapsed: Duration,
    /// The process id of the worker.
    pub pid: u32,
    /// The calls of the application, the innermost first. There are none if they cannot be read.
    pub stack: Vec<Arc<str>>,
}

/// The last slow requests of an application, with the number of each.
#[derive(Default)]
pub(crate) struct SlowRequests(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    count: u64,
    last: VecDeque<(u64, SlowRequest)>,
}

impl SlowRequests {
    /// Keeps a request. Returns its number.
    pub(crate) fn keep(&self, request: SlowRequest) -> u64 {
        let mut kept = self.0.lock();
        kept.count += 1;
        let number = kept.count;
        kept.last.truncate(KEPT - 1);
        kept.last.push_front((number, request));
        number
    }

    /// Sets how long a request took in the end, if it is still kept.
    pub(crate) fn end(&self, number: u64, elapsed: Duration) {
        let mut kept = self.0.lock();
        if let Some((_, request)) = kept.last.iter_mut().find(|(kept, _)| *kept == number) {
            request.elapsed = elapsed;
        }
    }

    /// Returns the requests, the latest first.
    pub(crate) fn list(&self) -> Vec<SlowRequest> {
        self.0.lock().last.iter().map(|(_, request)| request.clone()).collect()
    }
}

/// Cuts a text to [`MAX_TEXT_BYTES`].
pub(crate) fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str) -> SlowRequest {
        SlowRequest {
            time: 1,
            method: "GET".into(),
            host: "localhost".into(),
            path: path.into(),
            query: None,
            elapsed: Duration::from_secs(1),
            pid: 2,
            stack: Vec::new(),
        }
    }

    #[test]
    fn the_last_ten_are_kept_the_latest_first() {
        let slow = SlowRequests::default();
        for number in 1..=12 {
            slow.keep(request(&format!("/{number}")));
        }
        let paths: Vec<String> = slow.list().into_iter().map(|request| request.path).collect();
        assert_eq!(paths, ["/12", "/11", "/10", "/9", "/8", "/7", "/6", "/5", "/4", "/3"]);
    }

    #[test]
    fn the_end_of_a_request_says_how_long_it_took() {
        let slow = SlowRequests::default();
        let (first, second) = (slow.keep(request("/1")), slow.keep(request("/2")));
        slow.end(first, Duration::from_secs(7));
        slow.end(second + 1, Duration::from_secs(9));
        let elapsed: Vec<u64> = slow.list().iter().map(|slow| slow.elapsed.as_secs()).collect();
        assert_eq!(elapsed, [1, 7]);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(shortened("/short"), "/short");
        let long = format!("/{}", "ü".repeat(MAX_TEXT_BYTES));
        assert_eq!(shortened(&long).len(), MAX_TEXT_BYTES - 1);
    }
}
