//! `incr`, `decr` and `ma`.

use std::io::Write;

use crate::clock::{Expires, Now};
use crate::commands::storage::{NUMBER_LIMIT_BYTES, NewItem};
use crate::eviction::room::Contended;
use crate::hand_over::item_step::ItemStep;
use crate::items::item::ItemRef;
use crate::statistics::counters::bump;
use crate::store::{ShardGuard, Store};

/// The direction in which a number changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// `incr`: wraps around at 2^64.
    #[default]
    Up,
    /// `decr`: stops at 0.
    Down,
}

/// The arguments of `ma`. The default with a delta of 1 is `incr key 1`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArithmeticRequest {
    /// Whether to add or to subtract (`M`).
    pub direction: Direction,
    /// The number to add or to subtract (`D`). The protocol's default is 1.
    pub delta: u64,
    /// On a miss, creates the item with this expiry and with `initial` as its value (`N`).
    pub vivify: Option<Expires>,
    /// The value of an item that is created (`J`).
    pub initial: u64,
    /// The item's new expiry (`T`).
    pub touch: Option<Expires>,
    /// The CAS unique that the item must have (`C`).
    pub compare_cas: Option<u64>,
    /// The item's new CAS unique, in place of the next one (`E`).
    pub new_cas: Option<u64>,
}

/// A number that was changed.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The new value as the client gets it, without padding.
    pub value: u64,
    /// The item after the change.
    pub item: ItemRef,
}

/// The outcome of `incr`, `decr` or `ma`.
#[derive(Clone, Debug)]
pub enum ArithmeticOutcome {
    /// The number was changed: the new value, `HD` or `VA`.
    Counted(Counted),
    /// There is no such item: `NOT_FOUND`, `NF`.
    NotFound,
    /// The value is not a number: `CLIENT_ERROR cannot increment or decrement non-numeric value`.
    NonNumeric,
    /// The item has another CAS unique: `EX`.
    Exists,
    /// There was no room: `SERVER_ERROR out of memory`.
    OutOfMemory,
}

impl Store {
    /// Carries out `ma`, `incr` or `decr`.
    pub fn arithmetic(
        &self,
        key: &[u8],
        request: &ArithmeticRequest,
        now: Now,
    ) -> ArithmeticOutcome {
        let outcome = self.retry_while_contended(|| self.try_arithmetic(key, request, now));
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
        let mut shard = self.lock_shard_of(hash);
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
        // As in memcached, a CAS unique of 0 is no condition.
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
        let step = match request.direction {
            Direction::Up => ItemStep::Up(request.delta),
            Direction::Down => ItemStep::Down(request.delta),
        };
        shard.note_step(key, step);
        self.renew_cas(&mut shard, index, request.new_cas);
        if let Some(expires) = request.touch {
            shard.note_step(key, ItemStep::Touch(expires));
            shard.slot_mut(index).expires = expires.raw();
        }
        shard.mark_used(index, now);
        Ok(ArithmeticOutcome::Counted(Counted { value, item: shard.item(index, 0) }))
    }

    /// Writes a number over a value. As in memcached, a shorter number is padded with spaces to the
    /// old length. Returns false if there is no room for a longer one.
    fn write_number(
        &self,
        shard: &mut ShardGuard<'_>,
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
        let prepared = shard.with_new_value(index, key, value);
        let has_room = self.make_room(
            shard,
            |shard| shard.growth_bytes(&prepared, Some(index)),
            Some(index),
            now,
        )?;
        if has_room {
            shard.replace(index, prepared);
        }
        Ok(has_room)
    }
}

/// Reads a number as memcached does: digits with optional white space before them. White space and
/// any other bytes may follow.
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

/// Writes `number` in decimal.
fn decimal(number: u64, digits: &mut [u8; NUMBER_LIMIT_BYTES]) -> &[u8] {
    let mut rest = &mut digits[..];
    // A u64 always fits in 20 digits.
    let _ = write!(rest, "{number}");
    let written = NUMBER_LIMIT_BYTES - rest.len();
    &digits[..written]
}
