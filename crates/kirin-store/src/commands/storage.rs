//! `set`, `add`, `replace`, `append`, `prepend` and `cas`.

use crate::clock::{Expires, Now};
use crate::config::{KEY_LIMIT_BYTES, TAG_LIMIT_BYTES, TAGS_PER_ITEM};
use crate::eviction::room::Contended;
use crate::invalidation::change_log::Moment;
use crate::items::item::ItemRef;
use crate::items::prepared_item::PreparedItem;
use crate::items::shard::Shard;
use crate::items::value::NewValue;
use crate::memory::slab::{Slot, mark};
use crate::statistics::counters::bump;
use crate::store::{ShardGuard, Store};

/// The item that a storage command brings.
#[derive(Clone, Debug)]
pub struct NewItem<'a> {
    /// The value, or the part to append or prepend.
    pub value: NewValue<'a>,
    /// The client flags. Append and prepend ignore them.
    pub flags: u32,
    /// The expiry. Append and prepend ignore it.
    pub expires: Expires,
    /// The tags of the item: at most [`TAGS_PER_ITEM`] of at most [`TAG_LIMIT_BYTES`] each. Append
    /// and prepend keep those of the old item.
    pub tags: &'a [&'a [u8]],
}

impl<'a> NewItem<'a> {
    /// Returns an item with this value and without flags, expiry or tags.
    pub fn new(value: impl Into<NewValue<'a>>) -> NewItem<'a> {
        NewItem { value: value.into(), flags: 0, expires: Expires::NEVER, tags: &[] }
    }

    /// Sets the client flags.
    pub fn flags(self, flags: u32) -> NewItem<'a> {
        NewItem { flags, ..self }
    }

    /// Sets the expiry.
    pub fn expires(self, expires: Expires) -> NewItem<'a> {
        NewItem { expires, ..self }
    }

    /// Sets the tags.
    pub fn tags(self, tags: &'a [&'a [u8]]) -> NewItem<'a> {
        NewItem { tags, ..self }
    }
}

/// The condition of a storage command on the item that is there (meta `M` of `ms`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreMode {
    /// Stores in any case.
    #[default]
    Set,
    /// Stores only if there is no such item.
    Add,
    /// Stores only if there is such an item.
    Replace,
    /// Adds to the end of the value that is there.
    Append,
    /// Adds to the start of the value that is there.
    Prepend,
}

/// The conditions of a storage command. The default is a plain `set`.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreRequest<'a> {
    /// The condition on the item that is there (meta `M`).
    pub mode: StoreMode,
    /// The CAS unique that the item must have (`cas`, meta `C`).
    pub compare_cas: Option<u64>,
    /// The item's new CAS unique, in place of the next one (meta `E`).
    pub new_cas: Option<u64>,
    /// If `compare_cas` is older than the item, stores nevertheless, but marks the item stale (meta
    /// `I`).
    pub invalidate_older: bool,
    /// For append and prepend: creates the item with this expiry if there is none (meta `N`).
    pub vivify: Option<Expires>,
    /// Stores only if nothing has changed since this moment. That is: neither the key nor a tag of
    /// the item nor a prefix of the key has been invalidated, and no other item has been stored
    /// under the key.
    ///
    /// If something has changed, or the store cannot tell, the outcome is
    /// [`StoreOutcome::NotStored`]. [`Store::change_since`] tells which of the two it was.
    pub unchanged_since: Option<&'a Moment>,
}

/// The outcome of a storage command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOutcome {
    /// The item was stored: `STORED`, `HD`.
    Stored {
        /// The CAS unique of the item.
        cas: u64,
    },
    /// A condition of the command was not met, or something has changed since the given moment:
    /// `NOT_STORED`, `NS`.
    NotStored,
    /// The item has another CAS unique: `EXISTS`, `EX`.
    Exists,
    /// There is no item to compare the CAS unique with: `NOT_FOUND`, `NF`.
    NotFound,
    /// The item is too large: `SERVER_ERROR object too large for cache`. As in memcached, a `set`
    /// also removes the old item.
    TooLarge,
    /// There is no room: `SERVER_ERROR out of memory storing object`. A `set` also removes the old
    /// item.
    OutOfMemory,
}

impl StoreOutcome {
    /// Returns whether the item was stored.
    pub fn is_stored(self) -> bool {
        matches!(self, StoreOutcome::Stored { .. })
    }
}

/// The number of digits of `u64::MAX`.
pub(crate) const NUMBER_LIMIT_BYTES: usize = 20;

/// How often a command starts again while other threads hold all items that could be evicted.
const CONTENDED_TRIES: usize = 1000;

