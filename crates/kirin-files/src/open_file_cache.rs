//! The open-file cache: the last lookup result of each path. All `files:DIR` places of an event
//! loop share one, and the files that applications hand back have another.
//!
//! Three groups of entries have limits of their own: files in memory, files with an open
//! descriptor, and paths without a file. So a client that asks for endless names that do not exist
//! evicts no file, and a large file evicts no small one for its descriptor.
//!
//! A group with room takes every path at once. A full one takes a path at its second request
//! ([`Admission`]) and evicts another by CLOCK: one bit in each slot records whether the path was
//! requested since the hand last passed. So a scan over names that are requested only once leaves
//! nearly all entries.

mod admission;
mod ring;

use std::hash::BuildHasher;
use std::rc::Rc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap};

use crate::config::CacheLimits;
use admission::Admission;
use ring::{CacheRing, CacheSlot};

/// The approximate memory of a slot and its map entry in bytes, without path and value.
const SLOT_BYTES: usize = 144;

/// The part of the memory that paths without a file may take at most: one in so many.
const ABSENT_PART: usize = 8;

/// A value of the cache.
pub(crate) trait Cacheable: Clone {
    /// Returns the memory in bytes.
    fn bytes(&self) -> usize;
    /// Returns the number of open descriptors.
    fn descriptors(&self) -> usize;
    /// Returns whether the value states that there is no file.
    fn is_absence(&self) -> bool;
}

/// Paths and their last lookup results.
pub(crate) struct OpenFileCache<V> {
    by_path: HashMap<PathKey, Position, RandomState>,
    /// The groups, in the order of [`CacheGroup`].
    rings: [CacheRing<V>; 3],
    /// Which paths may enter each group while it is full.
    admissions: [Admission; 3],
    /// Memory for files, with and without descriptor, in bytes.
    file_bytes: usize,
    /// Memory for paths without a file, in bytes.
    absent_bytes: usize,
    validity: Duration,
}

/// The state of a cached result.
pub(crate) enum Known<V> {
    /// The path was looked up within the validity time.
    Fresh(V),
    /// The path must be looked up again.
    Stale(V),
}

/// The place that an entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlaceId(pub(crate) u32);

/// A path of a place.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PathKey {
    place: PlaceId,
    path: Rc<[u8]>,
}

/// A borrowed [`PathKey`]. Both have the same hash.
#[derive(Hash)]
struct KeyRef<'a> {
    place: PlaceId,
    path: &'a [u8],
}

