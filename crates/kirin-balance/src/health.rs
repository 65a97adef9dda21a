//! Active health checks: what a few probes in a row say of a server.
//!
//! The proxy sends the probes, whenever it is time; a server counts as healthy until they say
//! otherwise.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The state of one server. Only one task probes it.
#[derive(Debug, Default)]
pub(crate) struct Health {
    is_down: AtomicBool,
    /// Results in a row that speak against what is believed now.
    against: AtomicU32,
}

impl Health {
    pub(crate) fn is_down(&self) -> bool {
        self.is_down.load(Relaxed)
    }

    /// Takes a result; `needed` of them in a row change what is believed. Returns whether this one
    /// did.
    pub(crate) fn probed(&self, is_well: bool, needed: u32) -> bool {
        if is_well != self.is_down() {
            self.against.store(0, Relaxed);
            return false;
        }
        let against = self.against.load(Relaxed).saturating_add(1);
        if against < needed {
            self.against.store(against, Relaxed);
            return false;
        }
        self.against.store(0, Relaxed);
        self.is_down.store(!is_well, Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_in_a_row_change_what_is_believed() {
        let health = Health::default();
        for (is_well, needed, changes, is_down) in [
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
            assert_eq!(health.probed(is_well, needed), changes);
            assert_eq!(health.is_down(), is_down);
        }
    }
}
