//! The metrics of CGI programs.

use std::time::Instant;

use kirin_cgi_programs::PoolStatus;
use kirin_metrics::{Exposition, Family, SampleValue};

use super::Metrics;
use super::families as f;

/// A number of a pool.
type PoolFigure = fn(&PoolStatus) -> SampleValue;

/// The metrics of each route with programs.
const POOL_NUMBERS: &[(&Family, PoolFigure)] = &[
    (&f::CGI_RUNNING, |pool| u64::from(pool.running).into()),
    (&f::CGI_WAITING, |pool| pool.queue.waiting.into()),
    (&f::CGI_REQUESTS, |pool| pool.requests.into()),
    (&f::CGI_FAILURES, |pool| pool.failures.into()),
];

impl Metrics {
    /// Writes the metrics of CGI programs.
    pub(super) fn write_programs(&self, out: &mut Exposition) {
        let now = Instant::now();
        let pools = self.named.programs.iter().filter_map(|(number, pool)| {
            let (site, route) = self.named.route(Some(*number))?;
            Some((site, route, pool.status(now)))
        });
        let pools: Vec<(&str, &str, PoolStatus)> = pools.collect();
        for (family, number) in POOL_NUMBERS {
            for (site, route, pool) in &pools {
                out.sample(family, &[site, route], number(pool));
            }
        }
        for (site, route, PoolStatus { queue, .. }) in &pools {
            out.sample(&f::CGI_REFUSED, &[site, route, "full"], queue.full);
            out.sample(&f::CGI_REFUSED, &[site, route, "waited_too_long"], queue.timeouts);
            out.sample(&f::CGI_REFUSED, &[site, route, "client_gone"], queue.clients_gone);
        }
    }
}
