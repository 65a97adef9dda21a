//! `mg`.
//!
//! Each call takes one lock for all it does. So exactly one of several clients that ask at the same
//! time wins the right to recache an item.

use crate::clock::{Expires, Now};
use crate::commands::storage::NewItem;
use crate::eviction::room::Contended;
use crate::hand_over::item_step::ItemStep;
use crate::items::item::ItemRef;
use crate::memory::slab::mark;
use crate::statistics::counters::bump;
use crate::store::Store;

/// The arguments of `mg`.
#[derive(Clone, Copy, Debug, Default)]
pub struct GetRequest {
    /// On a miss, creates an empty item with this expiry, and wins (`N`).
    pub vivify: Option<Expires>,
    /// Wins if the item expires before this time (`R`).
    pub recache_before: Option<Expires>,
    /// The item's new expiry (`T`).
    pub touch: Option<Expires>,
    /// The CAS unique of an item that this call creates (`E`).
    pub new_cas: Option<u64>,
    /// Does not count as a use: no hit, no fetch and no access time is noted (`u`).
    pub no_bump: bool,
}

/// An item that `mg` found or created.
#[derive(Clone, Debug)]
pub struct MetaHit {
    /// The item. Its hit and its last access are those before this call, its expiry is that after
    /// it.
    pub item: ItemRef,
    /// Whether the caller is the one that should recache the item (`W`).
    pub won: bool,
    /// Whether the item was missing and has been created empty.
    pub vivified: bool,
}

/// The outcome of `mg`.
#[derive(Clone, Debug)]
pub enum MetaOutcome {
    /// The item was found or created: `HD` or `VA`.
    Hit(MetaHit),
    /// There is no such item: `EN`.
    Miss,
    /// There was no room for the empty item. Memcached answers this with a miss.
    OutOfMemory,
}

impl Store {
    /// Carries out `mg`.
    ///
    /// Takes no exclusive lock if no modifying flag is given and the item cannot be won.
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
        let outcome =
            self.retry_while_contended(|| self.meta_get_locked(key, request, modifies, now));
        outcome.unwrap_or(MetaOutcome::OutOfMemory)
    }

    fn peek_counted(&self, key: &[u8], now: Now) -> Option<ItemRef> {
        let item = self.peek(key, now);
        let counters = &self.shards[self.shard_index(self.hash(key))].counters;
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
        let mut shard = self.lock_shard_of(hash);
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
        if let Some(expires) = request.touch {
            shard.note_step(key, ItemStep::Touch(expires));
        }
        if won {
            *shard.slot_mut(index).marks.get_mut() |= mark::WON;
        }
        if !request.no_bump {
            shard.mark_fetched(index, now);
        }
        Ok(MetaOutcome::Hit(MetaHit { item, won, vivified: false }))
    }
}
