//! A running application: what the event loops share of it.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kirin_http::NoRoom;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use crate::config::AppConfig;
use crate::counters::{CounterValues, Counters};
use crate::error::AppError;
use crate::event::Event;
use crate::parsed::WantedByWorkers;
use crate::pool::Pool;
use crate::read_ahead::ReadAhead;
use crate::sendfile::SendfileRoots;
use crate::wear::Wear;
use crate::worker::{WorkerConnection, WorkerHandle};
use crate::worker_response::ProtocolError;

/// An application and its workers. One for each application, shared by all event loops.
pub struct App {
    config: AppConfig,
    pub(crate) spool_directory: PathBuf,
    sendfile_roots: SendfileRoots,
    pub(crate) pool: Arc<Pool<WorkerConnection>>,
    /// Workers that have greeted, by process id.
    workers: Mutex<HashMap<u32, Arc<WorkerHandle>>>,
    /// What the front parses for them.
    pub(crate) wanted: WantedByWorkers,
    pub(crate) counters: Counters,
    started: Instant,
    state: watch::Sender<AppState>,
    /// Reloads that have been asked for.
    reloads_asked: AtomicU64,
    /// How many of them have come to their end.
    reloads_done: watch::Sender<u64>,
    supervisor: mpsc::UnboundedSender<Event>,
}

/// Where an application is in its life.
#[derive(Clone, Debug)]
pub enum AppState {
    /// It is being loaded.
    Starting,
    /// A worker has taken a connection.
    Ready,
    /// It could not be started, and is not tried again.
    Failed(AppError),
    /// It has been stopped.
    Stopped,
}

impl App {
    /// Returns an application without workers. What happens to it is sent to `supervisor`.
    pub(crate) fn new(
        config: AppConfig,
        supervisor: mpsc::UnboundedSender<Event>,
    ) -> Result<Self, AppError> {
        let sendfile_roots = SendfileRoots::open(&config.sendfile_roots)
            .map_err(|error| AppError::system(&config.name, "sendfile root", &error))?;
        let spool_directory = config.spool_directory.clone().unwrap_or_else(std::env::temp_dir);
        Ok(Self {
            spool_directory,
            sendfile_roots,
            pool: Pool::new(config.queue_length),
            workers: Mutex::default(),
            wanted: WantedByWorkers::default(),
            counters: Counters::default(),
            started: Instant::now(),
            state: watch::Sender::new(AppState::Starting),
            reloads_asked: AtomicU64::new(0),
            reloads_done: watch::Sender::new(0),
            supervisor,
            config,
        })
    }

