//! What the meta commands need done atomically: `mg`, `md`, `ma` (and `incr`, `decr`).
//!
//! Each is one call under one lock, so that of all clients that ask at once exactly one wins the
//! right to recache an item.

use std::io::Write;

use crate::budget::Contended;
use crate::clock::{Expires, Now};
use crate::commands::write::NewItem;
use crate::items::item::ItemRef;
use crate::items::record::Record;
use crate::items::side::Side;
use crate::memory::slab::mark;
use crate::statistics::counters::bump;
use crate::store::{ShardWrite, Store};

/// What `mg` asks beside the item.
#[derive(Clone, Copy, Debug, Default)]
pub struct GetRequest {
    /// `N`: on a miss make an empty item with this expiry, and win.
    pub vivify: Option<Expires>,
    /// `R`: win when the item expires before this.
    pub recache_before: Option<Expires>,
    /// `T`: change when it expires.
    pub touch: Option<Expires>,
    /// `E`: CAS for an item that this makes.
    pub new_cas: Option<u64>,
    /// `u`: leave no trace: neither visited nor fetched nor last access.
    pub no_bump: bool,
}

/// An item found, or made, by `mg`.
#[derive(Clone, Debug)]
pub struct MetaHit {
    /// The item, with hit and last access as they were before, expiry as it is now.
    pub item: ItemRef,
    /// `W`: the caller is the one who should recache it.
    pub won: bool,
    /// The item was not there and has been made empty.
    pub vivified: bool,
}

/// What became of `mg`.
#[derive(Clone, Debug)]
pub enum MetaOutcome {
    /// `HD` or `VA`.
    Hit(MetaHit),
    /// `EN`.
    Miss,
    /// There was no room for the empty item; answer as memcached does, with a miss.
    OutOfMemory,
}

/// What `md` asks; the default is a plain `delete`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeleteRequest {
    /// `C`: only an item with this CAS.
    pub compare_cas: Option<u64>,
    /// `E`: the CAS of an item that stays.
    pub new_cas: Option<u64>,
    /// `I`: keep the item and mark it stale; the next reader wins.
    pub invalidate: bool,
    /// `T`, with `I`: its new expiry.
    pub expires: Option<Expires>,
    /// `x`: keep the item without its value and flags.
    pub remove_value: bool,
}

/// What became of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// `DELETED`, `HD`: deleted, or marked as asked.
    Deleted,
    /// `NOT_FOUND`, `NF`.
    NotFound,
    /// `EX`: it has another CAS.
    Exists,
}

/// Up or down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// `incr`: wraps at 2^64.
    #[default]
    Up,
    /// `decr`: stops at 0.
    Down,
}

/// What `ma` asks; the default with a delta of 1 is `incr key 1`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArithmeticRequest {
    /// `M`.
    pub direction: Direction,
    /// `D`; the protocol's default is 1.
    pub delta: u64,
    /// `N`: on a miss make the item, with this expiry and `initial` as value.
    pub vivify: Option<Expires>,
    /// `J`.
    pub initial: u64,
    /// `T`: change when it expires.
    pub touch: Option<Expires>,
    /// `C`: only an item with this CAS.
    pub compare_cas: Option<u64>,
    /// `E`: the CAS it gets.
    pub new_cas: Option<u64>,
}

/// A number that was counted up or down.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The new value, as it is answered: without padding.
    pub value: u64,
    /// The item as it is now.
    pub item: ItemRef,
}

/// What became of `incr`, `decr` or `ma`.
#[derive(Clone, Debug)]
pub enum ArithmeticOutcome {
    /// The new value, `HD`, `VA`.
    Counted(Counted),
    /// `NOT_FOUND`, `NF`.
    NotFound,
    /// `CLIENT_ERROR cannot increment or decrement non-numeric value`.
    NonNumeric,
    /// `EX`: it has another CAS.
    Exists,
    /// `SERVER_ERROR out of memory`.
    OutOfMemory,
}

/// Digits of `u64::MAX`.
const NUMBER_LIMIT_BYTES: usize = 20;

impl Store {
    /// `mg`.
    ///
    /// Without any of the modifying flags, and for an item that nobody can win, this takes no
    /// exclusive lock.
    pub fn meta_get(&self, key: &[u8], request: &GetRequest, now: Now) -> MetaOutcome {
        let modifies =
            request.vivify.is_some() || request.touch.is_some() || request.recache_before.is_some();
        if !modifies {
            let found =
                if request.no_bump { self.peek_counted(key, now) } else { self.get(key, now) };
            match found {
                None => return MetaOutcome::Miss,
                Some(item) if !item.is_stale() => {
                    return MetaOutcome::Hit(MetaHit { item, won: false, vivified: false });
                }
                Some(_) => {}
            }
        }
        let outcome = self.retrying(|| self.meta_get_locked(key, request, modifies, now));
        outcome.unwrap_or(MetaOutcome::OutOfMemory)
    }

