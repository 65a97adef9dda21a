//! Watches over one application: starts its parent, keeps a connection open for each worker, ends what takes too long.
//!
//! One task a running application. Everything that happens reaches it as an [`Event`] through one channel.

use crate::adapter::Adapter;
use crate::app::{App, AppState};
use crate::control::{ControlLine, describe_wait_status};
use crate::error::AppError;
use crate::parent::{Parent, WorkerSocket, group_exists, signal_group};
use crate::worker::connect;
use rustix::process::{Pid, Signal};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// A parent that lived shorter than this is restarted with a pause, which doubles from the first value to the second.
const SHORT_LIFE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Pause after a connection that no worker took.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// How long a parent that has closed its control channel may take to end.
const EXIT_LIMIT: Duration = Duration::from_secs(2);

/// How long workers whose parent has been killed may take to end.
const ORPHAN_LIMIT: Duration = Duration::from_secs(10);

/// What happens in the life of an application.
pub(crate) enum Event {
    /// The parent said something.
    Control { life: u64, line: ControlLine },
    /// The parent's end of the control channel is closed: it has ended.
    ControlClosed { life: u64 },
    /// The connection in a slot is gone.
    Lost { slot: usize },
    /// [`App::stop`].
    Stop { limit: Duration, done: oneshot::Sender<()> },
}

/// The state of the task.
pub(crate) struct Supervisor {
    app: Arc<App>,
    events: mpsc::UnboundedReceiver<Event>,
    loops: Vec<Handle>,
    adapter: Adapter,
    socket: WorkerSocket,
    parent: Option<Parent>,
    /// Counts parents, so that what an earlier one said is not taken for the present one's.
    life: u64,
    born: Instant,
    /// Ends with an error if the application has not been ready by then.
    start_deadline: Option<Instant>,
    /// When to start the next parent.
    restart_at: Option<Instant>,
    pause: Duration,
    /// Why the application cannot be loaded, as it said itself.
    failure: Option<String>,
    /// Processes that the parent has forked: the only ones that are ever killed by number.
    children: HashSet<u32>,
    /// Groups of parents that have died, and when what is left of them is killed.
    orphans: Vec<(Pid, Instant)>,
    /// Connections that wait for a worker, by slot.
    connecting: Vec<Option<JoinHandle<()>>>,
}

impl Supervisor {
    /// Starts the first parent.
    pub(crate) fn start(
        app: Arc<App>,
        loops: Vec<Handle>,
        events: mpsc::UnboundedReceiver<Event>,
    ) -> Result<Self, AppError> {
        let config = app.config();
        let adapter = Adapter::find(config)?;
        let socket = WorkerSocket::bind(config)?;
        let now = Instant::now();
        let start_deadline = Some(now + config.start_limit);
        let connecting = (0..config.workers).map(|_| None).collect();
        let mut supervisor = Self {
            app,
            events,
            loops,
            adapter,
            socket,
            parent: None,
            life: 0,
            born: now,
            start_deadline,
            restart_at: None,
            pause: FIRST_PAUSE,
            failure: None,
            children: HashSet::new(),
            orphans: Vec::new(),
            connecting,
        };
        supervisor.spawn_parent()?;
        Ok(supervisor)
    }

