//! The paths that may enter a full group: those that were requested before, not long ago.
//!
//! Otherwise a cache that is smaller than what visitors request in turn would store one path and
//! evict another at each request, and find nothing. So it keeps most of its entries, which are
//! found in each turn.
//!
//! Only a fingerprint of each refused path is kept, two bytes each, in buckets of four. Each bucket
//! forgets its oldest entry. Hashes spread evenly, so the table as a whole forgets in about the
//! order in which it learnt. A wrong match occurs once in 16,000 paths. Then a path enters at its
//! first request.

/// A fingerprint of a hash. 0 marks an empty entry.
type Fingerprint = u16;

const BUCKET: usize = 4;

/// The least number of paths that the table remembers.
const MIN_REMEMBERED: usize = 64;

/// After so many refused paths the next one enters all the same. If visitors request more names in
/// turn than the table remembers, no name is requested again in time. Then this replaces entries
/// that nobody requests any more.
const MAX_REFUSED: u32 = 31;

/// The paths that a full group has refused lately.
#[derive(Debug, Default)]
pub(super) struct Admission {
    buckets: Vec<[Fingerprint; BUCKET]>,
    /// The number of refused paths since one entered all the same.
    refused: u32,
}

impl Admission {
    /// Returns whether the path with this `hash` may enter a full group of `paths` paths. Remembers
    /// a refused path, and about as many of them as there are paths in the group.
    pub(super) fn admits(&mut self, hash: u64, paths: usize) -> bool {
        self.resize(paths.max(MIN_REMEMBERED));
        // The lowest bits choose the bucket.
        let fingerprint = ((hash >> 32) as Fingerprint).max(1);
        let at = hash as usize & (self.buckets.len() - 1);
        let bucket = &mut self.buckets[at];
        if let Some(place) = bucket.iter().position(|other| *other == fingerprint) {
            bucket[place..].rotate_left(1);
            bucket[BUCKET - 1] = 0;
            return true;
        }
        if self.refused == MAX_REFUSED {
            self.refused = 0;
            return true;
        }
        self.refused += 1;
        bucket.rotate_right(1);
        bucket[0] = fingerprint;
        false
    }

    /// Makes a new table if the group has become much larger or smaller.
    fn resize(&mut self, paths: usize) {
        let places = self.buckets.len() * BUCKET;
        if paths > places * 2 || paths < places / 8 {
            self.buckets = vec![[0; BUCKET]; (paths / BUCKET).next_power_of_two()];
        }
    }
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