impl Equivalent<PathKey> for KeyRef<'_> {
    fn equivalent(&self, key: &PathKey) -> bool {
        self.place == key.place && *self.path == *key.path
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CacheGroup {
    Memory,
    Descriptors,
    Absent,
}

#[derive(Clone, Copy)]
struct Position {
    group: CacheGroup,
    slot: usize,
}

impl<V: Cacheable> OpenFileCache<V> {
    pub(crate) fn new(limits: &CacheLimits) -> Self {
        let absent_bytes = limits.bytes / ABSENT_PART;
        Self {
            by_path: HashMap::default(),
            rings: [limits.paths, limits.descriptors, limits.paths].map(CacheRing::new),
            admissions: Default::default(),
            file_bytes: limits.bytes - absent_bytes,
            absent_bytes,
            validity: limits.validity,
        }
    }

    pub(crate) fn get(&mut self, place: PlaceId, path: &[u8], now: Instant) -> Option<Known<V>> {
        let at = *self.by_path.get(&KeyRef { place, path })?;
        let slot = self.rings[at.group as usize].slot_mut(at.slot)?;
        slot.wanted = true;
        let value = slot.value.clone();
        let fresh = now.saturating_duration_since(slot.looked) < self.validity;
        Some(if fresh { Known::Fresh(value) } else { Known::Stale(value) })
    }

    /// Stores the result of a lookup at `now`. Does not keep a result that alone exceeds a limit. A
    /// full group does not keep a path that it does not admit yet.
    pub(crate) fn put(&mut self, place: PlaceId, path: &[u8], value: V, now: Instant) {
        let bytes = value.bytes() + path.len() + SLOT_BYTES;
        let units = value.descriptors().max(1);
        let group = CacheGroup::of(&value);
        let previous = self.by_path.get(&KeyRef { place, path }).copied();
        if let Some(at) = previous
            && at.group == group
            && let Some(slot) = self.rings[group as usize].slot_mut(at.slot)
            && slot.bytes == bytes
            && slot.units == units
        {
            slot.value = value;
            slot.looked = now;
            return;
        }
        if let Some(at) = previous {
            self.clear(at);
        }
        let limit_units = self.rings[group as usize].limit_units;
        if units > limit_units || bytes > self.limit_bytes(group) {
            return;
        }
        // A path that was cached before was requested before.
        let wanted = previous.is_some();
        if !wanted
            && self.overfull(group, units, bytes).is_some()
            && !self.admits(group, place, path)
        {
            return;
        }
        self.make_room(group, units, bytes);
        let key = PathKey { place, path: path.into() };
        let slot = CacheSlot { key: key.clone(), value, looked: now, units, bytes, wanted };
        let slot = self.rings[group as usize].insert(slot);
        self.by_path.insert(key, Position { group, slot });
    }

    /// Drops the entries of all places that are not `wanted`.
    pub(crate) fn retain_places(&mut self, wanted: impl Fn(PlaceId) -> bool) {
        let unwanted = self.by_path.iter().filter(|(key, _)| !wanted(key.place));
        let unwanted: Vec<Position> = unwanted.map(|(_, at)| *at).collect();
        unwanted.into_iter().for_each(|at| self.clear(at));
    }

    /// Returns the memory in bytes.
    #[cfg(test)]
    pub(crate) fn used_bytes(&self) -> usize {
        self.rings.iter().map(|ring| ring.bytes).sum()
    }

    /// Returns the result for a path, old or not, without marking it as requested.
    pub(crate) fn peek(&self, place: PlaceId, path: &[u8]) -> Option<&V> {
        let at = self.by_path.get(&KeyRef { place, path })?;
        self.rings[at.group as usize].slot(at.slot).map(|slot| &slot.value)
    }

    /// Updates the memory of the value at `path`, which has grown since it was stored. Evicts
    /// others if needed.
    pub(crate) fn weigh(&mut self, place: PlaceId, path: &[u8]) {
        let Some(&at) = self.by_path.get(&KeyRef { place, path }) else { return };
        let ring = &mut self.rings[at.group as usize];
        let Some(slot) = ring.slot_mut(at.slot) else { return };
        let bytes = slot.value.bytes() + path.len() + SLOT_BYTES;
        let added = bytes.saturating_sub(slot.bytes);
        slot.bytes += added;
        // It was requested just now.
        slot.wanted = true;
        ring.bytes += added;
        if bytes > self.limit_bytes(at.group) {
            self.clear(at);
        }
        self.make_room(at.group, 0, 0);
    }

    /// Returns whether a path may enter `group`, which is full.
    fn admits(&mut self, group: CacheGroup, place: PlaceId, path: &[u8]) -> bool {
        let hash = self.by_path.hasher().hash_one(KeyRef { place, path });
        self.admissions[group as usize].admits(hash, self.rings[group as usize].units)
    }

    /// Returns the group that must lose an entry before `units` and `bytes` more fit into `group`.
    fn overfull(&self, group: CacheGroup, units: usize, bytes: usize) -> Option<CacheGroup> {
        let ring = &self.rings[group as usize];
        let [memory, descriptors, absent] = self.rings.each_ref().map(|ring| ring.bytes);
        if ring.units + units > ring.limit_units {
            Some(group)
        } else if group == CacheGroup::Absent {
            (absent + bytes > self.absent_bytes).then_some(group)
        } else if memory + descriptors + bytes <= self.file_bytes {
            None
        } else if memory >= descriptors {
            Some(CacheGroup::Memory)
        } else {
            Some(CacheGroup::Descriptors)
        }
    }

    /// Evicts entries until `units` and `bytes` more fit into the limits of `group`.
    fn make_room(&mut self, group: CacheGroup, units: usize, bytes: usize) {
        while let Some(from) = self.overfull(group, units, bytes) {
            match self.rings[from as usize].evict() {
                Some(evicted) => self.by_path.remove(&evicted.key),
                None => return,
            };
        }
    }

    fn limit_bytes(&self, group: CacheGroup) -> usize {
        if group == CacheGroup::Absent { self.absent_bytes } else { self.file_bytes }
    }

    fn clear(&mut self, at: Position) {
        if let Some(slot) = self.rings[at.group as usize].take(at.slot) {
            self.by_path.remove(&slot.key);
        }
    }
}

impl CacheGroup {
    fn of(value: &impl Cacheable) -> Self {
        if value.is_absence() {
            CacheGroup::Absent
        } else if value.descriptors() > 0 {
            CacheGroup::Descriptors
        } else {
            CacheGroup::Memory
        }
    }
}

#[cfg(test)]
#[path = "open_file_cache_tests.rs"]
mod tests;
