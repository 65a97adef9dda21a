//! The open-file cache: the last lookup result of each path. A `files:DIR` place has one, and so
//! have the files that applications hand back.
//!
//! The cache is bounded by entries (an open descriptor belongs to one) and by bytes. It evicts by
//! CLOCK: one bit in each slot records whether the path was requested since the hand last passed.
//! So a scan over names that are requested only once evicts its own entries, not those in demand.

use std::rc::Rc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// The approximate memory of a slot and its map entry in bytes, without path and value.
const SLOT_BYTES: usize = 128;

/// A value of the cache.
pub(crate) trait Kept: Clone {
    /// Returns the memory in bytes.
    fn bytes(&self) -> usize;
    /// Returns the number of open descriptors.
    fn descriptors(&self) -> usize;
}

/// Paths and their last lookup results.
pub(crate) struct OpenFileCache<V> {
    slots: Vec<Option<Slot<V>>>,
    free: Vec<usize>,
    by_path: HashMap<Rc<[u8]>, usize, RandomState>,
    hand: usize,
    used: Weight,
    limit: Weight,
    validity: Duration,
}

/// The quantities that the limits bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

/// The state of a cached result.
pub(crate) enum Known<V> {
    /// The path was looked up within the validity time.
    Fresh(V),
    /// The path must be looked up again.
    Stale(V),
}

struct Slot<V> {
    path: Rc<[u8]>,
    found: V,
    looked: Instant,
    weight: Weight,
    wanted: bool,
}

