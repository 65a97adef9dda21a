//! The trials of an application: the one that is going on, and the last one.

use std::sync::Arc;
use std::time::Instant;

use kirin_balance::ClientKey;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::report::{TrialEnd, TrialReport};
use super::running::{Outcome, RunningTrial, Visitor};
use crate::app::App;
use crate::config::{TrialConfig, TrialDecision};
use crate::event::Event;
use crate::replacement::resident_bytes;

/// The trials of an application.
pub(crate) struct Trials {
    /// How the next trial goes. `None` if new code serves everybody at once.
    config: Mutex<Option<TrialConfig>>,
    running: Mutex<Option<Arc<RunningTrial>>>,
    last: Mutex<Option<TrialReport>>,
}

impl Trials {
    pub(crate) fn new(config: Option<TrialConfig>) -> Self {
        Self { config: Mutex::new(config), running: Mutex::default(), last: Mutex::default() }
    }

    /// Returns how the next trial goes.
    pub(crate) fn config(&self) -> Option<TrialConfig> {
        *self.config.lock()
    }

    /// Returns the trial that is going on.
    pub(crate) fn running(&self) -> Option<Arc<RunningTrial>> {
        self.running.lock().clone()
    }

    pub(crate) fn begin(&self, trial: RunningTrial) {
        *self.running.lock() = Some(Arc::new(trial));
    }

    /// Ends the trial. Returns what has happened.
    pub(crate) fn end(&self, end: TrialEnd, now: Instant) -> Option<TrialReport> {
        let trial = self.running.lock().take()?;
        let report = trial.report(Some(end), now);
        *self.last.lock() = Some(report.clone());
        Some(report)
    }
}

impl RunningTrial {
    fn report(&self, end: Option<TrialEnd>, now: Instant) -> TrialReport {
        let (new, old) = self.sides();
        let lasted = now.saturating_duration_since(self.began_at);
        TrialReport { config: self.config, lasted, new, old, end }
    }
}

impl App {
    /// Changes how the next trial goes. `None`: new code serves everybody at once.
    pub fn configure_trial(&self, config: Option<TrialConfig>) {
        *self.trials.config.lock() = config;
    }

    /// Returns whether new code is on trial. Then [`App::answer`] needs the visitor's session.
    pub fn has_trial(&self) -> bool {
        self.pools.has_trial()
    }

    /// Returns the trial that is going on, or the last one.
    pub fn trial(&self, now: Instant) -> Option<TrialReport> {
        let running = self.trials.running().map(|trial| trial.report(None, now));
        running.or_else(|| self.trials.last.lock().clone())
    }

    /// Decides about the code that is on trial. Returns false if there is none.
    pub async fn decide_trial(&self, decision: TrialDecision) -> bool {
        let (done, is_done) = oneshot::channel();
        // An error means that the application has ended.
        self.events().send(Event::DecideTrial { decision, done }).is_ok()
            && is_done.await.unwrap_or(false)
    }

    /// Returns the visitor of a request, if new code is on trial.
    pub(crate) fn visitor(&self, session: Option<&[u8]>, address: ClientKey) -> Option<Visitor> {
        if !self.pools.has_trial() {
            return None;
        }
        Some(self.trials.running()?.visitor(session, address))
    }

    /// Notes what has become of a visitor's request to the workers of a generation.
    pub(crate) fn note_outcome(&self, visitor: &Visitor, generation: u64, outcome: Outcome) {
        if visitor.note(generation, outcome) {
            // An error means that the application has ended.
            let _ = self.events().send(Event::TrialFault);
        }
    }

    /// Notes a worker that has ended unexpectedly.
    pub(crate) fn note_crash(&self, generation: u64) {
        self.counters.workers_crashed.add(1);
        if let Some(trial) = self.trials.running() {
            trial.note_crash(generation);
        }
    }

    /// Reads the memory of the workers of both sides.
    pub(crate) fn compare_memory(&self) {
        if let Some(trial) = self.trials.running() {
            let workers = self.workers.processes();
            let mean = |generation| {
                let of = workers.iter().filter(|worker| worker.generation == generation);
                let bytes: Vec<u64> = of.filter_map(|worker| resident_bytes(worker.pid)).collect();
                bytes.iter().sum::<u64>().checked_div(bytes.len() as u64)
            };
            trial.note_memory(mean(trial.new).zip(mean(trial.old)));
        }
    }
}
