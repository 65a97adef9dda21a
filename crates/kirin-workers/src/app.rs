//! A running application, as the event loops and the supervisor share it.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kirin_client_bytes::NoRoom;
use kirin_files::SendfileRoots;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use crate::capacity::Capacity;
use crate::config::AppConfig;
use crate::counters::{CounterValues, Counters};
use crate::deadlines::Deadlines;
use crate::error::AppError;
use crate::event::Event;
use crate::known_workers::KnownWorkers;
use crate::parsed::WantedByWorkers;
use crate::profile::RunningProfile;
use crate::read_ahead::ReadAhead;
use crate::replacement::ReplaceReason;
use crate::ring::{RingOwner, RingStatus};
use crate::slow_requests::{SlowRequest, SlowRequests};
use crate::stacks::{StackError, StackReader};
use crate::trial::{Pools, Trials};
use crate::worker::{Place, Ring, WorkerConnection};
use crate::worker_handle::WorkerHandle;
use crate::worker_process::WorkerProcess;
use crate::worker_response::ProtocolError;

/// An application and its workers, shared by all event loops.
pub struct App {
    config: AppConfig,
    /// The name, for the steps of requests.
    label: Arc<str>,
    pub(crate) spool_directory: PathBuf,
    sendfile_roots: SendfileRoots,
    pub(crate) pools: Pools,
    pub(crate) trials: Trials,
    /// The rings of generations whose workers are not all gone, oldest first.
    rings: Mutex<Vec<Arc<Ring>>>,
    /// Workers that have greeted.
    pub(crate) workers: KnownWorkers,
    pub(crate) deadlines: Deadlines,
    /// Whether the workers that serve can take more connections, and nobody has asked for them.
    may_grow: AtomicBool,
    /// The parts of a request that Kirin parses for the workers.
    pub(crate) wanted: WantedByWorkers,
    pub(crate) counters: Counters,
    /// The last slow requests.
    pub(crate) slow: SlowRequests,
    /// The profile that is being made.
    pub(crate) running_profile: Mutex<Option<RunningProfile>>,
    /// How many workers a generation is to have.
    wanted_workers: AtomicUsize,
    /// How many the configuration says.
    configured_workers: AtomicUsize,
    state: watch::Sender<AppState>,
    /// Reloads that have been requested.
    reloads_asked: AtomicU64,
    /// Reloads that have succeeded or failed.
    reloads_done: watch::Sender<ReloadsDone>,
    supervisor: mpsc::UnboundedSender<Event>,
}

/// The reloads that are done.
#[derive(Debug, Default)]
struct ReloadsDone {
    number: u64,
    /// Why the last one has failed.
    failure: Option<String>,
}

