//! S3-FIFO (Yang et al., SOSP 2023): a small queue on probation, a main queue, and a ghost queue of
//! keys that left the small one.

use std::collections::{HashMap, VecDeque};

use crate::policy::{Objects, Policy, Queue};

/// The share of the small queue in the capacity.
const SMALL_SHARE: f64 = 0.1;
/// The most hits that are counted.
const HITS_LIMIT: u8 = 3;

pub struct S3Fifo {
    capacity: u64,
    objects: Objects,
    small: Queue,
    main: Queue,
    ghost: Ghost,
    /// The hits that move an object from the small to the main queue.
    promote_at: u8,
}

impl S3Fifo {
    pub fn new(capacity: u64, promote_at: u8) -> S3Fifo {
        let (small, main) = (Queue::default(), Queue::default());
        S3Fifo {
            capacity,
            objects: Objects::default(),
            small,
            main,
            ghost: Ghost::default(),
            promote_at,
        }
    }

    fn evict(&mut self) {
        let small_share = (self.capacity as f64 * SMALL_SHARE) as u64;
        if self.small.bytes >= small_share.max(1) || self.main.bytes == 0 {
            self.evict_small();
        } else {
            self.evict_main();
        }
    }

    fn evict_small(&mut self) {
        while self.small.bytes > 0 {
            let at = self.small.tail;
            let entries = &mut self.objects.entries;
            self.small.unlink(entries, at);
            if entries[at].hits >= self.promote_at {
                entries[at].hits = 0;
                entries[at].main = true;
                self.main.push(entries, at);
                continue;
            }
            let (key, bytes) = (entries[at].key, entries[at].bytes);
            self.objects.forget(at);
            self.ghost.remember(key, bytes, self.main.bytes.max(self.capacity / 2));
            return;
        }
        self.evict_main();
    }

    fn evict_main(&mut self) {
        while self.main.bytes > 0 {
            let at = self.main.tail;
            let entries = &mut self.objects.entries;
            self.main.unlink(entries, at);
            if entries[at].hits > 0 {
                entries[at].hits -= 1;
                self.main.push(entries, at);
                continue;
            }
            self.objects.forget(at);
            return;
        }
    }
}

impl Policy for S3Fifo {
    fn request(&mut self, key: u64, bytes: u64) -> bool {
        if let Some(&at) = self.objects.index.get(&key) {
            let hits = &mut self.objects.entries[at].hits;
            *hits = HITS_LIMIT.min(*hits + 1);
            return true;
        }
        let known = self.ghost.forget(key);
        while self.small.bytes + self.main.bytes + bytes > self.capacity
            && !self.objects.index.is_empty()
        {
            self.evict();
        }
        let at = self.objects.add(key, bytes, known);
        let queue = if known { &mut self.main } else { &mut self.small };
        queue.push(&mut self.objects.entries, at);
        false
    }
}

/// Keys that left the small queue without a hit. Their bytes would fit in the main queue.
#[derive(Default)]
struct Ghost {
    order: VecDeque<(u64, u64, u64)>,
    /// When each key was last remembered. Older entries in `order` are void.
    known: HashMap<u64, u64>,
    bytes: u64,
    clock: u64,
}

impl Ghost {
    fn remember(&mut self, key: u64, bytes: u64, limit: u64) {
        self.clock += 1;
        self.known.insert(key, self.clock);
        self.order.push_back((key, bytes, self.clock));
        self.bytes += bytes;
        while self.bytes > limit {
            let Some((key, bytes, clock)) = self.order.pop_front() else { break };
            self.bytes -= bytes;
            if self.known.get(&key) == Some(&clock) {
                self.known.remove(&key);
            }
        }
    }

    fn forget(&mut self, key: u64) -> bool {
        self.known.remove(&key).is_some()
    }
}
