//! `delete` and `md`.

use crate::clock::{Expires, Now};
use crate::items::prepared_item::PreparedItem;
use crate::items::side_data::SideData;
use crate::statistics::counters::bump;
use crate::store::Store;

/// The arguments of `md`. The default is a plain `delete`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeleteRequest {
    /// The CAS unique that the item must have (`C`).
    pub compare_cas: Option<u64>,
    /// The new CAS unique of an item that stays (`E`).
    pub new_cas: Option<u64>,
    /// Keeps the item and marks it stale. The next reader wins the right to recache it (`I`).
    pub invalidate: bool,
    /// The item's new expiry, if `invalidate` is set (`T`).
    pub expires: Option<Expires>,
    /// Keeps the item without its value and flags (`x`).
    pub remove_value: bool,
}

/// The outcome of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// The item was deleted, or changed as requested: `DELETED`, `HD`.
    Deleted,
    /// There is no such item: `NOT_FOUND`, `NF`.
    NotFound,
    /// The item has another CAS unique: `EX`.
    Exists,
}

impl Store {
    /// Carries out `delete`.
    pub fn delete(&self, key: &[u8], now: Now) -> DeleteOutcome {
        self.meta_delete(key, &DeleteRequest::default(), now)
    }

    /// Carries out `md` or `delete`.
    pub fn meta_delete(&self, key: &[u8], request: &DeleteRequest, now: Now) -> DeleteOutcome {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let mut shard = self.lock_shard_of(hash);
        // This happens under the lock. A writer that began an earlier item has stored it already,
        // or will see the note.
        self.note_key(hash);
        let Some(index) = self.find_live(&mut shard, hash, key, now) else {
            bump(&shard.counters.delete_misses);
            // The store that follows may have it.
            shard.note_write(key);
            return DeleteOutcome::NotFound;
        };
        if request.compare_cas.is_some_and(|cas| cas != shard.slot(index).cas) {
            bump(&shard.counters.delete_misses);
            return DeleteOutcome::Exists;
        }
        shard.note_write(key);
        if !request.invalidate && !request.remove_value {
            bump(&shard.counters.delete_hits);
            shard.remove(index);
            return DeleteOutcome::Deleted;
        }
        if request.remove_value {
            let stripped = PreparedItem {
                flags: 0,
                last_access: now,
                ..shard.with_new_value(index, key, Vec::new())
            };
            shard.replace(index, PreparedItem { side: SideData::default(), ..stripped });
            self.renew_cas(&mut shard, index, request.new_cas);
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
}