/// The state of an application.
#[derive(Clone, Debug)]
pub enum AppState {
    /// The application is being loaded.
    Starting,
    /// A worker has taken a connection.
    Ready,
    /// The application could not be started. Kirin does not try again.
    Failed(AppError),
    /// The application has been stopped.
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
            label: config.name.as_str().into(),
            spool_directory,
            sendfile_roots,
            pools: Pools::new(config.queue_length),
            trials: Trials::new(config.trial),
            rings: Mutex::default(),
            workers: KnownWorkers::default(),
            deadlines: Deadlines::new(config.request_deadline),
            may_grow: AtomicBool::new(false),
            wanted: WantedByWorkers::default(),
            counters: Counters::default(),
            slow: SlowRequests::default(),
            running_profile: Mutex::default(),
            wanted_workers: AtomicUsize::new(config.workers),
            configured_workers: AtomicUsize::new(config.workers),
            state: watch::Sender::new(AppState::Starting),
            reloads_asked: AtomicU64::new(0),
            reloads_done: watch::Sender::default(),
            supervisor,
            config,
        })
    }

    /// Waits for the first worker.
    pub async fn ready(&self) -> Result<(), AppError> {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| !matches!(state, AppState::Starting)).await;
        match state.as_deref() {
            Ok(AppState::Ready) => Ok(()),
            Ok(AppState::Failed(error)) => Err(error.clone()),
            _ => Err(AppError::Stopped { app: self.config.name.clone() }),
        }
    }

    /// Waits until the application has failed for good. That may never happen.
    pub async fn failed(&self) -> AppError {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| matches!(state, AppState::Failed(_))).await;
        match state.as_deref() {
            Ok(AppState::Failed(error)) => error.clone(),
            _ => AppError::Stopped { app: self.config.name.clone() },
        }
    }

    /// Stops the application. It takes no more requests, and requests in progress may end within
    /// `limit`. Then all processes are killed. Returns when none is left.
    pub async fn stop(&self, limit: Duration) {
        let (done, stopped) = oneshot::channel();
        if self.supervisor.send(Event::Stop { limit, done }).is_ok() {
            // An error means that the supervisor has ended.
            let _ = stopped.await;
        }
    }

    /// Loads the application again, while the present generation serves. The new generation takes
    /// over when all its workers have greeted. If it cannot be loaded within the start limit, the
    /// present one keeps serving and the log says why.
    pub fn reload(&self) {
        self.reloads_asked.fetch_add(1, Ordering::Relaxed);
        // An error means that the application has ended.
        let _ = self.supervisor.send(Event::Reload);
    }

    /// Waits until the requested reloads have succeeded or failed. Returns why the last one has
    /// failed, if it has.
    pub async fn reloaded(&self) -> Option<String> {
        let asked = self.reloads_asked.load(Ordering::Relaxed);
        let mut done = self.reloads_done.subscribe();
        // This cannot fail, because the sender is in this struct.
        let done = done.wait_for(|done| done.number >= asked).await;
        done.ok()?.failure.clone()
    }

    /// Adds a worker, up to [`MAX_WORKERS`](crate::MAX_WORKERS).
    pub fn add_worker(&self) {
        let _ = self.supervisor.send(Event::Resize { more: true });
    }

    /// Removes a worker when it has finished its request. At least one stays.
    pub fn remove_worker(&self) {
        let _ = self.supervisor.send(Event::Resize { more: false });
    }

    /// Gives the application this number of workers, from 1 to [`MAX_WORKERS`](crate::MAX_WORKERS).
    pub fn set_workers(&self, workers: usize) {
        let _ = self.supervisor.send(Event::SetWorkers { workers });
    }

    /// Gives the application the number of workers that another configuration says.
    pub fn configure_workers(&self, workers: usize) {
        self.configured_workers.store(workers, Ordering::Relaxed);
        self.set_workers(workers);
    }

    /// Returns how many workers the application is to have, and how many its configuration says.
    pub fn wanted_workers(&self) -> (usize, usize) {
        let load = |number: &AtomicUsize| number.load(Ordering::Relaxed);
        (load(&self.wanted_workers), load(&self.configured_workers))
    }

    pub(crate) fn set_wanted_workers(&self, workers: usize) {
        self.wanted_workers.store(workers, Ordering::Relaxed);
    }

    /// Returns the application's name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Returns the name, shared with the steps of requests.
    pub fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Returns how long a request may take.
    pub fn request_deadline(&self) -> Duration {
        self.config.request_deadline
    }

    /// Returns the application's state.
    pub fn state(&self) -> AppState {
        self.state.borrow().clone()
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> CounterValues {
        self.counters.values()
    }

    /// Returns how many workers are idle.
    pub fn idle_workers(&self) -> usize {
        let (now, rings) = (Instant::now(), self.rings());
        let free = rings.iter().flat_map(|ring| ring.free_workers(now));
        let in_rings = free.filter(|(_, silent)| silent.is_none()).count();
        let over_connections: HashSet<_> = self.pools.idle_workers().into_iter().collect();
        over_connections.len() + in_rings
    }

    /// Returns how many requests wait for a worker.
    pub fn waiting_requests(&self) -> usize {
        let in_rings: usize = self.rings().iter().map(|ring| ring.waiting()).sum();
        self.pools.waiting() + in_rings
    }

    /// Returns the rings of the generations whose workers are not all gone, the oldest first.
    /// Workers that are in none of them get their requests over connections.
    pub fn ring_status(&self) -> Vec<RingStatus> {
        self.rings().iter().map(|ring| ring.status()).collect()
    }

    /// Returns the last requests that took longer than `slow`, the latest first.
    pub fn slow_requests(&self) -> Vec<SlowRequest> {
        self.slow.list()
    }

    /// Returns the process ids of the workers with a connection.
    pub fn worker_pids(&self) -> Vec<u32> {
        self.workers.pids()
    }
}

/// Functions for the exchange and the response pump.
impl App {
    pub(crate) fn release(&self, mut connection: WorkerConnection) {
        connection.end_request();
        match connection.seat.clone() {
            None => self.pools.release(Capacity::Connection(connection)),
            Some(seat) => seat.ring.park(self, seat.number, connection),
        }
    }

    /// Counts a worker that has said that it leaves. It gets no further request, on no connection.
    pub(crate) fn note_leaving(&self, worker: &WorkerProcess) {
        if !worker.is_concurrent() {
            self.counters.workers_left.add(1);
        } else if !worker.is_leaving() {
            self.counters.workers_left.add(1);
            worker.leave();
            self.let_leaving_go();
        }
    }

    /// Notes that a worker has ended a connection in place of reading a request from it.
    pub(crate) fn note_unread(&self, worker: &WorkerProcess) {
        // Otherwise the request would be tried again on the next connection to this worker.
        if worker.is_concurrent() {
            self.note_leaving(worker);
        }
    }

