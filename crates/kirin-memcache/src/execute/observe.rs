//! Tells watchers and the statistics by prefix what commands do.
//!
//! None of this runs while nobody observes: see `Executor::execute`.

use std::os::fd::RawFd;

use kirin_store::{Expires, KeyState, Now, StoreMode, StoreOutcome};

use super::Executor;
use crate::codec::{Command, EventKinds, Extension, Meta};
use crate::watch::ObservedFlags;
use crate::watch::event::{StoreEvent, WatchEvent, WatchedPeer};

/// A storage command that is being watched.
pub(super) struct WatchedStore {
    before: KeyState,
    mode: StoreMode,
    verb: &'static str,
    expires: Expires,
    value_len: usize,
}

impl Executor {
    /// Notes a command before it is carried out. A retrieval notes its keys itself, one by one.
    pub(super) fn note_command(&self, command: &Command<'_>, observed: ObservedFlags) {
        let prefixes = observed.counts_prefixes().then(|| self.server.prefixes());
        let key: &[u8] = match command {
            Command::Store(storage) => {
                prefixes.inspect(|prefixes| prefixes.count_set(storage.key));
                storage.key
            }
            Command::MetaSet(set) => {
                prefixes.inspect(|prefixes| prefixes.count_set(&set.key.bytes));
                &set.key.bytes
            }
            Command::TooLarge { key, verb, .. } => {
                prefixes.inspect(|prefixes| prefixes.count_set(&key.bytes));
                if observed.watches(EventKinds::MUTATIONS) {
                    self.publish_failed_store(&key.bytes, "too_large", verb);
                }
                &key.bytes
            }
            Command::Delete { key, .. } => {
                prefixes.inspect(|prefixes| prefixes.count_delete(key));
                key
            }
            Command::MetaDelete(meta) if names_an_item(meta) => {
                prefixes.inspect(|prefixes| prefixes.count_delete(&meta.key.bytes));
                &meta.key.bytes
            }
            Command::MetaGet(meta) => {
                let key = &meta.key.bytes;
                prefixes.inspect(|prefixes| {
                    let state = self.store().key_state(key, self.now());
                    prefixes.count_get(key, matches!(state, KeyState::Found { .. }));
                });
                key
            }
            Command::MetaArithmetic(meta, _) => &meta.key.bytes,
            Command::MetaDebug(key) => &key.bytes,
            Command::Arithmetic(arithmetic) => arithmetic.key,
            Command::Touch { key, .. } => key,
            _ => return,
        };
        self.note_fetch(key, observed);
    }

    /// Shows watchers that a key is looked up.
    pub(super) fn note_fetch(&self, key: &[u8], observed: ObservedFlags) {
        if observed.watches(EventKinds::FETCHERS) {
            let state = self.store().key_state(key, self.now());
            let descriptor = self.descriptor.get();
            self.server.watchers().publish(&WatchEvent::Fetch { key, state, descriptor });
        }
    }

    /// Counts a `get` under the prefix of its key.
    pub(super) fn count_get(&self, key: &[u8], is_hit: bool, observed: ObservedFlags) {
        if observed.counts_prefixes() {
            self.server.prefixes().count_get(key, is_hit);
        }
    }

    /// Begins to watch a storage command, if anybody does. The item may be gone after it.
    pub(super) fn watch_store(
        &self,
        key: &[u8],
        mode: StoreMode,
        verb: &'static str,
        expires: Expires,
        value_len: usize,
        observed: ObservedFlags,
    ) -> Option<WatchedStore> {
        observed.watches(EventKinds::MUTATIONS).then(|| WatchedStore {
            before: self.store().key_state(key, self.now()),
            mode,
            verb,
            expires,
            value_len,
        })
    }

    /// Shows watchers the outcome of a storage command.
    pub(super) fn publish_store(&self, key: &[u8], watched: &WatchedStore, outcome: StoreOutcome) {
        let status = match outcome {
            StoreOutcome::Stored { .. } => "stored",
            StoreOutcome::NotStored => "not_stored",
            StoreOutcome::Exists => "exists",
            StoreOutcome::NotFound => "not_found",
            StoreOutcome::TooLarge => {
                return self.publish_failed_store(key, "too_large", watched.verb);
            }
            StoreOutcome::OutOfMemory => {
                return self.publish_failed_store(key, "no_memory", watched.verb);
            }
        };
        let joins = matches!(watched.mode, StoreMode::Append | StoreMode::Prepend);
        let (expires, value_len) = match watched.before {
            KeyState::Found { value_len, expires } if joins && outcome.is_stored() => {
                (expires, value_len + watched.value_len)
            }
            _ => (watched.expires, watched.value_len),
        };
        self.server.watchers().publish(&WatchEvent::Store(StoreEvent {
            key,
            status,
            verb: watched.verb,
            ttl: ttl(expires, self.now()),
            value_len,
            has_room: true,
            descriptor: self.descriptor.get(),
        }));
    }

    /// Shows watchers that a number was created, if there was none before.
    pub(super) fn publish_creation(&self, key: &[u8], watched: &WatchedStore, cas: u64) {
        if !matches!(watched.before, KeyState::Found { .. }) {
            self.publish_store(key, watched, StoreOutcome::Stored { cas });
        }
    }

    fn publish_failed_store(&self, key: &[u8], status: &'static str, verb: &'static str) {
        self.server.watchers().publish(&WatchEvent::Store(StoreEvent {
            key,
            status,
            verb,
            ttl: 0,
            value_len: 0,
            has_room: false,
            descriptor: self.descriptor.get(),
        }));
    }

    /// Shows watchers that a connection was accepted.
    pub(crate) fn note_opened(&self, peer: WatchedPeer, descriptor: RawFd) {
        if self.observed.load().watches(EventKinds::CONNECTIONS) {
            self.server.watchers().publish(&WatchEvent::Open { peer, descriptor });
        }
    }

    /// Shows watchers that a connection has ended.
    pub(crate) fn note_closed(&self, peer: WatchedPeer, reason: &'static str, descriptor: RawFd) {
        if self.observed.load().watches(EventKinds::CONNECTIONS) {
            self.server.watchers().publish(&WatchEvent::Close { peer, reason, descriptor });
        }
    }
}

/// Returns whether the key of an `md` is that of an item, and not a tag or a prefix.
fn names_an_item(meta: &Meta<'_>) -> bool {
    !matches!(meta.flags.extension, Extension::Tag | Extension::Prefix)
}

/// Returns the seconds until an expiry as memcached shows them: 0 for never, and a negative number
/// cut to 32 bits for a time that has passed.
fn ttl(expires: Expires, now: Now) -> u32 {
    match expires.seconds_left(now) {
        _ if expires.is_due(now) => u32::MAX,
        Some(left) => u32::try_from(left).unwrap_or(u32::MAX),
        None => 0,
    }
}