impl Store {
    /// Carries out `set`.
    pub fn set(&self, key: &[u8], item: NewItem<'_>, now: Now) -> StoreOutcome {
        self.store(key, item, &StoreRequest::default(), now)
    }

    /// Carries out any storage command atomically.
    pub fn store(
        &self,
        key: &[u8],
        item: NewItem<'_>,
        request: &StoreRequest<'_>,
        now: Now,
    ) -> StoreOutcome {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let counters = &self.shards[self.shard_index(hash)].counters;
        bump(&counters.cmd_set);
        if !self.is_storable(key, item.value.as_slice().len(), item.tags) {
            bump(&counters.store_too_large);
            if request.mode == StoreMode::Set {
                self.discard(key);
            }
            return StoreOutcome::TooLarge;
        }
        let outcome =
            self.retry_while_contended(|| self.try_store(hash, key, &item, request, 0, now));
        match outcome.unwrap_or(StoreOutcome::OutOfMemory) {
            StoreOutcome::TooLarge => {
                bump(&counters.store_too_large);
                StoreOutcome::TooLarge
            }
            StoreOutcome::OutOfMemory => {
                bump(&counters.store_no_memory);
                if request.mode == StoreMode::Set {
                    self.discard(key);
                }
                StoreOutcome::OutOfMemory
            }
            outcome => {
                self.keep_within_limit(now);
                outcome
            }
        }
    }

    /// Tries until it works. Returns `None` if other threads hold all items that could be evicted
    /// for too long.
    pub(crate) fn retry_while_contended<T>(
        &self,
        mut try_once: impl FnMut() -> Result<T, Contended>,
    ) -> Option<T> {
        for _ in 0..CONTENDED_TRIES {
            match try_once() {
                Ok(done) => return Some(done),
                Err(Contended) => std::thread::yield_now(),
            }
        }
        None
    }

    /// Stores an item with these marks beside those that the command gives it.
    pub(crate) fn try_store(
        &self,
        hash: u64,
        key: &[u8],
        item: &NewItem<'_>,
        request: &StoreRequest<'_>,
        mut marks: u8,
        now: Now,
    ) -> Result<StoreOutcome, Contended> {
        let mut shard = self.lock_shard_of(hash);
        if let Some(since) = request.unchanged_since
            && (shard
                .find(hash, key)
                .is_some_and(|index| shard.is_stored_since(index, since.sequence()))
                || self.hashed_change_since(since, hash, key, item.tags).is_some())
        {
            return Ok(StoreOutcome::NotStored);
        }
        let found = self.find_live(&mut shard, hash, key, now);
        let mut expires = item.expires;
        if let Some(index) = found {
            let slot = shard.slot_mut(index);
            let old_marks = *slot.marks.get_mut();
            match compare(slot, request) {
                StorageComparison::Proceed => {}
                StorageComparison::ProceedStale => {
                    marks |= mark::STALE | old_marks & mark::WON;
                    expires = Expires::from_raw(slot.expires);
                }
                StorageComparison::Stop(outcome) => {
                    if outcome == StoreOutcome::Exists {
                        bump(&shard.counters.cas_badval);
                    }
                    shard.mark_used(index, now);
                    return Ok(outcome);
                }
            }
            // An item that is written again is in use. It keeps the hits that it had.
            marks |= (old_marks & mark::HITS).max(1);
        } else {
            match (request.mode, request.compare_cas, request.vivify) {
                (StoreMode::Append | StoreMode::Prepend, _, Some(vivified)) => expires = vivified,
                (StoreMode::Append | StoreMode::Prepend, _, None) => {
                    return Ok(StoreOutcome::NotStored);
                }
                (StoreMode::Set | StoreMode::Replace, Some(_), _) => {
                    bump(&shard.counters.cas_misses);
                    return Ok(StoreOutcome::NotFound);
                }
                (StoreMode::Replace, None, _) => return Ok(StoreOutcome::NotStored),
                (StoreMode::Set | StoreMode::Add, _, _) => {}
            }
        }
        let mut prepared = match (request.mode, found) {
            (StoreMode::Append, Some(index)) => shard.with_new_value(
                index,
                key,
                [shard.value(index), item.value.as_slice()].concat(),
            ),
            (StoreMode::Prepend, Some(index)) => shard.with_new_value(
                index,
                key,
                [item.value.as_slice(), shard.value(index)].concat(),
            ),
            _ => PreparedItem { expires, ..self.prepare(&shard, key, item) },
        };
        if !self.is_size_allowed(key.len(), prepared.value_len()) {
            return Ok(StoreOutcome::TooLarge);
        }
        prepared.marks |= marks;
        prepared.last_access = now;

        if !self.make_room(&mut shard, |shard| shard.growth_bytes(&prepared, found), found, now)? {
            return Ok(StoreOutcome::OutOfMemory);
        }
        let (cas, sequence) = self.assign_cas(request.new_cas);
        // Looks it up again, because invalidations from now on cover the new item.
        if let Some(since) = request.unchanged_since
            && self.hashed_change_since(since, hash, key, item.tags).is_some()
        {
            return Ok(StoreOutcome::NotStored);
        }
        prepared.cas = cas;
        prepared.side.sequence = sequence;
        if prepared.marks & mark::STALE != 0 {
            self.note_stored(hash, sequence.unwrap_or(cas));
        }
        bump(&shard.counters.total_items);
        if request.compare_cas.is_some() && found.is_some() {
            bump(&shard.counters.cas_hits);
        }
        shard.note_write(key);
        match found {
            Some(index) => shard.replace(index, prepared),
            None => {
                shard.insert(hash, prepared);
            }
        }
        Ok(StoreOutcome::Stored { cas })
    }

