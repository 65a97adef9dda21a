//! Carries out commands whose items are at the origin of the store.
//!
//! A command that the copies on this machine cannot answer goes this way. Its items are read from
//! the origin into a scratch store. There the command is carried out like any other, so it has no
//! second meaning. What it has changed is written to the origin, on the condition that nobody has
//! changed it meanwhile. If somebody has, it begins again with what is there now. The client gets
//! the answer when the origin has the change.
//!
//! A `set` needs not know what is there, so nothing is read for it. Purges are one write.

use std::fmt;
use std::num::NonZeroU64;
use std::os::fd::RawFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use kirin_origin::{Condition, Content, Loaded, OriginError, Purge, StoreOrigin, Write, Written};
use kirin_store::{DeleteOutcome, Invalidation, ItemRef, Now, Store, StoreConfig, StoreMode};

use super::Executor;
use super::retrieval::rest_of_line;
use crate::codec::{self, Command, Exptime, Extension, Meta, ParsedInput, Retrieval, Storage};
use crate::output::OutputBuffer;
use crate::server::MemcachedServer;

/// How often a command begins again because somebody else was faster.
const TRIES: usize = 16;

/// The most keys of a retrieval that are read at once. The others wait, so the memory of a command
/// does not grow with its line.
const KEYS_AT_ONCE: usize = 32;

/// The least memory of the scratch store in bytes. It takes it only while it has items.
const SCRATCH_BYTES: usize = 64 << 20;

/// The way to the origin from one loop.
pub(super) struct AtOrigin {
    origin: Arc<StoreOrigin>,
    /// Carries out commands on the scratch store, whose only items are those of the command.
    scratch: Executor,
}

/// A command with memory of its own. It is parsed again each time it is carried out.
pub struct HeldCommand {
    /// The line, with the data block if that has no memory of its own.
    pub line: Vec<u8>,
    /// The data block with its line end.
    pub block: Option<Vec<u8>>,
}

/// A command that waits for the origin.
pub struct OriginWork(Pin<Box<dyn Future<Output = OriginAnswer>>>);

/// The answer to a command.
pub(crate) struct OriginAnswer {
    pub(crate) output: OutputBuffer,
    /// A command line for keys that were not looked up yet.
    pub(crate) rest: Vec<u8>,
}

impl OriginWork {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<OriginAnswer> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for OriginWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginWork").finish_non_exhaustive()
    }
}

/// What a command has done to an item.
struct ItemChange {
    key: Bytes,
    condition: Condition,
    kind: ChangeKind,
}

