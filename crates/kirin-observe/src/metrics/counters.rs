//! The counters of the event loops and of the main thread, for metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use kirin_metrics::{Count, Histogram, SeriesList};
use kirin_server::{ConnectionCounters, PlaceName};

/// The counters of one event loop. Only the loop writes them.
#[derive(Debug, Default)]
pub struct LoopCounters {
    /// The requests that have ended.
    pub requests: Arc<SeriesList<RequestLabels, RequestSeries>>,
    /// The steps of requests.
    pub steps: Arc<SeriesList<StepLabels, Histogram>>,
    /// The connections of each listener, in the order of the configuration.
    pub connections: Vec<Arc<ConnectionCounters>>,
}

impl LoopCounters {
    /// Returns counters that go on with those of `before`. There is a partner, by its number there,
    /// or `None` for each listener.
    pub fn new(before: Option<&Self>, partners: &[Option<usize>]) -> Self {
        let of_listener = |partner: &Option<usize>| {
            let partner = before.zip(*partner);
            let counters = partner.and_then(|(before, at)| before.connections.get(at));
            counters.map(Arc::clone).unwrap_or_default()
        };
        Self {
            requests: before.map(|before| Arc::clone(&before.requests)).unwrap_or_default(),
            steps: before.map(|before| Arc::clone(&before.steps)).unwrap_or_default(),
            connections: partners.iter().map(of_listener).collect(),
        }
    }
}

/// The labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestLabels {
    /// The index of the route among those of all sites. `None` if no route has the path.
    pub route: Option<u32>,
    /// The part of the server that answered.
    pub place: PlaceName,
    /// The status class.
    pub class: StatusClass,
}

/// The class of a status code: its first digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatusClass(u8);

impl StatusClass {
    /// Returns the class of a status code.
    pub fn of(status: http::StatusCode) -> Self {
        Self((status.as_u16() / 100) as u8)
    }

    /// Returns the value of the label.
    pub fn name(self) -> &'static str {
        match self.0 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            5 => "5xx",
            _ => "other",
        }
    }
}

/// The requests with the same labels.
#[derive(Debug, Default)]
pub struct RequestSeries {
    /// The durations.
    pub duration: Histogram,
    /// The bytes of request bodies.
    pub request_bytes: Count,
    /// The bytes of response bodies.
    pub response_bytes: Count,
    /// The responses that were cut.
    pub cut: Count,
}

/// The labels of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StepLabels {
    /// The kind of step.
    pub kind: TimedStep,
    /// The application or upstream.
    pub name: Arc<str>,
}

/// The steps that are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimedStep {
    /// The wait for a worker.
    AppQueue,
    /// The time with a worker.
    App,
    /// The wait for a server of an upstream.
    UpstreamQueue,
    /// The time with a server of an upstream.
    Upstream,
}

/// The counters of the main thread.
#[derive(Debug, Default)]
pub struct ProgramCounters {
    /// Whether this program took over from another.
    pub is_successor: bool,
    upgrades_failed: AtomicU64,
    reloads: AtomicU64,
    reloads_failed: AtomicU64,
}

impl ProgramCounters {
    /// Returns the counters of a program that may have taken over from another.
    pub fn new(is_successor: bool) -> Self {
        Self { is_successor, ..Self::default() }
    }

    /// Counts an upgrade that failed.
    pub fn count_failed_upgrade(&self) {
        self.upgrades_failed.fetch_add(1, Relaxed);
    }

    /// Counts a reload of the configuration.
    pub fn count_reload(&self, has_succeeded: bool) {
        match has_succeeded {
            true => &self.reloads,
            false => &self.reloads_failed,
        }
        .fetch_add(1, Relaxed);
    }

    /// Returns how many reloads of the configuration have succeeded, and how many have failed.
    pub fn reloads(&self) -> (u64, u64) {
        (self.reloads.load(Relaxed), self.reloads_failed.load(Relaxed))
    }

    /// Returns how many upgrades have failed.
    pub fn upgrades_failed(&self) -> u64 {
        self.upgrades_failed.load(Relaxed)
    }
}
