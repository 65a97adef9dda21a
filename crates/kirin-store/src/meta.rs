//! What the meta commands need done atomically: `mg`, `md`, `ma` (and `incr`, `decr`).
//!
//! Each is one call under one lock, so that of all clients that ask at once exactly one wins the
//! right to recache an item.

use std::io::Write;
use std::sync::atomic::Ordering;

use crate::blob::join;
use crate::budget::Room;
use crate::clock::{Expires, Now};
use crate::counters::bump;
use crate::item::ItemRef;
use crate::shard::Record;
use crate::side::Side;
use crate::slab::mark;
use crate::store::{ShardWrite, Store};
use crate::write::NewItem;

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
            let found = if request.no_bump { self.peek_counted(key, now) } else { self.get(key, now) };
            match found {
                None => return MetaOutcome::Miss,
                Some(item) if !item.is_stale() => {
                    return MetaOutcome::Hit(MetaHit { item, won: false, vivified: false });
                }
                Some(_) => {}
            }
        }
        self.meta_get_locked(key, request, modifies, now)
    }

    fn peek_counted(&self, key: &[u8], now: Now) -> Option<ItemRef> {
        let item = self.peek(key, now);
        let counters = &self.parts[self.part_of(self.hash(key))].counters;
        bump(if item.is_some() { &counters.get_hits } else { &counters.get_misses });
        item
    }

    fn meta_get_locked(&self, key: &[u8], request: &GetRequest, count: bool, now: Now) -> MetaOutcome {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let mut shard = self.write(hash);
        let Some(index) = self.find_live(&mut shard, hash, key, now) else {
            if count {
                bump(if request.touch.is_some() {
                    &shard.counters.touch_misses
                } else {
                    &shard.counters.get_misses
                });
            }
            let Some(expires) = request.vivify else { return MetaOutcome::Miss };
            let item = NewItem::new(b"").expires(expires);
            return match self.vivify(&mut shard, hash, key, &item, request.new_cas, mark::WON, now) {
                Some(item) => MetaOutcome::Hit(MetaHit { item, won: true, vivified: true }),
                None => MetaOutcome::OutOfMemory,
            };
        };
        if count {
            bump(if request.touch.is_some() { &shard.counters.touch_hits } else { &shard.counters.get_hits });
        }
        let slot = shard.slot_mut(index);
        if let Some(expires) = request.touch {
            slot.expires = expires.raw();
        }
        let marks = slot.marks.load(Ordering::Relaxed);
        let expires_early = match (Expires::from_raw(slot.expires).moment(), request.recache_before) {
            (Some(expires), Some(before)) => before.moment().is_some_and(|before| expires < before),
            _ => false,
        };
        let won = marks & mark::WON == 0 && (expires_early || marks & mark::STALE != 0);
        let Some(item) = shard.item(index, 0) else { return MetaOutcome::Miss };
        if won {
            *shard.slot_mut(index).marks.get_mut() |= mark::WON;
        }
        if !request.no_bump {
            shard.mark_fetched(index, now);
        }
        MetaOutcome::Hit(MetaHit { item, won, vivified: false })
    }

    /// Enters an item for a key that is not there. `None` when there is no room.
    #[expect(clippy::too_many_arguments, reason = "one caller each for `N` of mg and of ma")]
    fn vivify(
        &self,
        shard: &mut ShardWrite<'_>,
        hash: u64,
        key: &[u8],
        item: &NewItem<'_>,
        new_cas: Option<u64>,
        marks: u8,
        now: Now,
    ) -> Option<ItemRef> {
        if !self.is_storable(key, NUMBER_LIMIT_BYTES, &[]) {
            return None;
        }
        let mut record = self.fresh(key, item, item.expires);
        let bytes = record.bytes() + shard.growth_bytes();
        if self.make_room(shard, bytes, None, now) != Room::Made {
            bump(&shard.counters.store_no_memory);
            return None;
        }
        (record.cas, record.side.sequence) = self.number(new_cas);
        record.last_access = now;
        bump(&shard.counters.total_items);
        let index = shard.insert(hash, record);
        let item = shard.item(index, 0);
        *shard.slot_mut(index).marks.get_mut() |= marks;
        item
    }

    /// `md`, `delete`.
    pub fn meta_delete(&self, key: &[u8], request: &DeleteRequest, now: Now) -> DeleteOutcome {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let mut shard = self.write(hash);
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
            let marks = shard.slot(index).marks.load(Ordering::Relaxed);
            let expires = Expires::from_raw(shard.slot(index).expires);
            let record = self.fresh(key, &NewItem::new(b""), expires);
            shard.replace(index, Record { marks, last_access: now, ..record });
            self.renumber(&mut shard, index, request.new_cas);
        }
        if request.invalidate {
            self.mark_stale(&mut shard, index, request.new_cas);
            if let Some(expires) = request.expires {
                shard.slot_mut(index).expires = expires.raw();
            }
        }
        DeleteOutcome::Deleted
    }

    /// `incr`.
    pub fn incr(&self, key: &[u8], delta: u64, now: Now) -> ArithmeticOutcome {
        self.arithmetic(key, &ArithmeticRequest { delta, ..ArithmeticRequest::default() }, now)
    }

    /// `decr`.
    pub fn decr(&self, key: &[u8], delta: u64, now: Now) -> ArithmeticOutcome {
        let request = ArithmeticRequest { direction: Direction::Down, delta, ..ArithmeticRequest::default() };
        self.arithmetic(key, &request, now)
    }

    /// `ma`, `incr`, `decr`.
    pub fn arithmetic(&self, key: &[u8], request: &ArithmeticRequest, now: Now) -> ArithmeticOutcome {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let mut shard = self.write(hash);
        let counters = shard.counters;
        let (hits, misses) = match request.direction {
            Direction::Up => (&counters.incr_hits, &counters.incr_misses),
            Direction::Down => (&counters.decr_hits, &counters.decr_misses),
        };
        let Some(index) = self.find_live(&mut shard, hash, key, now) else {
            bump(misses);
            let Some(expires) = request.vivify else { return ArithmeticOutcome::NotFound };
            let mut digits = [0; NUMBER_LIMIT_BYTES];
            let item = NewItem::new(decimal(request.initial, &mut digits)).expires(expires);
            return match self.vivify(&mut shard, hash, key, &item, request.new_cas, 0, now) {
                Some(item) => ArithmeticOutcome::Counted(Counted { value: request.initial, item }),
                None => ArithmeticOutcome::OutOfMemory,
            };
        };
        if request.compare_cas.is_some_and(|cas| cas != 0 && cas != shard.slot(index).cas) {
            return ArithmeticOutcome::Exists;
        }
        let Some(old) = shard.item(index, 0) else { return ArithmeticOutcome::NotFound };
        let Some(number) = parse_number(old.value_slice()) else { return ArithmeticOutcome::NonNumeric };
        let value = match request.direction {
            Direction::Up => number.wrapping_add(request.delta),
            Direction::Down => number.saturating_sub(request.delta),
        };
        let mut digits = [0; NUMBER_LIMIT_BYTES];
        let digits = decimal(value, &mut digits);
        if !self.write_number(&mut shard, index, old, digits, now) {
            return ArithmeticOutcome::OutOfMemory;
        }
        bump(hits);
        self.renumber(&mut shard, index, request.new_cas);
        if let Some(expires) = request.touch {
            shard.slot_mut(index).expires = expires.raw();
        }
        shard.mark_used(index, now);
        match shard.item(index, 0) {
            Some(item) => ArithmeticOutcome::Counted(Counted { value, item }),
            None => ArithmeticOutcome::NotFound,
        }
    }

    /// Writes a number over a value. As in memcached, one that got shorter is padded with spaces to
    /// the old length. False when there is no room for a longer one.
    fn write_number(
        &self,
        shard: &mut ShardWrite<'_>,
        index: u32,
        old: ItemRef,
        digits: &[u8],
        now: Now,
    ) -> bool {
        let old_len = old.value_len();
        let padding = old_len.saturating_sub(digits.len());
        let in_place = old.companion_free();
        let spaces = vec![b' '; if in_place { 0 } else { padding }];
        let (key_len, flags, expires, marks) = (old.key_len, old.flags, old.expires, old.marks);
        let tags = old.side.as_ref().map(|side| side.tags.clone()).unwrap_or_default();
        let sequence = old.side.as_ref().and_then(|side| side.sequence);
        let blob = old.blob.clone();
        drop(old);
        if in_place && digits.len() <= old_len {
            drop(blob);
            if let Some(value) = shard.blob_mut(index).and_then(|blob| blob.get_mut(key_len as usize..)) {
                let (number, rest) = value.split_at_mut(digits.len());
                number.copy_from_slice(digits);
                rest.fill(b' ');
                return true;
            }
            // A reader holds the old content: it keeps that, the item gets new content.
            let blob = match shard.item(index, 0) {
                Some(item) => join(&[item.key(), digits, &vec![b' '; padding]]),
                None => return false,
            };
            let side = Side { tags, sequence, ..Side::default() };
            let record = Record {
                blob,
                key_len,
                side,
                cas: shard.slot(index).cas,
                expires,
                last_access: now,
                flags,
                marks,
            };
            shard.replace(index, record);
            return true;
        }
        let key = blob.get(..key_len as usize).unwrap_or_default();
        let record = Record {
            blob: join(&[key, digits, &spaces]),
            key_len,
            side: Side { tags, sequence, ..Side::default() },
            cas: shard.slot(index).cas,
            expires,
            last_access: now,
            flags,
            marks,
        };
        let more = record.bytes().saturating_sub(shard.item_bytes(index));
        if self.make_room(shard, more, Some(index), now) != Room::Made {
            return false;
        }
        shard.replace(index, record);
        true
    }
}

impl ItemRef {
    /// Whether the value lies behind the key and nothing was computed from it.
    fn companion_free(&self) -> bool {
        self.side.as_ref().is_none_or(|side| side.value.is_none() && side.companions.is_empty())
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
