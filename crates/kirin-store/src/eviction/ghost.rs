//! Keys that left the small queue some time ago, two bytes each.
//!
//! A key that comes back soon after its eviction was evicted too early. It goes straight to the
//! main queue. Only a fingerprint of its hash is kept, in buckets of four; each bucket forgets its
//! oldest entry. Hashes spread evenly, so the table as a whole forgets in about the order in which
//! it learnt.
//!
//! A wrong match occurs once in 16,000 keys. It sends an item to the main queue that the small
//! queue should have tried first, and has no other effect.

/// A fingerprint of a hash. 0 marks an empty entry.
type Fingerprint = u16;

const BUCKET: usize = 4;

/// The fingerprints of keys that left the small queue.
#[derive(Debug, Default)]
pub(crate) struct Ghost {
    buckets: Vec<[Fingerprint; BUCKET]>,
}

impl Ghost {
    /// Remembers a hash. `items` is the number of items in the shard. The table remembers about as
    /// many hashes.
    pub(crate) fn remember(&mut self, hash: u64, items: usize) {
        let places = self.buckets.len() * BUCKET;
        if items > places * 2 || items < places / 8 {
            let buckets = (items / BUCKET).next_power_of_two();
            self.buckets = vec![[0; BUCKET]; buckets];
        }
        let (bucket, fingerprint) = self.place(hash);
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            bucket.rotate_right(1);
            bucket[0] = fingerprint;
        }
    }

    /// Forgets a hash. Returns whether it was remembered.
    pub(crate) fn forget(&mut self, hash: u64) -> bool {
        let (bucket, fingerprint) = self.place(hash);
        let Some(bucket) = self.buckets.get_mut(bucket) else { return false };
        let Some(place) = bucket.iter().position(|&other| other == fingerprint) else {
            return false;
        };
        bucket[place..].rotate_left(1);
        bucket[BUCKET - 1] = 0;
        true
    }

    /// Returns the bytes that it takes from the budget.
    pub(crate) fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<[Fingerprint; BUCKET]>()
    }

    fn place(&self, hash: u64) -> (usize, Fingerprint) {
        let bucket = hash as usize & self.buckets.len().wrapping_sub(1);
        // Bits 40 and up have chosen the shard, and the lowest bits choose the bucket.
        (bucket, ((hash >> 24) as Fingerprint).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(i: u64) -> u64 {
        i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    }

    #[test]
    fn the_ghost_remembers_as_many_keys_as_there_are_items() {
        let mut ghost = Ghost::default();
        assert!(!ghost.forget(1), "an empty ghost knows nothing");
        for i in 0..100_000 {
            ghost.remember(hash(i), 10_000);
        }
        let recent = (95_000..100_000).filter(|&i| ghost.forget(hash(i))).count();
        let old = (0..50_000).filter(|&i| ghost.forget(hash(i))).count();
        assert!(recent > 4_000, "{recent} of the last 5,000");
        assert!(old < 500, "{old} of the first 50,000");
        assert!(
            !(95_000..100_000).any(|i| ghost.forget(hash(i))),
            "what was forgotten is forgotten"
        );
        assert!(ghost.bytes() <= 4 * 10_000);
    }
}
