//! The giving side of a hand-over.

use std::io::{self, Write};
use std::sync::Arc;

use kirin_sync::Mutex;
use kirin_sync::atomic::{AtomicBool, Ordering};

use crate::clock::Now;
use crate::hand_over::changed_keys::{ChangedKeys, PendingBytes};
use crate::hand_over::frame::{self, Invalidated, InvalidatedFrame};
use crate::invalidation::state::{Invalidation, ItemState};
use crate::items::item::ItemRef;
use crate::items::shard::Shard;
use crate::memory::slab::mark;
use crate::store::Store;

/// Slots or keys that are read under one lock.
const ITEMS_PER_LOCK: usize = 256;

/// The most bytes of the names of invalidations that wait.
const NAMES_LIMIT_BYTES: usize = 16 << 20;

/// How far the following side's sequence numbers are ahead. The giving side takes fewer numbers
/// than this until the switch.
const SEQUENCE_DISTANCE: u64 = 1 << 32;

/// An error of a hand-over.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    /// Another hand-over is going on.
    #[error("another hand-over of the store is going on")]
    GoingOn,
    /// More changes wait than there is memory for.
    #[error("the store changes faster than the other program can follow")]
    TooFast,
    /// The other program does not take the contents, or has sent something else.
    #[error("store: {0}")]
    Io(#[from] io::Error),
}

/// The invalidations that were not sent yet. There are none without a hand-over.
#[derive(Debug, Default)]
pub(crate) struct PendingInvalidations {
    /// Whether a hand-over is going on.
    is_on: AtomicBool,
    waiting: Mutex<Option<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    list: Vec<(Box<[u8]>, InvalidationKind, u64)>,
    name_bytes: usize,
    /// The raw time of a delayed flush, if that has changed.
    flush_due: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
enum InvalidationKind {
    Tag(Invalidation),
    Prefix(Invalidation),
    All,
}

impl PendingInvalidations {
    /// Notes an invalidation that has been made.
    pub(crate) fn note(&self, what: &Invalidated<'_>, sequence: u64) {
        if self.is_on.load(Ordering::Acquire)
            && let Some(waiting) = &mut *self.waiting.lock()
        {
            let (name, kind) = match *what {
                Invalidated::Tag(name, how) => (name, InvalidationKind::Tag(how)),
                Invalidated::Prefix(name, how) => (name, InvalidationKind::Prefix(how)),
                Invalidated::All => (&b""[..], InvalidationKind::All),
            };
            waiting.name_bytes += name.len() + size_of::<(Box<[u8]>, InvalidationKind, u64)>();
            if waiting.name_bytes <= NAMES_LIMIT_BYTES {
                waiting.list.push((name.into(), kind, sequence));
            }
        }
    }

    /// Notes that a delayed flush has been ordered or taken back.
    pub(crate) fn note_flush_due(&self, raw: u32) {
        if self.is_on.load(Ordering::Acquire)
            && let Some(waiting) = &mut *self.waiting.lock()
        {
            waiting.flush_due = Some(raw);
        }
    }

    fn take(&self) -> Result<Waiting, HandOverError> {
        let mut waiting = self.waiting.lock();
        let Some(waiting) = &mut *waiting else { return Ok(Waiting::default()) };
        if waiting.name_bytes > NAMES_LIMIT_BYTES {
            return Err(HandOverError::TooFast);
        }
        Ok(std::mem::take(waiting))
    }
}

/// The hand-over of a store to another process, from the side that gives. The store notes its
/// changes as long as this exists.
#[derive(Debug)]
pub struct HandOver {
    store: Arc<Store>,
    pending: Arc<PendingBytes>,
    is_switched: AtomicBool,
}

impl HandOver {
    /// Begins to note the changes of a store.
    pub fn begin(store: Arc<Store>) -> Result<HandOver, HandOverError> {
        let mut invalidations = store.invalidations.waiting.lock();
        if invalidations.is_some() {
            return Err(HandOverError::GoingOn);
        }
        *invalidations = Some(Waiting::default());
        store.invalidations.is_on.store(true, Ordering::SeqCst);
        drop(invalidations);
        let pending = Arc::<PendingBytes>::default();
        for index in 0..store.shards.len() {
            let changed = ChangedKeys::new(Arc::clone(&pending));
            store.lock_shard(index).changed = Some(Box::new(changed));
        }
        Ok(HandOver { store, pending, is_switched: AtomicBool::new(false) })
    }

