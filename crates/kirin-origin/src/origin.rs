//! An origin: the server behind a store, as the rest of the program sees it.
//!
//! The store is a near cache of the server. A hit never comes here. A miss asks the server
//! ([`StoreOrigin::load`]) and keeps a copy, which the server reports when it changes. A write is
//! done when the server has it ([`StoreOrigin::write`], [`StoreOrigin::purge`]).
//!
//! [`StoreOrigin::run`] keeps the connection, on a thread of its own. Commands are sent from any
//! thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use arc_swap::ArcSwapOption;
use kirin_store::{Invalidation, Now, Store, TAG_LIMIT_BYTES};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::absent_keys::AbsentKeys;
use crate::address::Topology;
use crate::config::OriginConfig;
use crate::connection::Push;
use crate::counters::{OriginCounters, add};
use crate::encoding::UNREADABLE;
use crate::engine_clock::EngineClock;
use crate::error::OriginError;
use crate::names::Name;
use crate::numbers::Numbers;
use crate::page_begin::PageBegin;
use crate::records::RecordWatches;
use crate::sentinel::Sentinels;
use crate::server_facts::ServersRun;
use crate::servers::Servers;
use crate::state::OriginState;
use crate::turns::{Turn, Turns};

/// The most commands that wait for an answer of the server. The next one fails at once.
const MOST_IN_FLIGHT: usize = 4096;

/// The most keys that are read at once: their items may have a megabyte each. The next one waits.
pub(crate) const MOST_KEYS_IN_FLIGHT: usize = 64;

/// A server behind a store.
pub struct StoreOrigin {
    pub(crate) config: OriginConfig,
    /// The Sentinels that name the server, if the address has any.
    pub(crate) sentinels: Option<Sentinels>,
    pub(crate) store: Arc<Store>,
    pub(crate) numbers: Numbers,
    pub(crate) absent_keys: AbsentKeys,
    pub(crate) clock: Mutex<Option<EngineClock>>,
    /// The last version that this machine has given to a write.
    last_version: AtomicU64,
    /// The greatest version that this machine has seen on the server.
    seen_version: AtomicU64,
    pub(crate) state: Mutex<OriginState>,
    pub(crate) counters: OriginCounters,
    servers: ArcSwapOption<Servers>,
    in_flight: Semaphore,
    /// The number of the present or the last connection.
    pub(crate) epoch: AtomicU64,
    /// The numbers on the server have changed, and were not read yet.
    pub(crate) numbers_are_due: AtomicBool,
    /// Wakes the task of [`StoreOrigin::run`]: something is due, or the connection has ended.
    pub(crate) wake: Notify,
    /// The run of the servers that the last connection was to.
    pub(crate) last_run: Mutex<Option<ServersRun>>,
    /// The keys that are being read.
    reads_in_flight: Semaphore,
    /// Writers of the same key on this machine take turns.
    write_turns: Turns,
    /// So do readers, so that one of them asks. They do not wait for writers.
    read_turns: Turns,
    /// Those that wait for changes of records.
    pub(crate) record_watches: RecordWatches,
    /// One task at a time reads the numbers.
    pub(crate) reading_numbers: tokio::sync::Mutex<()>,
}

impl StoreOrigin {
    /// Creates the origin of a store. It is away until [`StoreOrigin::run`] has connected.
    pub fn new(config: OriginConfig, store: Arc<Store>) -> Arc<Self> {
        Arc::new(Self {
            sentinels: Sentinels::of(&config),
            config,
            store,
            numbers: Numbers::default(),
            absent_keys: AbsentKeys::default(),
            clock: Mutex::default(),
            last_version: AtomicU64::new(0),
            seen_version: AtomicU64::new(0),
            state: Mutex::default(),
            counters: OriginCounters::default(),
            servers: ArcSwapOption::empty(),
            in_flight: Semaphore::new(MOST_IN_FLIGHT),
            epoch: AtomicU64::new(0),
            numbers_are_due: AtomicBool::new(false),
            wake: Notify::new(),
            last_run: Mutex::default(),
            reads_in_flight: Semaphore::new(MOST_KEYS_IN_FLIGHT),
            write_turns: Turns::default(),
            read_turns: Turns::default(),
            record_watches: RecordWatches::default(),
            reading_numbers: tokio::sync::Mutex::new(()),
        })
    }

