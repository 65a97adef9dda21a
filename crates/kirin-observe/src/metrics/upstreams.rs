//! The metrics of upstreams.

use kirin_metrics::{Exposition, Family, SampleValue};
use kirin_proxy::{Availability, ServerStatus};

use super::Metrics;
use super::counters::TimedStep;
use super::families as f;

/// A number of a server.
type ServerFigure = fn(&ServerStatus) -> SampleValue;

/// The metrics of each server.
const SERVER_NUMBERS: &[(&Family, ServerFigure)] = &[
    (&f::SERVER_IN_FLIGHT, |server| u64::from(server.in_flight).into()),
    (&f::SERVER_REQUESTS, |server| server.requests.into()),
    (&f::SERVER_FAILURES, |server| server.failures.into()),
    (&f::SERVER_EJECTIONS, |server| server.ejections.into()),
    (&f::SERVER_LATENCY, |server| server.latency.as_secs_f64().into()),
];

const STATES: [(&str, Availability); 5] = [
    ("available", Availability::Available),
    ("ejected", Availability::Ejected),
    ("unhealthy", Availability::Unhealthy),
    ("draining", Availability::Draining),
    ("disabled", Availability::Disabled),
];

impl Metrics {
    /// Writes the metrics of upstreams.
    pub(super) fn write_upstreams(&self, out: &mut Exposition) {
        let mut servers: Vec<(&str, ServerStatus)> = Vec::new();
        for upstream in &self.upstreams {
            for server in upstream.server_status() {
                // The same address may be written twice. Its numbers are those of the first.
                let is_same = |known: &(&str, ServerStatus)| {
                    known.0 == upstream.name() && known.1.name == server.name
                };
                if !servers.iter().any(is_same) {
                    servers.push((upstream.name(), server));
                }
            }
        }
        for (upstream, server) in &servers {
            for (name, availability) in STATES {
                let is_present = server.availability == availability;
                out.sample(&f::SERVER_STATE, &[upstream, &server.name, name], is_present);
            }
        }
        for (family, number) in SERVER_NUMBERS {
            for (upstream, server) in &servers {
                out.sample(family, &[upstream, &server.name], number(server));
            }
        }
        for (family, kind) in [
            (&f::UPSTREAM_TIME, TimedStep::Upstream),
            (&f::UPSTREAM_QUEUE_WAIT, TimedStep::UpstreamQueue),
        ] {
            for upstream in &self.upstreams {
                let times = self.step_times(kind, upstream.name());
                out.histogram(family, &[upstream.name()], &times);
            }
        }
        for upstream in &self.upstreams {
            out.sample(&f::UPSTREAM_RETRIES, &[upstream.name()], upstream.retried());
        }
        for upstream in &self.upstreams {
            let waiting = upstream.queue_status().waiting;
            out.sample(&f::UPSTREAM_WAITING, &[upstream.name()], waiting);
        }
        for upstream in &self.upstreams {
            let (name, queue) = (upstream.name(), upstream.queue_status());
            out.sample(&f::UPSTREAM_REFUSED, &[name, "full"], queue.full);
            out.sample(&f::UPSTREAM_REFUSED, &[name, "waited_too_long"], queue.timeouts);
            out.sample(&f::UPSTREAM_REFUSED, &[name, "client_gone"], queue.clients_gone);
        }
    }
}
