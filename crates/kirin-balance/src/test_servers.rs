//! Servers of tests.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{ServerSettings, Servers, Settings};

/// Returns a server with a number for its name, and a limit of requests; 0 for none.
pub(crate) fn server(name: usize, limit: u32, backup: bool) -> ServerSettings {
    ServerSettings {
        name: name.to_string(),
        weight: 1,
        backup,
        max_in_flight: NonZeroU32::new(limit),
    }
}

/// Returns servers with these limits; 0 for no limit. A server fails once, and then for an hour.
pub(crate) fn servers(limits: &[u32], queue_length: usize, now: Instant) -> Arc<Servers> {
    let settings = Settings {
        max_failures: 1,
        ejection_time: Duration::from_secs(3600),
        healthy_after: 1,
        unhealthy_after: 1,
        slow_start: Duration::ZERO,
        queue_length,
    };
    let all = limits.iter().enumerate().map(|(name, limit)| server(name, *limit, false));
    Arc::new(Servers::new(all, settings, now))
}
