//! What is observed at present: one byte that every command reads once.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::codec::EventKinds;

/// All kinds of events. The other bits are not about watchers.
const KINDS: u8 = 0b1111;

/// The commands are logged (`verbosity 2`).
const COMMANDS: u8 = 1 << 4;

/// The prefixes of keys are counted (`stats detail on`).
const PREFIXES: u8 = 1 << 5;

/// The bits of what is observed, which all loops share. They change rarely.
#[derive(Debug, Default)]
pub(crate) struct ObservedBits(AtomicU8);

/// What was observed when a command began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObservedFlags(u8);

impl ObservedBits {
    /// Returns what is observed now. Costs one relaxed load.
    pub(crate) fn load(&self) -> ObservedFlags {
        ObservedFlags(self.0.load(Ordering::Relaxed))
    }

    /// Sets the kinds of events that any watcher wants.
    pub(crate) fn set_kinds(&self, kinds: EventKinds) {
        // The others stay, whoever changes them at the same time.
        self.0.fetch_and(!KINDS | kinds.bits(), Ordering::Relaxed);
        self.0.fetch_or(kinds.bits(), Ordering::Relaxed);
    }

    /// Switches the log of commands.
    pub(crate) fn log_commands(&self, is_on: bool) {
        self.switch(COMMANDS, is_on);
    }

    /// Switches the counting of prefixes.
    pub(crate) fn count_prefixes(&self, is_on: bool) {
        self.switch(PREFIXES, is_on);
    }

    fn switch(&self, bit: u8, is_on: bool) {
        if is_on {
            self.0.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

impl ObservedFlags {
    /// Returns whether anything is observed.
    pub(crate) fn is_any(self) -> bool {
        self.0 != 0
    }

    /// Returns whether a watcher wants one of `kinds`.
    pub(crate) fn watches(self, kinds: EventKinds) -> bool {
        self.0 & kinds.bits() != 0
    }

    /// Returns whether the commands are logged.
    pub(crate) fn logs_commands(self) -> bool {
        self.0 & COMMANDS != 0
    }

    /// Returns whether the prefixes of keys are counted.
    pub(crate) fn counts_prefixes(self) -> bool {
        self.0 & PREFIXES != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_observer_is_switched_without_the_others() {
        let bits = ObservedBits::default();
        assert!(!bits.load().is_any());
        bits.count_prefixes(true);
        bits.set_kinds(EventKinds::MUTATIONS | EventKinds::FETCHERS);
        bits.log_commands(true);
        bits.set_kinds(EventKinds::MUTATIONS | EventKinds::EVICTIONS);
        let observed = bits.load();
        assert!(observed.counts_prefixes() && observed.logs_commands());
        assert!(observed.watches(EventKinds::MUTATIONS) && observed.watches(EventKinds::EVICTIONS));
        assert!(!observed.watches(EventKinds::FETCHERS | EventKinds::CONNECTIONS));
        bits.set_kinds(EventKinds::default());
        bits.log_commands(false);
        bits.count_prefixes(false);
        assert!(!bits.load().is_any());
    }
}