    /// Sends all items, each shard in the order of eviction, and the changes that were made
    /// meanwhile. Returns the number of items.
    pub fn copy(&self, to: &mut impl Write, now: impl Fn() -> Now) -> Result<u64, HandOverError> {
        let mut items = 0;
        for index in 0..self.store.shards.len() {
            items += self.copy_shard(index, to, now())?;
            // The keys that have changed do not wait for all others.
            self.send_changes(to, now())?;
        }
        frame::write_flush_due(to, self.store.flush_due.load(Ordering::Relaxed))?;
        frame::write_copied(to)?;
        self.send_changes(to, now())?;
        Ok(items)
    }

    pub(crate) fn copy_shard(
        &self,
        index: usize,
        to: &mut impl Write,
        now: Now,
    ) -> Result<u64, HandOverError> {
        let mut sent = 0;
        let locked = &self.store.shards[index];
        let order = locked.shard.read().in_queue_order();
        for some in order.chunks(ITEMS_PER_LOCK) {
            let items: Vec<ItemRef> = {
                let shard = locked.shard.read();
                let occupied = some.iter().filter(|&&index| shard.occupied(index).is_some());
                occupied.filter_map(|&index| self.store.living(&shard, index, now)).collect()
            };
            for item in &items {
                frame::write_item(to, item)?;
            }
            sent += items.len() as u64;
        }
        Ok(sent)
    }

    /// Sends what has changed and was not sent yet. Returns how many keys and invalidations that
    /// were.
    pub fn send_changes(&self, to: &mut impl Write, now: Now) -> Result<usize, HandOverError> {
        match self.is_switched.load(Ordering::Relaxed) {
            false => self.send(to, now, false),
            true => self.send_late(to, now),
        }
    }

    /// Sends the last changes. From then on, changes are sent as new writes of the following side.
    /// No client may write that gets to know of it: memcached clients have to wait.
    pub fn switch(&self, to: &mut impl Write, now: Now) -> Result<(), HandOverError> {
        self.send(to, now, true)?;
        self.is_switched.store(true, Ordering::Relaxed);
        frame::write_switched(to)?;
        Ok(to.flush()?)
    }

    /// Sends what has changed after the switch, and then that this round of changes was sent. What
    /// has changed before this call is in it.
    pub fn send_round(
        &self,
        to: &mut impl Write,
        number: u64,
        now: Now,
    ) -> Result<usize, HandOverError> {
        let sent = self.send_late(to, now)?;
        frame::write_round(to, number)?;
        to.flush()?;
        Ok(sent)
    }

    /// Takes a delayed `flush_all` back, because the following side carries it out. Call this when
    /// the following side has taken over.
    pub fn leave_flush(&self) {
        self.store.flush_due.store(0, Ordering::Relaxed);
    }

    /// Returns the bytes of the keys that have changed and were not sent yet.
    pub fn pending_bytes(&self) -> usize {
        self.pending.get()
    }

    /// Returns the sequence number at which the following side begins.
    pub fn following_sequence(store: &Store) -> u64 {
        store.last_sequence() + SEQUENCE_DISTANCE
    }

    /// Sends what has changed up to the switch.
    fn send(&self, to: &mut impl Write, now: Now, is_switch: bool) -> Result<usize, HandOverError> {
        let mut sent = 0;
        if self.pending.get() > 0 || is_switch {
            for index in 0..self.store.shards.len() {
                let keys = self.take_keys(index, is_switch);
                for some in keys.chunks(ITEMS_PER_LOCK) {
                    self.send_states(some, &self.read_states(index, some, now), to)?;
                }
                sent += keys.len();
            }
        }
        // After the items: one that was read before an invalidation is sent before it, too. The
        // sequence numbers tell which items an invalidation is about.
        sent += self.send_invalidations(to)?;
        self.sent(sent, to)
    }

