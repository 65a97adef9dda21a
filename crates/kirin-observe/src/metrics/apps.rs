//! The metrics of applications.

use std::time::Instant;

use kirin_metrics::{Exposition, Family};
use kirin_workers::{App, AppState, CounterValues};

use super::Metrics;
use super::counters::TimedStep;
use super::families as f;

/// A counter of an application.
type AppCounter = fn(&CounterValues) -> u64;

/// A family, and its counters with the values of their labels.
type LabelledAppCounters = (&'static Family, &'static [(&'static [&'static str], AppCounter)]);

/// The counters of each application, with the values of their labels.
const COUNTERS: &[LabelledAppCounters] = &[
    (&f::APP_REQUESTS, &[(&[], |counters| counters.requests)]),
    (&f::APP_QUEUED, &[(&[], |counters| counters.queued)]),
    (
        &f::APP_ERRORS,
        &[
            (&["queue_full"], |counters| counters.refused_full),
            (&["waited_too_long"], |counters| counters.refused_waited),
            (&["client_gone"], |counters| counters.clients_gone),
            (&["deadline"], |counters| counters.overdue),
            (&["worker_lost"], |counters| counters.failed),
        ],
    ),
    (&f::APP_RETRIES, &[(&[], |counters| counters.retried)]),
    (&f::APP_WORKERS_ENDED, &[(&[], |counters| counters.workers_ended)]),
    (
        &f::APP_WORKER_REPLACEMENTS,
        &[
            (&["requests"], |counters| counters.workers_left),
            (&["age"], |counters| counters.replaced_by_age),
            (&["memory"], |counters| counters.replaced_by_memory),
            (&["deadline"], |counters| counters.overdue),
            (&["slow_cleanup"], |counters| counters.overdue_cleanups),
            (&["silent"], |counters| counters.silent_workers),
            (&["crash"], |counters| counters.workers_crashed),
        ],
    ),
    (&f::APP_PARENT_RESTARTS, &[(&[], |counters| counters.parents_restarted)]),
    (
        &f::APP_RELOADS,
        &[
            (&["ok"], |counters| counters.reloads),
            (&["failed"], |counters| counters.reloads_failed),
            (&["given_up"], |counters| counters.trials_given_up),
        ],
    ),
    (&f::APP_SPOOL_FAILED, &[(&[], |counters| counters.spool_failed)]),
];

impl Metrics {
    /// Writes the metrics of applications.
    pub(super) fn write_apps(&self, out: &mut Exposition) {
        for (family, is_in_state) in [
            (&f::APP_UP, (|state| matches!(state, AppState::Ready)) as fn(&AppState) -> bool),
            (&f::APP_FAILED, |state| matches!(state, AppState::Failed(_))),
        ] {
            for app in &self.apps {
                out.sample(family, &[app.name()], is_in_state(&app.state()));
            }
        }
        self.write_workers(out);
        self.write_trials(out);
        for app in &self.apps {
            out.sample(&f::APP_WAITING, &[app.name()], app.waiting_requests());
        }
        for (family, kind) in
            [(&f::APP_QUEUE_WAIT, TimedStep::AppQueue), (&f::APP_TIME, TimedStep::App)]
        {
            for app in &self.apps {
                out.histogram(family, &[app.name()], &self.step_times(kind, app.name()));
            }
        }
        let apps: Vec<_> = self.apps.iter().map(|app| (app.name(), app.counters())).collect();
        for (family, counters) in COUNTERS {
            for (name, values) in &apps {
                for (labels, counter) in *counters {
                    out.sample(family, &[&[*name], *labels].concat(), counter(values));
                }
            }
        }
    }

    fn write_trials(&self, out: &mut Exposition) {
        let now = Instant::now();
        for app in &self.apps {
            out.sample(&f::APP_TRIAL, &[app.name()], app.has_trial());
        }
        let trials = self.apps.iter().filter_map(|app| Some((app.name(), app.trial(now)?)));
        let trials: Vec<_> = trials.collect();
        let sides = || {
            trials.iter().flat_map(|(app, trial)| {
                [(*app, "new", &trial.new), (*app, "old", &trial.old)].into_iter()
            })
        };
        for (app, generation, side) in sides() {
            for (outcome, count) in [
                ("ok", side.requests.saturating_sub(side.failures())),
                ("error", side.errors),
                ("worker_lost", side.lost),
                ("deadline", side.overdue),
                ("refused", side.refused),
            ] {
                out.sample(&f::APP_TRIAL_REQUESTS, &[app, generation, outcome], count);
            }
        }
        for (app, generation, side) in sides() {
            let visitors = [("failed", side.failing_visitors), ("slow", side.slow_visitors)];
            for (response, count) in visitors {
                out.sample(&f::APP_TRIAL_VISITORS, &[app, generation, response], count);
            }
        }
        for (app, generation, side) in sides() {
            if let Some(bytes) = side.worker_bytes {
                out.sample(&f::APP_TRIAL_MEMORY, &[app, generation], bytes);
            }
        }
    }

    fn write_workers(&self, out: &mut Exposition) {
        let totals = self.workers.read(&self.apps, Instant::now());
        let apps = || self.apps.iter().map(|app| &**app).zip(&totals);
        for (app, totals) in apps() {
            let (name, idle) = (app.name(), idle(app).min(totals.workers));
            out.sample(&f::APP_WORKERS, &[name, "idle"], idle);
            out.sample(&f::APP_WORKERS, &[name, "busy"], totals.workers - idle);
        }
        for (app, totals) in apps() {
            let (oldest, youngest) = (totals.oldest.as_secs_f64(), totals.youngest.as_secs_f64());
            out.sample(&f::APP_WORKER_AGE, &[app.name(), "oldest"], oldest);
            out.sample(&f::APP_WORKER_AGE, &[app.name(), "youngest"], youngest);
        }
        for (app, totals) in apps() {
            out.sample(&f::APP_MEMORY, &[app.name()], totals.resident_bytes);
        }
        for (app, totals) in apps() {
            out.sample(&f::APP_MEMORY_MAX, &[app.name()], totals.largest_bytes);
        }
    }
}

fn idle(app: &App) -> u64 {
    app.idle_workers() as u64
}
