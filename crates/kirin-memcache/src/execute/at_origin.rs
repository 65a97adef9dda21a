//! Carries out commands whose items are at the origin of the store.
//!
//! A command that the copies on this machine cannot answer goes this way. It is carried out on the
//! items of the origin ([`Scratch`]). The client gets the answer when the origin has the change.
//!
//! A `set` needs not know what is there, so nothing is read for it. Purges are one write.

use std::fmt;
use std::os::fd::RawFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use kirin_origin::{OriginError, Purge, Scratch, StoreOrigin};
use kirin_store::{DeleteOutcome, Invalidation, Now, StoreMode};

use super::Executor;
use super::retrieval::rest_of_line;
use crate::codec::{self, Command, Exptime, Extension, Meta, ParsedInput, Retrieval, Storage};
use crate::output::OutputBuffer;
use crate::server::MemcachedServer;

/// The time between two attempts to carry out a delayed `flush_all`.
const FLUSH_PAUSE: Duration = Duration::from_secs(1);

/// The most keys of a retrieval that are read at once. The others wait, so the memory of a command
/// does not grow with its line.
const KEYS_AT_ONCE: usize = 8;

/// The way to the origin from one loop.
pub(super) struct AtOrigin {
    origin: Arc<StoreOrigin>,
    scratch: Scratch,
    /// Carries out commands on the scratch store.
    executor: Executor,
}

/// A command that waits for the origin.
pub struct OriginWork(Pin<Box<dyn Future<Output = OriginAnswer>>>);

/// The answer to a command.
#[derive(Default)]
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

impl Executor {
    /// Returns whether this machine can answer a command alone.
    // Stores without an origin do not pay for it.
    #[cold]
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
        let Some(item) = self.store().peek(&meta.key.bytes, self.now()) else {
            return flags.vivify.is_none() && at_origin.origin.is_absent(&meta.key.bytes);
        };
        // `N` and `E` matter only where there is nothing, and `R` only shortly before the end.
        let expires_soon = flags.recache.is_some_and(|within| {
            let (expires, soon) = (item.expires().time(), within.expires(self.now()).time());
            within.0 != 0 && expires.is_some_and(|expires| soon.is_none_or(|soon| expires < soon))
        });
        flags.ttl.is_none() && !expires_soon && !item.is_stale()
    }

    /// Returns whether an item is known to be nowhere, or is nobody else's.
    pub(super) fn is_absent(&self, key: &[u8]) -> bool {
        self.at_origin.as_ref().is_none_or(|at_origin| at_origin.origin.is_absent(key))
    }

    /// Begins a command whose items are at the origin.
    /// `command` is its line, with the data block if it has one.
    pub(crate) fn begin_at_origin(&self, command: Vec<u8>) -> Option<OriginWork> {
        let at_origin = Rc::clone(self.at_origin.as_ref()?);
        let descriptor = self.descriptor.get();
        Some(OriginWork(Box::pin(async move { at_origin.carry_out(&command, descriptor).await })))
    }
}

impl AtOrigin {
    pub(super) fn new(origin: Arc<StoreOrigin>, server: &Arc<MemcachedServer>) -> Self {
        let item_limit_bytes = server.options().limits.item_size_bytes;
        let scratch = Scratch::new(Arc::clone(&origin), item_limit_bytes);
        server.add_scratch(Arc::clone(scratch.store()));
        let executor = Executor::on_store(Arc::clone(server), Arc::clone(scratch.store()));
        Self { origin, scratch, executor }
    }

    async fn carry_out(&self, command: &[u8], descriptor: RawFd) -> OriginAnswer {
        let parsed = codec::parse(command, self.executor.limits());
        let ParsedInput::Command { command, .. } = parsed else {
            debug_assert!(false, "a command that waits is not complete");
            return OriginAnswer::default();
        };
        let carried_out = self.try_carry_out(&command, descriptor).await;
        carried_out.unwrap_or_else(|error| {
            let mut answer = OriginAnswer::default();
            if !is_silent(&command) {
                answer.output.line(&error_line(&error));
            }
            answer
        })
    }

    async fn try_carry_out(
        &self,
        command: &Command<'_>,
        descriptor: RawFd,
    ) -> Result<OriginAnswer, OriginError> {
        let mut answer = OriginAnswer::default();
        let run = || {
            self.on_executor(descriptor, |executor, output| {
                executor.execute(command.clone(), output);
            })
        };
        match items_of(command) {
            Items::Blind(key) => {
                answer.output = self.scratch.replace(&key, run).await?;
            }
            Items::Of(key) => answer.output = self.scratch.change(&key, run).await?,
            Items::Removed(key) => answer.output = self.scratch.remove(&key, run).await?,
            Items::Keys(retrieval) => return self.retrieve(retrieval, descriptor).await,
            Items::Many => return self.purge(command).await,
            // An error in the data block, for example.
            Items::None => answer.output = run(),
        }
        Ok(answer)
    }

