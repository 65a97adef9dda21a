//! Storing: `set`, `add`, `replace`, `append`, `prepend`, `cas`, `touch`, `delete`.

use crate::clock::{Expires, Now};
use crate::config::{KEY_LIMIT_BYTES, TAG_LIMIT_BYTES, TAGS_PER_ITEM};
use crate::eviction::room::Contended;
use crate::invalidation::change_log::Moment;
use crate::items::item::ItemRef;
use crate::items::prepared_item::PreparedItem;
use crate::items::shard::Shard;
use crate::items::value::Value;
use crate::memory::slab::{Slot, mark};
use crate::statistics::counters::bump;
use crate::store::{ShardGuard, Store};

/// What a storage command brings.
#[derive(Clone, Debug)]
pub struct NewItem<'a> {
    /// The value, or what is appended or prepended.
    pub value: Value<'a>,
    /// Client flags; not for append and prepend.
    pub flags: u32,
    /// Expiry; not for append and prepend.
    pub expires: Expires,
    /// Tags to carry; for append and prepend those of the old item stay. At most
    /// [`TAGS_PER_ITEM`] of at most [`TAG_LIMIT_BYTES`] each.
    pub tags: &'a [&'a [u8]],
}

impl<'a> NewItem<'a> {
    /// An item with this value, no flags, no expiry and no tags.
    pub fn new(value: impl Into<Value<'a>>) -> NewItem<'a> {
        NewItem { value: value.into(), flags: 0, expires: Expires::NEVER, tags: &[] }
    }

    /// With client flags.
    pub fn flags(self, flags: u32) -> NewItem<'a> {
        NewItem { flags, ..self }
    }

    /// With an expiry.
    pub fn expires(self, expires: Expires) -> NewItem<'a> {
        NewItem { expires, ..self }
    }

    /// With tags.
    pub fn tags(self, tags: &'a [&'a [u8]]) -> NewItem<'a> {
        NewItem { tags, ..self }
    }
}

/// How a storage command treats an item that is there, or is not (meta `M` of `ms`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreMode {
    /// Whatever is there.
    #[default]
    Set,
    /// Only when nothing is there.
    Add,
    /// Only when something is there.
    Replace,
    /// Behind the value that is there.
    Append,
    /// Before the value that is there.
    Prepend,
}

/// Conditions of a storage command; the default is a plain `set`.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreRequest<'a> {
    /// Meta `M`.
    pub mode: StoreMode,
    /// Store only over an item with this CAS: `cas`, meta `C`.
    pub compare_cas: Option<u64>,
    /// The item's new CAS, instead of the next number: meta `E`.
    pub new_cas: Option<u64>,
    /// When `compare_cas` is older than the item, store all the same but as stale: meta `I`.
    pub invalidate_older: bool,
    /// For append and prepend: make the item, with this expiry, when none is there (meta `N`).
    pub vivify: Option<Expires>,
    /// Store only if neither the key, nor a tag of the item, nor a prefix of the key has been
    /// invalidated since then, and no other item has been stored under the key. Otherwise, and in
    /// doubt, it is not stored: [`StoreOutcome::NotStored`]. [`Store::change_since`] says which it
    /// was.
    pub unchanged_since: Option<&'a Moment>,
}

/// What became of a storage command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOutcome {
    /// `STORED`, `HD`.
    Stored {
        /// The item's CAS.
        cas: u64,
    },
    /// `NOT_STORED`, `NS`: the condition of add, replace, append or prepend was not met, or
    /// something has changed since.
    NotStored,
    /// `EXISTS`, `EX`: the item has another CAS.
    Exists,
    /// `NOT_FOUND`, `NF`: nothing to compare the CAS with.
    NotFound,
    /// `SERVER_ERROR object too large for cache`. What was there is gone, for set, as in memcached.
    TooLarge,
    /// `SERVER_ERROR out of memory storing object`. What was there is gone, for set.
    OutOfMemory,
}

impl StoreOutcome {
    /// Whether the item was stored.
    pub fn is_stored(self) -> bool {
        matches!(self, StoreOutcome::Stored { .. })
    }
}

/// Digits of `u64::MAX`.
pub(crate) const NUMBER_LIMIT_BYTES: usize = 20;

/// Times that a command starts over when others hold all items that could leave.
const CONTENDED_TRIES: usize = 1000;

