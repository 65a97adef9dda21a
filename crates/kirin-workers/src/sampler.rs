//! The making of a profile.
//!
//! At each tick the stack of every worker that has a request is read ([`crate::stacks`]) and
//! counted. So a sample is a part of a request's time, whether the worker computes or waits for a
//! database.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::app::{App, AppState};
use crate::profile::{
    MAX_PROFILE_HZ, MAX_PROFILE_TIME, Profile, ProfileError, ProfileOptions, RunningProfile,
    StackCounts,
};
use crate::stacks::{StackError, StackReader};
use crate::worker_process::WorkerProcess;

impl App {
    /// Returns how many samples the profile has that is being made; none if no profile is.
    pub fn profile_samples(&self) -> Option<u64> {
        self.running_profile.lock().map(|running| running.samples)
    }

    /// Profiles the application. This takes its time, so call it on a thread of its own. It ends
    /// early if the application stops, or when `cancelled` is true.
    pub fn profile(
        &self,
        options: ProfileOptions,
        cancelled: &AtomicBool,
    ) -> Result<Profile, ProfileError> {
        let time = options.time.min(MAX_PROFILE_TIME);
        let period = Duration::from_secs(1) / options.hz.clamp(1, MAX_PROFILE_HZ);
        let start = Instant::now();
        let running = Running::begin(self, start + time)?;
        let mut sampler = Sampler::default();
        sampler.check_workers(self)?;
        let ends = || {
            cancelled.load(Ordering::Relaxed)
                || matches!(self.state(), AppState::Stopped | AppState::Failed(_))
        };
        let mut next = start;
        while next < start + time && !ends() {
            sampler.tick(self);
            running.set_samples(sampler.profile.samples);
            // Ticks that are late already are left out.
            let late = (start.elapsed().as_nanos() / period.as_nanos().max(1)) as u32 + 1;
            next = start + period.saturating_mul(late);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        sampler.finish(self)
    }
}

/// The mark that an application is being profiled. Dropping it removes the mark.
struct Running<'a>(&'a App);

impl<'a> Running<'a> {
    fn begin(app: &'a App, until: Instant) -> Result<Self, ProfileError> {
        let mut running = app.running_profile.lock();
        if let Some(RunningProfile { until, .. }) = *running {
            let left = until.saturating_duration_since(Instant::now());
            return Err(ProfileError::Running {
                app: app.name().to_owned(),
                seconds_left: left.as_secs() + 1,
            });
        }
        *running = Some(RunningProfile { until, samples: 0 });
        Ok(Self(app))
    }

    fn set_samples(&self, samples: u64) {
        if let Some(running) = &mut *self.0.running_profile.lock() {
            running.samples = samples;
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *self.0.running_profile.lock() = None;
    }
}

/// The samples of a profile, and the workers that they are from.
#[derive(Default)]
struct Sampler {
    readers: HashMap<u32, (Arc<WorkerProcess>, Result<StackReader, StackError>)>,
    stacks: StackCounts,
    profile: Profile,
    /// The workers that had a request.
    seen: HashSet<u32>,
    unreadable: Option<(u32, StackError)>,
}

impl Sampler {
    /// Fails if there are workers, and the stack of none of them can be read.
    fn check_workers(&mut self, app: &App) -> Result<(), ProfileError> {
        let workers = app.workers.processes();
        let mut failed = None;
        for worker in &workers {
            match app.stack_reader(worker) {
                Ok(_) => return Ok(()),
                Err(reason) => failed = Some((worker.pid, reason)),
            }
        }
        match failed {
            None => Ok(()),
            Some((pid, reason)) => Err(unreadable(app, pid, reason)),
        }
    }

    /// Reads the stacks of all workers that have a request.
    fn tick(&mut self, app: &App) {
        self.profile.ticks += 1;
        let workers = app.busy_workers();
        for worker in workers {
            let pid = worker.pid;
            let known = self.readers.get(&pid).is_some_and(|(of, _)| Arc::ptr_eq(of, &worker));
            if !known {
                let reader = app.stack_reader(&worker);
                self.readers.insert(pid, (worker, reader));
            }
            let Some((_, reader)) = self.readers.get_mut(&pid) else { continue };
            let stack = reader.as_mut().map_err(|error| error.clone()).and_then(StackReader::read);
            match stack {
                // The request has just ended or not begun.
                Ok(stack) if stack.is_empty() => {}
                Ok(stack) => {
                    self.profile.samples += 1;
                    self.seen.insert(pid);
                    self.stacks.count(stack.join(";"));
                }
                Err(error) => {
                    self.profile.missed += 1;
                    self.unreadable = Some((pid, error));
                }
            }
        }
        self.readers.retain(|_, (worker, _)| app.workers.has(worker));
    }

    fn finish(mut self, app: &App) -> Result<Profile, ProfileError> {
        if let (0, Some((pid, reason))) = (self.profile.samples, self.unreadable) {
            return Err(unreadable(app, pid, reason));
        }
        self.profile.workers = self.seen.len();
        self.profile.stacks = self.stacks.sorted();
        Ok(self.profile)
    }
}

fn unreadable(app: &App, pid: u32, reason: StackError) -> ProfileError {
    ProfileError::Unreadable { app: app.name().to_owned(), pid, reason }
}