    /// Prepares a new item. It gets its CAS unique later.
    pub(crate) fn prepare<'a>(
        &self,
        shard: &Shard,
        key: &'a [u8],
        item: &'a NewItem<'_>,
    ) -> PreparedItem<'a> {
        let mut prepared = PreparedItem::new(key, shard.place_value(key, &item.value));
        let tags = item.tags.iter().map(|name| self.tags.intern(name, &self.budget));
        prepared.side.tags = tags.collect();
        prepared.flags = item.flags;
        prepared.expires = item.expires;
        prepared
    }

    /// Returns whether this store could take such an item at all. A protocol asks before it reads
    /// the value.
    pub fn is_storable(&self, key: &[u8], value_len: usize, tags: &[&[u8]]) -> bool {
        key.len() <= KEY_LIMIT_BYTES
            && tags.len() <= TAGS_PER_ITEM
            && tags.iter().all(|tag| tag.len() <= TAG_LIMIT_BYTES)
            && self.is_size_allowed(key.len(), value_len)
    }

    /// Returns the size of the largest item that is stored, in bytes.
    pub fn item_limit_bytes(&self) -> usize {
        self.config.item_limit_bytes
    }

    fn is_size_allowed(&self, key_len: usize, value_len: usize) -> bool {
        value_len.saturating_add(key_len + size_of::<Slot>()) <= self.config.item_limit_bytes
    }

    /// Removes an item without counting a delete. Memcached does this with the old value of a `set`
    /// that it refuses.
    pub fn discard(&self, key: &[u8]) {
        let hash = self.hash(key);
        let mut shard = self.lock_shard_of(hash);
        self.note_key(hash);
        shard.note_write(key);
        if let Some(index) = shard.find(hash, key) {
            shard.remove(index);
        }
    }

    /// Creates an item under a key that has none. Returns `None` if there is no room.
    pub(crate) fn vivify(
        &self,
        shard: &mut ShardGuard<'_>,
        hash: u64,
        key: &[u8],
        item: &NewItem<'_>,
        new_cas: Option<u64>,
        now: Now,
    ) -> Result<Option<(u32, ItemRef)>, Contended> {
        if !self.is_storable(key, NUMBER_LIMIT_BYTES, &[]) {
            return Ok(None);
        }
        let mut prepared = self.prepare(shard, key, item);
        if !self.make_room(shard, |shard| shard.growth_bytes(&prepared, None), None, now)? {
            bump(&shard.counters.store_no_memory);
            return Ok(None);
        }
        (prepared.cas, prepared.side.sequence) = self.assign_cas(new_cas);
        prepared.last_access = now;
        bump(&shard.counters.total_items);
        shard.note_write(key);
        let index = shard.insert(hash, prepared);
        Ok(Some((index, shard.item(index, 0))))
    }
}

/// The result of comparing a storage command with the item that is there.
enum StorageComparison {
    Proceed,
    /// The command proceeds. The item keeps its old expiry and becomes stale.
    ProceedStale,
    Stop(StoreOutcome),
}

fn compare(slot: &Slot, request: &StoreRequest<'_>) -> StorageComparison {
    let replaces = matches!(request.mode, StoreMode::Set | StoreMode::Replace);
    match (request.mode, request.compare_cas) {
        (StoreMode::Add, _) => StorageComparison::Stop(StoreOutcome::NotStored),
        (_, None) => StorageComparison::Proceed,
        (_, Some(cas)) if cas == slot.cas => StorageComparison::Proceed,
        (_, Some(cas)) if replaces && request.invalidate_older && cas != 0 && cas < slot.cas => {
            StorageComparison::ProceedStale
        }
        _ => StorageComparison::Stop(StoreOutcome::Exists),
    }
}
