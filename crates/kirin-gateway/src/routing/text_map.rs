//! A map whose keys are texts of the configuration, asked for texts of strangers.
//!
//! It compares hashes first. They lie close together in memory, so that a search among thousands of
//! keys touches few cache lines. The hash needs no secret: strangers cannot add keys.

use xxhash_rust::xxh3::xxh3_64;

/// A map from texts to values.
#[derive(Debug)]
pub struct TextMap<T> {
    /// The hashes of the keys, sorted.
    hashes: Vec<u64>,
    /// The keys and their values, in the order of `hashes`.
    entries: Vec<(Box<[u8]>, T)>,
    /// The bytes of the longest key.
    longest: usize,
}

impl<T> Default for TextMap<T> {
    fn default() -> Self {
        Self { hashes: Vec::new(), entries: Vec::new(), longest: 0 }
    }
}

impl<T> TextMap<T> {
    /// Returns whether the map has no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the value of `text`.
    pub fn get(&self, text: &[u8]) -> Option<&T> {
        // A long text is not even hashed.
        if text.len() > self.longest {
            return None;
        }
        let at = self.position(xxh3_64(text), text).ok()?;
        self.entries.get(at).map(|(_, value)| value)
    }

    /// Returns the value of `text`, which becomes `value` if there is none.
    pub fn get_or_insert(&mut self, text: &[u8], value: T) -> &mut T {
        let hash = xxh3_64(text);
        let at = self.position(hash, text).unwrap_or_else(|at| {
            self.hashes.insert(at, hash);
            self.entries.insert(at, (text.into(), value));
            self.longest = self.longest.max(text.len());
            at
        });
        &mut self.entries[at].1
    }

    /// Returns where `text` is, or where it belongs.
    fn position(&self, hash: u64, text: &[u8]) -> Result<usize, usize> {
        let first = self.hashes.partition_point(|other| *other < hash);
        let same = self.hashes[first..].iter().take_while(|other| **other == hash).count();
        let found = self.entries[first..first + same].iter().position(|(key, _)| **key == *text);
        found.map(|at| first + at).ok_or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_own_value() {
        let mut map = TextMap::default();
        assert!(map.is_empty() && map.get(b"").is_none());
        for number in 0..1000 {
            assert_eq!(*map.get_or_insert(format!("key-{number}").as_bytes(), number), number);
        }
        assert_eq!(*map.get_or_insert(b"key-7", 0), 7);
        for number in 0..1000 {
            assert_eq!(map.get(format!("key-{number}").as_bytes()), Some(&number));
        }
        for text in ["", "key", "key-1000", "key-7 ", "a key that is longer than all others"] {
            assert_eq!(map.get(text.as_bytes()), None, "{text}");
        }
    }
}