    /// Runs a command for a client on the scratch store. Returns its answer.
    fn on_executor(
        &self,
        descriptor: RawFd,
        run: impl FnOnce(&Executor, &mut OutputBuffer),
    ) -> OutputBuffer {
        let mut output = OutputBuffer::default();
        self.executor.tick();
        self.executor.set_descriptor(descriptor);
        run(&self.executor, &mut output);
        output
    }

    /// Looks up the first keys of a retrieval. Each is answered, and what that changes is written,
    /// before the next one.
    async fn retrieve(
        &self,
        retrieval: &Retrieval<'_>,
        descriptor: RawFd,
    ) -> Result<OriginAnswer, OriginError> {
        let mut answer = OriginAnswer::default();
        let mut rest = retrieval.keys;
        let keys: Vec<Bytes> =
            rest.by_ref().take(KEYS_AT_ONCE).map(Bytes::copy_from_slice).collect();
        for loaded in self.origin.load(&keys).await? {
            let key = loaded.key.clone();
            let look_up = || {
                self.on_executor(descriptor, |executor, output| {
                    executor.retrieve_key(&key, retrieval, executor.observed.load(), output);
                })
            };
            let output = self.scratch.change_loaded(loaded, look_up).await?;
            answer.output.append(output);
        }
        if { rest }.next().is_some() {
            answer.rest = rest_of_line(retrieval, rest.rest());
        } else {
            answer.output.push(b"END\r\n");
        }
        Ok(answer)
    }

    /// Carries out `flush_all`, and `md` with a tag or a prefix.
    async fn purge(&self, command: &Command<'_>) -> Result<OriginAnswer, OriginError> {
        let now = Now::on_steady_clock();
        let mut answer = OriginAnswer::default();
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
                self.executor.server().replace_delayed_flush(flush);
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

/// The longest text of an error in an answer, in bytes.
const ERROR_LIMIT_BYTES: usize = 400;

/// Returns the answer for an error. Its text may be the server's: it is one line, and not long.
fn error_line(error: &OriginError) -> String {
    let mut line = format!("SERVER_ERROR {error}").replace(char::is_control, " ");
    line.truncate(line.floor_char_boundary(ERROR_LIMIT_BYTES));
    line
}

/// Everything, as `flush_all` purges it.
const EVERYTHING: Purge<'_> = Purge { keys: &[], tags: &[], other_tags: &[], prefixes: &[b""] };

/// Carries out a `flush_all` with a delay. It is lost if this process ends before.
async fn flush_later(origin: Arc<StoreOrigin>, delay: Duration) {
    tokio::time::sleep(delay).await;
    // It was acknowledged, so it is done as soon as that is possible.
    while let Err(error) =
        origin.purge(&EVERYTHING, Invalidation::Hard, Now::on_steady_clock()).await
    {
        tracing::warn!(%error, "a delayed flush_all could not be carried out yet");
        tokio::time::sleep(FLUSH_PAUSE).await;
    }
}

impl fmt::Debug for AtOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtOrigin").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// The items that a command needs.
enum Items<'a> {
    /// The one of this key.
    Of(Bytes),
    /// The one of this key, to remove it.
    Removed(Bytes),
    /// Those of the keys of a retrieval.
    Keys(&'a Retrieval<'a>),
    /// None: it replaces the one of this key, whatever it is.
    Blind(Bytes),
    /// It does not name them.
    Many,
    /// It needs none.
    None,
}

fn items_of<'a>(command: &'a Command<'a>) -> Items<'a> {
    let one = |key: &[u8]| Items::Of(Bytes::copy_from_slice(key));
    let blind = |key: &[u8]| Items::Blind(Bytes::copy_from_slice(key));
    match command {
        Command::Retrieve(retrieval) => Items::Keys(retrieval),
        Command::Store(Storage { mode: StoreMode::Set, compare_cas: None, key, .. }) => blind(key),
        Command::Store(storage) => one(storage.key),
        Command::MetaSet(set) if set.mode == StoreMode::Set && set.flags.cas.is_none() => {
            blind(&set.key.bytes)
        }
        Command::MetaSet(set) => one(&set.key.bytes),
        Command::TooLarge { key, .. } => blind(&key.bytes),
        Command::MetaDebug(key) => one(&key.bytes),
        Command::Delete { key, .. } => Items::Removed(Bytes::copy_from_slice(key)),
        Command::Touch { key, .. } => one(key),
        Command::Arithmetic(arithmetic) => one(arithmetic.key),
        Command::MetaDelete(meta) => match meta.flags.extension {
            Extension::Tag | Extension::Prefix => Items::Many,
            _ => Items::Removed(Bytes::copy_from_slice(&meta.key.bytes)),
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
