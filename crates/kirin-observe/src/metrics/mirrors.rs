//! The metrics of mirrors.

use kirin_gateway::filters::mirror::counters::MirrorCounters;
use kirin_metrics::Exposition;

use super::Metrics;
use super::families as f;

impl Metrics {
    /// Writes the metrics of mirrors.
    pub(super) fn write_mirrors(&self, out: &mut Exposition) {
        let mirrors = self.named.mirrors.iter().filter_map(|(number, counters)| {
            let (site, route) = self.named.route(Some(*number))?;
            Some((site, route, &**counters))
        });
        let mirrors: Vec<(&str, &str, &MirrorCounters)> = mirrors.collect();
        for (site, route, counters) in &mirrors {
            for (result, count) in counters.results() {
                out.sample(&f::MIRROR_COPIES, &[site, route, result], count);
            }
        }
        for (site, route, counters) in &mirrors {
            for (reason, count) in counters.skips() {
                out.sample(&f::MIRROR_SKIPPED, &[site, route, reason], count);
            }
        }
        for (site, route, counters) in &mirrors {
            out.sample(&f::MIRROR_IN_FLIGHT, &[site, route], counters.in_flight());
        }
        for (site, route, counters) in &mirrors {
            out.sample(&f::MIRROR_HELD, &[site, route], counters.held_bytes());
        }
    }
}
