//! Carries out commands on the store and writes the answers.
//!
//! Each loop has one [`Executor`]. Each command ends in one call of the store, which is atomic.
//! This module only translates commands into requests, and outcomes into lines.

mod at_origin;
mod listing;
mod meta;
mod observe;
mod retrieval;
mod stats;

use std::cell::Cell;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;

use kirin_store::{
    ArithmeticOutcome, ArithmeticRequest, DeleteOutcome, NewItem, Now, Store, StoreMode,
    StoreOutcome, StoreRequest,
};

use crate::codec::{
    Arithmetic, CodecLimits, Command, EventKinds, Exptime, Key, PrefixCommand, Storage, verb,
};
use crate::counters::{MemcachedCounters, add};
use crate::output::OutputBuffer;
use crate::server::MemcachedServer;
use crate::snapshot_file::Saving;
use crate::watch::{ObservedBits, ObservedFlags, Watcher};

pub use at_origin::OriginWork;
pub use listing::Listing;

const NON_NUMERIC: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value";
const OUT_OF_MEMORY: &str = "SERVER_ERROR out of memory storing object";
const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";

/// The version that clients are told. Some clients deduce from it which commands a server has.
/// Kirin has those of this version of memcached.
pub const VERSION: &str = concat!("1.6.18-kirin-", env!("CARGO_PKG_VERSION"));

/// Carries out the commands of one loop's connections.
#[derive(Debug)]
pub struct Executor {
    server: Arc<MemcachedServer>,
    store: Arc<Store>,
    /// The way to the origin of the store, if it has one.
    at_origin: Option<Rc<at_origin::AtOrigin>>,
    counters: Arc<MemcachedCounters>,
    observed: Arc<ObservedBits>,
    now: Cell<Now>,
    /// The descriptor of the connection whose commands are being carried out.
    descriptor: Cell<RawFd>,
}

/// The result of carrying out a command.
#[derive(Debug)]
pub enum Executed {
    /// The command is answered.
    Done,
    /// A retrieval stopped between two keys because the output is over its limit. The bytes are a
    /// command line for the remaining keys. It is carried out when the client has read the answers
    /// so far.
    Paused(Vec<u8>),
    /// A list follows, see [`Executor::continue_listing`].
    Listing(Listing),
    /// The connection is shown events from now on, and carries out no more commands.
    Watching(Watcher),
    /// The items are at the origin of the store. Nothing was done. If there are bytes, they are a
    /// command line for the keys that are not answered yet.
    AtOrigin(Option<Vec<u8>>),
}

impl Executor {
    /// Creates an executor for a loop of `server`.
    pub fn new(server: Arc<MemcachedServer>) -> Executor {
        let origin = server.options().origin.clone();
        let at_origin = origin.map(|origin| Rc::new(at_origin::AtOrigin::new(origin, &server)));
        let store = Arc::clone(server.store());
        Executor { at_origin, ..Executor::on_store(server, store) }
    }

    /// Creates an executor that carries out commands on another store.
    fn on_store(server: Arc<MemcachedServer>, store: Arc<Store>) -> Executor {
        let counters = server.loop_counters();
        let executor = Executor {
            observed: Arc::clone(server.observed()),
            store,
            at_origin: None,
            server,
            counters,
            now: Cell::new(Now::from_unix_seconds(0)),
            descriptor: Cell::new(0),
        };
        executor.tick();
        executor
    }

    /// Reads the clock. It is called once for each read.
    pub fn tick(&self) {
        self.set_now(Now::on_steady_clock());
    }

    /// Sets the time for the next commands.
    pub fn set_now(&self, now: Now) {
        self.now.set(now);
    }

    /// Sets the descriptor of the connection to which the next commands belong. Watchers are shown
    /// it.
    pub(crate) fn set_descriptor(&self, descriptor: RawFd) {
        self.descriptor.set(descriptor);
    }

    /// Returns the settings that the codec needs.
    pub fn limits(&self) -> &CodecLimits {
        &self.server.options().limits
    }