impl<V: Kept> OpenFileCache<V> {
    pub(crate) fn new(limit: Weight, validity: Duration) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_path: HashMap::default(),
            hand: 0,
            used: Weight::default(),
            limit,
            validity,
        }
    }

    pub(crate) fn get(&mut self, path: &[u8], now: Instant) -> Option<Known<V>> {
        let slot = self.slots.get_mut(*self.by_path.get(path)?)?.as_mut()?;
        slot.wanted = true;
        let found = slot.found.clone();
        let fresh = now.saturating_duration_since(slot.looked) < self.validity;
        Some(if fresh { Known::Fresh(found) } else { Known::Stale(found) })
    }

    /// Stores the result of a lookup at `now`. Does not keep a result that alone exceeds a limit.
    pub(crate) fn put(&mut self, path: &[u8], found: V, now: Instant) {
        // A path that was cached before was requested before.
        let wanted = self.remove(path);
        let weight = Weight {
            entries: found.descriptors().max(1),
            bytes: found.bytes() + path.len() + SLOT_BYTES,
        };
        if weight.entries > self.limit.entries || weight.bytes > self.limit.bytes {
            return;
        }
        while self.used.entries + weight.entries > self.limit.entries
            || self.used.bytes + weight.bytes > self.limit.bytes
        {
            self.evict_one();
        }
        let path: Rc<[u8]> = path.into();
        let slot = Some(Slot { path: Rc::clone(&path), found, looked: now, weight, wanted });
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        self.by_path.insert(path, at);
        self.used.entries += weight.entries;
        self.used.bytes += weight.bytes;
    }

    /// Returns the memory in bytes.
    #[cfg(test)]
    pub(crate) fn used_bytes(&self) -> usize {
        self.used.bytes
    }

    /// Returns the result for a path, old or not, without marking it as requested.
    pub(crate) fn peek(&self, path: &[u8]) -> Option<&V> {
        self.slots.get(*self.by_path.get(path)?)?.as_ref().map(|slot| &slot.found)
    }

    /// Updates the memory of the value at `path`, which has grown since it was stored. Evicts
    /// others if needed.
    pub(crate) fn weigh(&mut self, path: &[u8]) {
        let Some(&at) = self.by_path.get(path) else { return };
        let Some(slot) = &mut self.slots[at] else { return };
        let bytes = slot.found.bytes() + path.len() + SLOT_BYTES;
        let added = bytes.saturating_sub(slot.weight.bytes);
        slot.weight.bytes += added;
        // It was requested just now.
        slot.wanted = true;
        self.used.bytes += added;
        if bytes > self.limit.bytes {
            self.clear(at);
        }
        while self.used.bytes > self.limit.bytes {
            self.evict_one();
        }
    }

    fn remove(&mut self, path: &[u8]) -> bool {
        match self.by_path.get(path) {
            Some(at) => {
                self.clear(*at);
                true
            }
            None => false,
        }
    }

    /// Moves the hand on to a slot that was not requested since the hand last passed, and empties
    /// it. The loop ends, because each pass clears the bits. Called only while the cache has an
    /// entry.
    fn evict_one(&mut self) {
        loop {
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            match &mut self.slots[self.hand] {
                Some(slot) if slot.wanted => slot.wanted = false,
                Some(_) => return self.clear(self.hand),
                None => {}
            }
        }
    }

    fn clear(&mut self, at: usize) {
        if let Some(slot) = self.slots[at].take() {
            self.by_path.remove(&slot.path);
            self.used.entries -= slot.weight.entries;
            self.used.bytes -= slot.weight.bytes;
            self.free.push(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::found::Found;
    use proptest::prelude::*;

    fn cache(entries: usize, bytes: usize) -> OpenFileCache<Found> {
        OpenFileCache::new(Weight { entries, bytes }, Duration::from_secs(1))
    }

    fn knows(cache: &mut OpenFileCache<Found>, path: &str, now: Instant) -> bool {
        cache.get(path.as_bytes(), now).is_some()
    }

    #[test]
    fn an_entry_is_fresh_for_the_validity_time_and_stale_after() {
        let (mut cache, start) = (cache(10, 10_000), Instant::now());
        assert!(cache.get(b"/a", start).is_none());
        cache.put(b"/a", Found::Absent, start);
        let just_before = start + Duration::from_millis(999);
        assert!(matches!(cache.get(b"/a", just_before), Some(Known::Fresh(Found::Absent))));
        let after = start + Duration::from_secs(1);
        assert!(matches!(cache.get(b"/a", after), Some(Known::Stale(Found::Absent))));
        cache.put(b"/a", Found::Refused, after);
        assert!(matches!(cache.get(b"/a", after), Some(Known::Fresh(Found::Refused))));
        assert_eq!(cache.used.entries, 1);
    }

    #[test]
    fn a_scan_over_names_does_not_evict_entries_in_demand() {
        let (mut cache, now) = (cache(10, 100_000), Instant::now());
        for hot in ["/1", "/2", "/3"] {
            cache.put(hot.as_bytes(), Found::Absent, now);
        }
        for round in 0..1000 {
            for hot in ["/1", "/2", "/3"] {
                assert!(knows(&mut cache, hot, now), "{hot} in round {round}");
            }
            cache.put(format!("/scan/{round}").as_bytes(), Found::Absent, now);
        }
        assert!(knows(&mut cache, "/scan/999", now));
        assert!(!knows(&mut cache, "/scan/900", now));
    }

    #[test]
    fn an_entry_over_a_limit_is_not_kept_and_evicts_nothing() {
        let (mut cache, now) = (cache(10, 1000), Instant::now());
        cache.put(b"/a", Found::Absent, now);
        let long = "/".repeat(1001);
        cache.put(long.as_bytes(), Found::Absent, now);
        assert!(!knows(&mut cache, &long, now));
        assert!(knows(&mut cache, "/a", now));
    }

    #[test]
    fn a_cache_without_room_keeps_nothing() {
        let (mut cache, now) = (cache(0, 0), Instant::now());
        cache.put(b"/a", Found::Absent, now);
        assert!(!knows(&mut cache, "/a", now));
    }

    proptest! {
        #[test]
        fn limits_hold_and_sums_are_right_after_any_puts_and_gets(
            steps in prop::collection::vec((any::<bool>(), "/[a-d]{0,3}", 0usize..300), 0..200),
        ) {
            let (mut cache, now) = (cache(5, 2000), Instant::now());
            for (is_put, path, padding) in steps {
                let path = format!("{path}{}", "x".repeat(padding));
                if is_put {
                    cache.put(path.as_bytes(), Found::Absent, now);
                    prop_assert!(knows(&mut cache, &path, now));
                } else {
                    cache.get(path.as_bytes(), now);
                }
                let kept = cache.slots.iter().flatten();
                let sum = kept.fold(Weight::default(), |sum, slot| Weight {
                    entries: sum.entries + slot.weight.entries,
                    bytes: sum.bytes + slot.weight.bytes,
                });
                prop_assert_eq!(sum, cache.used);
                prop_assert!(sum.entries <= 5 && sum.bytes <= 2000, "{:?}", sum);
                prop_assert_eq!(cache.by_path.len(), cache.slots.iter().flatten().count());
                prop_assert!(cache.slots.len() <= 5);
            }
        }
    }
}
