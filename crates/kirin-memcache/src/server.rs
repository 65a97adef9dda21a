//! The state that all loops and listeners of one store share.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kirin_store::Store;

use crate::codec::Limits;
use crate::counters::{Counters, read};
use crate::snapshot_file::SnapshotFile;

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

    /// Counts one more connection, unless there are too many. Returns whether it did.
    pub(crate) fn admit_connection(&self) -> bool {
        let count = &self.open_connections;
        let is_admitted =
            count.fetch_add(1, Ordering::Relaxed) < self.options.connection_limit as u64;
        if !is_admitted {
            count.fetch_sub(1, Ordering::Relaxed);
        }
        is_admitted
    }

    /// Counts one connection less.
    pub(crate) fn release_connection(&self) {
        self.open_connections.fetch_sub(1, Ordering::Relaxed);
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
