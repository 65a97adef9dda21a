//! The supervisor of one application. It decides which generation gets the requests, and ends what
//! takes too long.
//!
//! Each running application has one such task. Everything that happens reaches it as an [`Event`]
//! through one channel.
//!
//! The queue belongs to the application, the workers belong to a generation. A waiting request gets
//! a worker of the generation that serves at that moment. A reload starts a new generation beside
//! the present one. The new one takes over when all its workers have greeted; no request sees it
//! before. With `trial` it serves a part of the visitors first (`trial`).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::app::{App, AppState};
use crate::config::{AppConfig, MAX_WORKERS};
use crate::error::AppError;
use crate::event::Event;
use crate::generation::{Generation, Role};
use crate::launch::ParentLaunch;
use crate::orphans::AllOrphans;
use crate::parent::ParentSpec;
use crate::trial::GivenUp;
use crate::worker::WorkerConnection;
use crate::worker_handle::WorkerHandle;

/// How long a worker that took too long may take to log a stack trace, before it is killed. Its
/// client has been answered.
const TRACE_GRACE: Duration = Duration::from_secs(1);

/// How long workers that sleep may take to wake up when the application stops. A worker that does
/// not has been stopped by a signal.
const WAKE_LIMIT: Duration = Duration::from_secs(2);

/// The shortest time between two checks of the workers' age and memory.
const REPLACEMENT_INTERVAL: Duration = Duration::from_millis(900);

/// The state of the task.
pub(crate) struct Supervisor {
    pub(crate) app: Arc<App>,
    events: mpsc::UnboundedReceiver<Event>,
    pub(crate) loops: Vec<Handle>,
    launch: ParentLaunch,
    /// The generations, oldest first. At most one serves, one is on trial, and one starts.
    pub(crate) generations: Vec<Generation>,
    /// How many parents have been started.
    incarnations: u64,
    /// The number of the latest generation.
    newest: u64,
    /// How many workers each generation should have.
    pub(crate) workers: usize,
    /// Whether a reload was requested while a generation was starting.
    reload_again: bool,
    /// How many reloads have been requested.
    reloads: u64,
    /// Why the last start of a generation has failed.
    pub(crate) reload_failure: Option<String>,
    /// When the workers' age and memory were checked last.
    replacement_checked_at: Instant,
    orphans: AllOrphans,
}

impl App {
    /// Starts an application: its parent process, and its supervisor on the current runtime. The
    /// workers' connections are spread over `loops`, the runtimes that will call [`App::answer`].
    ///
    /// Returns when the process has been started. [`App::ready`] waits until the application is
    /// loaded.
    pub fn start(config: AppConfig, loops: Vec<Handle>) -> Result<Arc<Self>, AppError> {
        let (sender, events) = mpsc::unbounded_channel();
        let app = Arc::new(Self::new(config, sender)?);
        let loops = if loops.is_empty() { vec![Handle::current()] } else { loops };
        let supervisor = Supervisor::start(Arc::clone(&app), loops, events)?;
        tokio::spawn(supervisor.run());
        Ok(app)
    }
}

impl Supervisor {
    /// Starts the first generation.
    pub(crate) fn start(
        app: Arc<App>,
        loops: Vec<Handle>,
        events: mpsc::UnboundedReceiver<Event>,
    ) -> Result<Self, AppError> {
        let launch = ParentLaunch::prepare(app.config())?;
        let workers = app.config().workers;
        let mut supervisor = Self {
            app,
            events,
            loops,
            launch,
            generations: Vec::new(),
            incarnations: 0,
            newest: 0,
            workers,
            reload_again: false,
            reloads: 0,
            reload_failure: None,
            replacement_checked_at: Instant::now(),
            orphans: AllOrphans::default(),
        };
        supervisor.start_generation()?;
        Ok(supervisor)
    }

