//! The following side of a hand-over.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::{HashMap, HashSet};

use crate::clock::{Expires, Now};
use crate::commands::arithmetic::{ArithmeticRequest, Direction};
use crate::commands::delete::DeleteRequest;
use crate::commands::storage::NewItem;
use crate::eviction::room::Contended;
use crate::hand_over::frame::{self, Frame, Invalidated, InvalidatedFrame, ItemFrame};
use crate::hand_over::giving::HandOverError;
use crate::hand_over::item_step::ItemStep;
use crate::inspect::ScanCursor;
use crate::invalidation::change_log::Moment;
use crate::items::value::NewValue;
use crate::memory::slab::mark;
use crate::snapshot::time::translate_expiry;
use crate::store::Store;

/// What the giving side has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOverStep {
    /// It has sent all items once.
    Copied,
    /// It has sent all changes. The following side takes writes from now on.
    Switched,
    /// It has ended.
    Ended,
}

/// The hand-over of a store from another process, from the side that follows.
#[derive(Debug)]
pub struct Follower {
    store: Arc<Store>,
    /// The keys that this program has written before. Their items stay.
    own: HashSet<Box<[u8]>>,
    /// The raw time of a delayed flush, or 0. It counts from the switch on.
    flush_due: u32,
    /// The seconds that this program's clock is ahead.
    ahead_seconds: i64,
    /// The moment of the switch.
    switched: Option<Moment>,
    /// What the giving side has invalidated since: the sequence numbers of this side, by the hashes
    /// of the names. They keep no later write of that side away.
    invalidated: HashMap<u64, u64>,
    /// The number of the last round of changes that was applied.
    rounds: Arc<AtomicU64>,
    payload: Vec<u8>,
}

impl Follower {
    /// Lets a store follow another one. It must have got its first number by
    /// [`Store::number_from`]. The clock of its callers is `ahead_seconds` ahead of that of the
    /// giving side.
    pub fn new(store: Arc<Store>, ahead_seconds: i64, now: Now) -> Follower {
        let (mut own, mut cursor) = (HashSet::default(), ScanCursor::default());
        while store.scan(&mut cursor, now, |item| _ = own.insert(item.key.into())) {}
        Follower {
            store,
            own,
            ahead_seconds,
            flush_due: 0,
            switched: None,
            invalidated: HashMap::default(),
            rounds: Arc::default(),
            payload: Vec::new(),
        }
    }