    /// Waits until a worker is there.
    pub async fn ready(&self) -> Result<(), AppError> {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| !matches!(state, AppState::Starting)).await;
        match state.as_deref() {
            Ok(AppState::Ready) => Ok(()),
            Ok(AppState::Failed(error)) => Err(error.clone()),
            _ => Err(AppError::Stopped { app: self.config.name.clone() }),
        }
    }

    /// Waits until the application has failed for good, which may never be.
    pub async fn failed(&self) -> AppError {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| matches!(state, AppState::Failed(_))).await;
        match state.as_deref() {
            Ok(AppState::Failed(error)) => error.clone(),
            _ => AppError::Stopped { app: self.config.name.clone() },
        }
    }

    /// Stops the application: no further request is taken, requests in progress may end within
    /// `limit`, then every process is killed. Returns when none is left.
    pub async fn stop(&self, limit: Duration) {
        let (done, stopped) = oneshot::channel();
        if self.supervisor.send(Event::Stop { limit, done }).is_ok() {
            // An error means that the supervisor has ended, which is what we wait for.
            let _ = stopped.await;
        }
    }

    /// Loads the application anew, beside the one that runs. It takes over when all of its workers
    /// are there; if it cannot be loaded, or not within the start limit, the old one goes on and
    /// the log says why.
    pub fn reload(&self) {
        self.reloads_asked.fetch_add(1, Ordering::Relaxed);
        // An error means that the application has ended.
        let _ = self.supervisor.send(Event::Reload);
    }

    /// Waits until the reloads that have been asked for are done, or have failed.
    pub async fn reloaded(&self) {
        let asked = self.reloads_asked.load(Ordering::Relaxed);
        // The sender is here.
        let _ = self.reloads_done.subscribe().wait_for(|done| *done >= asked).await;
    }

    /// One worker more, up to [`MAX_WORKERS`](crate::MAX_WORKERS).
    pub fn add_worker(&self) {
        let _ = self.supervisor.send(Event::Resize { more: true });
    }

    /// One worker less, down to one. It finishes its request.
    pub fn remove_worker(&self) {
        let _ = self.supervisor.send(Event::Resize { more: false });
    }

    /// The application's name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Where it is in its life.
    pub fn state(&self) -> AppState {
        self.state.borrow().clone()
    }

    /// What has happened since the start.
    pub fn counters(&self) -> CounterValues {
        self.counters.values()
    }

    /// Workers that wait for a request now.
    pub fn idle_workers(&self) -> usize {
        self.pool.idle()
    }

    /// Requests that wait for a worker now.
    pub fn waiting_requests(&self) -> usize {
        self.pool.waiting()
    }

    /// Process ids of the workers that have a connection.
    pub fn worker_pids(&self) -> Vec<u32> {
        self.workers.lock().keys().copied().collect()
    }
}

/// What the exchange and the pump need.
impl App {
    pub(crate) fn release(&self, connection: WorkerConnection) {
        self.pool.release(connection);
    }

    /// The worker has said that it leaves.
    pub(crate) fn count_leaving(&self) {
        self.counters.workers_left.add(1);
    }

    pub(crate) fn begin_deadline(&self, worker: &WorkerHandle) {
        worker.begin(self.now_ms() + self.config.request_deadline.as_millis() as u64);
    }

    pub(crate) fn sendfile_roots(&self) -> &SendfileRoots {
        &self.sendfile_roots
    }

    pub(crate) fn log_slow_cleanup(&self, connection: &WorkerConnection) {
        self.counters.overdue_cleanups.add(1);
        let pid = connection.handle.pid;
        tracing::warn!(
            app = self.config.name,
            pid,
            "cleanup after a response took too long; the worker is killed"
        );
    }

    /// Moves what has been read of a response to its spool file; false if that cannot be written,
    /// so that the worker waits for the client.
    pub(crate) fn spill_response(&self, ahead: &mut ReadAhead) -> Result<bool, NoRoom> {
        let spilled = ahead.spill(&self.spool_directory)?;
        if let Err(error) = &spilled {
            let directory = self.spool_directory.display();
            self.counters.spool_failed.add(1);
            tracing::error!(app = self.config.name, %directory, %error, "no spool file: a slow client holds a worker");
        }
        Ok(spilled.is_ok())
    }