    pub(crate) fn server(&self) -> &MemcachedServer {
        &self.server
    }

    pub(crate) fn counters(&self) -> &MemcachedCounters {
        &self.counters
    }

    fn store(&self) -> &Store {
        &self.store
    }

    /// Returns whether the store has an origin.
    pub(crate) fn has_origin(&self) -> bool {
        self.at_origin.is_some()
    }

    fn now(&self) -> Now {
        self.now.get()
    }

    /// Carries out one command.
    pub fn execute(&self, command: Command<'_>, output: &mut OutputBuffer) -> Executed {
        if let Some(at_origin) = &self.at_origin
            && !self.is_local(at_origin, &command)
        {
            return Executed::AtOrigin(None);
        }
        // This is the only cost of everything that can be observed.
        let observed = self.observed.load();
        if observed.is_any() {
            if observed.logs_commands() {
                tracing::info!(?command, "memcached");
            }
            self.note_command(&command, observed);
        }
        match command {
            Command::Retrieve(retrieval) => return self.retrieve(retrieval, observed, output),
            Command::Store(storage) => self.store_item(storage, observed, output),
            Command::MetaGet(meta) => self.meta_get(&meta, output),
            Command::MetaSet(set) => self.meta_set(set, observed, output),
            Command::MetaDelete(meta) => self.meta_delete(&meta, output),
            Command::MetaArithmetic(meta, direction) => {
                self.meta_arithmetic(&meta, direction, observed, output)
            }
            Command::MetaDebug(key) => self.meta_debug(&key, output),
            Command::Delete { key, noreply } => {
                let deleted = self.store().delete(key, self.now()) == DeleteOutcome::Deleted;
                reply(output, noreply, if deleted { "DELETED" } else { "NOT_FOUND" });
            }
            Command::Touch { key, exptime, noreply } => {
                let now = self.now();
                let touched = self.store().touch(key, exptime.expires(now), now);
                reply(output, noreply, if touched { "TOUCHED" } else { "NOT_FOUND" });
            }
            Command::Arithmetic(arithmetic) => self.arithmetic(&arithmetic, output),
            Command::FlushAll { delay, noreply } => {
                self.flush_all(delay);
                reply(output, noreply, "OK");
            }
            Command::CacheMemlimit { megabytes, noreply } => {
                let bytes = (megabytes as usize).saturating_mul(1 << 20);
                let is_possible = bytes <= self.server.options().memory_ceiling_bytes;
                if is_possible {
                    self.store().set_memory_limit(bytes, self.now());
                }
                let refusal = "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust";
                reply(output, noreply, if is_possible { "OK" } else { refusal });
            }
            Command::Verbosity { level, noreply } => {
                self.server.set_verbosity(level);
                reply(output, noreply, "OK");
            }
            Command::Version => {
                output.push(b"VERSION ");
                output.line(VERSION);
            }
            Command::Stats(topic) => self.stats(topic, output),
            Command::List(list) => return Executed::Listing(Listing::of_items(list)),
            Command::Prefixes(PrefixCommand::Dump) => {
                return Executed::Listing(Listing::of_prefixes());
            }
            Command::Prefixes(switch) => {
                self.observed.count_prefixes(switch == PrefixCommand::On);
                output.line("OK");
            }
            Command::Watch(kinds) => return self.watch(kinds, output),
            Command::Snapshot => output.line(self.snapshot()),
            Command::TooLarge { key, remove, noreply, .. } => {
                self.refuse_value(&key, remove, noreply, output)
            }
            Command::Answer(text) => reply(output, text.is_none(), text.unwrap_or_default()),
            // The session ends at this command and never passes it on.
            Command::Quit => {}
        }
        Executed::Done
    }

    fn watch(&self, kinds: EventKinds, output: &mut OutputBuffer) -> Executed {
        match self.server.watchers().add(kinds) {
            Some(watcher) => {
                output.line("OK");
                Executed::Watching(watcher)
            }
            None => {
                output.line("WATCHER_TOO_MANY log watcher limit reached");
                Executed::Done
            }
        }
    }