    /// Sends what has changed after the switch. The sequence numbers mean nothing to the following
    /// side any more, so the order counts: an item that was stored after an invalidation is sent
    /// after it.
    fn send_late(&self, to: &mut impl Write, now: Now) -> Result<usize, HandOverError> {
        let mut sent = self.send_invalidations(to)?;
        let mut changed = Vec::new();
        if self.pending.get() > 0 {
            for index in 0..self.store.shards.len() {
                // Before the whole items: one that was stored after a step has it.
                sent += self.send_steps(index, to)?;
                changed.push((index, self.take_keys(index, false)));
            }
        }
        let states = loop {
            let read =
                |(index, keys): &(usize, Vec<Box<[u8]>>)| self.read_states(*index, keys, now);
            let states: Vec<_> = changed.iter().map(read).collect();
            match self.send_invalidations(to)? {
                0 => break states,
                more => sent += more,
            }
        };
        for ((_, keys), states) in changed.iter().zip(&states) {
            self.send_states(keys, states, to)?;
            sent += keys.len();
        }
        self.sent(sent, to)
    }

    fn sent(&self, sent: usize, to: &mut impl Write) -> Result<usize, HandOverError> {
        if self.pending.is_over() {
            return Err(HandOverError::TooFast);
        }
        to.flush()?;
        Ok(sent)
    }

    /// Sends the steps of the items of a shard. Returns how many there were.
    fn send_steps(&self, index: usize, to: &mut impl Write) -> io::Result<usize> {
        let mut shard = self.store.lock_shard(index);
        let Some(changed) = &mut shard.changed else { return Ok(0) };
        let steps = changed.take_steps();
        drop(shard);
        for (key, step) in &steps {
            frame::write_step(to, key, *step)?;
            self.pending.give_back(ChangedKeys::bytes_of(key));
        }
        Ok(steps.len())
    }

    /// Takes the keys of a shard that have changed.
    fn take_keys(&self, index: usize, is_switch: bool) -> Vec<Box<[u8]>> {
        let mut shard = self.store.lock_shard(index);
        let Some(changed) = &mut shard.changed else { return Vec::new() };
        changed.counts_all &= !is_switch;
        changed.take().into_iter().collect()
    }

    /// Returns the present states of keys.
    fn read_states(&self, index: usize, keys: &[Box<[u8]>], now: Now) -> Vec<Option<ItemRef>> {
        let shard = self.store.shards[index].shard.read();
        let state = |key: &[u8]| {
            let found = shard.find(self.store.hash(key), key)?;
            self.store.living(&shard, found, now)
        };
        keys.iter().map(|key| state(key)).collect()
    }

    fn send_states(
        &self,
        keys: &[Box<[u8]>],
        states: &[Option<ItemRef>],
        to: &mut impl Write,
    ) -> io::Result<()> {
        for (key, state) in keys.iter().zip(states) {
            match state {
                Some(item) => frame::write_item(to, item)?,
                None => frame::write_absent(to, key)?,
            }
            self.pending.give_back(ChangedKeys::bytes_of(key));
        }
        Ok(())
    }

    /// Sends the invalidations that wait. Returns how many there were.
    fn send_invalidations(&self, to: &mut impl Write) -> Result<usize, HandOverError> {
        let Waiting { list, flush_due, .. } = self.store.invalidations.take()?;
        for (name, kind, sequence) in &list {
            let what = match kind {
                InvalidationKind::Tag(how) => Invalidated::Tag(name, *how),
                InvalidationKind::Prefix(how) => Invalidated::Prefix(name, *how),
                InvalidationKind::All => Invalidated::All,
            };
            let sequence = *sequence;
            frame::write_invalidated(to, &InvalidatedFrame { what, sequence })?;
        }
        if let Some(raw) = flush_due {
            frame::write_flush_due(to, raw)?;
        }
        Ok(list.len() + usize::from(flush_due.is_some()))
    }
}

impl Drop for HandOver {
    fn drop(&mut self) {
        for index in 0..self.store.shards.len() {
            self.store.lock_shard(index).changed = None;
        }
        self.store.invalidations.is_on.store(false, Ordering::Relaxed);
        *self.store.invalidations.waiting.lock() = None;
    }
}

impl Store {
    /// Returns the item in a slot, if it may be served.
    fn living(&self, shard: &Shard, index: u32, now: Now) -> Option<ItemRef> {
        match self.state_of(shard, index, now) {
            ItemState::Fresh => Some(shard.item(index, 0)),
            ItemState::Stale => Some(shard.item(index, mark::STALE)),
            ItemState::Invalidated | ItemState::Expired => None,
        }
    }
}