    /// Returns the settings.
    pub fn config(&self) -> &OriginConfig {
        &self.config
    }

    /// Returns the counters.
    pub fn counters(&self) -> &OriginCounters {
        &self.counters
    }

    /// Returns whether there is a connection, and why not.
    pub fn state(&self) -> OriginState {
        self.state.lock().clone()
    }

    /// Returns a version for a write that begins now. It is even, and greater than `after`, than
    /// all that this machine has used, and than those of all writes that were done before. It is
    /// about the server's time in microseconds.
    pub fn next_version(&self, after: u64) -> u64 {
        let time = self.clock.lock().map_or(0, |clock| clock.at_most(Instant::now()));
        let least = time.max(after.saturating_add(1));
        let next = |last: u64| Some(even(least.max(last + 1)));
        let update = self.last_version.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        next(update.unwrap_or_default()).unwrap_or(least)
    }

    /// Notes the version of something that is on the server.
    pub(crate) fn has_seen(&self, version: u64) {
        // A value that cannot be read has no version of its own.
        if version < UNREADABLE {
            self.seen_version.fetch_max(version, Ordering::Relaxed);
        }
    }

    /// Returns what a page that begins now is to be written with.
    ///
    /// What this machine has seen on the server is older than the page. So is what had a version
    /// before the earliest time that the server may have. What another machine has written within
    /// the time of a trip before may count as newer. Then the page is not stored. In a cluster, so
    /// may what was purged since the last proof, and a page that is begun while the cluster is away
    /// is not stored: its parts may be copies of what was purged (`servers.rs`).
    pub fn begin_page(&self) -> PageBegin {
        let seen = self.seen_version.load(Ordering::Relaxed);
        let time = self.clock.lock().map_or(0, |clock| clock.at_least(Instant::now()));
        let number = match (&self.config.address.topology, &*self.servers.load()) {
            (Topology::Cluster { .. }, None) => 0,
            (Topology::Cluster { .. }, Some(servers)) => servers.proven(),
            _ => self.numbers.learned(),
        };
        PageBegin { number, version: seen.max(time) }
    }

    /// Returns whether the server is known not to have an item. The caller has looked into the
    /// store before.
    pub fn is_absent(&self, key: &[u8]) -> bool {
        // Nobody proves what is known without the time at which it would be forgotten.
        self.absent_keys.has(key) && self.store.will_forget()
    }

    /// Returns the servers, or why there is no connection to them.
    pub(crate) fn servers(&self) -> Result<Arc<Servers>, OriginError> {
        self.servers.load_full().ok_or_else(|| OriginError::Away(self.state.lock().reason()))
    }

    /// Lets commands use the connections to servers.
    pub(crate) fn serve_with(&self, servers: Arc<Servers>) {
        self.servers.store(Some(servers));
        // What was read over the connection before is not reported any more.
        self.record_watches.all_have_changed();
    }

    /// Lets no command use the servers any more, and wakes the task that connects again.
    pub(crate) fn end_connection(&self, epoch: u64) {
        if self.epoch.load(Ordering::Acquire) == epoch {
            self.servers.store(None);
            self.wake.notify_one();
        }
    }

    /// Returns whether there is a connection.
    pub fn is_connected(&self) -> bool {
        self.servers.load().is_some()
    }