    /// Runs until the application is stopped or cannot be started.
    pub(crate) async fn run(mut self) {
        let mut tick = tokio::time::interval(self.tick());
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let result = tokio::select! {
                event = self.events.recv() => match event {
                    Some(Event::Stop { limit, done }) => {
                        self.stop(limit, AppState::Stopped).await;
                        // This removes the directories of the sockets before the caller is told.
                        drop(self);
                        let _ = done.send(());
                        return;
                    }
                    Some(event) => self.handle_event(event).await,
                    None => return,
                },
                _ = tick.tick() => self.enforce_limits().await,
            };
            if let Err(error) = result {
                // The program ends with this error, and prints it.
                tracing::debug!(%error, "app is not running");
                return self.stop(Duration::ZERO, AppState::Failed(error)).await;
            }
        }
    }

    /// Returns how often time limits are checked, which is often enough for the shortest one.
    fn tick(&self) -> Duration {
        let config = self.app.config();
        let shortest = config.request_deadline.min(config.queue_wait).min(config.start_limit);
        (shortest / 4).clamp(Duration::from_millis(20), Duration::from_secs(1))
    }

    async fn handle_event(&mut self, event: Event) -> Result<(), AppError> {
        match event {
            Event::Control { incarnation, line } => {
                if let Some(generation) = self.by_incarnation(incarnation) {
                    self.generations[generation].handle_control_line(&self.app, line);
                    self.judge_trial(Instant::now());
                }
            }
            Event::ControlClosed { incarnation } => return self.parent_ended(incarnation).await,
            Event::Greeted { connection } => self.handle_greeting(*connection),
            Event::Lost { generation, vacancy } => {
                if let Some(generation) =
                    self.generations.iter_mut().find(|known| known.number == generation)
                {
                    generation.reopen_vacancy(vacancy, &self.app, &self.loops);
                }
            }
            Event::Crowded => {
                for index in [self.serving(), self.on_trial()].into_iter().flatten() {
                    self.generations[index].grow(&self.app, &self.loops);
                }
            }
            Event::GraceOver { generation, pid } => self.grace_over(generation, pid),
            Event::Reload => {
                self.reloads += 1;
                self.reload();
            }
            Event::Resize { more } => {
                let wanted = if more { self.workers + 1 } else { self.workers - 1 };
                self.resize(wanted);
            }
            Event::SetWorkers { workers } => self.resize(workers),
            Event::TrialFault => self.judge_trial(Instant::now()),
            Event::DecideTrial { decision, done } => {
                // An operator that has gone gets no answer.
                let _ = done.send(self.decide_trial(decision));
            }
            // The application is being stopped already. `run` handles the first such event.
            Event::Stop { done, .. } => drop(done),
        }
        Ok(())
    }

    /// Returns the index of the generation with this parent.
    fn by_incarnation(&self, incarnation: u64) -> Option<usize> {
        self.generations.iter().position(|generation| generation.incarnation == incarnation)
    }

    /// Returns the incarnations of parents that have ended without closing their control channel.
    fn silently_ended(&mut self, now: Instant) -> Vec<u64> {
        let ended = self.generations.iter_mut().filter_map(|generation| {
            generation.has_ended_silently(now).then_some(generation.incarnation)
        });
        ended.collect()
    }

    fn serving(&self) -> Option<usize> {
        self.generations.iter().position(|generation| matches!(generation.role, Role::Serving))
    }

    fn starting(&self) -> Option<usize> {
        self.generations
            .iter()
            .position(|generation| matches!(generation.role, Role::Starting { .. }))
    }

    fn start_generation(&mut self) -> Result<(), AppError> {
        self.incarnations += 1;
        self.newest += 1;
        let spec = ParentSpec {
            generation: self.newest,
            incarnation: self.incarnations,
            workers: self.workers,
        };
        let started = Generation::start(&self.app, &self.launch, spec, &self.loops);
        // Its ring is there before its parent.
        let mut generation =
            started.inspect_err(|_| self.app.disconnect_generation(spec.generation))?;
        generation.open_missing(&self.app, &self.loops);
        self.generations.push(generation);
        Ok(())
    }

    /// Starts a generation with new code. If one is starting already, this waits for its end,
    /// because it may have read older code.
    fn reload(&mut self) {
        if self.starting().is_some() {
            self.reload_again = true;
            return;
        }
        self.reload_again = false;
        if let Err(error) = self.start_generation() {
            self.app.counters.reloads_failed.add(1);
            tracing::error!(app = self.app.name(), %error, "reload failed; the old generation keeps serving");
            self.reload_failure = Some(error.to_string());
            self.app.set_reloads_done(self.reloads, self.reload_failure.clone());
        }
    }

    /// Handles the end of a start, whether it succeeded or failed.
    pub(crate) fn finish_start(&mut self) {
        if self.reload_again {
            self.reload();
        } else {
            self.app.set_reloads_done(self.reloads, self.reload_failure.clone());
        }
    }

    /// Adds a worker. The first generation serves from its first worker on. Later ones take over
    /// when all their workers have greeted, or are on trial then.
    fn handle_greeting(&mut self, connection: WorkerConnection) {
        let number = connection.handle.generation;
        let is_first = self.serving().is_none();
        let Some(index) = self.generations.iter().position(|known| known.number == number) else {
            return;
        };
        // A condemned worker may finish its request after all. It must not get another one.
        if self.generations[index].is_condemned(connection.handle.pid) {
            return;
        }
        self.generations[index].note_greeting(&connection);
        match &mut self.generations[index].role {
            Role::Leaving { .. } => {}
            Role::Serving | Role::OnTrial => {
                self.app.register_worker(&connection.handle);
                self.app.release(connection);
                self.generations[index].grow(&self.app, &self.loops);
                self.note_trial_workers();
            }
            Role::Starting { greeted, .. } => {
                self.app.register_worker(&connection.handle);
                greeted.push(connection);
                if is_first || workers_of(greeted) >= self.workers {
                    self.complete_start(index);
                } else {
                    let greeted = greeted.len();
                    self.generations[index].open_for_late_worker(greeted, &self.app, &self.loops);
                }
            }
        }
    }

    fn resize(&mut self, wanted: usize) {
        if wanted == self.workers {
            return;
        }
        if !(1..=MAX_WORKERS).contains(&wanted) {
            tracing::warn!(
                app = self.app.name(),
                workers = self.workers,
                "the number of workers stays"
            );
            return;
        }
        self.workers = wanted;
        self.app.set_wanted_workers(wanted);
        tracing::info!(app = self.app.name(), workers = wanted, "the number of workers changes");
        if let Some(trial) = self.app.trials.running() {
            trial.resize(wanted);
        }
        for generation in &mut self.generations {
            generation.resize(wanted, &self.app, &self.loops);
        }
        if let (Some(index), Some(_)) = (self.starting(), self.serving())
            && matches!(&self.generations[index].role, Role::Starting { greeted, .. } if workers_of(greeted) >= wanted)
        {
            self.complete_start(index);
        }
    }

    /// Lets a generation whose workers have greeted serve, or puts it on trial.
    fn complete_start(&mut self, index: usize) {
        let number = self.generations[index].number;
        if let (Some(old), Some(config)) = (self.serving(), self.app.trials.config()) {
            return self.begin_trial(number, self.generations[old].number, config);
        }
        self.give_up_for(number);
        if let Some(index) = self.starting() {
            self.serve(index);
        }
        self.finish_start();
    }

    /// Lets a new generation serve, and the one that served leave.
    pub(crate) fn serve(&mut self, index: usize) {
        let old = self.serving();
        let role = std::mem::replace(&mut self.generations[index].role, Role::Serving);
        if let Role::Starting { greeted, .. } = role {
            greeted.into_iter().for_each(|connection| self.app.release(connection));
        }
        self.generations[index].grow(&self.app, &self.loops);
        let number = self.generations[index].number;
        match old {
            None => self.app.set_ready(),
            Some(old) => {
                self.app.counters.reloads.add(1);
                self.reload_failure = None;
                tracing::info!(app = self.app.name(), generation = number, "new generation serves");
                self.retire(old);
            }
        }
    }

    /// Lets the workers of a generation finish their requests and leave. They may take as long as a
    /// request.
    pub(crate) fn retire(&mut self, index: usize) {
        let generation = &mut self.generations[index];
        let deadline = Instant::now() + self.app.config().request_deadline;
        generation.role = Role::Leaving { deadline };
        self.app.retire_generation(generation.number);
        generation.quit();
        if !generation.has_parent() {
            generation.stop_connecting();
        }
    }

    /// Removes the generations that have left. Workers that have lost their parent finish their
    /// requests within the deadline of the generation and the time of orphans.
    fn remove_left(&mut self, now: Instant) {
        let (app, orphans) = (&self.app, &self.orphans);
        self.generations.retain(|generation| {
            let Role::Leaving { deadline } = generation.role else { return true };
            let may_work = deadline > now && orphans.may_have(generation.number);
            let stays = generation.has_parent() || may_work;
            if !stays {
                generation.stop_connecting();
                app.disconnect_generation(generation.number);
                tracing::debug!(
                    app = app.name(),
                    generation = generation.number,
                    "generation has left"
                );
            }
            stays
        });
    }

    /// Handles the end of a parent that has ended by itself or has been killed.
    async fn parent_ended(&mut self, incarnation: u64) -> Result<(), AppError> {
        let Some(index) = self.by_incarnation(incarnation) else { return Ok(()) };
        let Some(end) = self.generations[index].parent_ended(&self.app).await else {
            return Ok(());
        };
        self.orphans.add(end.orphans, Instant::now());
        match self.generations[index].role {
            Role::Starting { .. } => {
                return self.abandon_start(index, end.reason.into_error(&self.app)).await;
            }
            Role::Serving if !self.launch.is_repeatable(self.generations[index].number) => {
                return Err(end.reason.into_error(&self.app));
            }
            Role::Serving => self.generations[index].restart_later(&self.app, &end.reason),
            Role::OnTrial => {
                let reason = end.reason.into_error(&self.app).to_string();
                self.give_up_trial(&reason, GivenUp::AsWorse);
            }
            Role::Leaving { .. } => self.generations[index].stop_connecting(),
        }
        Ok(())
    }

    /// Abandons a generation that was starting. If no other one serves, the application has failed.
    async fn abandon_start(&mut self, index: usize, error: AppError) -> Result<(), AppError> {
        let Some(serving) = self.serving() else { return Err(error) };
        let keeps = self.generations[serving].number;
        let mut generation = self.generations.remove(index);
        generation.kill(&self.app).await;
        self.app.counters.reloads_failed.add(1);
        tracing::error!(
            app = self.app.name(),
            generation = generation.number,
            %error,
            "reload failed; generation {keeps} keeps serving"
        );
        self.reload_failure = Some(error.to_string());
        self.finish_start();
        Ok(())
    }

    /// Ends what takes too long, and restarts what has ended.
    async fn enforce_limits(&mut self) -> Result<(), AppError> {
        let now = Instant::now();
        self.app.begin_deadline_of_disconnected();
        self.condemn_overdue();
        self.app.expire_waiting();
        for generation in &mut self.generations {
            if !matches!(generation.role, Role::Leaving { .. }) {
                generation.balance(&self.app, &self.loops);
            }
        }
        if self.replacement_checked_at + REPLACEMENT_INTERVAL <= now {
            self.replacement_checked_at = now;
            self.app.compare_memory();
            for worker in self.app.retire_old_workers(now) {
                let of = |known: &&Generation| known.number == worker.generation;
                if let Some(generation) = self.generations.iter().find(of) {
                    generation.signal_worker(worker.pid, Signal::TERM);
                }
            }
        }
        self.judge_trial(now);
        for pid in self.orphans.end_overdue(now) {
            self.app.unregister_worker(pid);
        }
        for incarnation in self.silently_ended(now) {
            self.parent_ended(incarnation).await?;
        }
        let mut late = None;
        for (index, generation) in self.generations.iter_mut().enumerate() {
            generation.restart_if_due(&self.app, &self.launch, &mut self.incarnations, now);
            match generation.role {
                Role::Starting { deadline, .. } if deadline <= now => late = Some(index),
                Role::Leaving { deadline } if deadline <= now && generation.has_parent() => {
                    tracing::warn!(
                        app = self.app.name(),
                        generation = generation.number,
                        "workers of the old generation are killed: they took too long to leave"
                    );
                    generation.kill(&self.app).await;
                }
                _ => {}
            }
        }
        if let Some(index) = late {
            let (app, limit) = (self.app.name().to_owned(), self.app.config().start_limit);
            self.abandon_start(index, AppError::TooSlow { app, limit }).await?;
        }
        self.remove_left(now);
        Ok(())
    }

    /// Answers overdue requests with 504. Their workers are asked for a stack trace, and killed a
    /// little later. So are workers that hang between two requests.
    fn condemn_overdue(&mut self) {
        let overdue = self.app.condemn_overdue();
        self.end_condemned(overdue);
    }

    fn end_condemned(&mut self, condemned: Vec<Arc<WorkerHandle>>) {
        for worker in condemned {
            let (number, pid) = (worker.generation, worker.pid);
            if let Some(generation) =
                self.generations.iter_mut().find(|known| known.number == number)
            {
                // Another request of it was overdue, too.
                if worker.process.is_concurrent() && generation.is_condemned(pid) {
                    continue;
                }
                generation.condemn_worker(pid);
                let events = self.app.events();
                tokio::spawn(async move {
                    tokio::time::sleep(TRACE_GRACE).await;
                    // Nobody receives this when the application has been stopped.
                    let _ = events.send(Event::GraceOver { generation: number, pid });
                });
            }
            worker.disconnect();
            if worker.process.is_concurrent() {
                tracing::warn!(
                    app = self.app.name(),
                    pid,
                    "worker has not ended an overdue request; it is killed with all its requests"
                );
                worker.process.leave();
                self.app.workers.disconnect(pid);
            }
        }
    }

    fn grace_over(&mut self, generation: u64, pid: u32) {
        if let Some(generation) =
            self.generations.iter_mut().find(|known| known.number == generation)
        {
            generation.kill_condemned(pid);
        }
    }

    /// Ends all processes; by force after `limit`.
    async fn stop(&mut self, limit: Duration, state: AppState) {
        self.stop_trial();
        self.app.close(state);
        let deadline = Instant::now() + limit;
        for generation in &mut self.generations {
            generation.stop_connecting();
            generation.terminate();
            generation.role = Role::Leaving { deadline };
        }
        let is_patient = !limit.is_zero();
        if is_patient && tokio::time::timeout(limit, self.wait_for_parents()).await.is_err() {
            tracing::warn!(
                app = self.app.name(),
                "workers are killed: they did not end within {limit:?}"
            );
        }
        for generation in &mut self.generations {
            generation.kill(&self.app).await;
        }
        self.app.disconnect_all();
        self.orphans.kill();
        tracing::info!(app = self.app.name(), "app has ended");
    }

    /// Waits for the end of all parents, and ends what is overdue in the meantime.
    async fn wait_for_parents(&mut self) {
        let begun = Instant::now();
        let mut tick = tokio::time::interval(self.tick());
        while self.generations.iter().any(Generation::has_parent) {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(Event::Control { incarnation, line }) => if let Some(index) = self.by_incarnation(incarnation) {
                        self.generations[index].handle_control_line(&self.app, line);
                    },
                    Some(Event::ControlClosed { incarnation }) => self.reap_parent(incarnation).await,
                    Some(Event::GraceOver { generation, pid }) => self.grace_over(generation, pid),
                    Some(_) => {}
                    None => return,
                },
                _ = tick.tick() => {
                    self.condemn_overdue();
                    if begun.elapsed() > WAKE_LIMIT {
                        let stopped = self.app.condemn_sleepers();
                        self.end_condemned(stopped);
                    }
                    for incarnation in self.silently_ended(Instant::now()) {
                        self.reap_parent(incarnation).await;
                    }
                }
            }
        }
    }

    /// Handles the end of a parent that was told to end. Workers that it has left are killed with
    /// the orphans.
    async fn reap_parent(&mut self, incarnation: u64) {
        if let Some(index) = self.by_incarnation(incarnation)
            && let Some(end) = self.generations[index].parent_ended(&self.app).await
        {
            self.orphans.add(end.orphans, Instant::now());
        }
    }
}

/// Returns how many workers these connections belong to.
fn workers_of(connections: &[WorkerConnection]) -> usize {
    let pids: HashSet<_> = connections.iter().map(|connection| connection.handle.pid).collect();
    pids.len()
}
