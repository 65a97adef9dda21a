//! What writers do with the items that they find.

use crate::clock::Now;
use crate::invalidation::state::ItemState;
use crate::items::shard::Shard;
use crate::memory::slab::mark;
use crate::store::Store;

impl Store {
    /// The slot of a live item, for a writer: what is expired or gone is taken out, and what an
    /// invalidation made stale is marked so for good. As meta `md … I` does, that bumps the CAS and
    /// lets the next reader win.
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

    /// Marks an item stale and unwon under a new CAS. That number says nothing of when the item was
    /// stored, so the one that does is noted.
    pub(crate) fn mark_stale(&self, shard: &mut Shard, index: u32, new_cas: Option<u64>) {
        self.note_leaving(shard, index);
        self.renew_cas(shard, index, new_cas);
        let marks = shard.slot_mut(index).marks.get_mut();
        *marks = *marks & !mark::WON | mark::STALE;
    }

    /// Gives an item a new CAS: the client's, or the next number.
    pub(crate) fn renew_cas(&self, shard: &mut Shard, index: u32, new_cas: Option<u64>) -> u64 {
        let (cas, sequence) = self.assign_cas(new_cas);
        shard.set_cas(index, cas, sequence);
        cas
    }
}
