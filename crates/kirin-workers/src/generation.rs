//! A generation of an application: its code loaded once, the parent process, and a connection to
//! each worker.
//!
//! The supervisor owns one generation that serves. Beside it there may be one that starts, one that
//! is on trial, and some that leave. This file handles one generation; the supervisor decides which
//! of them gets the requests.

use std::collections::HashSet;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_faults::{Errno, Point};
use rustix::process::{Pid, Resource, Signal, getrlimit};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::control::{ControlLine, describe_wait_status};
use crate::error::AppError;
use crate::event::Event;
use crate::launch::ParentLaunch;
use crate::orphans::Orphans;
use crate::parent::{Parent, ParentSpec, WorkerSocket, signal_workers};
use crate::ring::{Collectors, watch_connection};
use crate::worker::{Ring, Vacancy, WorkerConnection, connect};

static CREATE_RING: Point = Point::new("ring.create", &[Errno::NOMEM, Errno::MFILE]);

/// A parent that lived shorter than this is restarted after a pause. The pause doubles from the
/// first value to the longest.
const SHORT_LIFE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Connections to concurrent workers may take this part of Kirin's descriptors. Each has two, and
/// its client has one.
const DESCRIPTORS_A_CONNECTION: u64 = 8;

/// The pause before another connection for a worker that is late, for each connection that was
/// taken by another worker.
const LATE_PAUSE: Duration = Duration::from_millis(10);

/// The pause after a connection that no worker took.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// How long a parent may take to end after it has closed its control channel.
const EXIT_LIMIT: Duration = Duration::from_secs(2);

/// How long after the end of the parent its control channel may still deliver lines.
const CONTROL_DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// The state of a generation.
pub(crate) enum Role {
    /// The generation is being loaded. It takes over with these connections, or is abandoned at the
    /// deadline.
    Starting { greeted: Vec<WorkerConnection>, deadline: Instant },
    /// Requests go to its workers.
    Serving,
    /// The requests of some visitors go to its workers, those of others to the generation that
    /// serves.
    OnTrial,
    /// Its workers finish their requests and leave. At the deadline the rest is killed.
    Leaving { deadline: Instant },
}

/// Code that was loaded once, with its processes.
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) role: Role,
    /// The incarnation of the present or last parent.
    pub(crate) incarnation: u64,
    parent: Option<Parent>,
    socket: WorkerSocket,
    /// The ring that is offered to workers, and its tasks.
    ring: Option<(Arc<Ring>, Collectors)>,
    started_at: Instant,
    /// When the parent was first found to have ended without closing its control channel.
    ended_at: Option<Instant>,
    /// When to start the next parent.
    restart_at: Option<Instant>,
    pause: Duration,
    /// The parent's own message on why the application cannot be loaded.
    failure: Option<String>,
    /// Processes that the parent has forked. Kirin kills only these by number.
    children: HashSet<u32>,
    /// Those of them whose request took too long.
    condemned: HashSet<u32>,
    /// How many workers the parent should keep.
    workers: usize,
    /// How many workers the parent was started with.
    initial_workers: usize,
    /// How many workers the parent keeps, as it has confirmed. `None` while a change is not
    /// confirmed.
    acknowledged_workers: Option<usize>,
    /// How many connections requests need: one for each worker, or more if they can take more.
    needed: usize,
    /// How many connections there are to be. There are more than needed while a worker has less
    /// than its share.
    connections: usize,
    /// How many of them a worker takes at the same time.
    most_of_one_worker: usize,
    /// Connections to workers, by vacancy.
    vacancies: Vec<VacancyState>,
}

/// The state of a vacancy.
enum VacancyState {
    /// The vacancy has no connection, because there are enough workers.
    Closed,
    /// A task waits for a worker to take the connection.
    Opening(JoinHandle<()>),
    /// The vacancy has a connection.
    Open,
}