    /// Takes the right to send a command.
    pub(crate) fn permit(&self) -> Result<SemaphorePermit<'_>, OriginError> {
        self.in_flight.try_acquire().map_err(|_| OriginError::Busy(MOST_IN_FLIGHT))
    }

    /// Waits until this many keys may be read.
    pub(crate) async fn permit_to_read(
        &self,
        keys: usize,
    ) -> Result<SemaphorePermit<'_>, OriginError> {
        let keys = u32::try_from(keys.clamp(1, MOST_KEYS_IN_FLIGHT)).unwrap_or(1);
        let permit =
            tokio::time::timeout(self.config.timeout, self.reads_in_flight.acquire_many(keys));
        match permit.await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(OriginError::Busy(MOST_KEYS_IN_FLIGHT)),
        }
    }

    /// Waits for the turn of this caller to read and write a key, but no longer than for a command.
    /// Without turns, the writers of one machine would be in each other's way. Those of others are
    /// anyway, so nothing depends on it.
    pub(crate) async fn write_turn(&self, key: &[u8]) -> Option<Turn<'_>> {
        self.write_turns.turn(key, self.config.timeout).await
    }

    /// Waits in the same way for the turn to read a key.
    pub(crate) async fn read_turn(&self, key: &[u8]) -> Option<Turn<'_>> {
        self.read_turns.turn(key, self.config.timeout).await
    }

    /// Counts the failure of a command, and ends a connection to a server that takes no writes any
    /// more, or is no longer the one for a name.
    pub(crate) fn failed(&self, error: OriginError) -> OriginError {
        match &error {
            OriginError::TimedOut(_) => add(&self.counters.timeouts, 1),
            OriginError::Refused(reason)
                if ["READONLY", "MOVED", "CLUSTERDOWN"]
                    .iter()
                    .any(|word| reason.contains(word)) =>
            {
                add(&self.counters.failures, 1);
                self.end_connection(self.epoch.load(Ordering::Acquire));
            }
            _ => add(&self.counters.failures, 1),
        }
        error
    }

    /// Takes what the server has told over the connection `epoch`.
    ///
    /// Each name is noted in the store's log of changes before it leaves a table. A reader enters
    /// it into the table and then looks into the log. So what has crossed its answer does not stay.
    pub(crate) fn receive(&self, epoch: u64, push: Push) {
        match push {
            Push::Changed(names) => {
                add(&self.counters.invalidations, names.len() as u64);
                names.iter().for_each(|name| self.name_has_changed(name));
            }
            Push::AllChanged => {
                add(&self.counters.invalidations, 1);
                self.forget_everything();
                self.record_watches.all_have_changed();
                self.read_numbers_soon();
            }
            Push::Ended => self.end_connection(epoch),
        }
    }

    fn name_has_changed(&self, name: &[u8]) {
        match self.config.names.parse(name) {
            Some(Name::Item(key)) => self.key_has_changed(key),
            Some(Name::Tag(tag)) => {
                self.store.invalidate_tag(tag, Invalidation::Hard);
                self.numbers.forget_tag(tag);
            }
            Some(Name::Number | Name::Purges) => self.read_numbers_soon(),
            Some(Name::Record(name)) => self.record_watches.record_has_changed(name),
            None => {}
        }
    }

    /// Drops what is known of a key.
    pub(crate) fn key_has_changed(&self, key: &[u8]) {
        self.store.discard(key);
        self.absent_keys.remove(key);
    }

    /// Drops the copies below a prefix. The empty prefix is that of all.
    pub(crate) fn prefix_was_purged(&self, prefix: &[u8], now: Now) {
        if prefix.is_empty() {
            self.store.forget_all();
        } else {
            // The store takes no longer prefix. A shorter one drops no less.
            let prefix = prefix.get(..TAG_LIMIT_BYTES).unwrap_or(prefix);
            self.store.invalidate_prefix(prefix, Invalidation::Hard, now);
        }
    }

    /// Drops all that is known of the server.
    pub(crate) fn forget_everything(&self) {
        self.store.forget_all();
        self.absent_keys.forget_all();
        self.numbers.forget();
    }

    fn read_numbers_soon(&self) {
        self.numbers_are_due.store(true, Ordering::SeqCst);
        self.wake.notify_one();
    }
}

/// Returns a number as a version: even, and below the limit.
pub(crate) fn even(number: u64) -> u64 {
    (number + number % 2).min(UNREADABLE - 1)
}

impl std::fmt::Debug for StoreOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreOrigin")
            .field("address", &self.config.address.to_string())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