enum ChangeKind {
    /// There is this item now. If only its marks have changed, it keeps its CAS unique but gets
    /// another version.
    Put {
        item: ItemRef,
        version: u64,
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

impl Executor {
    /// Returns whether this machine can answer a command alone.
    pub(super) fn is_local(&self, at_origin: &AtOrigin, command: &Command<'_>) -> bool {
        match command {
            // Its keys are looked up one by one.
            Command::Retrieve(retrieval) => retrieval.touch.is_none(),
            Command::MetaGet(meta) => self.is_local_meta_get(at_origin, meta),
            Command::TooLarge { remove, .. } => !remove,
            Command::Store(_)
            | Command::Delete { .. }
            | Command::Arithmetic(_)
            | Command::Touch { .. }
            | Command::MetaSet(_)
            | Command::MetaDelete(_)
            | Command::MetaArithmetic(..)
            | Command::MetaDebug(_)
            | Command::FlushAll { .. } => false,
            _ => true,
        }
    }

    /// Returns whether an `mg` only shows what the copy has, or finds that there is nothing.
    fn is_local_meta_get(&self, at_origin: &AtOrigin, meta: &Meta<'_>) -> bool {
        let flags = &meta.flags;
        let changes = flags.vivify.is_some()
            || flags.ttl.is_some()
            || flags.recache.is_some_and(|at| at.0 != 0);
        if changes || flags.new_cas.is_some() {
            return false;
        }
        match self.store().peek(&meta.key.bytes, self.now()) {
            Some(item) => !item.is_stale(),
            None => at_origin.origin.is_absent(&meta.key.bytes),
        }
    }

    /// Returns whether an item is known to be nowhere, or is nobody else's.
    pub(super) fn is_absent(&self, key: &[u8]) -> bool {
        self.at_origin.as_ref().is_none_or(|at_origin| at_origin.origin.is_absent(key))
    }

    /// Begins a command whose items are at the origin.
    pub(crate) fn begin_at_origin(&self, command: HeldCommand) -> Option<OriginWork> {
        let at_origin = Rc::clone(self.at_origin.as_ref()?);
        let descriptor = self.descriptor.get();
        Some(OriginWork(Box::pin(async move { at_origin.carry_out(&command, descriptor).await })))
    }
}

impl AtOrigin {
    pub(super) fn new(origin: Arc<StoreOrigin>, server: &Arc<MemcachedServer>) -> Self {
        let item_limit_bytes = server.options().limits.item_size_bytes;
        let store = Store::new(StoreConfig {
            // A command adds at most one item to those that were read.
            memory_bytes: SCRATCH_BYTES.max(item_limit_bytes.saturating_mul(KEYS_AT_ONCE + 8)),
            item_limit_bytes,
            shards: 1,
            ..StoreConfig::default()
        });
        let store = Arc::new(store);
        server.add_scratch(Arc::clone(&store));
        Self { origin, scratch: Executor::on_store(Arc::clone(server), store) }
    }

    async fn carry_out(&self, held: &HeldCommand, descriptor: RawFd) -> OriginAnswer {
        let Some(command) = self.parse(held) else {
            debug_assert!(false, "a held command is not complete");
            return OriginAnswer { output: OutputBuffer::default(), rest: Vec::new() };
        };
        let is_silent = is_silent(&command);
        drop(command);
        let carried_out = self.try_carry_out(held, descriptor).await;
        carried_out.unwrap_or_else(|error| {
            let mut output = OutputBuffer::default();
            if !is_silent {
                output.line(&format!("SERVER_ERROR {error}"));
            }
            OriginAnswer { output, rest: Vec::new() }
        })
    }

    fn parse<'a>(&self, held: &'a HeldCommand) -> Option<Command<'a>> {
        let limits = self.scratch.limits();
        match &held.block {
            Some(block) => Some(codec::parse_stored(&held.line, block.clone(), limits)),
            None => match codec::parse(&held.line, limits) {
                ParsedInput::Command { command, .. } => Some(command),
                _ => None,
            },
        }
    }

    async fn try_carry_out(
        &self,
        held: &HeldCommand,
        descriptor: RawFd,
    ) -> Result<OriginAnswer, OriginError> {
        // A version that was in the way.
        let mut after = 0;
        for _ in 0..TRIES {
            let Some(command) = self.parse(held) else { break };
            let (keys, is_blind) = match items_of(&command) {
                Items::Of(keys) => (keys, false),
                Items::Blind(key) => (vec![key], true),
                Items::Many => return self.purge(&command).await,
                // An error in the data block, for example.
                Items::None => return Ok(self.on_scratch(command, &[], &[], 0).0),
            };
            let loaded = match is_blind {
                true => Vec::new(),
                false => self.origin.load(&keys).await?,
            };
            let there = loaded.iter().map(|loaded| loaded.version).max().unwrap_or(0);
            let version = self.origin.next_version(after.max(there));
            self.scratch.set_descriptor(descriptor);
            let (answer, changes) = self.on_scratch(command, &keys, &loaded, version);
            match self.write_all(&changes).await? {
                Written::Done => return Ok(answer),
                Written::Conflict { version } => after = version,
            }
        }
        Err(OriginError::Contended)
    }

    /// Carries out a command on the scratch store, which has just the items that were loaded.
    /// Nothing else happens there meanwhile. `version` is the next CAS unique.
    fn on_scratch(
        &self,
        command: Command<'_>,
        keys: &[Bytes],
        loaded: &[Loaded],
        version: u64,
    ) -> (OriginAnswer, Vec<ItemChange>) {
        let executor = &self.scratch;
        executor.tick();
        let (store, now) = (executor.store(), executor.now());
        for loaded in loaded {
            if let Some(item) = &loaded.item {
                let tags: Vec<Bytes> = item.decoded.tags().collect();
                let tags: Vec<&[u8]> = tags.iter().map(|tag| &tag[..]).collect();
                store.keep_copy(&loaded.key, &item.copied(&tags, false), &store.moment(), now);
            }
        }
        let before: Vec<Option<ItemRef>> = keys.iter().map(|key| store.peek(key, now)).collect();
        store.number_from(version.saturating_sub(1));
        let mut answer = OriginAnswer { output: OutputBuffer::default(), rest: Vec::new() };
        let is_removal = matches!(command, Command::TooLarge { .. });
        match command {
            Command::Retrieve(retrieval) => {
                answer.rest = self.retrieve_some(&retrieval, keys.len(), &mut answer.output);
            }
            command => _ = executor.execute(command, &mut answer.output),
        }
        let mut changes = Vec::new();
        for (index, (key, before)) in keys.iter().zip(before).enumerate() {
            let condition = loaded.get(index).map_or(Condition::Any, |loaded| {
                Condition::Unchanged { version: loaded.version, made: loaded.made }
            });
            let after = store.peek(key, now).filter(|_| !is_removal);
            let kind = self.change(condition, before.as_ref(), after, version);
            changes.extend(kind.map(|kind| ItemChange { key: key.clone(), condition, kind }));
        }
        keys.iter().for_each(|key| store.discard(key));
        (answer, changes)
    }