impl Generation {
    /// Starts the parent. [`Generation::open_missing`] opens the connections.
    pub(crate) fn start(
        app: &Arc<App>,
        launch: &ParentLaunch,
        spec: ParentSpec,
        loops: &[Handle],
    ) -> Result<Self, AppError> {
        let config = app.config();
        let now = Instant::now();
        let mut generation = Self {
            number: spec.generation,
            role: Role::Starting { greeted: Vec::new(), deadline: now + config.start_limit },
            incarnation: spec.incarnation,
            parent: None,
            socket: launch.socket(config, spec.generation)?,
            ring: open_ring(app, spec.generation, loops),
            started_at: now,
            ended_at: None,
            restart_at: None,
            pause: FIRST_PAUSE,
            failure: None,
            children: HashSet::new(),
            condemned: HashSet::new(),
            workers: spec.workers,
            initial_workers: spec.workers,
            acknowledged_workers: None,
            needed: spec.workers,
            connections: spec.workers,
            most_of_one_worker: 1,
            vacancies: Vec::new(),
        };
        generation.spawn_parent(app, launch, spec.incarnation)?;
        Ok(generation)
    }

    fn spawn_parent(
        &mut self,
        app: &App,
        launch: &ParentLaunch,
        incarnation: u64,
    ) -> Result<(), AppError> {
        self.incarnation = incarnation;
        self.started_at = Instant::now();
        self.children.clear();
        self.condemned.clear();
        self.initial_workers = self.workers;
        self.acknowledged_workers = None;
        let spec = ParentSpec { generation: self.number, incarnation, workers: self.workers };
        let parent =
            launch.parent(app.config(), &self.socket, app.sendfile_roots(), spec, app.events())?;
        let pid = parent.pid().as_raw_nonzero();
        tracing::info!(app = app.name(), generation = self.number, pid, "app parent started");
        self.parent = Some(parent);
        Ok(())
    }

    /// Opens the connections that are missing.
    pub(crate) fn open_missing(&mut self, app: &Arc<App>, loops: &[Handle]) {
        self.open_missing_after(Duration::ZERO, app, loops);
    }

    fn open_missing_after(&mut self, pause: Duration, app: &Arc<App>, loops: &[Handle]) {
        // Nobody would take them.
        if matches!(self.role, Role::Leaving { .. }) && !self.has_parent() {
            return;
        }
        let is_closed = |vacancy: &VacancyState| matches!(vacancy, VacancyState::Closed);
        let mut missing = (self.connections
            + self.vacancies.iter().filter(|vacancy| is_closed(vacancy)).count())
        .saturating_sub(self.vacancies.len());
        for index in 0..self.vacancies.len() + missing {
            if missing > 0 && self.vacancies.get(index).is_none_or(is_closed) {
                let opening = VacancyState::Opening(self.connect(index, pause, app, loops));
                match self.vacancies.get_mut(index) {
                    Some(vacancy) => *vacancy = opening,
                    None => self.vacancies.push(opening),
                }
                missing -= 1;
            }
        }
    }

    /// Frees a vacancy whose connection has ended, and opens another connection if one is needed.
    pub(crate) fn reopen_vacancy(&mut self, vacancy: usize, app: &Arc<App>, loops: &[Handle]) {
        if let Some(vacancy) = self.vacancies.get_mut(vacancy) {
            *vacancy = VacancyState::Closed;
        }
        if self.connections > self.needed {
            self.connections -= 1;
        }
        self.open_missing(app, loops);
    }

    /// Changes the number of workers.
    pub(crate) fn resize(&mut self, workers: usize, app: &Arc<App>, loops: &[Handle]) {
        // A worker that is added gets its connections as `balance` sees to it.
        let added = workers.saturating_sub(self.workers);
        self.workers = workers;
        let most = self.most_connections();
        self.needed = (self.needed + added).clamp(workers, most);
        self.connections = (self.connections + added).clamp(self.needed, most);
        self.open_missing(app, loops);
        self.send_worker_count();
    }

    /// Returns how many connections the workers can have. Kirin needs most of its descriptors for
    /// its clients.
    fn most_connections(&self) -> usize {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let share = usize::try_from(descriptors / DESCRIPTORS_A_CONNECTION).unwrap_or(usize::MAX);
        (self.workers * self.most_of_one_worker).min(share).max(self.workers)
    }

    /// Notes that a worker has taken a connection, and how many it can take.
    pub(crate) fn note_greeting(&mut self, connection: &WorkerConnection) {
        let most = connection.handle.process.most_connections;
        self.most_of_one_worker = self.most_of_one_worker.max(most);
        if let Some(vacancy) = self.vacancies.get_mut(connection.vacancy()) {
            *vacancy = VacancyState::Open;
        }
    }

