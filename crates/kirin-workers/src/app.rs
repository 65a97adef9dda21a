//! A running application: what the event loops share of it.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kirin_balance::ClientKey;
use kirin_cgi::{MetaVariables, RequestBlock};
use kirin_files::AppFiles;
use kirin_http::{
    Answer, BodyLength, ClientWatch, Method, NoRoom, Origin, RequestBody, RequestHead, Response,
    SpoolError, SpooledBody, StatusCode, Version, address_key,
};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use crate::config::AppConfig;
use crate::counters::{CounterValues, Counters};
use crate::error::AppError;
use crate::exchange::{Call, Failure, exchange, is_idempotent, is_waiting};
use crate::parsed::{self, WantedByWorkers};
use crate::pool::{Pool, Refused, Taken};
use crate::read_ahead::ReadAhead;
use crate::sendfile::SendfileRoots;
use crate::supervisor::{Event, Supervisor};
use crate::wear::Wear;
use crate::worker::{WorkerConnection, WorkerHandle};
use crate::worker_response::ProtocolError;

/// Workers at most that a request is tried on again after the first, as long as none of them has
/// read it.
const UNREAD_TRIES: u32 = 3;

/// An application and its workers. One for each application, shared by all event loops.
pub struct App {
    config: AppConfig,
    spool_directory: PathBuf,
    sendfile_roots: SendfileRoots,
    pool: Arc<Pool<WorkerConnection>>,
    /// Workers that have greeted, by process id.
    workers: Mutex<HashMap<u32, Arc<WorkerHandle>>>,
    /// What the front parses for them.
    wanted: WantedByWorkers,
    counters: Counters,
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
    /// Starts an application: its parent process, and a task on the current runtime that watches
    /// over it. Workers' connections are spread over `loops`, the runtimes that will call
    /// [`App::answer`].
    ///
    /// Returns when the process has been started; [`App::ready`] tells when the application is
    /// loaded.
    pub fn start(config: AppConfig, loops: Vec<Handle>) -> Result<Arc<Self>, AppError> {
        let sendfile_roots = SendfileRoots::open(&config.sendfile_roots)
            .map_err(|error| AppError::system(&config.name, "sendfile root", &error))?;
        let (supervisor, events) = mpsc::unbounded_channel();
        let spool_directory = config.spool_directory.clone().unwrap_or_else(std::env::temp_dir);
        let app = Arc::new(Self {
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
        });
        let loops = if loops.is_empty() { vec![Handle::current()] } else { loops };
        let supervisor = Supervisor::start(Arc::clone(&app), loops, events)?;
        tokio::spawn(supervisor.run());
        Ok(app)
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

    /// Answers one request. Call on an event loop, from a task of it; `files` is that loop's.
    pub fn answer(
        self: &Arc<Self>,
        request: &RequestHead<'_>,
        origin: Origin<'_>,
        files: &Rc<AppFiles>,
        meta: &MetaVariables<'_>,
    ) -> Answer {
        self.counters.requests.add(1);
        let Ok(mut block) = RequestBlock::encode(request, origin, meta) else {
            return Answer::Now(Response::error(StatusCode::BAD_REQUEST));
        };
        parsed::add_to_head(&mut block, request.query, self.wanted.get());
        let is_get = request.method == Method::GET;
        let is_head = request.method == Method::HEAD;
        let idempotent = is_idempotent(&request.method);
        let upgrade = request.field("upgrade").is_some()
            && request.version == Version::Http11
            && request.body == BodyLength::None;
        let files = Rc::clone(files);
        let call = Call { block, is_get, is_head, upgrade, informational: None, idempotent, files };
        let (app, address) = (Arc::clone(self), address_key(origin.peer));
        Answer::later(move |body| app.answer_later(call, address, body))
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

    async fn answer_later(
        self: Arc<Self>,
        mut call: Call,
        address: ClientKey,
        mut body: RequestBody,
    ) -> Response {
        call.informational = body.informational();
        let client = body.client();
        let share = body.share().clone();
        body.limit(self.config.body_limit_bytes);
        let body = match SpooledBody::read(&mut body, &self.spool_directory).await {
            Ok(body) => body,
            Err(error) => return self.refuse_body(&error),
        };
        if self.wanted.get().form
            && let SpooledBody::Memory { bytes: form, .. } = &body
            && !form.is_empty()
        {
            parsed::add_form(&mut call.block, form);
        }
        call.block.finish(body.length());
        let (mut tries, mut files_refused) = (0, false);
        loop {
            let connection = match self.take_worker(address, client.as_ref()).await {
                Ok(connection) => connection,
                Err(refused) => return self.refuse(refused),
            };
            let failure = match exchange(&self, connection, &call, &body, &share).await {
                Ok(response) => return response,
                Err(failure) => failure,
            };
            tries += 1;
            // A worker may be told to leave in the moment in which it is given a request, so that
            // more tries are allowed when the application has not seen it.
            let may_try = match failure {
                Failure::NotRead { .. } => tries <= UNREAD_TRIES,
                Failure::File { .. } => !std::mem::replace(&mut files_refused, true),
                _ => tries <= 1,
            };
            if may_try && failure.may_be_retried(&call) {
                self.counters.retried.add(1);
                match failure {
                    Failure::File { .. } => {
                        call.block.add("KIRIN_SENDFILE", "0");
                        call.block.finish(body.length());
                        self.log_failure(&failure, &call, "a worker is to send it itself");
                    }
                    // An everyday event when workers leave.
                    Failure::NotRead { pid } => {
                        tracing::debug!(
                            app = self.config.name,
                            pid,
                            "worker left before it read the request"
                        );
                    }
                    _ => self.log_failure(&failure, &call, "another worker tries"),
                }
                continue;
            }
            let counter = if matches!(failure, Failure::Overdue { .. }) {
                &self.counters.overdue
            } else {
                &self.counters.failed
            };
            counter.add(1);
            self.log_failure(&failure, &call, "request failed");
            return Response::error(failure.status());
        }
    }

    /// An idle worker, or the next that becomes idle when it is this request's turn. The turn does
    /// not come when the client goes before.
    async fn take_worker(
        &self,
        address: ClientKey,
        client: Option<&ClientWatch>,
    ) -> Result<WorkerConnection, Refused> {
        let here = std::thread::current().id();
        loop {
            let mut connection = match self.pool.take(here, address)? {
                Taken::Worker(connection) => connection,
                Taken::Wait(wait) => {
                    self.counters.queued.add(1);
                    match client {
                        None => wait.await?,
                        Some(client) => tokio::select! {
                            biased;
                            worker = wait => worker?,
                            () = client.gone() => return Err(Refused::ClientGone),
                        },
                    }
                }
            };
            if is_waiting(&mut connection).await {
                return Ok(connection);
            }
        }
    }

    fn refuse(&self, refused: Refused) -> Response {
        match refused {
            Refused::Full => self.counters.refused_full.add(1),
            Refused::WaitedTooLong => self.counters.refused_waited.add(1),
            Refused::Closed => {}
            Refused::ClientGone => {
                self.counters.clients_gone.add(1);
                // For the access log: nobody gets this response.
                return Response::error(client_closed_request());
            }
        }
        let mut response = Response::error(StatusCode::SERVICE_UNAVAILABLE);
        response.fields.push("Retry-After", "1");
        response
    }

    fn refuse_body(&self, error: &SpoolError) -> Response {
        if matches!(error, SpoolError::Spool { .. }) {
            self.counters.spool_failed.add(1);
            tracing::error!(app = self.config.name, %error, "request body is not taken");
        }
        error.response()
    }

    fn log_failure(&self, failure: &Failure, call: &Call, what: &str) {
        let value =
            |name| String::from_utf8_lossy(call.block.value(name).unwrap_or_default()).into_owned();
        let request = format!("{} {}", value("REQUEST_METHOD"), value("REQUEST_URI"));
        tracing::warn!(app = self.config.name, %failure, request, "{what}");
    }
}

/// 499, as nginx logs it: the client closed its connection before it had an answer.
fn client_closed_request() -> StatusCode {
    StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST)
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
