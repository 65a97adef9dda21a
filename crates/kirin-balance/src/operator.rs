//! What an operator has said about a server while the program runs.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Whether an operator lets a server have requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperatorState {
    /// It has requests as its state allows.
    #[default]
    Enabled,
    /// It has only those of visitors that were sent to it before (sticky cookies).
    Draining,
    /// It has none. Those in progress end.
    Disabled,
}

/// A change that an operator makes to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerChange {
    /// Whether it has requests.
    State(OperatorState),
    /// Its share of requests; `None` for that of the configuration.
    Weight(Option<u32>),
}

/// What has been changed about one server. All threads share it.
#[derive(Debug, Default)]
pub(crate) struct OperatedServer {
    state: AtomicU8,
    /// 0 for the weight of the configuration.
    weight: AtomicU64,
}

impl OperatedServer {
    pub(crate) fn change(&self, change: ServerChange) {
        match change {
            ServerChange::State(state) => self.state.store(state as u8, Relaxed),
            ServerChange::Weight(weight) => {
                self.weight.store(weight.map_or(0, |weight| u64::from(weight.max(1))), Relaxed);
            }
        }
    }

    pub(crate) fn state(&self) -> OperatorState {
        match self.state.load(Relaxed) {
            0 => OperatorState::Enabled,
            1 => OperatorState::Draining,
            _ => OperatorState::Disabled,
        }
    }

    /// Returns the weight that an operator has given, if any.
    pub(crate) fn weight(&self) -> Option<u64> {
        Some(self.weight.load(Relaxed)).filter(|weight| *weight > 0)
    }

    /// Takes over what was changed about a server of the same name in another configuration. Its
    /// weight holds if the configurations do not differ in it.
    pub(crate) fn take_over(&self, before: &Self, has_same_weight: bool) {
        self.state.store(before.state.load(Relaxed), Relaxed);
        if has_same_weight {
            self.weight.store(before.weight.load(Relaxed), Relaxed);
        }
    }
}

#[cfg(test)]
#[path = "operator_tests.rs"]
mod tests;