    /// Returns the number of the last round of changes that was applied, for other threads. It is
    /// the highest that there is when the giving side has ended.
    pub fn rounds(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.rounds)
    }

    /// Applies what comes until the giving side reaches its next step.
    pub fn follow(
        &mut self,
        from: &mut impl Read,
        now: impl Fn() -> Now,
    ) -> Result<HandOverStep, HandOverError> {
        loop {
            let mut payload = std::mem::take(&mut self.payload);
            let Some(kind) = frame::read(from, &mut payload)? else {
                self.rounds.store(u64::MAX, Ordering::Release);
                return Ok(HandOverStep::Ended);
            };
            let unreadable = || io::Error::new(io::ErrorKind::InvalidData, "an unreadable frame");
            let step = match frame::parse(kind, &payload).ok_or_else(unreadable)? {
                Frame::Copied => Some(HandOverStep::Copied),
                Frame::Round(number) => {
                    self.rounds.store(number, Ordering::Release);
                    None
                }
                Frame::Switched => {
                    self.store.flush_due.store(self.flush_due, Ordering::Relaxed);
                    self.switched = Some(self.store.moment());
                    Some(HandOverStep::Switched)
                }
                Frame::FlushDue(raw) => {
                    let due = self.expiry_of_flush(raw);
                    match self.switched {
                        None => self.flush_due = due,
                        Some(_) => self.store.flush_due.store(due, Ordering::Relaxed),
                    }
                    None
                }
                frame => {
                    self.apply(&frame, now());
                    None
                }
            };
            self.payload = payload;
            if let Some(step) = step {
                return Ok(step);
            }
        }
    }

    fn apply(&mut self, frame: &Frame<'_>, now: Now) {
        match (frame, self.switched.is_some()) {
            (Frame::Item(item), false) => {
                // Without room there is no item, as with a `set`.
                if self.store.retry_while_contended(|| self.put(item, now)).is_none() {
                    self.remove(item.key);
                }
                self.store.keep_within_limit(now);
            }
            (Frame::Item(item), true) => self.write(item, now),
            (Frame::Absent(key), false) => self.remove(key),
            (Frame::Absent(key), true) => {
                self.store.delete(key, now);
                self.has_invalidated(self.store.hash(key));
            }
            (Frame::Invalidated(frame), false) => self.store.invalidate_up_to(frame, now),
            (Frame::Invalidated(InvalidatedFrame { what, .. }), true) => {
                match *what {
                    Invalidated::Tag(tag, how) => _ = self.store.invalidate_tag(tag, how),
                    Invalidated::Prefix(prefix, how) => {
                        self.store.invalidate_prefix(prefix, how, now);
                    }
                    Invalidated::All => self.store.flush_all(now, now),
                }
                self.has_invalidated(self.store.hash_of_invalidated(what));
            }
            (Frame::Step(key, ItemStep::Touch(expires)), _) => {
                self.store.touch(key, self.expiry(expires.raw()), now);
            }
            (Frame::Step(key, ItemStep::Up(delta)), _) => {
                self.count(key, Direction::Up, *delta, now);
            }
            (Frame::Step(key, ItemStep::Down(delta)), _) => {
                self.count(key, Direction::Down, *delta, now);
            }
            (Frame::FlushDue(_) | Frame::Copied | Frame::Switched | Frame::Round(_), _) => {}
        }
    }

    /// Translates a moment of the giving side's clock. The last possible one stands for all later
    /// ones.
    fn moment(&self, moment: Now) -> Now {
        match moment.unix_seconds() {
            seconds if seconds == u64::from(u32::MAX) => moment,
            seconds => Now::from_unix_seconds(seconds.saturating_add_signed(self.ahead_seconds)),
        }
    }

    /// Translates the raw time of a delayed flush, or 0.
    fn expiry_of_flush(&self, raw: u32) -> u32 {
        if raw == 0 { 0 } else { self.moment(Now::from_raw(raw)).raw() }
    }

    fn expiry(&self, raw: u32) -> Expires {
        translate_expiry(Expires::from_raw(raw), |moment| self.moment(moment))
    }

    /// Puts an item where the giving side has it, with all its numbers.
    fn put(&self, item: &ItemFrame<'_>, now: Now) -> Result<(), Contended> {
        if self.own.contains(item.key) {
            return Ok(());
        }
        let store = &self.store;
        let hash = store.hash(item.key);
        let mut shard = store.lock_shard_of(hash);
        let found = shard.find(hash, item.key);
        let expires = self.expiry(item.expires);
        let is_kept =
            !expires.is_due(now) && store.is_storable(item.key, item.value.len(), &item.tags);
        let new = NewItem {
            value: NewValue::Copied(item.value),
            flags: item.flags,
            expires,
            tags: &item.tags,
        };
        let mut prepared = store.prepare(&shard, item.key, &new);
        prepared.cas = item.cas;
        prepared.side.sequence = (item.sequence != item.cas).then_some(item.sequence);
        prepared.last_access = self.moment(Now::from_raw(item.last_access));
        prepared.marks = item.marks;
        let has_room = is_kept
            && store.make_room(
                &mut shard,
                |shard| shard.growth_bytes(&prepared, found),
                found,
                now,
            )?;
        match (found, has_room) {
            (Some(index), true) => shard.replace(index, prepared),
            (None, true) => _ = shard.insert(hash, prepared),
            (Some(index), false) => shard.remove(index),
            (None, false) => {}
        }
        Ok(())
    }

    /// Removes an item that the giving side no longer has.
    fn remove(&self, key: &[u8]) {
        let hash = self.store.hash(key);
        let mut shard = self.store.lock_shard_of(hash);
        if let Some(index) = shard.find(hash, key)
            && !self.own.contains(key)
        {
            shard.remove(index);
        }
    }

    fn count(&self, key: &[u8], direction: Direction, delta: u64, now: Now) {
        let count = ArithmeticRequest { direction, delta, ..ArithmeticRequest::default() };
        self.store.arithmetic(key, &count, now);
    }

    /// Notes what the giving side has just invalidated here.
    fn has_invalidated(&mut self, hash: u64) {
        if let Some(noted) = self.store.change_log.noted(hash) {
            self.invalidated.insert(hash, noted);
        }
        // Later invalidations have other numbers.
        self.store.next_sequence();
    }

    /// Carries out a write of the giving side that it made after the switch.
    fn write(&mut self, item: &ItemFrame<'_>, now: Now) {
        let Some(switched) = &self.switched else { return };
        if self.store.is_changed_by_others(switched, item.key, &item.tags, &self.invalidated) {
            return;
        }
        let new = NewItem {
            value: NewValue::Copied(item.value),
            flags: item.flags,
            expires: self.expiry(item.expires),
            tags: &item.tags,
        };
        self.store.set(item.key, new, now);
        if item.marks & mark::STALE != 0 {
            let stale = DeleteRequest { invalidate: true, ..DeleteRequest::default() };
            self.store.meta_delete(item.key, &stale, now);
            self.has_invalidated(self.store.hash(item.key));
        }
    }
}

impl Store {
    /// Lets the sequence numbers of an empty store begin at `first`, which a giving side has told
    /// ([`HandOver::following_sequence`](crate::HandOver::following_sequence)).
    pub fn number_from(&self, first: u64) {
        self.sequences.fetch_max(first, Ordering::Relaxed);
    }

    /// Invalidates items up to a sequence number that another store has given them.
    fn invalidate_up_to(&self, frame: &InvalidatedFrame<'_>, now: Now) {
        let InvalidatedFrame { what, sequence } = frame;
        match *what {
            Invalidated::Tag(tag, how) => _ = self.tags.invalidate(tag, how, *sequence),
            Invalidated::Prefix(prefix, how) => {
                while self.prefixes.invalidate_up_to(prefix, how, || *sequence).is_none() {
                    self.sweep_everything(now);
                }
            }
            Invalidated::All => _ = self.flushed_up_to.fetch_max(*sequence, Ordering::Release),
        }
    }
}
