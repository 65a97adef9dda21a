//! The token buckets of a limit on the rate of requests, in memory that is bounded.
//!
//! A bucket is one number, the moment at which it is full again (the virtual scheduling form of the
//! generic cell rate algorithm, ITU-T I.371). So a full bucket and an absent one are the same, and
//! no task cleans up.
//!
//! Those of a shared limit also remember which requests the origin does not know of yet.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use kirin_origin::BucketName;
use parking_lot::Mutex;

/// The buckets of one limit: 1 MiB. If clients with more keys come at once, the fullest buckets are
/// forgotten.
const BUCKETS: usize = 64 * 1024;

/// How many buckets a key may be in, so that a search reads two cache lines.
const WAYS: usize = 8;

/// The number of locks over the buckets.
const SHARDS: usize = 64;

/// The most keys of a limit whose requests wait to be sent to the origin. The requests of others
/// count on this machine alone.
const MOST_UNSENT_KEYS: usize = 4096;

/// There are too many requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany {
    /// How long until the next one may come.
    pub retry_after: Duration,
}

/// The buckets of a limit, by the hashes of its keys. No hash is zero. Times are nanoseconds since
/// the first request.
pub(super) struct RateBuckets {
    /// The nanoseconds in which one request becomes possible.
    interval: u64,
    /// The nanoseconds in which an empty bucket becomes full.
    full: u64,
    /// The time of the first request.
    start: OnceLock<Instant>,
    /// A shard has no buckets before its first request, because each reload of a configuration
    /// reads its limits again, and most of these are not used.
    shards: Vec<Mutex<Shard>>,
    unsent_keys: AtomicUsize,
}

#[derive(Default)]
struct Shard {
    buckets: Box<[Bucket]>,
    /// The requests that the origin does not know of, by the hashes of their keys.
    unsent: HashMap<u64, Unsent, RandomState>,
}

#[derive(Clone, Copy, Default)]
struct Bucket {
    /// The hash of the key. Zero marks a bucket without a key.
    hash: u64,
    /// The time when it is full again.
    full_at: u64,
}

struct Unsent {
    name: BucketName,
    requests: u32,
}

/// What the origin is told of a bucket.
pub(super) struct Sent {
    /// The hash of the key on this machine.
    pub hash: u64,
    /// The name of the bucket on the origin.
    pub name: BucketName,
    /// What it lacks more by requests of this machine, in microseconds.
    pub lacking_micros: u64,
}

impl RateBuckets {
    /// Allows `requests` each `per` on average, and up to `burst` (at least 1) at once.
    pub fn new(requests: u64, per: Duration, burst: u64) -> Self {
        let interval = (nanoseconds(per) / requests.max(1)).max(1);
        Self {
            interval,
            full: interval.saturating_mul(burst.max(1)),
            start: OnceLock::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            unsent_keys: AtomicUsize::new(0),
        }
    }

    /// Returns the time in which one request becomes possible.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval)
    }

    /// Returns how many requests a full bucket is for.
    pub fn burst(&self) -> u64 {
        self.full / self.interval
    }

    /// Returns the microseconds in which an empty bucket becomes full.
    pub fn full_micros(&self) -> u64 {
        self.full.div_ceil(1000)
    }

    /// Returns whether the others allow the same.
    pub fn allow_same(&self, others: &Self) -> bool {
        self.interval == others.interval && self.full == others.full
    }

    /// Returns a moment as a time of these buckets.
    pub fn time(&self, now: Instant) -> u64 {
        let start = *self.start.get_or_init(|| now);
        nanoseconds(now.saturating_duration_since(start))
    }

    /// Takes one request from the bucket of a key.
    pub fn take(&self, hash: u64, now: u64) -> Result<(), TooMany> {
        self.take_and(hash, now, |_| ())
    }

    /// Does the same, and remembers the request for the origin. `name` is called if no other
    /// request of the key waits to be sent.
    pub fn take_shared(
        &self,
        hash: u64,
        now: u64,
        name: impl FnOnce() -> BucketName,
    ) -> Result<(), TooMany> {
        self.take_and(hash, now, |shard| {
            if let Some(unsent) = shard.unsent.get_mut(&hash) {
                unsent.requests = unsent.requests.saturating_add(1);
            } else if self.unsent_keys.load(Ordering::Relaxed) < MOST_UNSENT_KEYS {
                self.unsent_keys.fetch_add(1, Ordering::SeqCst);
                shard.unsent.insert(hash, Unsent { name: name(), requests: 1 });
            }
        })
    }

    /// Takes a request. If it passes, `note` is called before anybody else sees the bucket.
    #[inline]
    fn take_and(&self, hash: u64, now: u64, note: impl FnOnce(&mut Shard)) -> Result<(), TooMany> {
        let mut shard = self.shard(hash).lock();
        let bucket = shard.bucket(hash);
        let full_at = bucket.full_at.max(now).saturating_add(self.interval);
        let missing = full_at - now;
        if missing > self.full {
            return Err(TooMany { retry_after: Duration::from_nanos(missing - self.full) });
        }
        bucket.full_at = full_at;
        note(&mut shard);
        Ok(())
    }

    /// Returns whether there are requests that the origin does not know of.
    pub fn have_unsent(&self) -> bool {
        self.unsent_keys.load(Ordering::SeqCst) > 0
    }

    /// Returns the requests that the origin does not know of. From now on they count as sent.
    pub fn take_unsent(&self) -> Vec<Sent> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let unsent = std::mem::take(&mut shard.lock().unsent);
            self.unsent_keys.fetch_sub(unsent.len(), Ordering::SeqCst);
            all.extend(unsent.into_iter().map(|(hash, Unsent { name, requests })| {
                let lacking = self.interval.saturating_mul(u64::from(requests));
                Sent { hash, name, lacking_micros: lacking.div_ceil(1000) }
            }));
        }
        all
    }

    /// Takes over what the bucket of a key lacks by all machines together, at `now` or before. It
    /// does not become fuller: the requests of this machine stay.
    pub fn learn(&self, hash: u64, lacking_micros: u64, now: u64) {
        let mut shard = self.shard(hash).lock();
        let unsent = shard.unsent.get(&hash).map_or(0, |unsent| unsent.requests);
        let lacking = lacking_micros
            .saturating_mul(1000)
            .saturating_add(self.interval.saturating_mul(u64::from(unsent)));
        let bucket = shard.bucket(hash);
        bucket.full_at = bucket.full_at.max(now.saturating_add(lacking));
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[hash as usize % SHARDS]
    }
}

impl Shard {
    /// Returns the bucket of `hash`. If there is none, the fullest of the set becomes it.
    fn bucket(&mut self, hash: u64) -> &mut Bucket {
        if self.buckets.is_empty() {
            self.buckets = vec![Bucket::default(); BUCKETS / SHARDS].into_boxed_slice();
        }
        let first = (hash >> 32) as usize % (self.buckets.len() / WAYS) * WAYS;
        let set = &mut self.buckets[first..first + WAYS];
        let mut chosen = 0;
        for (index, bucket) in set.iter().enumerate() {
            if bucket.hash == hash {
                chosen = index;
                break;
            }
            if bucket.full_at < set[chosen].full_at {
                chosen = index;
            }
        }
        let bucket = &mut set[chosen];
        if bucket.hash != hash {
            *bucket = Bucket { hash, full_at: 0 };
        }
        bucket
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "rate_limit_buckets_tests.rs"]
mod tests;