    pub(crate) fn sendfile_roots(&self) -> &SendfileRoots {
        &self.sendfile_roots
    }

    /// Moves the bytes read from a response into its spool file. Returns false if the file cannot
    /// be written; then the worker must wait for the client.
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
}

impl RingOwner<WorkerConnection> for App {
    fn release_place(&self, place: Place) {
        self.pools.release(Capacity::Ring(place));
    }

    fn remove_places(&self, is_surplus: impl Fn(&Place) -> bool) {
        self.pools.remove_idle(|capacity| match capacity {
            Capacity::Ring(place) => is_surplus(place),
            Capacity::Connection(_) => false,
        });
    }

    fn queue_length(&self) -> usize {
        self.config.queue_length
    }

    fn set_queue_length(&self, generation: u64, length: usize) {
        self.pools.set_queue_length(generation, length);
    }

    fn log_slow_cleanup(&self, pid: u32) {
        self.counters.overdue_cleanups.add(1);
        tracing::warn!(
            app = self.config.name,
            pid,
            "cleanup after a response took too long; the worker is killed"
        );
    }

    fn log_silent(&self, pid: u32) {
        self.counters.silent_workers.add(1);
        tracing::warn!(
            app = self.config.name,
            pid,
            "worker has not looked for a request in time; it is killed"
        );
    }
}

/// Functions for profiles and slow requests.
impl App {
    /// Returns the workers that are not idle.
    pub(crate) fn busy_workers(&self) -> Vec<Arc<WorkerProcess>> {
        let mut busy = self.workers.with_connections();
        busy.retain(|(_, connections)| connections.iter().any(|one| one.current.is_running()));
        let mut busy: Vec<_> = busy.into_iter().map(|(process, _)| process).collect();
        for ring in self.rings() {
            let at_work = ring.at_work();
            busy.extend(at_work.into_iter().map(|(worker, ..)| Arc::clone(&worker.process)));
        }
        busy
    }

    /// Opens the stack of a worker.
    pub(crate) fn stack_reader(&self, worker: &WorkerProcess) -> Result<StackReader, StackError> {
        StackReader::open(worker.pid, worker.stacks.as_ref(), self.config.directory.as_deref())
    }
}

/// Functions for the supervisor and the status.
impl App {
    pub(crate) fn config(&self) -> &AppConfig {
        &self.config
    }

    pub(crate) fn events(&self) -> mpsc::UnboundedSender<Event> {
        self.supervisor.clone()
    }

    /// Registers the connection of a worker that has greeted.
    pub(crate) fn register_worker(&self, worker: &Arc<WorkerHandle>) {
        self.workers.register(worker);
        self.set_wanted(&self.workers.processes());
    }

    fn set_wanted(&self, workers: &[Arc<WorkerProcess>]) {
        self.wanted.set(workers.iter().map(|worker| worker.wanted));
    }

    /// Says that the workers that serve can take more connections.
    pub(crate) fn allow_growth(&self) {
        self.may_grow.store(true, Ordering::Relaxed);
    }

    /// Asks for more connections to the workers that serve, because a request finds none free.
    pub(crate) fn ask_for_connections(&self) {
        if self.may_grow.load(Ordering::Relaxed) && self.may_grow.swap(false, Ordering::Relaxed) {
            // An error means that the application has ended.
            let _ = self.supervisor.send(Event::Crowded);
        }
    }

    /// Notes that so many reloads are done, and why the last has failed, if it has.
    pub(crate) fn set_reloads_done(&self, number: u64, failure: Option<String>) {
        self.reloads_done.send_replace(ReloadsDone { number, failure });
    }

    pub(crate) fn set_ready(&self) {
        self.state.send_replace(AppState::Ready);
    }

