//! The numbers about some requests: those of a pattern since the start, or in ten seconds.

use kirin_http::CacheResult;
use kirin_server::EndedRequest;
use serde::{Deserialize, Serialize};

use crate::live::histogram::LiveHistogram;

/// The numbers, as an event loop adds them up.
#[derive(Clone, Default)]
pub struct Counts {
    requests: u64,
    /// The sum of their times in microseconds.
    micros: u64,
    /// The bytes of their bodies.
    bytes: u64,
    /// The answers that came from the store, or from the cache without asking the origin server.
    hits: u64,
    /// The answers by the first digit of their status.
    by_class: [u64; 5],
    times: LiveHistogram,
}

/// The numbers, as a reader gets them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CountsReport {
    /// The number of requests.
    pub requests: u64,
    /// The sum of their times in milliseconds.
    pub time_ms: f64,
    /// The bytes of their bodies.
    pub bytes: u64,
    /// The answers that came from the store, or from the cache without asking the origin server.
    pub hits: u64,
    /// The answers by the first digit of their status, from 1 to 5.
    pub by_class: [u64; 5],
    /// The time in milliseconds that half of the requests did not exceed.
    pub p50_ms: f64,
    /// The time that 95 of 100 did not exceed.
    pub p95_ms: f64,
    /// The time that 99 of 100 did not exceed.
    pub p99_ms: f64,
    /// The times in microseconds and how often there were such, if these numbers are to be added
    /// to those of other machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<(u64, u32)>,
}

/// Whether numbers for a reader have the times from which percentiles are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// They have.
    Included,
    /// They have the percentiles alone.
    LeftOut,
}

/// What a request adds to all counts that it belongs to.
pub struct Addition {
    /// The number of requests for which it stands.
    weight: u32,
    micros: u64,
    bytes: u64,
    hits: u64,
    /// The index in `by_class`.
    class: usize,
}

impl Addition {
    /// Returns what a request adds that stands for `weight` requests.
    pub fn new(request: &EndedRequest<'_>, weight: u32) -> Self {
        let times = u64::from(weight);
        let micros = u64::try_from(request.took.as_micros()).unwrap_or(u64::MAX);
        // A cache that asked the origin server first has waited for it.
        let has_waited = matches!(request.cache_result, Some(CacheResult::Revalidated));
        let is_hit = matches!(request.answered_by.name(), "store" | "cache") && !has_waited;
        Self {
            weight,
            micros,
            bytes: request.body_bytes.saturating_mul(times),
            hits: if is_hit { times } else { 0 },
            class: usize::from(request.status.as_u16() / 100).saturating_sub(1),
        }
    }
}

impl Counts {
    /// Counts what a request adds.
    pub fn add(&mut self, more: &Addition) {
        let times = u64::from(more.weight);
        self.requests += times;
        self.micros = self.micros.saturating_add(more.micros.saturating_mul(times));
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.hits += more.hits;
        if let Some(count) = self.by_class.get_mut(more.class) {
            *count += times;
        }
        self.times.add(more.micros, more.weight);
    }

    /// Adds other numbers.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.micros = self.micros.saturating_add(other.micros);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.hits += other.hits;
        for (count, more) in self.by_class.iter_mut().zip(other.by_class) {
            *count += more;
        }
        self.times.merge(&other.times);
    }

    /// Returns the sum of the times in microseconds.
    pub fn micros(&self) -> u64 {
        self.micros
    }

    /// Returns the numbers for a reader.
    pub fn report(&self, times: Times) -> CountsReport {
        let mut report = CountsReport {
            requests: self.requests,
            time_ms: milliseconds(self.micros),
            bytes: self.bytes,
            hits: self.hits,
            by_class: self.by_class,
            ..CountsReport::default()
        };
        report.take_percentiles(&self.times);
        if times == Times::Included {
            report.times = self.times.times();
        }
        report
    }
}

impl CountsReport {
    /// Adds the numbers of another machine. Both have their times.
    pub fn add(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.time_ms += other.time_ms;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.hits = self.hits.saturating_add(other.hits);
        for (count, more) in self.by_class.iter_mut().zip(other.by_class) {
            *count = count.saturating_add(more);
        }
        let times: LiveHistogram = self.times.iter().chain(&other.times).copied().collect();
        self.take_percentiles(&times);
        self.times = times.times();
    }

    fn take_percentiles(&mut self, times: &LiveHistogram) {
        let percentile = |share| milliseconds(times.percentile(share));
        self.p50_ms = percentile(0.5);
        self.p95_ms = percentile(0.95);
        self.p99_ms = percentile(0.99);
    }
}

fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1000.0
}