    /// Opens a connection for each request that waits, when those that are being opened have not
    /// been enough.
    pub(crate) fn grow(&mut self, app: &Arc<App>, loops: &[Handle]) {
        if !self.is_connecting() {
            let most = self.most_connections();
            self.needed = (self.connections.max(self.needed) + app.waiting_requests()).min(most);
            self.connections = self.connections.max(self.needed);
            self.open_missing(app, loops);
            // Beside a generation on trial, the other one may still grow.
            if self.connections < most {
                app.allow_growth();
            }
        }
    }

    /// Returns whether a connection waits for a worker to take it.
    fn is_connecting(&self) -> bool {
        self.vacancies.iter().any(|vacancy| matches!(vacancy, VacancyState::Opening(_)))
    }

    /// Opens another connection while the generation starts, if a worker has taken that of one that
    /// has not been forked or loaded yet. There are `greeted` connections so far.
    pub(crate) fn open_for_late_worker(
        &mut self,
        greeted: usize,
        app: &Arc<App>,
        loops: &[Handle],
    ) {
        if greeted < self.connections || self.connections >= self.most_connections() {
            return;
        }
        let taken_twice = u32::try_from(greeted - self.workers).unwrap_or(u32::MAX);
        self.connections += 1;
        self.open_missing_after((LATE_PAUSE * taken_twice).min(LONGEST_PAUSE), app, loops);
    }

    /// Opens connections for workers that have fewer than half of their share, as one that has
    /// just been forked. The worker with the fewest is the fastest to take one.
    pub(crate) fn balance(&mut self, app: &Arc<App>, loops: &[Handle]) {
        if self.most_of_one_worker == 1 || self.is_connecting() {
            return;
        }
        let known = app.workers.with_connections();
        let of = |pid| known.iter().find(|(process, _)| process.pid == pid);
        let share = self.needed / self.workers;
        let missing = self.children.iter().map(|pid| match of(*pid) {
            // It may not be ready to take one. Another worker takes it then.
            None => 1,
            Some((process, _)) if process.is_leaving() => 0,
            Some((_, connections)) if connections.len() * 2 < share => share - connections.len(),
            Some(_) => 0,
        });
        let missing: usize = missing.sum();
        // Workers that cannot take one, because they are not loaded yet, must not multiply them.
        let most = self.most_connections().min(2 * self.needed);
        self.connections = (self.connections + missing).min(most).max(self.connections);
        self.open_missing(app, loops);
    }

    /// Tells the parent to add or remove a worker. Pending signals of one kind merge into one. So
    /// each waits until the parent has confirmed the one before.
    fn send_worker_count(&mut self) {
        if matches!(self.role, Role::Leaving { .. }) {
            return;
        }
        let (Some(parent), Some(told)) = (&self.parent, self.acknowledged_workers) else { return };
        if told != self.workers {
            parent.signal(if told < self.workers { Signal::TTIN } else { Signal::TTOU });
            self.acknowledged_workers = None;
        }
    }

