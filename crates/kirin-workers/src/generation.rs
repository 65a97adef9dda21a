//! A generation of an application: its code loaded once, the parent process, and a connection for
//! each worker.
//!
//! The supervisor owns one that serves, and beside it one that starts and those that leave. What
//! happens to a generation by itself is here; which of them gets the requests is the supervisor's
//! affair.

use std::collections::HashSet;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::control::{ControlLine, describe_wait_status};
use crate::error::AppError;
use crate::event::Event;
use crate::launch::Launch;
use crate::parent::{Birth, Parent, WorkerSocket, has_workers, signal_workers};
use crate::worker::{Slot, WorkerConnection, connect};

/// A parent that lived shorter than this is restarted with a pause, which doubles from the first
/// value to the second.
const SHORT_LIFE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Pause after a connection that no worker took.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// How long a parent that has closed its control channel may take to end.
const EXIT_LIMIT: Duration = Duration::from_secs(2);

/// How long the end of the control channel may come behind the end of the parent.
const LAST_WORDS_LIMIT: Duration = Duration::from_secs(1);

/// Where a generation is in its life.
pub(crate) enum Role {
    /// It is being loaded. It takes over with all these connections, or is given up at the
    /// deadline.
    Starting { greeted: Vec<WorkerConnection>, deadline: Instant },
    /// Requests go to its workers.
    Serving,
    /// Its workers finish their requests and leave; what is left at the deadline is killed.
    Leaving { deadline: Instant },
}

/// Code that was loaded once.
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) role: Role,
    /// Of the parent that runs or ran last.
    pub(crate) life: u64,
    parent: Option<Parent>,
    socket: WorkerSocket,
    born: Instant,
    /// When the parent was found to have ended without a word.
    ended_at: Option<Instant>,
    /// When to start the next parent.
    restart_at: Option<Instant>,
    pause: Duration,
    /// Why the application cannot be loaded, as it said itself.
    failure: Option<String>,
    /// Processes that the parent has forked: the only ones that are ever killed by number.
    children: HashSet<u32>,
    /// Workers among them whose request took too long.
    condemned: HashSet<u32>,
    /// Workers that the parent is to keep.
    workers: usize,
    /// Workers that it was started with.
    workers_at_birth: usize,
    /// Workers that it keeps by what it has said; `None` while it cannot be told another number.
    told_workers: Option<usize>,
    /// Connections to workers, by slot.
    slots: Vec<SlotState>,
}

/// What is in a slot.
enum SlotState {
    /// No connection, because there are enough.
    Closed,
    /// A connection, or the task that waits for a worker to take one.
    Open(JoinHandle<()>),
}

impl Generation {
    /// Starts the parent. Connections are opened with [`Generation::open_missing`].
    pub(crate) fn start(app: &App, launch: &Launch, birth: Birth) -> Result<Self, AppError> {
        let config = app.config();
        let now = Instant::now();
        let mut generation = Self {
            number: birth.generation,
            role: Role::Starting { greeted: Vec::new(), deadline: now + config.start_limit },
            life: birth.life,
            parent: None,
            socket: launch.socket(config, birth.generation)?,
            born: now,
            ended_at: None,
            restart_at: None,
            pause: FIRST_PAUSE,
            failure: None,
            children: HashSet::new(),
            condemned: HashSet::new(),
            workers: birth.workers,
            workers_at_birth: birth.workers,
            told_workers: None,
            slots: Vec::new(),
        };
        generation.spawn_parent(app, launch, birth.life)?;
        Ok(generation)
    }

    fn spawn_parent(&mut self, app: &App, launch: &Launch, life: u64) -> Result<(), AppError> {
        self.life = life;
        self.born = Instant::now();
        self.children.clear();
        self.condemned.clear();
        self.workers_at_birth = self.workers;
        self.told_workers = None;
        let birth = Birth { generation: self.number, life, workers: self.workers };
        let parent =
            launch.parent(app.config(), &self.socket, app.sendfile_roots(), birth, app.events())?;
        let pid = parent.pid().as_raw_nonzero();
        tracing::info!(app = app.name(), generation = self.number, pid, "app parent started");
        self.parent = Some(parent);
        Ok(())
    }

