//! The state that all loops and listeners of one store share.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use kirin_origin::StoreOrigin;
use kirin_store::{Store, StoreStats};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::codec::CodecLimits;
use crate::counters::{MemcachedCounters, read};
use crate::pause::Pause;
use crate::prefix_statistics::PrefixStatistics;
use crate::snapshot_file::SnapshotFile;
use crate::watch::{ObservedBits, Watchers};

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The settings that the codec needs.
    pub limits: CodecLimits,
    /// The most memory in bytes that `cache_memlimit` may give the store. Default: the machine's
    /// physical memory.
    pub memory_ceiling_bytes: usize,
    /// The most connections at the same time, over all loops. Default 1024.
    pub connection_limit: usize,
    /// The time after which a silent connection is closed. Default none.
    pub idle_timeout: Option<Duration>,
    /// The time before its expiry at which one client is made to recache an item. See
    /// `docs/memcached.md`, "Stampedes". Default none.
    pub stampede_guard: Option<Duration>,
    /// With 1, errors of connections are logged; with 2, also commands. The `verbosity` command
    /// changes it.
    pub verbosity: u32,
    /// The byte that ends the prefix of a key (`stats detail`). Default `:`.
    pub prefix_delimiter: u8,
    /// Whether commands are counted by prefix from the start, as after `stats detail on`. Default
    /// no.
    pub counts_prefixes: bool,
    /// The file that the `snapshot` command writes.
    pub snapshot: Option<Arc<SnapshotFile>>,
    /// The server of whose items the store keeps copies. Default none: the store has the items.
    pub origin: Option<Arc<StoreOrigin>>,
    /// The settings that only `stats settings` shows.
    pub description: Description,
}

/// Returns the physical memory of the machine in bytes.
fn physical_memory_bytes() -> usize {
    let system = rustix::system::sysinfo();
    (system.totalram as usize).saturating_mul(system.mem_unit.max(1) as usize)
}

/// The settings of a server as `stats settings` shows them.
#[derive(Clone, Debug)]
pub struct Description {
    /// The TCP port, or 0 without TCP.
    pub tcp_port: u16,
    /// The addresses, separated by commas.
    pub interfaces: Option<String>,
    /// The path of the unix socket.
    pub unix_socket: Option<String>,
    /// The access mode of the unix socket.
    pub unix_mode: u32,
    /// The number of event loops.
    pub threads: usize,
    /// The most connections that wait to be accepted.
    pub backlog: i32,
    /// Whether items are evicted to make room for others.
    pub evict: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            limits: CodecLimits::default(),
            memory_ceiling_bytes: physical_memory_bytes(),
            connection_limit: 1024,
            idle_timeout: None,
            stampede_guard: None,
            verbosity: 0,
            prefix_delimiter: b':',
            counts_prefixes: false,
            snapshot: None,
            origin: None,
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

/// The state that all loops and listeners of one store share.
#[derive(Debug)]
pub struct MemcachedServer {
    store: Arc<Store>,
    options: ServerOptions,
    /// The counters of each loop. Loops do not write to each other's cache lines.
    loop_counters: Mutex<Vec<Arc<MemcachedCounters>>>,
    /// The stores on which commands are carried out whose items are at the origin.
    scratches: Mutex<Vec<Arc<Store>>>,
    /// The task that carries out a `flush_all` with a delay at the origin.
    delayed_flush: Mutex<Option<AbortHandle>>,
    open_connections: AtomicU64,
    verbosity: AtomicU32,
    observed: Arc<ObservedBits>,
    watchers: Arc<Watchers>,
    prefixes: PrefixStatistics,
    started: Instant,
    pause: Pause,
    /// Where clients go that another process serves from now on.
    successor: OnceLock<mpsc::UnboundedSender<OwnedFd>>,
    has_successor: watch::Sender<bool>,
}

impl MemcachedServer {
    /// Begins a pause: commands of all clients wait, and nobody is accepted. An event loop may
    /// still carry out the commands that it has begun.
    pub fn pause(&self) {
        self.pause.begin();
    }

    /// Ends the pause.
    pub fn resume(&self) {
        self.pause.end();
    }

    /// Lets the clients leave to another process, each as soon as it is between two commands. Their
    /// sockets come out of `successor`. This holds for clients that come from now on, too.
    pub fn hand_over(&self, successor: mpsc::UnboundedSender<OwnedFd>) {
        // There is one successor.
        _ = self.successor.set(successor);
        self.has_successor.send_replace(true);
    }