    /// Until the application is stopped or cannot be started.
    pub(crate) async fn run(mut self) {
        for slot in 0..self.connecting.len() {
            self.open(slot);
        }
        let mut tick = tokio::time::interval(self.tick());
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(Event::Control { life, line }) if life == self.life => self.heard(line),
                    Some(Event::ControlClosed { life }) if life == self.life => {
                        if let Err(error) = self.parent_ended().await {
                            return self.fail(error).await;
                        }
                    }
                    Some(Event::Lost { slot }) => self.open(slot),
                    Some(Event::Stop { limit, done }) => {
                        self.stop(limit, AppState::Stopped).await;
                        // The socket's directory goes before anyone is told that all is gone.
                        drop(self);
                        let _ = done.send(());
                        return;
                    }
                    Some(Event::Control { .. } | Event::ControlClosed { .. }) => {}
                    None => return,
                },
                _ = tick.tick() => {
                    if let Err(error) = self.keep_house() {
                        return self.fail(error).await;
                    }
                }
            }
        }
    }

    /// How often time limits are looked at: often enough for the shortest.
    fn tick(&self) -> Duration {
        let config = self.app.config();
        let shortest = config.request_deadline.min(config.queue_wait).min(config.start_limit);
        (shortest / 4).clamp(Duration::from_millis(20), Duration::from_secs(1))
    }

    fn spawn_parent(&mut self) -> Result<(), AppError> {
        self.life += 1;
        self.born = Instant::now();
        self.children.clear();
        let (config, files) = (self.app.config(), self.app.takes_files());
        let parent = Parent::spawn(config, &self.adapter, &self.socket, files, self.life, self.app.events())?;
        tracing::info!(app = config.name, pid = parent.pid().as_raw_nonzero(), "app parent started");
        self.parent = Some(parent);
        Ok(())
    }

    /// Opens a connection on the slot's home loop. It waits there until a worker is free to take it.
    fn open(&mut self, slot: usize) {
        let Some(connecting) = self.connecting.get_mut(slot) else { return };
        let home = &self.loops[slot % self.loops.len()];
        let (app, socket) = (Arc::clone(&self.app), self.socket.path().to_owned());
        *connecting = Some(home.spawn(async move {
            let slot = app.slot(slot);
            match connect(&socket).await {
                Ok(worker) => app.welcome(worker, slot),
                Err(error) => {
                    tracing::debug!(app = app.name(), %error, "no worker took the connection");
                    // The slot is reported as lost only then.
                    tokio::time::sleep(CONNECT_PAUSE).await;
                    drop(slot);
                }
            }
        }));
    }

    fn heard(&mut self, line: ControlLine) {
        let app = self.app.name();
        match line {
            ControlLine::Ready => {
                tracing::info!(app, seconds = self.born.elapsed().as_secs_f32(), "app is loaded")
            }
            ControlLine::Failed { message } => self.failure = Some(message),
            ControlLine::Started { pid } => {
                self.children.insert(pid);
            }
            ControlLine::Exited { pid, status } => {
                self.children.remove(&pid);
                self.app.forget_worker(pid);
                let status_text = describe_wait_status(status);
                if status == 0 {
                    tracing::debug!(app, pid, status = status_text, "worker ended");
                } else {
                    tracing::warn!(app, pid, status = status_text, "worker ended");
                }
            }
            ControlLine::Unknown => {}
        }
    }

    /// The parent has ended by itself or has been killed. Before the application was ready that is an error, later it is
    /// started again.
    async fn parent_ended(&mut self) -> Result<(), AppError> {
        let Some(mut parent) = self.parent.take() else { return Ok(()) };
        let name = self.app.name().to_owned();
        let group = parent.pid();
        let ended = match tokio::time::timeout(EXIT_LIMIT, parent.wait()).await {
            Ok(ended) => ended,
            Err(_) => {
                parent.signal_group(Signal::KILL);
                parent.wait().await
            }
        };
        // Workers that are left finish their request. Nobody else can have the group's number while there are any.
        signal_group(group, Signal::TERM);
        let status = ended.map_err(|error| AppError::system(&name, "app parent", &error))?;
        self.orphans.push((group, Instant::now() + ORPHAN_LIMIT));
        if self.is_starting() {
            return Err(match self.failure.take() {
                Some(message) => AppError::Load { app: name, message },
                None => AppError::Ended { app: name, status },
            });
        }
        let failure = self.failure.take();
        self.pause = match self.born.elapsed() {
            lived if lived > SHORT_LIFE => FIRST_PAUSE,
            _ => (self.pause * 2).min(LONGEST_PAUSE),
        };
        self.restart_at = Some(Instant::now() + self.pause);
        tracing::error!(app = name, %status, failure, pause = ?self.pause, "app parent ended; it is started again");
        Ok(())
    }

    fn is_starting(&self) -> bool {
        matches!(self.app.state(), AppState::Starting)
    }

    /// What takes too long is ended here.
    fn keep_house(&mut self) -> Result<(), AppError> {
        let now = Instant::now();
        if self.start_deadline.is_some_and(|deadline| deadline < now) {
            self.start_deadline = None;
            if self.is_starting() {
                let limit = self.app.config().start_limit;
                return Err(AppError::TooSlow { app: self.app.name().to_owned(), limit });
            }
        }
        if self.restart_at.is_some_and(|at| at <= now) {
            self.restart_at = None;
            if let Err(error) = self.spawn_parent() {
                tracing::error!(app = self.app.name(), %error, "app parent cannot be started");
                self.restart_at = Some(now + LONGEST_PAUSE);
            }
        }
        for worker in self.app.condemn_overdue() {
            self.kill_worker(worker.pid);
            worker.cut();
        }
        self.app.expire_waiting();
        self.orphans.retain(|(group, deadline)| {
            group_exists(*group) && (*deadline > now || !signal_group(*group, Signal::KILL))
        });
        Ok(())
    }

    fn kill_worker(&self, pid: u32) {
        if let (true, Some(pid)) = (self.children.contains(&pid), Pid::from_raw(pid.cast_signed())) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }

    async fn fail(&mut self, error: AppError) {
        tracing::error!(%error, "app is not running");
        self.stop(Duration::ZERO, AppState::Failed(error)).await;
    }

    /// Ends every process, by force after `limit`.
    async fn stop(&mut self, limit: Duration, state: AppState) {
        for connecting in self.connecting.iter().flatten() {
            connecting.abort();
        }
        self.app.close(state);
        if let Some(mut parent) = self.parent.take() {
            parent.signal(Signal::TERM);
            if tokio::time::timeout(limit, self.events_until_closed()).await.is_err() {
                tracing::warn!(app = self.app.name(), "workers are killed: they took too long to stop");
            }
            parent.signal_group(Signal::KILL);
            if let Err(error) = parent.wait().await {
                tracing::error!(app = self.app.name(), %error, "app parent");
            }
        }
        self.app.cut_all();
        for (group, _) in self.orphans.drain(..) {
            signal_group(group, Signal::KILL);
        }
    }

    /// Waits for the parent's end and goes on to kill what is overdue.
    async fn events_until_closed(&mut self) {
        let mut tick = tokio::time::interval(self.tick());
        loop {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(Event::ControlClosed { life }) if life == self.life => return,
                    Some(Event::Control { life, line }) if life == self.life => self.heard(line),
                    Some(Event::Stop { done, .. }) => drop(done),
                    Some(_) => {}
                    None => return,
                },
                _ = tick.tick() => {
                    for worker in self.app.condemn_overdue() {
                        self.kill_worker(worker.pid);
                        worker.cut();
                    }
                }
            }
        }
    }
}