    pub(crate) fn log_cut(&self, connection: &WorkerConnection, error: &ProtocolError) {
        let pid = connection.handle.pid;
        tracing::warn!(app = self.config.name, pid, %error, "response was cut");
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

/// What the supervisor needs.
impl App {
    pub(crate) fn config(&self) -> &AppConfig {
        &self.config
    }

    pub(crate) fn events(&self) -> mpsc::UnboundedSender<Event> {
        self.supervisor.clone()
    }

    /// Keeps the worker in mind from its greeting to its end.
    pub(crate) fn remember_worker(&self, worker: &Arc<WorkerHandle>) {
        let mut workers = self.workers.lock();
        workers.insert(worker.pid, Arc::clone(worker));
        self.wanted.set(workers.values().map(|worker| worker.wanted));
    }

    pub(crate) fn set_reloads_done(&self, done: u64) {
        self.reloads_done.send_replace(done);
    }

    pub(crate) fn set_ready(&self) {
        self.state.send_replace(AppState::Ready);
    }

    /// Has workers that have served long enough leave.
    pub(crate) fn retire_worn_workers(&self, now: Instant) {
        if self.config.max_age.is_none() && self.config.max_memory_bytes.is_none() {
            return;
        }
        let workers: Vec<_> =
            self.workers.lock().values().filter(|worker| !worker.is_leaving()).cloned().collect();
        let mut retired = false;
        for worker in workers {
            let Some(wear) = worker.wear(now, self.config.max_memory_bytes) else { continue };
            let (app, pid) = (&self.config.name, worker.pid);
            match wear {
                Wear::Age(age) => {
                    self.counters.replaced_by_age.add(1);
                    tracing::debug!(app, pid, ?age, "worker is replaced because of its age");
                }
                Wear::Memory(bytes) => {
                    self.counters.replaced_by_memory.add(1);
                    tracing::info!(
                        app,
                        pid,
                        megabytes = bytes >> 20,
                        "worker is replaced because of its memory"
                    );
                }
            }
            worker.leave();
            retired = true;
        }
        if retired {
            drop(self.pool.remove_idle(|connection| connection.handle.is_leaving()));
        }
    }

    /// The workers of a generation get no further request; the idle ones are let go.
    pub(crate) fn retire_generation(&self, generation: u64) {
        let workers = self.workers.lock();
        workers
            .values()
            .filter(|worker| worker.generation == generation)
            .for_each(|worker| worker.leave());
        drop(workers);
        drop(self.pool.remove_idle(|connection| connection.handle.is_leaving()));
    }

    /// Workers that have lost their parent get no further request; the idle ones are let go. A
    /// process that one of them has left behind may keep its socket open, so that its end is not
    /// seen.
    pub(crate) fn retire_workers(&self, pids: &HashSet<u32>) {
        let workers = self.workers.lock();
        pids.iter().filter_map(|pid| workers.get(pid)).for_each(|worker| worker.leave());
        drop(workers);
        drop(self.pool.remove_idle(|connection| connection.handle.is_leaving()));
    }

    /// Ends the connections that a generation still has.
    pub(crate) fn cut_generation(&self, generation: u64) {
        self.workers.lock().retain(|_, worker| {
            let other = worker.generation != generation;
            if !other {
                worker.cut();
            }
            other
        });
    }

    /// The worker's process has ended. Its socket may still be open in a process that it left
    /// behind.
    pub(crate) fn forget_worker(&self, pid: u32) {
        self.counters.workers_ended.add(1);
        let mut workers = self.workers.lock();
        if let Some(worker) = workers.remove(&pid) {
            worker.cut();
        }
        if !workers.is_empty() {
            self.wanted.set(workers.values().map(|worker| worker.wanted));
        }
        drop(workers);
        drop(self.pool.remove_idle(|connection| connection.handle.pid == pid));
    }

    /// The workers whose request is overdue; each is told once.
    pub(crate) fn condemn_overdue(&self) -> Vec<Arc<WorkerHandle>> {
        let now = self.now_ms();
        self.workers
            .lock()
            .values()
            .filter(|worker| worker.condemn_if_overdue(now))
            .cloned()
            .collect()
    }

    pub(crate) fn expire_waiting(&self) {
        let expired = self.pool.expire(Instant::now(), self.config.queue_wait);
        if expired > 0 {
            tracing::warn!(
                app = self.config.name,
                expired,
                "requests waited too long for a worker"
            );
        }
    }

    /// Ends the application's service: requests that wait and come are refused, idle workers let
    /// go.
    pub(crate) fn close(&self, state: AppState) {
        self.state.send_replace(state);
        drop(self.pool.close());
    }

    /// Ends every worker's connection, busy ones too.
    pub(crate) fn cut_all(&self) {
        self.workers.lock().drain().for_each(|(_, worker)| worker.cut());
    }
}