    /// Returns what a command has done to an item.
    fn change(
        &self,
        condition: Condition,
        before: Option<&ItemRef>,
        after: Option<ItemRef>,
        version: u64,
    ) -> Option<ChangeKind> {
        match (before, after) {
            (None, None) if condition != Condition::Any => None,
            (_, None) => Some(ChangeKind::Remove { version }),
            (Some(before), Some(item)) if before.sequence() == item.sequence() => {
                let loaded_version = match condition {
                    Condition::Unchanged { version, .. } => version,
                    Condition::Any => 0,
                };
                if (before.is_stale(), before.is_won()) != (item.is_stale(), item.is_won()) {
                    let version = self.origin.next_version(version);
                    Some(ChangeKind::Put { item, version })
                } else if before.expires() != item.expires() {
                    Some(ChangeKind::Touch { item, version: loaded_version })
                } else {
                    None
                }
            }
            (_, Some(item)) => {
                let version = item.sequence();
                Some(ChangeKind::Put { item, version })
            }
        }
    }

    /// Looks up the first `count` keys of a retrieval. Returns a command line for the others.
    fn retrieve_some(
        &self,
        retrieval: &Retrieval<'_>,
        count: usize,
        output: &mut OutputBuffer,
    ) -> Vec<u8> {
        let mut keys = retrieval.keys;
        for key in keys.by_ref().take(count) {
            self.scratch.retrieve_key(key, retrieval, output);
        }
        if { keys }.next().is_some() {
            return rest_of_line(retrieval, keys.rest());
        }
        output.push(b"END\r\n");
        Vec::new()
    }

    /// Writes what has changed. Stops at the first item that somebody else has changed.
    async fn write_all(&self, changes: &[ItemChange]) -> Result<Written, OriginError> {
        let now = self.scratch.now();
        for ItemChange { key, condition, kind } in changes {
            let written = match kind {
                ChangeKind::Touch { item, version } => {
                    let tags: Vec<&[u8]> = item.tags().collect();
                    let touch = self.origin.touch(key, &tags, *version, item.expires(), now);
                    match touch.await? {
                        true => Written::Done,
                        false => Written::Conflict { version: *version },
                    }
                }
                ChangeKind::Remove { version } => {
                    let (content, condition) = (Content::Nothing, *condition);
                    let write = Write { key, content, version: *version, condition };
                    self.origin.write(&write, now).await?
                }
                ChangeKind::Put { item, version } => {
                    let tags: Vec<&[u8]> = item.tags().collect();
                    let content = Content::Item {
                        value: item.value_slice(),
                        flags: item.flags(),
                        expires: item.expires(),
                        tags: &tags,
                        chosen_cas: NonZeroU64::new(item.cas()).filter(|cas| cas.get() != *version),
                        is_stale: item.is_stale(),
                        is_won: item.is_won(),
                    };
                    let write = Write { key, content, version: *version, condition: *condition };
                    self.origin.write(&write, now).await?
                }
            };
            if written != Written::Done {
                return Ok(written);
            }
        }
        Ok(Written::Done)
    }