    fn peek_counted(&self, key: &[u8], now: Now) -> Option<ItemRef> {
        let item = self.peek(key, now);
        let counters = &self.parts[self.part_of(self.hash(key))].counters;
        bump(if item.is_some() { &counters.get_hits } else { &counters.get_misses });
        item
    }

    fn meta_get_locked(
        &self,
        key: &[u8],
        request: &GetRequest,
        count: bool,
        now: Now,
    ) -> Result<MetaOutcome, Contended> {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let mut shard = self.write(hash);
        let found = self.find_live(&mut shard, hash, key, now);
        let counters = shard.counters;
        let (hits, misses) = match request.touch {
            Some(_) => (&counters.touch_hits, &counters.touch_misses),
            None => (&counters.get_hits, &counters.get_misses),
        };
        let Some(index) = found else {
            let Some(expires) = request.vivify else {
                if count {
                    bump(misses);
                }
                return Ok(MetaOutcome::Miss);
            };
            let item = NewItem::new(b"").expires(expires);
            let made = self.vivify(&mut shard, hash, key, &item, request.new_cas, now)?;
            bump(misses);
            let Some((index, item)) = made else { return Ok(MetaOutcome::OutOfMemory) };
            *shard.slot_mut(index).marks.get_mut() |= mark::WON;
            return Ok(MetaOutcome::Hit(MetaHit { item, won: true, vivified: true }));
        };
        if count {
            bump(hits);
        }
        let slot = shard.slot_mut(index);
        if let Some(expires) = request.touch {
            slot.expires = expires.raw();
        }
        let marks = *slot.marks.get_mut();
        let expires = Expires::from_raw(slot.expires);
        let is_early = request.recache_before.is_some_and(|before| expires.is_before(before));
        let won = marks & mark::WON == 0 && (is_early || marks & mark::STALE != 0);
        let item = shard.item(index, 0);
        if won {
            *shard.slot_mut(index).marks.get_mut() |= mark::WON;
        }
        if !request.no_bump {
            shard.mark_fetched(index, now);
        }
        Ok(MetaOutcome::Hit(MetaHit { item, won, vivified: false }))
    }

    /// Enters an item for a key that is not there; `None` when there is no room.
    fn vivify(
        &self,
        shard: &mut ShardWrite<'_>,
        hash: u64,
        key: &[u8],
        item: &NewItem<'_>,
        new_cas: Option<u64>,
        now: Now,
    ) -> Result<Option<(u32, ItemRef)>, Contended> {
        if !self.is_storable(key, NUMBER_LIMIT_BYTES, &[]) {
            return Ok(None);
        }
        let mut record = self.fresh(shard, key, item);
        if !self.make_room(shard, |shard| shard.growth_bytes(&record, None), None, now)? {
            bump(&shard.counters.store_no_memory);
            return Ok(None);
        }
        (record.cas, record.side.sequence) = self.number(new_cas);
        record.last_access = now;
        bump(&shard.counters.total_items);
        let index = shard.insert(hash, record);
        Ok(Some((index, shard.item(index, 0))))
    }

    /// `md`, `delete`.
    pub fn meta_delete(&self, key: &[u8], request: &DeleteRequest, now: Now) -> DeleteOutcome {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let mut shard = self.write(hash);
        // Under the lock: who stores an item that was begun before this has done so, or will see
        // it.
        self.note_key(hash);
        let Some(index) = self.find_live(&mut shard, hash, key, now) else {
            bump(&shard.counters.delete_misses);
            return DeleteOutcome::NotFound;
        };
        if request.compare_cas.is_some_and(|cas| cas != shard.slot(index).cas) {
            bump(&shard.counters.delete_misses);
            return DeleteOutcome::Exists;
        }
        if !request.invalidate && !request.remove_value {
            bump(&shard.counters.delete_hits);
            shard.remove(index);
            return DeleteOutcome::Deleted;
        }
        if request.remove_value {
            let stripped =
                Record { flags: 0, last_access: now, ..shard.rewritten(index, key, Vec::new()) };
            shard.replace(index, Record { side: Side::default(), ..stripped });
            self.renumber(&mut shard, index, request.new_cas);
        }
        if request.invalidate {
            self.mark_stale(&mut shard, index, request.new_cas);
            if let Some(expires) = request.expires {
                shard.slot_mut(index).expires = expires.raw();
            }
        }
        drop(shard);
        self.keep_within_limit(now);
        DeleteOutcome::Deleted
    }

