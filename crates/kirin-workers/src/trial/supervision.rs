//! The supervisor's part of a trial: its beginning and its end.

use std::time::Instant;

use super::report::TrialEnd;
use super::running::RunningTrial;
use super::verdict::has_seen_little;
use crate::config::{TrialConfig, TrialDecision};
use crate::generation::{Generation, Role};
use crate::supervisor::Supervisor;

/// The log line about new code that is given up.
const GIVEN_UP: &str = "trial: the new code is given up; the old code keeps serving";

/// Why new code is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivenUp {
    /// It did worse than the old code.
    AsWorse,
    /// An operator, or newer code.
    OnDemand,
}

impl Supervisor {
    /// Returns the index of the generation that is on trial.
    pub(crate) fn on_trial(&self) -> Option<usize> {
        self.generations.iter().position(|generation| matches!(generation.role, Role::OnTrial))
    }

    /// Gives new code, all of whose workers have greeted, a share of the visitors. It replaces
    /// older code that is on trial.
    pub(crate) fn begin_trial(&mut self, number: u64, old: u64, config: TrialConfig) {
        self.give_up_for(number);
        let is_new = |known: &Generation| known.number == number;
        let Some(index) = self.generations.iter().position(is_new) else { return };
        let trial = RunningTrial::new((number, old), config, self.workers, Instant::now());
        self.app.trials.begin(trial);
        self.app.pools.begin_trial(number);
        let role = std::mem::replace(&mut self.generations[index].role, Role::OnTrial);
        if let Role::Starting { greeted, .. } = role {
            greeted.into_iter().for_each(|connection| self.app.release(connection));
        }
        self.generations[index].grow(&self.app, &self.loops);
        self.reload_failure = None;
        let (app, share) = (self.app.name(), format!("{}%", config.percent));
        let time = format!("{:?}", config.time);
        tracing::info!(app, generation = number, old, share, time, "new generation is on trial");
        self.finish_start();
    }

    /// Notes for the trial how many workers of the new code are there.
    pub(crate) fn note_trial_workers(&self) {
        if let Some(trial) = self.app.trials.running() {
            let workers = self.app.workers.processes();
            let of_new = workers.iter().filter(|worker| worker.generation == trial.new);
            trial.note_workers(of_new.count());
        }
    }

    /// Ends the trial if one side is worse beyond doubt, or if its time is over.
    pub(crate) fn judge_trial(&mut self, now: Instant) {
        let Some(trial) = self.app.trials.running() else { return };
        if let Some(fault) = trial.fault() {
            self.give_up_trial(fault.reason(), GivenUp::AsWorse);
        } else if trial.is_over(now) {
            self.promote(match has_seen_little(trial.sides().0.requests) {
                false => "it was not seen to do worse",
                true => "its time is over, but it got few requests",
            });
        }
    }

    /// Carries out what an operator has decided. Returns false if there is no trial.
    pub(crate) fn decide_trial(&mut self, decision: TrialDecision) -> bool {
        let has_trial = self.on_trial().is_some();
        match decision {
            TrialDecision::Promote => self.promote("by an operator"),
            TrialDecision::GiveUp => self.give_up_trial("by an operator", GivenUp::OnDemand),
        }
        has_trial
    }

    /// Lets the code that is on trial serve everybody.
    fn promote(&mut self, reason: &str) {
        let Some(index) = self.on_trial() else { return };
        self.app.pools.end_choice();
        self.app.pools.keep_queue_length();
        self.end_trial(None, reason);
        self.app.pools.merge();
        self.serve(index);
    }

    /// Lets the code that is on trial leave, because newer code is ready. Does nothing without a
    /// trial.
    pub(crate) fn give_up_for(&mut self, newer: u64) {
        self.give_up_trial(&format!("generation {newer} is newer"), GivenUp::OnDemand);
    }

    /// Lets the code that is on trial leave. Does nothing without a trial.
    pub(crate) fn give_up_trial(&mut self, reason: &str, why: GivenUp) {
        let Some(index) = self.on_trial() else { return };
        // Its workers must be marked as leaving before the other pool can get them.
        self.retire(index);
        self.app.pools.end_choice();
        self.app.pools.merge();
        self.end_trial(Some(why), reason);
    }

    /// Ends the count of both sides, and logs it. The new code is promoted if it is not given up.
    fn end_trial(&self, given_up: Option<GivenUp>, reason: &str) {
        let end = TrialEnd { is_promoted: given_up.is_none(), reason: reason.to_owned() };
        let Some(report) = self.app.trials.end(end, Instant::now()) else { return };
        let (app, new, old) = (self.app.name(), &report.new, &report.old);
        let seconds = report.lasted.as_secs();
        match given_up {
            None => {
                self.app.counters.trials_promoted.add(1);
                tracing::info!(app, reason, seconds, %new, %old, "trial: the new code is promoted");
            }
            Some(GivenUp::AsWorse) => {
                self.app.counters.trials_given_up.add(1);
                tracing::error!(app, reason, seconds, %new, %old, "{GIVEN_UP}");
            }
            Some(GivenUp::OnDemand) => {
                tracing::info!(app, reason, seconds, %new, %old, "{GIVEN_UP}");
            }
        }
    }

    /// Ends the trial because the application stops.
    pub(crate) fn stop_trial(&self) {
        let end = TrialEnd { is_promoted: false, reason: "the application stops".to_owned() };
        if let Some(report) = self.app.trials.end(end, Instant::now()) {
            let (app, new, old) = (self.app.name(), &report.new, &report.old);
            tracing::info!(app, %new, %old, "trial: undecided, because the application stops");
        }
    }
}
