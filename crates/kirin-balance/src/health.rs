//! Active health checks: what consecutive probes say about a server.
//!
//! The proxy sends the probes. A server counts as healthy until they say otherwise.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The state of one server. Only one task probes it.
#[derive(Debug, Default)]
pub(crate) struct Health {
    is_down: AtomicBool,
    /// Consecutive results that contradict the present state.
    contrary_results: AtomicU32,
}

impl Health {
    pub(crate) fn is_down(&self) -> bool {
        self.is_down.load(Relaxed)
    }

    /// Takes a result. `needed` consecutive results change the state. Returns whether this one has
    /// changed it.
    pub(crate) fn probed(&self, is_healthy: bool, needed: u32) -> bool {
        if is_healthy != self.is_down() {
            self.contrary_results.store(0, Relaxed);
            return false;
        }
        let contrary_results = self.contrary_results.load(Relaxed).saturating_add(1);
        if contrary_results < needed {
            self.contrary_results.store(contrary_results, Relaxed);
            return false;
        }
        self.contrary_results.store(0, Relaxed);
        self.is_down.store(!is_healthy, Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_results_change_the_health_of_a_server() {
        let health = Health::default();
        for (is_healthy, needed, changes, is_down) in [
            (true, 3, false, false),
            (false, 3, false, false),
            (false, 3, false, false),
            (true, 2, false, false),
            (false, 3, false, false),
            (false, 3, false, false),
            (false, 3, true, true),
            (false, 3, false, true),
            (true, 2, false, true),
            (false, 3, false, true),
            (true, 2, false, true),
            (true, 2, true, false),
        ] {
            assert_eq!(health.probed(is_healthy, needed), changes);
            assert_eq!(health.is_down(), is_down);
        }
    }
}
