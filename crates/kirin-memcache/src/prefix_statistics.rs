//! Counts of commands by the prefix of their keys (`stats detail`).
//!
//! A prefix is the part of a key before the first delimiter. Clients choose the keys, so the number
//! of prefixes is limited. Commands with further prefixes are not counted.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use parking_lot::Mutex;

use crate::text_key::is_text;

/// The most prefixes. At 250 bytes each they take about 4 MB.
const PREFIX_LIMIT: usize = 10_000;

/// The counts of one prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrefixCounts {
    pub(crate) gets: u64,
    pub(crate) hits: u64,
    pub(crate) sets: u64,
    pub(crate) deletes: u64,
}

/// The counts of all prefixes. All loops share them while `stats detail` is on.
#[derive(Debug)]
pub(crate) struct PrefixStatistics {
    delimiter: u8,
    table: Mutex<BTreeMap<Box<[u8]>, PrefixCounts>>,
}

impl PrefixStatistics {
    pub(crate) fn new(delimiter: u8) -> PrefixStatistics {
        PrefixStatistics { delimiter, table: Mutex::default() }
    }

    pub(crate) fn count_get(&self, key: &[u8], is_hit: bool) {
        self.count(key, |counts| {
            counts.gets += 1;
            counts.hits += u64::from(is_hit);
        });
    }

    pub(crate) fn count_set(&self, key: &[u8]) {
        self.count(key, |counts| counts.sets += 1);
    }

    pub(crate) fn count_delete(&self, key: &[u8]) {
        self.count(key, |counts| counts.deletes += 1);
    }

    fn count(&self, key: &[u8], change: impl FnOnce(&mut PrefixCounts)) {
        let Some(end) = memchr::memchr(self.delimiter, key) else { return };
        // A prefix with a line end in it would look like another line of the table.
        let Some(prefix) = key.get(..end).filter(|prefix| is_text(prefix)) else { return };
        let mut table = self.table.lock();
        if let Some(counts) = table.get_mut(prefix) {
            return change(counts);
        }
        let is_full = table.len() >= PREFIX_LIMIT;
        if let Entry::Vacant(entry) = table.entry(prefix.into())
            && !is_full
        {
            change(entry.insert(PrefixCounts::default()));
        }
    }

    /// Returns up to `count` prefixes after the prefix `after`, in the order of their bytes.
    pub(crate) fn page(
        &self,
        after: Option<&[u8]>,
        count: usize,
    ) -> Vec<(Box<[u8]>, PrefixCounts)> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let table = self.table.lock();
        let rows = table.range::<[u8], _>((start, Bound::Unbounded)).take(count);
        rows.map(|(prefix, counts)| (prefix.clone(), *counts)).collect()
    }

    /// Forgets all counts (`stats reset`).
    pub(crate) fn clear(&self) {
        self.table.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_counted_under_the_part_before_the_delimiter() {
        let statistics = PrefixStatistics::new(b':');
        statistics.count_get(b"user:1", true);
        statistics.count_get(b"user:2:x", false);
        statistics.count_set(b"user:");
        statistics.count_delete(b":x");
        for uncounted in [&b"user"[..], b"a\r\nEND\r\n:x", b"a b:c"] {
            statistics.count_set(uncounted);
        }
        let user = PrefixCounts { gets: 2, hits: 1, sets: 1, deletes: 0 };
        let empty = PrefixCounts { deletes: 1, ..PrefixCounts::default() };
        let expected = [(b""[..].into(), empty), (b"user"[..].into(), user)];
        assert_eq!(statistics.page(None, 10), expected);
        assert_eq!(statistics.page(Some(b""), 10), expected[1..]);
        assert_eq!(statistics.page(None, 1), expected[..1]);
        statistics.clear();
        assert!(statistics.page(None, 10).is_empty());
    }

    #[test]
    fn clients_cannot_make_more_prefixes_than_the_limit() {
        let statistics = PrefixStatistics::new(b':');
        for number in 0..PREFIX_LIMIT + 100 {
            statistics.count_set(format!("{number}:x").as_bytes());
        }
        assert_eq!(statistics.page(None, usize::MAX).len(), PREFIX_LIMIT);
        statistics.count_set(b"7:y");
        let seven = statistics.page(Some(b"6"), usize::MAX);
        let seven = seven.iter().find(|(prefix, _)| **prefix == *b"7").expect("the seventh");
        assert_eq!(seven.1.sets, 2, "known prefixes are counted further");
    }
}