    /// Opens a connection on the vacancy's home loop, after a pause. The connection waits there
    /// until a worker takes it.
    fn connect(
        &self,
        vacancy: usize,
        pause: Duration,
        app: &Arc<App>,
        loops: &[Handle],
    ) -> JoinHandle<()> {
        let home = &loops[vacancy % loops.len()];
        let vacancy = Vacancy { generation: self.number, index: vacancy, lost: app.events() };
        let (app, socket) = (Arc::clone(app), self.socket.path().to_owned());
        let ring = self.ring.as_ref().map(|(ring, _)| Arc::clone(ring));
        home.spawn(async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            match connect(&*app, ring.as_ref(), &socket).await {
                Ok(worker) => {
                    tracing::debug!(
                        app = app.name(),
                        pid = worker.greeting.pid,
                        adapter = worker.greeting.adapter,
                        "worker is there"
                    );
                    let max_age = app.config().max_age;
                    let process =
                        app.workers.greeted(&worker.greeting, vacancy.generation, max_age);
                    let connection = Box::new(WorkerConnection::new(worker, process, vacancy));
                    if let Some(seat) = connection.seat.clone() {
                        let worker = Arc::clone(&connection.handle);
                        tokio::spawn(watch_connection(Arc::clone(&app), seat, worker));
                    }
                    // Nobody receives this while the application is being stopped.
                    let _ = app.events().send(Event::Greeted { connection });
                }
                Err(error) => {
                    tracing::debug!(app = app.name(), %error, "no worker took the connection");
                    // Dropping the vacancy reports it as lost, so that happens after the pause.
                    tokio::time::sleep(CONNECT_PAUSE).await;
                    drop(vacancy);
                }
            }
        })
    }

    /// Handles a line from the parent.
    pub(crate) fn handle_control_line(&mut self, app: &App, line: ControlLine) {
        let (name, generation) = (app.name(), self.number);
        match line {
            ControlLine::Ready => {
                // More digits than those of milliseconds say nothing.
                let seconds = self.started_at.elapsed().as_millis() as f64 / 1000.0;
                tracing::info!(app = name, generation, seconds, "app is loaded");
                // The parent handles signals from now on.
                self.acknowledged_workers = Some(self.initial_workers);
                self.send_worker_count();
            }
            ControlLine::Workers { count } => {
                self.acknowledged_workers = Some(count);
                self.send_worker_count();
            }
            ControlLine::Failed { message } => self.failure = Some(message),
            ControlLine::Started { pid } => {
                self.children.insert(pid);
            }
            ControlLine::Exited { pid, status } => {
                self.children.remove(&pid);
                app.unregister_worker(pid);
                if let Role::Starting { greeted, .. } = &mut self.role {
                    greeted.retain(|connection| connection.handle.pid != pid);
                }
                let text = describe_wait_status(status);
                // Kirin has caused such an end itself, or the worker has left normally.
                let expected = self.condemned.remove(&pid)
                    || status == 0
                    || status == Signal::TERM.as_raw() && matches!(self.role, Role::Leaving { .. });
                if expected {
                    tracing::debug!(app = name, generation, pid, status = text, "worker ended");
                } else {
                    app.note_crash(generation);
                    tracing::warn!(app = name, generation, pid, status = text, "worker ended");
                }
            }
            ControlLine::Unknown => {}
        }
    }

    /// Returns whether the parent has ended while a background process of the application keeps the
    /// control channel open.
    pub(crate) fn has_ended_silently(&mut self, now: Instant) -> bool {
        if !self.parent.as_mut().is_some_and(Parent::has_ended) {
            self.ended_at = None;
            return false;
        }
        // The parent's last lines may still arrive.
        *self.ended_at.get_or_insert(now) + CONTROL_DRAIN_LIMIT <= now
    }

    /// Waits for the end of a parent that has closed its control channel. Some of its workers may
    /// be left.
    pub(crate) async fn parent_ended(&mut self, app: &App) -> Option<ParentEnd> {
        let mut parent = self.parent.take()?;
        let group = parent.pid();
        let ended = match tokio::time::timeout(EXIT_LIMIT, parent.wait()).await {
            Ok(ended) => ended,
            Err(_) => {
                parent.signal(Signal::KILL);
                parent.wait().await
            }
        };
        // These workers finish their requests.
        let workers = std::mem::take(&mut self.children);
        let orphans = Orphans { generation: self.number, group, workers };
        app.retire_workers(&orphans.workers);
        orphans.signal(Signal::TERM);
        let status = ended.map_err(|error| AppError::system(app.name(), "app parent", &error));
        Some(ParentEnd { orphans, reason: EndReason { status, failure: self.failure.take() } })
    }

    /// Schedules the restart of a parent that has ended by itself.
    pub(crate) fn restart_later(&mut self, app: &App, end: &EndReason) {
        self.pause = match self.started_at.elapsed() {
            lived if lived > SHORT_LIFE => FIRST_PAUSE,
            _ => (self.pause * 2).min(LONGEST_PAUSE),
        };
        self.restart_at = Some(Instant::now() + self.pause);
        app.counters.parents_restarted.add(1);
        let (status, failure) = (end.status_text(), &end.failure);
        tracing::error!(app = app.name(), status, failure, pause = ?self.pause, "app parent ended; it is started again");
    }

    /// Starts a parent again when its pause is over, unless the generation leaves.
    pub(crate) fn restart_if_due(
        &mut self,
        app: &App,
        launch: &ParentLaunch,
        incarnations: &mut u64,
        now: Instant,
    ) {
        let is_due = self.restart_at.is_some_and(|at| at <= now);
        if is_due && !matches!(self.role, Role::Leaving { .. }) {
            self.restart_at = None;
            *incarnations += 1;
            if let Err(error) = self.spawn_parent(app, launch, *incarnations) {
                tracing::error!(app = app.name(), %error, "app parent cannot be started");
                self.restart_at = Some(now + LONGEST_PAUSE);
            }
        }
    }

    /// Opens no more connections, and drops those that no worker has taken.
    pub(crate) fn stop_connecting(&self) {
        for vacancy in &self.vacancies {
            if let VacancyState::Opening(connecting) = vacancy {
                connecting.abort();
            }
        }
    }

    pub(crate) fn has_parent(&self) -> bool {
        self.parent.is_some()
    }

    /// Lets all workers leave: the parent forks no more, and a worker leaves when its connection
    /// ends.
    ///
    /// Connections are still opened, so that a worker that waits for its first one leaves too.
    /// Workers get no signal, because it would interrupt what their application waits for.
    pub(crate) fn quit(&self) {
        if let Some(parent) = &self.parent {
            parent.signal(Signal::QUIT);
        }
    }

    /// Tells the parent to end its workers and itself.
    pub(crate) fn terminate(&self) {
        if let Some(parent) = &self.parent {
            parent.signal(Signal::TERM);
        }
    }

    /// Kills the parent and its workers. Background processes of the application go on.
    pub(crate) async fn kill(&mut self, app: &App) {
        self.stop_connecting();
        if let Some(mut parent) = self.parent.take() {
            // The parent must end first, so that it does not fork other workers.
            parent.signal(Signal::KILL);
            if let Err(error) = parent.wait().await {
                tracing::error!(app = app.name(), %error, "app parent");
            }
            signal_workers(parent.pid(), &self.children, Signal::KILL);
        }
        app.disconnect_generation(self.number);
    }

    /// Asks a worker whose request took too long to log a stack trace.
    pub(crate) fn condemn_worker(&mut self, pid: u32) {
        self.condemned.insert(pid);
        self.signal_worker(pid, Signal::USR2);
    }

    /// Returns whether a worker is about to be killed.
    pub(crate) fn is_condemned(&self, pid: u32) -> bool {
        self.condemned.contains(&pid)
    }

    /// Kills a condemned worker if it is still there.
    pub(crate) fn kill_condemned(&self, pid: u32) {
        if self.is_condemned(pid) {
            self.signal_worker(pid, Signal::KILL);
        }
    }

    /// Signals a process, but only if the parent has forked it.
    pub(crate) fn signal_worker(&self, pid: u32, signal: Signal) {
        if let (true, Some(pid)) = (self.children.contains(&pid), Pid::from_raw(pid.cast_signed()))
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// Creates the ring of a generation. Without it, requests go over connections.
fn open_ring(app: &Arc<App>, generation: u64, loops: &[Handle]) -> Option<(Arc<Ring>, Collectors)> {
    let bytes = app.config().ring_bytes();
    if bytes == 0 || loops.len() > kirin_ring::MAX_LOOPS {
        return None;
    }
    let created =
        CREATE_RING.pass().and_then(|()| Ring::create(app.name(), generation, bytes, loops.len()));
    match created {
        Ok(ring) => {
            app.add_ring(&ring);
            let collectors = Collectors::start(app, &ring, loops);
            Some((ring, collectors))
        }
        Err(error) => {
            tracing::warn!(app = app.name(), %error, "no shared memory: requests go over sockets");
            None
        }
    }
}

/// The end of a parent.
pub(crate) struct ParentEnd {
    pub(crate) orphans: Orphans,
    pub(crate) reason: EndReason,
}

/// How a parent has ended.
pub(crate) struct EndReason {
    status: Result<ExitStatus, AppError>,
    /// The message that the parent had sent before.
    failure: Option<String>,
}

impl EndReason {
    fn status_text(&self) -> String {
        match &self.status {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// Returns the error for a generation that could not start.
    pub(crate) fn into_error(self, app: &App) -> AppError {
        let app = app.name().to_owned();
        match (self.failure, self.status) {
            (Some(message), _) => AppError::Load { app, message },
            (None, Ok(status)) => AppError::Ended { app, status },
            (None, Err(error)) => error,
        }
    }
}