impl Store {
    /// `set`.
    pub fn set(&self, key: &[u8], item: NewItem<'_>, now: Now) -> StoreOutcome {
        self.store(key, item, &StoreRequest::default(), now)
    }

    /// Any storage command, atomically.
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
        let outcome = self.retry_while_contended(|| self.try_store(hash, key, &item, request, now));
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

    /// Tries until it works, or gives up with `None` when others hold all items that could leave
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

    fn try_store(
        &self,
        hash: u64,
        key: &[u8],
        item: &NewItem<'_>,
        request: &StoreRequest<'_>,
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
        let mut marks = 0;
        let mut expires = item.expires;
        if let Some(index) = found {
            let slot = shard.slot_mut(index);
            let old_marks = *slot.marks.get_mut();
            match compare(slot, request) {
                Comparison::Proceed => {}
                Comparison::ProceedStale => {
                    marks = mark::STALE | old_marks & mark::WON;
                    expires = Expires::from_raw(slot.expires);
                }
                Comparison::Stop(outcome) => {
                    if outcome == StoreOutcome::Exists {
                        bump(&shard.counters.cas_badval);
                    }
                    shard.mark_used(index, now);
                    return Ok(outcome);
                }
            }
            // An item that is written again is in use, and keeps the hits it had.
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
        // Once more, now that later invalidations cover the item.
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
        match found {
            Some(index) => shard.replace(index, prepared),
            None => {
                shard.insert(hash, prepared);
            }
        }
        Ok(StoreOutcome::Stored { cas })
    }

    /// A new item, not numbered yet.
    pub(crate) fn prepare<'a>(
        &self,
        shard: &Shard,
        key: &'a [u8],
        item: &'a NewItem<'_>,
    ) -> PreparedItem<'a> {
        let mut prepared = PreparedItem::new(key, shard.place_value(key, &item.value));
        let tags = item.tags.iter().map(|name| {
            let (tag, grown) = self.tags.intern(name);
            self.budget.change(grown.min(0).unsigned_abs(), grown.max(0).unsigned_abs());
            tag
        });
        prepared.side.tags = tags.collect();
        prepared.flags = item.flags;
        prepared.expires = item.expires;
        prepared
    }

    /// Whether this store could take such an item at all. A protocol asks before it reads the
    /// value.
    pub fn is_storable(&self, key: &[u8], value_len: usize, tags: &[&[u8]]) -> bool {
        key.len() <= KEY_LIMIT_BYTES
            && tags.len() <= TAGS_PER_ITEM
            && tags.iter().all(|tag| tag.len() <= TAG_LIMIT_BYTES)
            && self.is_size_allowed(key.len(), value_len)
    }

    fn is_size_allowed(&self, key_len: usize, value_len: usize) -> bool {
        value_len.saturating_add(key_len + size_of::<Slot>()) <= self.config.item_limit_bytes
    }

    /// Drops an item without counting a delete: what memcached does with the old value of a `set`
    /// that it has to refuse.
    pub fn discard(&self, key: &[u8]) {
        let hash = self.hash(key);
        let mut shard = self.lock_shard_of(hash);
        self.note_key(hash);
        if let Some(index) = shard.find(hash, key) {
            shard.remove(index);
        }
    }

    /// Enters an item for a key that is not there; `None` when there is no room.
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
        let index = shard.insert(hash, prepared);
        Ok(Some((index, shard.item(index, 0))))
    }
}

/// Whether a storage command may replace an item that is there.
enum Comparison {
    Proceed,
    /// With the old expiry, and as stale.
    ProceedStale,
    Stop(StoreOutcome),
}

fn compare(slot: &Slot, request: &StoreRequest<'_>) -> Comparison {
    let replaces = matches!(request.mode, StoreMode::Set | StoreMode::Replace);
    match (request.mode, request.compare_cas) {
        (StoreMode::Add, _) => Comparison::Stop(StoreOutcome::NotStored),
        (_, None) => Comparison::Proceed,
        (_, Some(cas)) if cas == slot.cas => Comparison::Proceed,
        (_, Some(cas)) if replaces && request.invalidate_older && cas != 0 && cas < slot.cas => {
            Comparison::ProceedStale
        }
        _ => Comparison::Stop(StoreOutcome::Exists),
    }
}
