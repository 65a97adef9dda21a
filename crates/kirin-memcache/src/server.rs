//! Listening: accepts clients on an event loop and serves them there.
//!
//! [`serve`] is spawned once for each listener on each loop. What the loops
//! share is the [`Server`].

use std::cell::RefCell;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kirin_store::Store;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::AbortHandle;

use crate::codec::Limits;
use crate::connection::{Closed, Connection, LoopBuffers};
use crate::counters::{Counters, add, read};
use crate::execute::Executor;
use crate::session::Ending;
use crate::snapshot_file::SnapshotFile;

/// How long accepting rests when the process has no file descriptor or memory for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a listener is told.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Sizes and switches of the protocol.
    pub limits: Limits,
    /// The most memory in bytes that `cache_memlimit` may give the store. Default: the machine's
    /// physical memory.
    pub memory_ceiling_bytes: usize,
    /// The most connections at a time, over all loops. Default 1024.
    pub connection_limit: usize,
    /// Connections that were silent for so long are closed. Default none.
    pub idle_timeout: Option<Duration>,
    /// See `docs/memcached.md`, "Stampedes". Default none.
    pub stampede_guard: Option<Duration>,
    /// 1 logs what goes wrong with connections, 2 commands too; `verbosity` changes it.
    pub verbosity: u32,
    /// Where the `snapshot` command writes to.
    pub snapshot: Option<Arc<SnapshotFile>>,
    /// For `stats settings` only.
    pub description: Description,
}

/// The memory of the machine.
fn physical_memory_bytes() -> usize {
    let system = rustix::system::sysinfo();
    (system.totalram as usize).saturating_mul(system.mem_unit.max(1) as usize)
}

/// How the server was started, as `stats settings` shows it.
#[derive(Clone, Debug)]
pub struct Description {
    /// The TCP port, 0 without TCP.
    pub tcp_port: u16,
    /// The addresses, comma-separated.
    pub interfaces: Option<String>,
    /// The path of the unix socket.
    pub unix_socket: Option<String>,
    /// Its mode.
    pub unix_mode: u32,
    /// Event loops.
    pub threads: usize,
    /// Connections that may wait to be accepted.
    pub backlog: i32,
    /// Whether items leave to make room for others.
    pub evict: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            limits: Limits::default(),
            memory_ceiling_bytes: physical_memory_bytes(),
            connection_limit: 1024,
            idle_timeout: None,
            stampede_guard: None,
            verbosity: 0,
            snapshot: None,
            description: Description {
                tcp_port: 0,
                interfaces: None,
                unix_socket: None,
                unix_mode: 0o700,
                threads: 1,
                backlog: 1024,
                evict: true,
            },
        }
    }
}

/// What all loops and listeners of one store share.
#[derive(Debug)]
pub struct Server {
    store: Arc<Store>,
    options: ServerOptions,
    /// One a loop, so that loops do not write to each other's cache lines.
    loop_counters: Mutex<Vec<Arc<Counters>>>,
    open_connections: AtomicU64,
    verbosity: AtomicU32,
    started: Instant,
}

impl Server {
    /// A server of `store`.
    pub fn new(store: Arc<Store>, options: ServerOptions) -> Arc<Server> {
        Arc::new(Server {
            store,
            loop_counters: Mutex::default(),
            open_connections: AtomicU64::new(0),
            verbosity: AtomicU32::new(options.verbosity),
            started: Instant::now(),
            options,
        })
    }

    /// The store behind it.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// How it was set up.
    pub fn options(&self) -> &ServerOptions {
        &self.options
    }

    /// What all loops counted.
    pub fn total_counters(&self) -> Counters {
        let total = Counters::default();
        for counters in self.loops().iter() {
            total.add_all(counters);
        }
        total
    }

    /// Connections open now.
    pub fn open_connections(&self) -> u64 {
        read(&self.open_connections)
    }

    /// Counters for one more loop.
    pub(crate) fn loop_counters(&self) -> Arc<Counters> {
        let counters = Arc::<Counters>::default();
        self.loops().push(Arc::clone(&counters));
        counters
    }

    pub(crate) fn reset_counters(&self) {
        for counters in self.loops().iter() {
            counters.reset();
        }
    }

    fn loops(&self) -> MutexGuard<'_, Vec<Arc<Counters>>> {
        // A list of counters is as good after a panic as before it.
        self.loop_counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present log level.
    pub fn verbosity(&self) -> u32 {
        self.verbosity.load(Ordering::Relaxed)
    }

    pub(crate) fn set_verbosity(&self, level: u32) {
        self.verbosity.store(level, Ordering::Relaxed);
    }

    /// Since it was made.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A bound socket of either kind.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A unix socket.
    Unix(UnixListener),
}