    fn snapshot(&self) -> &'static str {
        let saving = match &self.server.options().snapshot {
            Some(file) => file.save_in_background(self.server.store()),
            None => return "CLIENT_ERROR no snapshot file is configured",
        };
        match saving {
            Saving::Begun => "OK",
            Saving::Busy => "BUSY a snapshot is being written",
            Saving::NotOwner => {
                "SERVER_ERROR the contents of this store are another process's to save"
            }
            Saving::Failed => "SERVER_ERROR no thread to write the snapshot",
        }
    }

    fn store_item(&self, storage: Storage<'_>, observed: ObservedFlags, output: &mut OutputBuffer) {
        let now = self.now();
        let value_len = storage.value.byte_len();
        let item = NewItem {
            value: storage.value.into(),
            flags: storage.flags,
            expires: storage.exptime.expires(now),
            tags: &[],
        };
        let request = StoreRequest {
            mode: storage.mode,
            compare_cas: storage.compare_cas,
            ..StoreRequest::default()
        };
        let verb = verb(storage.mode, storage.compare_cas.is_some());
        let (key, expires) = (storage.key, item.expires);
        let watched = self.watch_store(key, storage.mode, verb, expires, value_len, observed);
        let outcome = self.store().store(key, item, &request, now);
        if let Some(watched) = watched {
            self.publish_store(key, &watched, outcome);
        }
        let line = match outcome {
            StoreOutcome::Stored { .. } => "STORED",
            StoreOutcome::NotStored => "NOT_STORED",
            StoreOutcome::Exists => "EXISTS",
            StoreOutcome::NotFound => "NOT_FOUND",
            outcome => unstorable(outcome, storage.mode).unwrap_or("NOT_STORED"),
        };
        reply(output, storage.noreply, line);
    }

    fn arithmetic(&self, arithmetic: &Arithmetic<'_>, output: &mut OutputBuffer) {
        let request = ArithmeticRequest {
            direction: arithmetic.direction,
            delta: arithmetic.delta,
            ..ArithmeticRequest::default()
        };
        let line = match self.store().arithmetic(arithmetic.key, &request, self.now()) {
            ArithmeticOutcome::Counted(counted) => {
                if !arithmetic.noreply {
                    output.number(counted.value);
                    output.push(b"\r\n");
                }
                return;
            }
            ArithmeticOutcome::NotFound | ArithmeticOutcome::Exists => "NOT_FOUND",
            ArithmeticOutcome::NonNumeric => NON_NUMERIC,
            ArithmeticOutcome::OutOfMemory => "SERVER_ERROR out of memory",
        };
        reply(output, arithmetic.noreply, line);
    }

    fn flush_all(&self, delay: Exptime) {
        let now = self.now();
        let at = match delay {
            Exptime(1..) => delay.expires(now).time().unwrap_or(now),
            _ => now,
        };
        self.store().flush_all(at, now);
    }

    fn refuse_value(&self, key: &Key<'_>, remove: bool, noreply: bool, output: &mut OutputBuffer) {
        add(&self.counters.store_too_large, 1);
        if remove {
            self.store().discard(&key.bytes);
        }
        reply(output, noreply, TOO_LARGE);
    }
}

/// Returns the line for a value that was not stored. `None` for an append that would make an item
/// too large: memcached answers that it was not stored.
fn unstorable(outcome: StoreOutcome, mode: StoreMode) -> Option<&'static str> {
    match outcome {
        StoreOutcome::OutOfMemory => Some(OUT_OF_MEMORY),
        _ if matches!(mode, StoreMode::Append | StoreMode::Prepend) => None,
        _ => Some(TOO_LARGE),
    }
}

fn reply(output: &mut OutputBuffer, noreply: bool, line: &str) {
    if !noreply {
        output.line(line);
    }
}
