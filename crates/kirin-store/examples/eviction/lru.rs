//! Least recently used.

use crate::policy::{Objects, Policy, Queue};

#[derive(Default)]
pub struct Lru {
    capacity: u64,
    objects: Objects,
    queue: Queue,
}

impl Lru {
    pub fn new(capacity: u64) -> Lru {
        Lru { capacity, ..Lru::default() }
    }
}

impl Policy for Lru {
    fn request(&mut self, key: u64, bytes: u64) -> bool {
        if let Some(&at) = self.objects.index.get(&key) {
            self.queue.unlink(&mut self.objects.entries, at);
            self.queue.push(&mut self.objects.entries, at);
            return true;
        }
        while self.queue.bytes + bytes > self.capacity && self.queue.bytes > 0 {
            let at = self.queue.tail;
            self.queue.unlink(&mut self.objects.entries, at);
            self.objects.forget(at);
        }
        let at = self.objects.add(key, bytes, true);
        self.queue.push(&mut self.objects.entries, at);
        false
    }
}