    /// Returns whether clients leave to another process.
    #[inline]
    pub fn has_successor(&self) -> bool {
        self.successor.get().is_some()
    }

    /// Waits until clients leave to another process.
    pub(crate) async fn successor_comes(&self) {
        let mut has_successor = self.has_successor.subscribe();
        if has_successor.wait_for(|has_successor| *has_successor).await.is_err() {
            std::future::pending().await
        }
    }

    /// Gives the socket of a client to the other process.
    pub(crate) fn give_away(&self, client: OwnedFd) {
        if let Some(successor) = self.successor.get() {
            // Without a receiver the client has to connect again.
            _ = successor.send(client);
        }
    }

    /// Waits for the end of a pause, if there is one.
    #[inline]
    pub(crate) fn poll_unpaused(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.pause.poll_over(cx)
    }

    /// Creates a server of `store`.
    pub fn new(store: Arc<Store>, options: ServerOptions) -> Arc<MemcachedServer> {
        let observed = Arc::<ObservedBits>::default();
        observed.log_commands(options.verbosity > 1);
        observed.count_prefixes(options.counts_prefixes);
        Arc::new(MemcachedServer {
            watchers: Watchers::new(Arc::clone(&store), Arc::clone(&observed)),
            observed,
            prefixes: PrefixStatistics::new(options.prefix_delimiter),
            store,
            loop_counters: Mutex::default(),
            scratches: Mutex::default(),
            delayed_flush: Mutex::default(),
            open_connections: AtomicU64::new(0),
            verbosity: AtomicU32::new(options.verbosity),
            pause: Pause::default(),
            successor: OnceLock::new(),
            has_successor: watch::Sender::new(false),
            started: Instant::now(),
            options,
        })
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the options.
    pub fn options(&self) -> &ServerOptions {
        &self.options
    }

    /// Returns the sum of the counters of all loops.
    pub fn total_counters(&self) -> MemcachedCounters {
        let total = MemcachedCounters::default();
        for counters in self.loops().iter() {
            total.add_all(counters);
        }
        total
    }

    /// Returns the number of open connections.
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
        let open = self.open_connections.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(open > 0, "a connection ends that was not counted");
    }

    /// Creates the counters for one more loop.
    pub(crate) fn loop_counters(&self) -> Arc<MemcachedCounters> {
        let counters = Arc::<MemcachedCounters>::default();
        self.loops().push(Arc::clone(&counters));
        counters
    }

    /// Adds a store whose commands are counted.
    pub(crate) fn add_scratch(&self, store: Arc<Store>) {
        self.scratches.lock().unwrap_or_else(PoisonError::into_inner).push(store);
    }

    /// Puts a `flush_all` in the place of one that still waits for its time.
    pub(crate) fn replace_delayed_flush(&self, flush: Option<AbortHandle>) {
        let mut waiting = self.delayed_flush.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(replaced) = std::mem::replace(&mut *waiting, flush) {
            replaced.abort();
        }
    }

    /// Returns the counters of the store, with the commands whose items are at the origin.
    pub(crate) fn store_stats(&self) -> StoreStats {
        let mut stats = self.store.stats();
        for scratch in self.scratches.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            stats.add_writes(&scratch.stats());
        }
        stats
    }

    pub(crate) fn reset_counters(&self) {
        for scratch in self.scratches.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            scratch.reset_stats();
        }
        for counters in self.loops().iter() {
            counters.reset();
        }
    }

    fn loops(&self) -> MutexGuard<'_, Vec<Arc<MemcachedCounters>>> {
        // A panic cannot have damaged a list of counters.
        self.loop_counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the log level that is in force.
    pub fn verbosity(&self) -> u32 {
        self.verbosity.load(Ordering::Relaxed)
    }

    pub(crate) fn set_verbosity(&self, level: u32) {
        self.verbosity.store(level, Ordering::Relaxed);
        self.observed.log_commands(level > 1);
    }

    /// Returns the bits of what is observed at present.
    pub(crate) fn observed(&self) -> &Arc<ObservedBits> {
        &self.observed
    }

    /// Returns the watchers.
    pub(crate) fn watchers(&self) -> &Arc<Watchers> {
        &self.watchers
    }

    /// Returns the counts by prefix.
    pub(crate) fn prefixes(&self) -> &PrefixStatistics {
        &self.prefixes
    }

    /// Returns the time since the server was created.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}
