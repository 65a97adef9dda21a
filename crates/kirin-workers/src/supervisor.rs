//! Watches over one application: which generation of it gets the requests, and what takes too long.
//!
//! One task a running application. Everything that happens reaches it as an [`Event`] through one
//! channel.
//!
//! The queue belongs to the application, workers to a generation: a request that waits is served by
//! a worker of whichever generation is serving when one is free. A reload starts a generation
//! beside the one that serves; with all its workers there it takes over, before that nobody sees
//! it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::app::{App, AppState};
use crate::config::{AppConfig, MAX_WORKERS};
use crate::error::AppError;
use crate::event::Event;
use crate::generation::{Generation, Orphans, Role};
use crate::launch::Launch;
use crate::parent::Birth;
use crate::worker::WorkerConnection;

/// How long workers whose parent has been killed may take to end.
const ORPHAN_LIMIT: Duration = Duration::from_secs(10);

/// How long a worker that took too long may say where it is, before it is killed. Its client has
/// been answered.
const TRACE_GRACE: Duration = Duration::from_secs(1);

/// How often workers' age and memory are looked at, at most.
const WEAR_INTERVAL: Duration = Duration::from_millis(900);

/// The state of the task.
pub(crate) struct Supervisor {
    app: Arc<App>,
    events: mpsc::UnboundedReceiver<Event>,
    loops: Vec<Handle>,
    launch: Launch,
    /// Oldest first. At most one serves and at most one starts.
    generations: Vec<Generation>,
    /// Parents that have been started.
    lives: u64,
    /// The number of the generation that was started last.
    newest: u64,
    /// Workers that each generation is to have.
    workers: usize,
    /// A reload that came while a generation was starting.
    reload_again: bool,
    /// Reloads that have been asked for.
    reloads: u64,
    /// When workers' age and memory were looked at last.
    worn_at: Instant,
    /// Workers whose parents have died, and when those that are left are killed.
    orphans: Vec<(Orphans, Instant)>,
}

