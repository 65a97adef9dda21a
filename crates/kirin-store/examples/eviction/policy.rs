//! The interface of a policy to the simulator, and the list that all three policies use.

use std::collections::HashMap;

/// A cache with a policy of eviction.
pub trait Policy {
    /// Requests an object. Returns true if it was there. If not, it is inserted.
    fn request(&mut self, key: u64, bytes: u64) -> bool;
}

/// The index of no entry.
pub const NIL: usize = usize::MAX;

/// An object in a list.
#[derive(Clone, Copy)]
pub struct Entry {
    pub key: u64,
    pub bytes: u64,
    /// The hits, if the policy counts them.
    pub hits: u8,
    /// Whether it is in the main list, for policies with several lists.
    pub main: bool,
    pub newer: usize,
    pub older: usize,
}

/// Objects by key, and their list entries.
#[derive(Default)]
pub struct Objects {
    pub index: HashMap<u64, usize>,
    pub entries: Vec<Entry>,
    free: Vec<usize>,
}

impl Objects {
    pub fn add(&mut self, key: u64, bytes: u64, main: bool) -> usize {
        let entry = Entry { key, bytes, hits: 0, main, newer: NIL, older: NIL };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        self.index.insert(key, at);
        at
    }

    pub fn forget(&mut self, at: usize) {
        self.index.remove(&self.entries[at].key);
        self.free.push(at);
    }
}

/// A list of some of the objects, with the bytes in it.
pub struct Queue {
    pub head: usize,
    pub tail: usize,
    pub bytes: u64,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { head: NIL, tail: NIL, bytes: 0 }
    }
}

impl Queue {
    pub fn push(&mut self, entries: &mut [Entry], at: usize) {
        entries[at].newer = NIL;
        entries[at].older = self.head;
        if self.head == NIL {
            self.tail = at;
        } else {
            entries[self.head].newer = at;
        }
        self.head = at;
        self.bytes += entries[at].bytes;
    }

    pub fn unlink(&mut self, entries: &mut [Entry], at: usize) {
        let Entry { newer, older, bytes, .. } = entries[at];
        if newer == NIL {
            self.head = older;
        } else {
            entries[newer].older = older;
        }
        if older == NIL {
            self.tail = newer;
        } else {
            entries[older].newer = newer;
        }
        self.bytes -= bytes;
    }
}
