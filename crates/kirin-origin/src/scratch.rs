//! Carries out commands on items of the server as if they were in a store.
//!
//! A command runs on a scratch store, which has just the item that was loaded. What it has changed
//! there is written to the server, on the condition that nobody has changed it meanwhile. If
//! somebody has, it begins again with what is there now. So a command has one meaning, with a
//! server behind the store and without.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kirin_store::{ItemRef, Now, Store, StoreConfig};

use crate::error::OriginError;
use crate::origin::{StoreOrigin, even};
use crate::reading::Loaded;
use crate::writing::{Condition, Content, Write, Written};

/// How often a command is tried while somebody else is faster.
const TRIES: u32 = 16;

/// The longest pause before the second attempt. It grows with each one, so that the writers of
/// several machines do not stay in each other's way.
const RETRY_PAUSE: Duration = Duration::from_millis(1);

/// The least memory of a scratch store in bytes. It takes it only while it has items.
const SCRATCH_BYTES: usize = 16 << 20;

/// The scratch store of one event loop.
#[derive(Debug)]
pub struct Scratch {
    origin: Arc<StoreOrigin>,
    store: Arc<Store>,
}

/// What a command has done to an item.
struct ItemChange {
    condition: Condition,
    kind: ChangeKind,
}

enum ChangeKind {
    /// There is this item now. If only its marks have changed, it keeps its CAS unique but gets
    /// another version. `keeps_expiry` is true if it expires when the one before would have.
    Put {
        item: ItemRef,
        version: u64,
        keeps_expiry: bool,
    },
    /// The item is the same, and expires at another time.
    Touch {
        item: ItemRef,
        version: u64,
    },
    Remove {
        version: u64,
    },
}

/// Whether it is a change that a command finds no item and leaves none.
#[derive(Clone, Copy)]
enum Absence {
    NoChange,
    /// The command may have been blind, or it removes what other writers have in progress.
    Change,
}

impl Scratch {
    /// Creates the scratch store for items up to this size.
    pub fn new(origin: Arc<StoreOrigin>, item_limit_bytes: usize) -> Self {
        let store = Store::new(StoreConfig {
            // There is one item at a time, and the one that takes its place.
            memory_bytes: SCRATCH_BYTES.max(item_limit_bytes.saturating_mul(8)),
            item_limit_bytes,
            shards: 1,
            ..StoreConfig::default()
        });
        Self { origin, store: Arc::new(store) }
    }

    /// Returns the store in which commands are carried out. It is empty in between.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Carries out a command on the item of a key.
    pub async fn change<R>(
        &self,
        key: &Bytes,
        carry_out: impl Fn() -> R,
    ) -> Result<R, OriginError> {
        self.in_turn(key, Absence::NoChange, carry_out).await
    }

    /// Carries out a command that may remove the item of a key. Even if there is none, no page is
    /// stored under the key that was begun before.
    pub async fn remove<R>(
        &self,
        key: &Bytes,
        carry_out: impl Fn() -> R,
    ) -> Result<R, OriginError> {
        self.in_turn(key, Absence::Change, carry_out).await
    }

    async fn in_turn<R>(
        &self,
        key: &Bytes,
        absence: Absence,
        carry_out: impl Fn() -> R,
    ) -> Result<R, OriginError> {
        let _turn = self.origin.write_turn(key).await;
        let loaded = self.load_one(key).await?;
        self.until_written(key, Some(loaded), absence, carry_out).await
    }

    /// Carries out a command on an item that was loaded.
    pub async fn change_loaded<R>(
        &self,
        loaded: Loaded,
        carry_out: impl Fn() -> R,
    ) -> Result<R, OriginError> {
        let key = loaded.key.clone();
        self.until_written(&key, Some(loaded), Absence::NoChange, carry_out).await
    }

    /// Carries out a command that replaces the item of a key, whatever it is.
    pub async fn replace<R>(
        &self,
        key: &Bytes,
        carry_out: impl Fn() -> R,
    ) -> Result<R, OriginError> {
        self.until_written(key, None, Absence::Change, carry_out).await
    }

    /// Carries out a command on the item that was loaded, and writes what it changes. Begins again
    /// with what is there if somebody else was faster. Without a loaded item it is written in any
    /// case.
    async fn until_written<R>(
        &self,
        key: &Bytes,
        mut loaded: Option<Loaded>,
        absence: Absence,
        carry_out: impl Fn() -> R,
    ) -> Result<R, OriginError> {
        let mut tries = Tries::default();
        while let Some(after) = tries.next().await {
            let (answer, change) = self.try_once(key, loaded.as_ref(), after, absence, &carry_out);
            match self.write(key, change).await?.in_the_way() {
                None => return Ok(answer),
                Some(version) => tries.after = version,
            }
            if loaded.is_some() {
                loaded = Some(self.load_one(key).await?);
            }
        }
        Err(OriginError::Contended)
    }

