//! The metrics of requests and of their steps.

use std::collections::BTreeMap;

use kirin_metrics::{Exposition, HistogramValues};

use super::Metrics;
use super::counters::TimedStep;
use super::families as f;

/// The requests with the same labels, of all event loops.
#[derive(Default)]
struct RequestTotals {
    duration: HistogramValues,
    request_bytes: u64,
    response_bytes: u64,
}

impl Metrics {
    /// Writes the metrics of requests.
    pub(super) fn write_requests(&self, out: &mut Exposition) {
        let mut series: BTreeMap<(&str, &str, String, &str), RequestTotals> = BTreeMap::new();
        let mut cut: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for of_loop in &self.loops {
            of_loop.requests.for_each(|labels, counted| {
                let Some((site, route)) = self.named.route(labels.route) else { return };
                let key = (site, route, labels.place.to_string(), labels.class.name());
                let totals = series.entry(key).or_default();
                counted.duration.add_to(&mut totals.duration);
                totals.request_bytes += counted.request_bytes.get();
                totals.response_bytes += counted.response_bytes.get();
                *cut.entry((site, route)).or_default() += counted.cut.get();
            });
        }
        for ((site, route, place, class), totals) in &series {
            out.sample(&f::REQUESTS, &[site, route, place, class], totals.duration.count());
        }
        for ((site, route, place, class), totals) in &series {
            out.histogram(&f::REQUEST_DURATION, &[site, route, place, class], &totals.duration);
        }
        for ((site, route, place, class), totals) in &series {
            out.sample(&f::REQUEST_BYTES, &[site, route, place, class], totals.request_bytes);
        }
        for ((site, route, place, class), totals) in &series {
            out.sample(&f::RESPONSE_BYTES, &[site, route, place, class], totals.response_bytes);
        }
        for ((site, route), count) in &cut {
            out.sample(&f::RESPONSES_CUT, &[site, route], *count);
        }
        for (index, (listener, _)) in self.named.listeners.iter().enumerate() {
            let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
            for connections in self.connections_of(index) {
                for (reason, count) in connections.rejected() {
                    *reasons.entry(reason).or_default() += count;
                }
            }
            for (reason, count) in reasons {
                out.sample(&f::REQUESTS_REJECTED, &[listener, reason], count);
            }
        }
        let (rates, in_flight) = (&self.named.rate_limits, &self.named.in_flight_limits);
        let refused = rates.iter().map(|limit| limit.refusal.refused());
        out.sample(&f::RATE_LIMITED, &[], refused.sum::<u64>());
        let refused = in_flight.iter().map(|limit| limit.refusal.refused());
        out.sample(&f::IN_FLIGHT_LIMITED, &[], refused.sum::<u64>());
        let passed = rates.iter().map(|limit| limit.refusal.passed());
        out.sample(&f::LIMITED_IN_DRY_RUN, &["rate"], passed.sum::<u64>());
        let passed = in_flight.iter().map(|limit| limit.refusal.passed());
        out.sample(&f::LIMITED_IN_DRY_RUN, &["in_flight"], passed.sum::<u64>());
    }

    /// Returns the times of a kind of steps with the application or upstream `name`.
    pub(super) fn step_times(&self, kind: TimedStep, name: &str) -> HistogramValues {
        let mut values = HistogramValues::default();
        for of_loop in &self.loops {
            of_loop.steps.for_each(|labels, histogram| {
                if labels.kind == kind && *labels.name == *name {
                    histogram.add_to(&mut values);
                }
            });
        }
        values
    }
}
