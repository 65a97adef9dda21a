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
    /// Returns counters for this number of listeners.
    pub fn new(listeners: usize) -> Arc<Self> {
        let connections = (0..listeners).map(|_| Arc::default()).collect();
        Arc::new(Self { connections, ..Self::default() })
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
    certificates_reloaded: AtomicU64,
    certificates_not_reloaded: AtomicU64,
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

    /// Counts a reload of the certificates of a listener.
    pub fn count_certificates(&self, is_reloaded: bool) {
        match is_reloaded {
            true => &self.certificates_reloaded,
            false => &self.certificates_not_reloaded,
        }
        .fetch_add(1, Relaxed);
    }

    /// Returns how many upgrades have failed.
    pub fn upgrades_failed(&self) -> u64 {
        self.upgrades_failed.load(Relaxed)
    }

    /// Returns how many reloads of certificates have succeeded, and how many have failed.
    pub fn certificate_reloads(&self) -> (u64, u64) {
        (self.certificates_reloaded.load(Relaxed), self.certificates_not_reloaded.load(Relaxed))
    }
}