/// An accepted socket of either kind.
enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp(listener) => {
                listener.accept().await.map(|(stream, _)| Accepted::Tcp(stream))
            }
            Listener::Unix(listener) => {
                listener.accept().await.map(|(stream, _)| Accepted::Unix(stream))
            }
        }
    }
}

/// Serves the clients of `listener` until `shutdown` completes, then closes their connections.
///
/// To be run where `spawn_local` works.
pub async fn serve(listener: Listener, server: Arc<Server>, shutdown: impl Future<Output = ()>) {
    let executor = Rc::new(Executor::new(server));
    let buffers = Rc::new(LoopBuffers::new());
    let open = Rc::new(OpenConnections::default());
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            // A mistake in admitting one connection must not end the accepting of others.
            Ok(accepted) => {
                _ = catch_unwind(AssertUnwindSafe(|| admit(accepted, &executor, &buffers, &open)));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                add(&executor.counters().listen_disabled_num, 1);
                tracing::warn!(%error, "cannot accept memcached clients, pausing");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    open.close_all();
}

/// Begins to serve a client, unless there are too many.
fn admit(
    accepted: Accepted,
    executor: &Rc<Executor>,
    buffers: &Rc<LoopBuffers>,
    open: &Rc<OpenConnections>,
) {
    let server = executor.server();
    let count = &server.open_connections;
    if count.fetch_add(1, Ordering::Relaxed) >= server.options.connection_limit as u64 {
        count.fetch_sub(1, Ordering::Relaxed);
        return refuse(accepted, executor);
    }
    add(&executor.counters().total_connections, 1);
    let seat = Seat { number: open.take(), open: Rc::clone(open), executor: Rc::clone(executor) };
    let (number, buffers) = (seat.number, Rc::clone(buffers));
    let task = match accepted {
        Accepted::Tcp(stream) => {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "cannot set TCP_NODELAY");
            }
            tokio::task::spawn_local(converse(stream, seat, buffers))
        }
        Accepted::Unix(stream) => tokio::task::spawn_local(converse(stream, seat, buffers)),
    };
    open.enter(number, task.abort_handle());
}

/// The tasks of a loop's connections, to be ended with it. A `JoinSet` does the same for 100 bytes
/// a connection, this for 16.
#[derive(Debug, Default)]
struct OpenConnections {
    tasks: RefCell<Vec<Option<AbortHandle>>>,
    vacant: RefCell<Vec<usize>>,
}

impl OpenConnections {
    /// The number of a free place.
    fn take(&self) -> usize {
        self.vacant.borrow_mut().pop().unwrap_or_else(|| {
            let mut tasks = self.tasks.borrow_mut();
            tasks.push(None);
            tasks.len() - 1
        })
    }

    fn enter(&self, number: usize, task: AbortHandle) {
        if let Some(place) = self.tasks.borrow_mut().get_mut(number) {
            *place = Some(task);
        }
    }

    fn leave(&self, number: usize) {
        let left = self.tasks.borrow_mut().get_mut(number).and_then(Option::take);
        self.vacant.borrow_mut().push(number);
        // Not while the list is borrowed: it may hold the last reference to the task.
        drop(left);
    }

    fn close_all(&self) {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        tasks.into_iter().flatten().for_each(|task| task.abort());
    }
}

/// A connection's place, held for as long as it lives.
struct Seat {
    number: usize,
    open: Rc<OpenConnections>,
    executor: Rc<Executor>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.open.leave(self.number);
        self.executor.server().open_connections.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    seat: Seat,
    buffers: Rc<LoopBuffers>,
) {
    let mut connection = Connection::new(stream);
    let closed = connection.run(&seat.executor, &buffers).await;
    match &closed {
        Closed::ByClient | Closed::Ended(Ending::Quit) => {}
        // A client set to the wrong protocol sees only closed connections: the log has to say why.
        Closed::Ended(Ending::Binary) => tracing::warn!("memcached client refused: {closed}"),
        _ if seat.executor.server().verbosity() > 0 => {
            tracing::info!("memcached connection closed: {closed}")
        }
        _ => {}
    }
}

/// Tells a client that there are too many, in memcached's words.
fn refuse(accepted: Accepted, executor: &Executor) {
    let rejected = &executor.counters().rejected_connections;
    add(rejected, 1);
    if read(rejected) == 1 {
        tracing::warn!(
            limit = executor.server().options().connection_limit,
            "memcached connection limit reached"
        );
    }
    const LINE: &[u8] = b"ERROR Too many open connections\r\n";
    // The socket's buffer is empty, so the line goes in at once; if not, the client is gone anyway.
    let sent = match accepted {
        Accepted::Tcp(stream) => stream.into_std().and_then(|mut stream| stream.write(LINE)),
        Accepted::Unix(stream) => stream.into_std().and_then(|mut stream| stream.write(LINE)),
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "a refused memcached client was gone already");
    }
}

/// Errors of `accept` that say nothing about the next connection (accept(2), "Error handling").
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}