    async fn load_one(&self, key: &Bytes) -> Result<Loaded, OriginError> {
        let loaded = self.origin.load(std::slice::from_ref(key)).await?;
        loaded.into_iter().next().ok_or_else(|| OriginError::Unexpected("no item for one".into()))
    }

    /// Carries out a command on the scratch store, which has just the item that was loaded, if
    /// there is one. Nothing else happens there meanwhile. The next CAS unique is greater than
    /// `after`. Returns the answer, and what the command has changed.
    fn try_once<R>(
        &self,
        key: &Bytes,
        loaded: Option<&Loaded>,
        after: u64,
        absence: Absence,
        carry_out: impl Fn() -> R,
    ) -> (R, Option<ItemChange>) {
        let (store, now) = (&self.store, Now::on_steady_clock());
        if let Some(Loaded { item: Some(item), .. }) = loaded {
            item.keep_in(store, key, false, &store.moment(), now);
        }
        let before = store.peek(key, now);
        let there = loaded.map_or(0, |loaded| loaded.version);
        let version = self.origin.next_version(after.max(there));
        store.number_from(version.saturating_sub(1));
        let answer = carry_out();
        let now_there = store.peek(key, now);
        store.discard(key);
        let change = match (&before, &now_there, absence) {
            (None, None, Absence::NoChange) => None,
            _ => self.change_of(loaded, before.as_ref(), now_there, version),
        };
        (answer, change)
    }

    /// Returns what a command has done to an item.
    fn change_of(
        &self,
        loaded: Option<&Loaded>,
        before: Option<&ItemRef>,
        after: Option<ItemRef>,
        version: u64,
    ) -> Option<ItemChange> {
        let condition = loaded.map_or(Condition::Any, |loaded| Condition::Unchanged {
            version: loaded.version,
            made: loaded.made,
        });
        let keeps_expiry = |item: &ItemRef| {
            // What is left of a second must not become a full one each time.
            before.is_some_and(|before| before.expires() == item.expires())
        };
        let kind = match (before, after) {
            (_, None) => ChangeKind::Remove { version },
            (Some(before), Some(item)) if before.sequence() == item.sequence() => {
                let marks = |item: &ItemRef| (item.is_stale(), item.is_won());
                if marks(before) != marks(&item) {
                    let keeps_expiry = keeps_expiry(&item);
                    ChangeKind::Put { item, version, keeps_expiry }
                } else if !keeps_expiry(&item) {
                    let version = loaded.map_or(0, |loaded| loaded.version);
                    ChangeKind::Touch { item, version }
                } else {
                    return None;
                }
            }
            (_, Some(item)) => {
                // Some commands take more than one number. Then the CAS unique is another one.
                let version = even(item.sequence());
                let keeps_expiry = keeps_expiry(&item);
                ChangeKind::Put { item, version, keeps_expiry }
            }
        };
        Some(ItemChange { condition, kind })
    }

    /// Writes what has changed, if anything has.
    async fn write(&self, key: &[u8], change: Option<ItemChange>) -> Result<Written, OriginError> {
        let Some(ItemChange { condition, kind }) = change else { return Ok(Written::Done) };
        let now = Now::on_steady_clock();
        match kind {
            ChangeKind::Touch { item, version } => {
                let tags: Vec<&[u8]> = item.tags().collect();
                let touched = self.origin.touch(key, &tags, version, item.expires(), now).await?;
                Ok(if touched { Written::Done } else { Written::Conflict { version } })
            }
            ChangeKind::Remove { version } => {
                let write = Write { key, content: Content::Nothing, version, condition };
                self.origin.write(&write, now).await
            }
            ChangeKind::Put { item, version, keeps_expiry } => {
                let tags: Vec<&[u8]> = item.tags().collect();
                let content = Content::Item {
                    value: item.value_slice(),
                    flags: item.flags(),
                    expires: Some(item.expires()).filter(|_| !keeps_expiry),
                    tags: &tags,
                    chosen_cas: NonZeroU64::new(item.cas()).filter(|cas| cas.get() != version),
                    is_stale: item.is_stale(),
                    is_won: item.is_won(),
                };
                self.origin.write(&Write { key, content, version, condition }, now).await
            }
        }
    }
}

/// The attempts at a command that writes only if nobody else has written.
#[derive(Default)]
struct Tries {
    made: u32,
    /// A version that was in the way.
    after: u64,
}

impl Tries {
    /// Begins the next attempt, after a pause. Returns the version that it must exceed, or `None`
    /// if there were enough.
    async fn next(&mut self) -> Option<u64> {
        if self.made > 0 {
            let random = RandomState::new().hash_one(self.made) % 256;
            let longest = RETRY_PAUSE * self.made;
            tokio::time::sleep(longest.mul_f64(random as f64 / 256.0)).await;
        }
        self.made += 1;
        (self.made <= TRIES).then_some(self.after)
    }
}