    /// Opens a connection for each worker that has none.
    pub(crate) fn open_missing(&mut self, app: &Arc<App>, loops: &[Handle]) {
        let is_closed = |slot: &SlotState| matches!(slot, SlotState::Closed);
        let mut missing = (self.workers + self.slots.iter().filter(|slot| is_closed(slot)).count())
            .saturating_sub(self.slots.len());
        for index in 0..self.slots.len() + missing {
            if missing > 0 && self.slots.get(index).is_none_or(is_closed) {
                let open = SlotState::Open(self.connect(index, app, loops));
                match self.slots.get_mut(index) {
                    Some(slot) => *slot = open,
                    None => self.slots.push(open),
                }
                missing -= 1;
            }
        }
    }

    /// The connection in a slot is gone; another takes its place if one is wanted.
    pub(crate) fn lost(&mut self, slot: usize, app: &Arc<App>, loops: &[Handle]) {
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = SlotState::Closed;
        }
        self.open_missing(app, loops);
    }

    /// Changes the number of workers.
    pub(crate) fn resize(&mut self, workers: usize, app: &Arc<App>, loops: &[Handle]) {
        self.workers = workers;
        self.open_missing(app, loops);
        self.tell_workers();
    }

    /// Tells the parent to keep another number of workers. Signals of one kind are not counted, so
    /// that each waits until the parent has answered the one before.
    fn tell_workers(&mut self) {
        if matches!(self.role, Role::Leaving { .. }) {
            return;
        }
        let (Some(parent), Some(told)) = (&self.parent, self.told_workers) else { return };
        if told != self.workers {
            parent.signal(if told < self.workers { Signal::TTIN } else { Signal::TTOU });
            self.told_workers = None;
        }
    }

    /// Opens a connection on the slot's home loop. It waits there until a worker is free to take
    /// it.
    fn connect(&self, slot: usize, app: &Arc<App>, loops: &[Handle]) -> JoinHandle<()> {
        let home = &loops[slot % loops.len()];
        let slot = Slot { generation: self.number, index: slot, lost: app.events() };
        let (app, socket) = (Arc::clone(app), self.socket.path().to_owned());
        home.spawn(async move {
            match connect(&socket).await {
                Ok(worker) => {
                    tracing::debug!(
                        app = app.name(),
                        pid = worker.greeting.pid,
                        adapter = worker.greeting.adapter,
                        "worker is there"
                    );
                    let connection =
                        Box::new(WorkerConnection::new(worker, slot, app.config().max_age));
                    // Nobody listens when the application is being stopped.
                    let _ = app.events().send(Event::Greeted { connection });
                }
                Err(error) => {
                    tracing::debug!(app = app.name(), %error, "no worker took the connection");
                    // The slot is reported as lost only then.
                    tokio::time::sleep(CONNECT_PAUSE).await;
                    drop(slot);
                }
            }
        })
    }

    /// What the parent says.
    pub(crate) fn heard(&mut self, app: &App, line: ControlLine) {
        let (name, generation) = (app.name(), self.number);
        match line {
            ControlLine::Ready => {
                let seconds = self.born.elapsed().as_secs_f32();
                tracing::info!(app = name, generation, seconds, "app is loaded");
                // Only now does it listen to signals for sure.
                self.told_workers = Some(self.workers_at_birth);
                self.tell_workers();
            }
            ControlLine::Workers { count } => {
                self.told_workers = Some(count);
                self.tell_workers();
            }
            ControlLine::Failed { message } => self.failure = Some(message),
            ControlLine::Started { pid } => {
                self.children.insert(pid);
            }
            ControlLine::Exited { pid, status } => {
                self.children.remove(&pid);
                app.forget_worker(pid);
                if let Role::Starting { greeted, .. } = &mut self.role {
                    greeted.retain(|connection| connection.handle.pid != pid);
                }
                let text = describe_wait_status(status);
                // What we have brought about ourselves is no news.
                let expected = self.condemned.remove(&pid)
                    || status == 0
                    || status == Signal::TERM.as_raw() && matches!(self.role, Role::Leaving { .. });
                if expected {
                    tracing::debug!(app = name, generation, pid, status = text, "worker ended");
                } else {
                    tracing::warn!(app = name, generation, pid, status = text, "worker ended");
                }
            }
            ControlLine::Unknown => {}
        }
    }

    /// Whether the parent has ended while something that the application has started in the
    /// background keeps the control channel open.
    pub(crate) fn has_ended_unheard(&mut self, now: Instant) -> bool {
        if !self.parent.as_mut().is_some_and(Parent::has_ended) {
            self.ended_at = None;
            return false;
        }
        // What it said last may still be on its way.
        *self.ended_at.get_or_insert(now) + LAST_WORDS_LIMIT <= now
    }

    /// The parent's end of the control channel is closed: waits for its end. Workers may be left.
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
        // Workers that are left finish their request.
        let orphans = Orphans { group, workers: std::mem::take(&mut self.children) };
        app.retire_workers(&orphans.workers);
        orphans.signal(Signal::TERM);
        let status = ended.map_err(|error| AppError::system(app.name(), "app parent", &error));
        Some(ParentEnd { orphans, reason: EndReason { status, failure: self.failure.take() } })
    }

    /// Has a parent that ended by itself started again, after a pause.
    pub(crate) fn restart_later(&mut self, app: &App, end: &EndReason) {
        self.pause = match self.born.elapsed() {
            lived if lived > SHORT_LIFE => FIRST_PAUSE,
            _ => (self.pause * 2).min(LONGEST_PAUSE),
        };
        self.restart_at = Some(Instant::now() + self.pause);
        let (status, failure) = (end.status_text(), &end.failure);
        tracing::error!(app = app.name(), status, failure, pause = ?self.pause, "app parent ended; it is started again");
    }

    /// Starts a parent again when it is time to.
    pub(crate) fn restart_if_due(
        &mut self,
        app: &App,
        launch: &Launch,
        lives: &mut u64,
        now: Instant,
    ) {
        if self.restart_at.is_some_and(|at| at <= now) {
            self.restart_at = None;
            *lives += 1;
            if let Err(error) = self.spawn_parent(app, launch, *lives) {
                tracing::error!(app = app.name(), %error, "app parent cannot be started");
                self.restart_at = Some(now + LONGEST_PAUSE);
            }
        }
    }

    /// Opens no more connections and gives up those that no worker has taken.
    pub(crate) fn stop_connecting(&self) {
        for slot in &self.slots {
            if let SlotState::Open(connecting) = slot {
                connecting.abort();
            }
        }
    }

    pub(crate) fn has_parent(&self) -> bool {
        self.parent.is_some()
    }

    /// Has workers leave by themselves: the parent forks no more, and a worker whose connection
    /// ends leaves. Connections go on being opened, so that one that waits for its first is found
    /// and let go as well. No signal reaches a worker, which would interrupt what its application
    /// is waiting for.
    pub(crate) fn let_go(&self) {
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

    /// Ends the parent and the workers. What the application has started in the background goes on.
    pub(crate) async fn kill(&mut self, app: &App) {
        self.stop_connecting();
        if let Some(mut parent) = self.parent.take() {
            // Before its workers, so that it does not fork others.
            parent.signal(Signal::KILL);
            if let Err(error) = parent.wait().await {
                tracing::error!(app = app.name(), %error, "app parent");
            }
            signal_workers(parent.pid(), &self.children, Signal::KILL);
        }
        app.cut_generation(self.number);
    }

    /// Asks a worker whose request took too long to log where it is.
    pub(crate) fn condemn_worker(&mut self, pid: u32) {
        self.condemned.insert(pid);
        self.signal_worker(pid, Signal::USR2);
    }

    /// Whether a worker is about to be killed.
    pub(crate) fn is_condemned(&self, pid: u32) -> bool {
        self.condemned.contains(&pid)
    }

    /// Kills a condemned worker if it is still there.
    pub(crate) fn kill_condemned(&self, pid: u32) {
        if self.is_condemned(pid) {
            self.signal_worker(pid, Signal::KILL);
        }
    }

    /// Only if it is one of ours.
    fn signal_worker(&self, pid: u32, signal: Signal) {
        if let (true, Some(pid)) = (self.children.contains(&pid), Pid::from_raw(pid.cast_signed()))
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// Workers whose parent has ended.
pub(crate) struct Orphans {
    /// The process group of the parent.
    group: Pid,
    /// By process id.
    workers: HashSet<u32>,
}

impl Orphans {
    /// Returns whether there were any.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        signal_workers(self.group, &self.workers, signal)
    }

    pub(crate) fn are_left(&self) -> bool {
        has_workers(self.group, &self.workers)
    }

    /// None of them is left.
    pub(crate) fn forget(&self, app: &App) {
        self.workers.iter().for_each(|pid| app.forget_worker(*pid));
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
    /// What it said before.
    failure: Option<String>,
}

impl EndReason {
    fn status_text(&self) -> String {
        match &self.status {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// Why a generation that was starting does not.
    pub(crate) fn into_error(self, app: &App) -> AppError {
        let app = app.name().to_owned();
        match (self.failure, self.status) {
            (Some(message), _) => AppError::Load { app, message },
            (None, Ok(status)) => AppError::Ended { app, status },
            (None, Err(error)) => error,
        }
    }
}