    /// Carries out `flush_all`, and `md` with a tag or a prefix.
    async fn purge(&self, command: &Command<'_>) -> Result<OriginAnswer, OriginError> {
        self.scratch.tick();
        let now = self.scratch.now();
        let mut answer = OriginAnswer { output: OutputBuffer::default(), rest: Vec::new() };
        match command {
            Command::FlushAll { delay, noreply } => {
                let later = match delay {
                    Exptime(1..) => delay.expires(now).seconds_left(now).filter(|left| *left > 0),
                    _ => None,
                };
                let flush = later.map(|seconds| {
                    let flush = flush_later(Arc::clone(&self.origin), Duration::from_secs(seconds));
                    tokio::task::spawn_local(flush).abort_handle()
                });
                let flushes_now = flush.is_none();
                self.scratch.server().replace_delayed_flush(flush);
                if flushes_now {
                    self.origin.purge(&EVERYTHING, Invalidation::Hard, now).await?;
                }
                super::reply(&mut answer.output, *noreply, "OK");
            }
            Command::MetaDelete(meta) => {
                let how =
                    if meta.flags.invalidate { Invalidation::Soft } else { Invalidation::Hard };
                let names = [&*meta.key.bytes];
                let is_tag = matches!(meta.flags.extension, Extension::Tag);
                let purge = match is_tag {
                    true => Purge { tags: &names, ..Purge::default() },
                    false => Purge { prefixes: &names, ..Purge::default() },
                };
                let found = self.origin.purge(&purge, how, now).await?;
                let is_found = !is_tag || found.tags > 0;
                let outcome =
                    if is_found { DeleteOutcome::Deleted } else { DeleteOutcome::NotFound };
                super::meta::push_deleted(outcome, meta, &mut answer.output);
            }
            _ => {}
        }
        Ok(answer)
    }
}

/// Everything, as `flush_all` purges it.
const EVERYTHING: Purge<'_> = Purge { keys: &[], tags: &[], prefixes: &[b""] };

/// Carries out a `flush_all` with a delay. It is lost if this process ends before.
async fn flush_later(origin: Arc<StoreOrigin>, delay: Duration) {
    tokio::time::sleep(delay).await;
    let purged = origin.purge(&EVERYTHING, Invalidation::Hard, Now::on_steady_clock()).await;
    if let Err(error) = purged {
        tracing::error!(%error, "a delayed flush_all was not carried out");
    }
}

impl fmt::Debug for AtOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtOrigin").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// The items that a command needs.
enum Items {
    /// Those of these keys.
    Of(Vec<Bytes>),
    /// None: it replaces the one of this key, whatever it is.
    Blind(Bytes),
    /// It does not name them.
    Many,
    /// It needs none.
    None,
}

fn items_of(command: &Command<'_>) -> Items {
    let one = |key: &[u8]| Items::Of(vec![Bytes::copy_from_slice(key)]);
    let blind = |key: &[u8]| Items::Blind(Bytes::copy_from_slice(key));
    match command {
        Command::Retrieve(retrieval) => {
            let keys = retrieval.keys.take(KEYS_AT_ONCE).map(Bytes::copy_from_slice);
            Items::Of(keys.collect())
        }
        Command::Store(Storage { mode: StoreMode::Set, compare_cas: None, key, .. }) => blind(key),
        Command::Store(storage) => one(storage.key),
        Command::MetaSet(set) if set.mode == StoreMode::Set && set.flags.cas.is_none() => {
            blind(&set.key.bytes)
        }
        Command::MetaSet(set) => one(&set.key.bytes),
        Command::TooLarge { key, .. } => blind(&key.bytes),
        Command::MetaDebug(key) => one(&key.bytes),
        Command::Delete { key, .. } | Command::Touch { key, .. } => one(key),
        Command::Arithmetic(arithmetic) => one(arithmetic.key),
        Command::MetaDelete(meta) => match meta.flags.extension {
            Extension::Tag | Extension::Prefix => Items::Many,
            _ => one(&meta.key.bytes),
        },
        Command::MetaGet(meta) | Command::MetaArithmetic(meta, _) => one(&meta.key.bytes),
        Command::FlushAll { .. } => Items::Many,
        _ => Items::None,
    }
}

/// Returns whether a client expects no answer, not even an error (`noreply`).
fn is_silent(command: &Command<'_>) -> bool {
    match command {
        Command::Store(storage) => storage.noreply,
        Command::Arithmetic(arithmetic) => arithmetic.noreply,
        Command::Delete { noreply, .. }
        | Command::Touch { noreply, .. }
        | Command::FlushAll { noreply, .. }
        | Command::TooLarge { noreply, .. } => *noreply,
        _ => false,
    }
}