impl App {
    /// Starts an application: its parent process, and a task on the current runtime that watches
    /// over it. Workers' connections are spread over `loops`, the runtimes that will call
    /// [`App::answer`].
    ///
    /// Returns when the process has been started; [`App::ready`] tells when the application is
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
        let launch = Launch::prepare(app.config())?;
        let workers = app.config().workers;
        let mut supervisor = Self {
            app,
            events,
            loops,
            launch,
            generations: Vec::new(),
            lives: 0,
            newest: 0,
            workers,
            reload_again: false,
            reloads: 0,
            worn_at: Instant::now(),
            orphans: Vec::new(),
        };
        supervisor.start_generation()?;
        Ok(supervisor)
    }

    /// Until the application is stopped or cannot be started.
    pub(crate) async fn run(mut self) {
        let mut tick = tokio::time::interval(self.tick());
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let result = tokio::select! {
                event = self.events.recv() => match event {
                    Some(Event::Stop { limit, done }) => {
                        self.stop(limit, AppState::Stopped).await;
                        // The sockets' directories go before anyone is told that all is gone.
                        drop(self);
                        let _ = done.send(());
                        return;
                    }
                    Some(event) => self.happened(event).await,
                    None => return,
                },
                _ = tick.tick() => self.keep_house().await,
            };
            if let Err(error) = result {
                tracing::error!(%error, "app is not running");
                return self.stop(Duration::ZERO, AppState::Failed(error)).await;
            }
        }
    }

    /// How often time limits are looked at: often enough for the shortest.
    fn tick(&self) -> Duration {
        let config = self.app.config();
        let shortest = config.request_deadline.min(config.queue_wait).min(config.start_limit);
        (shortest / 4).clamp(Duration::from_millis(20), Duration::from_secs(1))
    }

    async fn happened(&mut self, event: Event) -> Result<(), AppError> {
        match event {
            Event::Control { life, line } => {
                if let Some(generation) = self.by_life(life) {
                    self.generations[generation].heard(&self.app, line);
                }
            }
            Event::ControlClosed { life } => return self.parent_ended(life).await,
            Event::Greeted { connection } => self.greeted(*connection),
            Event::Lost { generation, slot } => {
                if let Some(generation) =
                    self.generations.iter_mut().find(|known| known.number == generation)
                {
                    generation.lost(slot, &self.app, &self.loops);
                }
            }
            Event::GraceOver { generation, pid } => self.grace_over(generation, pid),
            Event::Reload => {
                self.reloads += 1;
                self.reload();
            }
            Event::Resize { more } => self.resize(more),
            // Said to one that is stopping already; `run` takes the first.
            Event::Stop { done, .. } => drop(done),
        }
        Ok(())
    }

    /// The index of the generation whose present parent this is.
    fn by_life(&self, life: u64) -> Option<usize> {
        self.generations.iter().position(|generation| generation.life == life)
    }

    /// The lives of parents that have ended without having closed their control channel.
    fn ended_unheard(&mut self, now: Instant) -> Vec<u64> {
        let ended = self
            .generations
            .iter_mut()
            .filter_map(|generation| generation.has_ended_unheard(now).then_some(generation.life));
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
        self.lives += 1;
        self.newest += 1;
        let birth = Birth { generation: self.newest, life: self.lives, workers: self.workers };
        let mut generation = Generation::start(&self.app, &self.launch, birth)?;
        generation.open_missing(&self.app, &self.loops);
        self.generations.push(generation);
        Ok(())
    }

    /// Starts a generation with new code, or remembers to when the one that is starting has come to
    /// its end: what that has read of the code may be older than the wish.
    fn reload(&mut self) {
        if self.starting().is_some() {
            self.reload_again = true;
            return;
        }
        self.reload_again = false;
        if let Err(error) = self.start_generation() {
            tracing::error!(app = self.app.name(), %error, "reload failed; the old generation keeps serving");
            self.app.set_reloads_done(self.reloads);
        }
    }

    /// A generation that was starting has come to its end, one way or the other.
    fn started(&mut self) {
        if self.reload_again {
            self.reload();
        } else {
            self.app.set_reloads_done(self.reloads);
        }
    }

    /// A worker is there. The first generation serves from its first worker on, another one when
    /// all are there.
    fn greeted(&mut self, connection: WorkerConnection) {
        let number = connection.handle.generation;
        let is_first = self.serving().is_none();
        let Some(index) = self.generations.iter().position(|known| known.number == number) else {
            return;
        };
        // One that took too long may come to its end after all, and would go on.
        if self.generations[index].is_condemned(connection.handle.pid) {
            return;
        }
        match &mut self.generations[index].role {
            Role::Leaving { .. } => {}
            Role::Serving => {
                self.app.remember_worker(&connection.handle);
                self.app.release(connection);
            }
            Role::Starting { greeted, .. } => {
                self.app.remember_worker(&connection.handle);
                greeted.push(connection);
                if is_first || greeted.len() >= self.workers {
                    self.take_over(index);
                }
            }
        }
    }

    fn resize(&mut self, more: bool) {
        let wanted = if more { self.workers + 1 } else { self.workers - 1 };
        if !(1..=MAX_WORKERS).contains(&wanted) {
            tracing::warn!(
                app = self.app.name(),
                workers = self.workers,
                "the number of workers stays"
            );
            return;
        }
        self.workers = wanted;
        tracing::info!(app = self.app.name(), workers = wanted, "the number of workers changes");
        for generation in &mut self.generations {
            generation.resize(wanted, &self.app, &self.loops);
        }
        if let (Some(index), Some(_)) = (self.starting(), self.serving())
            && matches!(&self.generations[index].role, Role::Starting { greeted, .. } if greeted.len() >= wanted)
        {
            self.take_over(index);
        }
    }

    /// The generation that was starting serves from now on, and the one that served leaves.
    fn take_over(&mut self, index: usize) {
        let old = self.serving();
        let role = std::mem::replace(&mut self.generations[index].role, Role::Serving);
        if let Role::Starting { greeted, .. } = role {
            greeted.into_iter().for_each(|connection| self.app.release(connection));
        }
        let number = self.generations[index].number;
        match old {
            None => self.app.set_ready(),
            Some(old) => {
                tracing::info!(app = self.app.name(), generation = number, "new generation serves");
                self.retire(old);
            }
        }
        self.started();
    }

    /// The generation's workers finish their requests and leave. They may take as long as a request
    /// may.
    fn retire(&mut self, index: usize) {
        let generation = &mut self.generations[index];
        let deadline = Instant::now() + self.app.config().request_deadline;
        generation.role = Role::Leaving { deadline };
        self.app.retire_generation(generation.number);
        generation.let_go();
        if !generation.has_parent() {
            generation.stop_connecting();
            self.generations.remove(index);
        }
    }

    /// A parent has ended by itself or has been killed.
    async fn parent_ended(&mut self, life: u64) -> Result<(), AppError> {
        let Some(index) = self.by_life(life) else { return Ok(()) };
        let Some(end) = self.generations[index].parent_ended(&self.app).await else {
            return Ok(());
        };
        self.orphans.push((end.orphans, Instant::now() + ORPHAN_LIMIT));
        match self.generations[index].role {
            Role::Starting { .. } => {
                return self.give_up(index, end.reason.into_error(&self.app)).await;
            }
            Role::Serving if !self.launch.is_repeatable(self.generations[index].number) => {
                return Err(end.reason.into_error(&self.app));
            }
            Role::Serving => self.generations[index].restart_later(&self.app, &end.reason),
            Role::Leaving { .. } => {
                let generation = self.generations.remove(index);
                generation.stop_connecting();
                self.app.cut_generation(generation.number);
                tracing::debug!(
                    app = self.app.name(),
                    generation = generation.number,
                    "generation has left"
                );
            }
        }
        Ok(())
    }

    /// A generation that was starting does not. Without another one that is the application's end.
    async fn give_up(&mut self, index: usize, error: AppError) -> Result<(), AppError> {
        let Some(serving) = self.serving() else { return Err(error) };
        let keeps = self.generations[serving].number;
        let mut generation = self.generations.remove(index);
        generation.kill(&self.app).await;
        tracing::error!(
            app = self.app.name(),
            generation = generation.number,
            %error,
            "reload failed; generation {keeps} keeps serving"
        );
        self.started();
        Ok(())
    }

    /// What takes too long is ended here.
    async fn keep_house(&mut self) -> Result<(), AppError> {
        let now = Instant::now();
        self.condemn_overdue();
        self.app.expire_waiting();
        if self.worn_at + WEAR_INTERVAL <= now {
            self.worn_at = now;
            self.app.retire_worn_workers(now);
        }
        self.orphans.retain(|(orphans, deadline)| {
            let wait = orphans.are_left() && (*deadline > now || !orphans.signal(Signal::KILL));
            if !wait {
                orphans.forget(&self.app);
            }
            wait
        });
        for life in self.ended_unheard(now) {
            self.parent_ended(life).await?;
        }
        let mut late = None;
        for (index, generation) in self.generations.iter_mut().enumerate() {
            generation.restart_if_due(&self.app, &self.launch, &mut self.lives, now);
            match generation.role {
                Role::Starting { deadline, .. } if deadline <= now => late = Some(index),
                Role::Leaving { deadline } if deadline <= now => {
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
            self.give_up(index, AppError::TooSlow { app, limit }).await?;
        }
        self.generations.retain(|generation| {
            !matches!(generation.role, Role::Leaving { .. }) || generation.has_parent()
        });
        Ok(())
    }

    /// Answers 504 for requests that took too long. Their workers are asked where they are, and
    /// killed a little later.
    fn condemn_overdue(&mut self) {
        for worker in self.app.condemn_overdue() {
            let (number, pid) = (worker.generation, worker.pid);
            if let Some(generation) =
                self.generations.iter_mut().find(|known| known.number == number)
            {
                generation.condemn_worker(pid);
                let events = self.app.events();
                tokio::spawn(async move {
                    tokio::time::sleep(TRACE_GRACE).await;
                    // Nobody listens when the application has been stopped.
                    let _ = events.send(Event::GraceOver { generation: number, pid });
                });
            }
            worker.cut();
        }
    }

    fn grace_over(&mut self, generation: u64, pid: u32) {
        if let Some(generation) =
            self.generations.iter_mut().find(|known| known.number == generation)
        {
            generation.kill_condemned(pid);
        }
    }

    /// Ends every process, by force after `limit`.
    async fn stop(&mut self, limit: Duration, state: AppState) {
        self.app.close(state);
        let deadline = Instant::now() + limit;
        for generation in &mut self.generations {
            generation.stop_connecting();
            generation.terminate();
            generation.role = Role::Leaving { deadline };
        }
        let is_patient = !limit.is_zero();
        if is_patient && tokio::time::timeout(limit, self.all_ended()).await.is_err() {
            tracing::warn!(
                app = self.app.name(),
                "workers are killed: they did not end within {limit:?}"
            );
        }
        for generation in &mut self.generations {
            generation.kill(&self.app).await;
        }
        self.app.cut_all();
        for (orphans, _) in self.orphans.drain(..) {
            orphans.signal(Signal::KILL);
        }
        tracing::info!(app = self.app.name(), "app has ended");
    }

    /// Waits for the end of all parents and goes on to end what is overdue.
    async fn all_ended(&mut self) {
        let mut tick = tokio::time::interval(self.tick());
        while self.generations.iter().any(Generation::has_parent) {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(Event::Control { life, line }) => if let Some(index) = self.by_life(life) {
                        self.generations[index].heard(&self.app, line);
                    },
                    Some(Event::ControlClosed { life }) => self.parent_left(life).await,
                    Some(Event::GraceOver { generation, pid }) => self.grace_over(generation, pid),
                    Some(_) => {}
                    None => return,
                },
                _ = tick.tick() => {
                    self.condemn_overdue();
                    for life in self.ended_unheard(Instant::now()) {
                        self.parent_left(life).await;
                    }
                }
            }
        }
    }

    /// A parent has ended as it was told to. Workers that it has left are killed with the orphans.
    async fn parent_left(&mut self, life: u64) {
        if let Some(index) = self.by_life(life)
            && let Some(end) = self.generations[index].parent_ended(&self.app).await
        {
            self.orphans.push((end.orphans, Instant::now()));
        }
    }
}
