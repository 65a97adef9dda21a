//! Looks up items for writers, and makes their state permanent.

use crate::clock::Now;
use crate::invalidation::state::ItemState;
use crate::items::shard::Shard;
use crate::memory::slab::mark;
use crate::store::Store;

impl Store {
    /// Returns the slot of an item that may be served, for a writer.
    ///
    /// Removes an item that has expired or is invalid. Marks an item permanently as stale if an
    /// invalidation has made it so. As meta `md … I` does, that changes the CAS unique and lets the
    /// next reader win.
    pub(crate) fn find_live(
        &self,
        shard: &mut Shard,
        hash: u64,
        key: &[u8],
        now: Now,
    ) -> Option<u32> {
        let index = shard.find(hash, key)?;
        match self.state_of(shard, index, now) {
            ItemState::Fresh => Some(index),
            ItemState::Stale => {
                self.mark_stale(shard, index, None);
                Some(index)
            }
            ItemState::Invalidated | ItemState::Expired => {
                self.note_leaving(shard, index);
                shard.remove(index);
                None
            }
        }
    }

    /// Marks an item as stale and not yet won, under a new CAS unique. The new number does not tell
    /// when the item was stored, so the old one is noted first.
    pub(crate) fn mark_stale(&self, shard: &mut Shard, index: u32, new_cas: Option<u64>) {
        self.note_leaving(shard, index);
        self.renew_cas(shard, index, new_cas);
        let marks = shard.slot_mut(index).marks.get_mut();
        *marks = *marks & !mark::WON | mark::STALE;
    }

    /// Gives an item a new CAS unique: the client's, or the next sequence number.
    pub(crate) fn renew_cas(&self, shard: &mut Shard, index: u32, new_cas: Option<u64>) -> u64 {
        let (cas, sequence) = self.assign_cas(new_cas);
        shard.set_cas(index, cas, sequence);
        cas
    }
}