    /// Replaces workers that are too old or use too much memory. Returns those that need a signal
    /// to notice it, because all their connections may be in use for long.
    pub(crate) fn retire_old_workers(&self, now: Instant) -> Vec<Arc<WorkerProcess>> {
        let mut signalled = Vec::new();
        if self.config.max_age.is_none() && self.config.max_memory_bytes.is_none() {
            return signalled;
        }
        let mut workers = self.workers.processes();
        workers.retain(|worker| !worker.is_leaving());
        let mut retired = false;
        for worker in workers {
            let Some(reason) = worker.replace_reason(now, self.config.max_memory_bytes) else {
                continue;
            };
            let (app, pid) = (&self.config.name, worker.pid);
            match reason {
                ReplaceReason::Age(age) => {
                    self.counters.replaced_by_age.add(1);
                    tracing::debug!(app, pid, ?age, "worker is replaced because of its age");
                }
                ReplaceReason::Memory(bytes) => {
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
            if worker.is_concurrent() {
                signalled.push(worker);
            }
        }
        if retired {
            self.let_leaving_go();
        }
        signalled
    }

    /// Sends no more requests to the workers of a generation, and lets its idle workers go.
    pub(crate) fn retire_generation(&self, generation: u64) {
        let workers = self.workers.processes();
        workers
            .iter()
            .filter(|worker| worker.generation == generation)
            .for_each(|worker| worker.leave());
        for ring in self.rings().iter().filter(|ring| ring.generation() == generation) {
            ring.retire(self);
        }
        self.let_leaving_go();
    }

    /// Lets the idle ones go of the workers that are marked as leaving.
    pub(crate) fn let_leaving_go(&self) {
        self.pools.let_leaving_go();
        self.rings().iter().for_each(|ring| ring.let_leaving_go());
    }

    /// Returns the rings of generations whose workers are not all gone.
    pub(crate) fn rings(&self) -> Vec<Arc<Ring>> {
        self.rings.lock().clone()
    }

    pub(crate) fn add_ring(&self, ring: &Arc<Ring>) {
        self.rings.lock().push(Arc::clone(ring));
    }

    /// Ends the ring of a generation whose processes have ended.
    fn end_rings(&self, is_ended: impl Fn(&Ring) -> bool) {
        let ended: Vec<_> = self.rings.lock().extract_if(.., |ring| is_ended(ring)).collect();
        ended.into_iter().for_each(|ring| ring.end(self));
    }

    /// Sends no more requests to workers that have lost their parent, and lets the idle ones go.
    ///
    /// A background process that a worker has started may keep the worker's socket open. So the end
    /// of the connection may not be seen.
    pub(crate) fn retire_workers(&self, pids: &HashSet<u32>) {
        self.workers.let_leave(pids);
        self.let_leaving_go();
    }

    /// Ends the connections of a generation.
    pub(crate) fn disconnect_generation(&self, generation: u64) {
        self.workers.remove(|worker| worker.generation == generation);
        self.end_rings(|ring| ring.generation() == generation);
    }

    /// Unregisters a worker whose process has ended. A background process of it may keep its socket
    /// open.
    pub(crate) fn unregister_worker(&self, pid: u32) {
        self.counters.workers_ended.add(1);
        self.workers.remove(|worker| worker.pid == pid);
        let left = self.workers.processes();
        if !left.is_empty() {
            self.set_wanted(&left);
        }
        let is_lost = |capacity: &Capacity| match capacity {
            Capacity::Connection(connection) => connection.handle.pid == pid,
            Capacity::Ring(_) => false,
        };
        self.pools.remove_idle(is_lost);
        self.rings().iter().for_each(|ring| ring.process_ended(self, pid));
    }

    /// Returns the workers whose request is overdue. Each worker is returned once.
    pub(crate) fn condemn_overdue(&self) -> Vec<Arc<WorkerHandle>> {
        let now = Instant::now();
        let limit = self.config.request_deadline;
        let mut condemned = self.deadlines.overdue(self.workers.connections());
        for ring in self.rings() {
            condemned.extend(ring.condemn_overdue(self, limit));
            condemned.extend(ring.condemn_silent(self, now, limit));
        }
        condemned
    }

    /// Returns the workers at rings that still sleep some time after they were told to end.
    pub(crate) fn condemn_sleepers(&self) -> Vec<Arc<WorkerHandle>> {
        self.rings().iter().flat_map(|ring| ring.condemn_sleepers()).collect()
    }

    /// Starts the deadline of workers whose connection has ended. They accept another one within
    /// it, or end.
    pub(crate) fn begin_deadline_of_disconnected(&self) {
        self.workers.forget_ended_connections();
        self.deadlines.begin_of_disconnected(&self.workers.connections());
    }

    pub(crate) fn expire_waiting(&self) {
        let (now, limit) = (Instant::now(), self.config.queue_wait);
        let rings = self.rings();
        let in_rings: usize = rings.iter().map(|ring| ring.expire(self, now, limit)).sum();
        let expired = self.pools.expire(now, limit) + in_rings;
        if expired > 0 {
            tracing::warn!(
                app = self.config.name,
                expired,
                "requests waited too long for a worker"
            );
        }
    }

    /// Ends the service: refuses present and future requests, and lets idle workers go.
    pub(crate) fn close(&self, state: AppState) {
        self.state.send_replace(state);
        self.pools.close();
        self.rings().iter().for_each(|ring| ring.retire(self));
    }

    /// Ends the connections of all workers, including busy ones.
    pub(crate) fn disconnect_all(&self) {
        self.workers.remove(|_| true);
        self.end_rings(|_| true);
    }
}
