//! The sweep: frees expired and invalidated items before their memory is needed.

use std::sync::atomic::Ordering;

use crate::clock::Now;
use crate::invalidation::state::ItemState;
use crate::memory::slab::mark;
use crate::statistics::counters::bump;
use crate::store::Store;

/// The numbers of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Items that were examined.
    pub examined: usize,
    /// Items that were freed.
    pub freed: usize,
}

/// Slots that are examined under one lock, so that other threads do not wait long.
const SLOTS_PER_LOCK: u32 = 256;

/// Pages that are compacted under one lock.
const PAGES_PER_LOCK: usize = 4;

impl Store {
    /// Examines up to `budget_items` slots, starting where the last sweep stopped. Frees the items
    /// that have expired or were invalidated. The program calls this once a second.
    pub fn sweep(&self, now: Now, budget_items: usize) -> SweepReport {
        self.flush_if_due(now);
        self.change_log.prune(self.last_sequence());
        for locked in &self.shards {
            let should_close = locked.shard.read().log.should_close_early();
            if should_close {
                locked.shard.write().log.close_early();
            }
        }
        let mut report = SweepReport::default();
        let mut looked_at = 0;
        let mut finished_shards = 0;
        while looked_at < budget_items && finished_shards < self.shards.len() {
            let index = self.sweep_cursor.load(Ordering::Relaxed) % self.shards.len();
            looked_at += SLOTS_PER_LOCK as usize;
            if self.sweep_some(index, now, &mut report) {
                finished_shards += 1;
                let next = (index + 1) % self.shards.len();
                self.sweep_cursor.store(next, Ordering::Relaxed);
                if next == 0 {
                    self.retire_invalidations();
                }
            }
        }
        report
    }

    /// Sweeps all shards completely.
    pub(crate) fn sweep_everything(&self, now: Now) {
        let mut report = SweepReport::default();
        for index in 0..self.shards.len() {
            self.shards[index].shard.write().sweep_cursor = 0;
            while !self.sweep_some(index, now, &mut report) {}
        }
        self.retire_invalidations();
    }

    /// Sweeps the next few slots of a shard. Returns true if they were the last ones.
    fn sweep_some(&self, shard_index: usize, now: Now, report: &mut SweepReport) -> bool {
        let mut shard = self.lock_shard(shard_index);
        let start = shard.sweep_cursor;
        debug_assert!(start <= shard.end(), "the sweep goes on at {start} of {}", shard.end());
        if start == 0 {
            shard.sweep_starts = self.prefixes.settled_up_to(&self.sequences);
        }
        let end = start.saturating_add(SLOTS_PER_LOCK).min(shard.end());
        for index in start..end {
            let Some(slot) = shard.occupied(index) else { continue };
            let fetched = slot.marks.load(Ordering::Relaxed) & mark::FETCHED != 0;
            report.examined += 1;
            bump(&shard.counters.examined_items);
            match self.state_of(&shard, index, now) {
                ItemState::Fresh => {}
                ItemState::Stale => self.mark_stale(&mut shard, index, None),
                state @ (ItemState::Invalidated | ItemState::Expired) => {
                    if state == ItemState::Expired && !fetched {
                        bump(&shard.counters.expired_unfetched);
                    }
                    bump(&shard.counters.swept_items);
                    report.freed += 1;
                    self.note_leaving(&shard, index);
                    shard.remove(index);
                }
            }
        }
        for _ in 0..PAGES_PER_LOCK {
            if !shard.log.is_worth_compacting() || !shard.compact() {
                break;
            }
        }
        let finished = end >= shard.end();
        shard.sweep_cursor = if finished { 0 } else { end };
        if finished {
            debug_assert!(shard.swept_up_to <= shard.sweep_starts, "a sweep goes back");
            shard.swept_up_to = shard.sweep_starts;
            shard.shrink_table();
        }
        finished
    }

    /// Drops the prefixes that every item has been compared with, and the tags that no item
    /// carries.
    fn retire_invalidations(&self) {
        let applied =
            self.shards.iter().map(|locked| locked.shard.read().swept_up_to).min().unwrap_or(0);
        debug_assert!(applied <= self.last_sequence(), "{applied} has not been given yet");
        self.prefixes.retire(applied);
        self.budget.change(self.tags.forget_unused(), 0);
    }
}
