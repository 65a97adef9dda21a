//! SIEVE (Zhang et al., NSDI 2024): one queue, a mark for a hit, and a hand that moves from old to
//! new.

use crate::policy::{NIL, Objects, Policy, Queue};

pub struct Sieve {
    capacity: u64,
    objects: Objects,
    queue: Queue,
    hand: usize,
}

impl Sieve {
    pub fn new(capacity: u64) -> Sieve {
        Sieve { capacity, objects: Objects::default(), queue: Queue::default(), hand: NIL }
    }

    fn evict(&mut self) {
        loop {
            let at = if self.hand == NIL { self.queue.tail } else { self.hand };
            let entry = &mut self.objects.entries[at];
            self.hand = entry.newer;
            if entry.hits == 0 {
                self.queue.unlink(&mut self.objects.entries, at);
                self.objects.forget(at);
                return;
            }
            entry.hits = 0;
        }
    }
}

impl Policy for Sieve {
    fn request(&mut self, key: u64, bytes: u64) -> bool {
        if let Some(&at) = self.objects.index.get(&key) {
            self.objects.entries[at].hits = 1;
            return true;
        }
        while self.queue.bytes + bytes > self.capacity && self.queue.bytes > 0 {
            self.evict();
        }
        let at = self.objects.add(key, bytes, true);
        self.queue.push(&mut self.objects.entries, at);
        false
    }
}