    /// `ma`, `incr`, `decr`.
    pub fn arithmetic(
        &self,
        key: &[u8],
        request: &ArithmeticRequest,
        now: Now,
    ) -> ArithmeticOutcome {
        let outcome = self.retrying(|| self.try_arithmetic(key, request, now));
        self.keep_within_limit(now);
        outcome.unwrap_or(ArithmeticOutcome::OutOfMemory)
    }

    fn try_arithmetic(
        &self,
        key: &[u8],
        request: &ArithmeticRequest,
        now: Now,
    ) -> Result<ArithmeticOutcome, Contended> {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let mut shard = self.write(hash);
        let counters = shard.counters;
        let (hits, misses) = match request.direction {
            Direction::Up => (&counters.incr_hits, &counters.incr_misses),
            Direction::Down => (&counters.decr_hits, &counters.decr_misses),
        };
        let mut digits = [0; NUMBER_LIMIT_BYTES];
        let Some(index) = self.find_live(&mut shard, hash, key, now) else {
            let Some(expires) = request.vivify else {
                bump(misses);
                return Ok(ArithmeticOutcome::NotFound);
            };
            let item = NewItem::new(decimal(request.initial, &mut digits)).expires(expires);
            let made = self.vivify(&mut shard, hash, key, &item, request.new_cas, now)?;
            bump(misses);
            return Ok(match made {
                Some((_, item)) => {
                    ArithmeticOutcome::Counted(Counted { value: request.initial, item })
                }
                None => ArithmeticOutcome::OutOfMemory,
            });
        };
        // As in memcached, a CAS of 0 compares with nothing.
        if request.compare_cas.is_some_and(|cas| cas != 0 && cas != shard.slot(index).cas) {
            return Ok(ArithmeticOutcome::Exists);
        }
        let Some(number) = parse_number(shard.value(index)) else {
            return Ok(ArithmeticOutcome::NonNumeric);
        };
        let value = match request.direction {
            Direction::Up => number.wrapping_add(request.delta),
            Direction::Down => number.saturating_sub(request.delta),
        };
        if !self.write_number(&mut shard, index, key, decimal(value, &mut digits), now)? {
            bump(&shard.counters.store_no_memory);
            return Ok(ArithmeticOutcome::OutOfMemory);
        }
        bump(hits);
        self.renumber(&mut shard, index, request.new_cas);
        if let Some(expires) = request.touch {
            shard.slot_mut(index).expires = expires.raw();
        }
        shard.mark_used(index, now);
        Ok(ArithmeticOutcome::Counted(Counted { value, item: shard.item(index, 0) }))
    }

    /// Writes a number over a value. As in memcached, one that got shorter is padded with spaces to
    /// the old length. False when there is no room for a longer one.
    fn write_number(
        &self,
        shard: &mut ShardWrite<'_>,
        index: u32,
        key: &[u8],
        digits: &[u8],
        now: Now,
    ) -> Result<bool, Contended> {
        let padding_len = shard.value(index).len().saturating_sub(digits.len());
        if digits.len() <= shard.value(index).len()
            && let Some(value) = shard.value_mut(index)
        {
            let (number, padding) = value.split_at_mut(digits.len());
            number.copy_from_slice(digits);
            padding.fill(b' ');
            return Ok(true);
        }
        let mut value = digits.to_vec();
        value.resize(digits.len() + padding_len, b' ');
        let record = shard.rewritten(index, key, value);
        let has_room = self.make_room(
            shard,
            |shard| shard.growth_bytes(&record, Some(index)),
            Some(index),
            now,
        )?;
        if has_room {
            shard.replace(index, record);
        }
        Ok(has_room)
    }
}

/// A number as memcached reads it: digits, with white space around, and anything behind that.
fn parse_number(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii_start();
    let end = value.iter().position(u8::is_ascii_whitespace).unwrap_or(value.len());
    let digits = value.get(..end)?;
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        if !digit.is_ascii_digit() {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// `number` in decimal.
fn decimal(number: u64, digits: &mut [u8; NUMBER_LIMIT_BYTES]) -> &[u8] {
    let mut rest = &mut digits[..];
    // A u64 always fits in 20 digits.
    let _ = write!(rest, "{number}");
    let written = NUMBER_LIMIT_BYTES - rest.len();
    &digits[..written]
}
