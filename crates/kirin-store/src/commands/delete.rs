//! `delete` and `md`.

use crate::clock::{Expires, Now};
use crate::items::prepared_item::PreparedItem;
use crate::items::side_data::SideData;
use crate::statistics::counters::bump;
use crate::store::Store;

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

impl Store {
    /// `delete`.
    pub fn delete(&self, key: &[u8], now: Now) -> DeleteOutcome {
        self.meta_delete(key, &DeleteRequest::default(), now)
    }

    /// `md`, `delete`.
    pub fn meta_delete(&self, key: &[u8], request: &DeleteRequest, now: Now) -> DeleteOutcome {
        self.flush_if_due(now);
        let hash = self.hash(key);
        let mut shard = self.lock_shard_of(hash);
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
