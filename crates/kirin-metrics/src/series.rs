//! The series of one event loop: a value for each combination of labels that has occurred.
//!
//! The loop finds a series without a lock. Only the first use of a series takes the lock of the
//! list, which readers take too.

use std::cell::RefCell;
use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;

/// The series of one loop, as readers see them.
#[derive(Debug)]
pub struct SeriesList<K, V>(Mutex<Vec<(K, Arc<V>)>>);

/// The series of one loop, as the loop sees them.
#[derive(Debug)]
pub struct SeriesTable<K, V> {
    list: Arc<SeriesList<K, V>>,
    known: RefCell<HashMap<K, Arc<V>, foldhash::fast::RandomState>>,
    /// The series that was used last. The next request often has the same labels.
    last: RefCell<Option<(K, Arc<V>)>>,
}

impl<K, V> Default for SeriesList<K, V> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<K, V> SeriesList<K, V> {
    /// Calls `visit` with each series.
    pub fn for_each(&self, mut visit: impl FnMut(&K, &V)) {
        for (key, value) in self.0.lock().iter() {
            visit(key, value);
        }
    }
}

impl<K: Clone + Eq + Hash, V: Default> SeriesTable<K, V> {
    /// Returns the table of the loop that adds to `list`. A list must have one table only.
    pub fn new(list: Arc<SeriesList<K, V>>) -> Self {
        Self { list, known: RefCell::default(), last: RefCell::default() }
    }

    /// Forgets the series whose keys are not `wanted`. One that is counted again begins at zero.
    pub fn retain(&self, wanted: impl Fn(&K) -> bool) {
        self.known.borrow_mut().retain(|key, _| wanted(key));
        self.list.0.lock().retain(|(key, _)| wanted(key));
        self.last.replace(None);
    }

    /// Calls `count` with the series of `key`, which is created at its first use.
    #[inline]
    pub fn with(&self, key: &K, count: impl FnOnce(&V)) {
        if let Some((last, series)) = &*self.last.borrow()
            && last == key
        {
            return count(series);
        }
        let mut known = self.known.borrow_mut();
        let series = match known.get(key) {
            Some(series) => Arc::clone(series),
            None => {
                let series: Arc<V> = Arc::default();
                known.insert(key.clone(), Arc::clone(&series));
                self.list.0.lock().push((key.clone(), Arc::clone(&series)));
                series
            }
        };
        count(&series);
        self.last.replace(Some((key.clone(), series)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Count;

    #[test]
    fn each_key_has_one_series_however_often_it_is_used() {
        let list = Arc::new(SeriesList::<(u32, &str), Count>::default());
        let table = SeriesTable::new(Arc::clone(&list));
        for key in [(1, "a"), (1, "a"), (2, "a"), (1, "b"), (1, "a"), (2, "a")] {
            table.with(&key, Count::add);
        }
        let mut found = Vec::new();
        list.for_each(|key, count| found.push((*key, count.get())));
        assert_eq!(found, [((1, "a"), 3), ((2, "a"), 2), ((1, "b"), 1)]);
    }

    #[test]
    fn a_series_that_is_not_wanted_begins_anew() {
        let list = Arc::new(SeriesList::<u32, Count>::default());
        let table = SeriesTable::new(Arc::clone(&list));
        [1, 2, 3, 3].iter().for_each(|key| table.with(key, Count::add));
        table.retain(|key| *key != 3);
        let found = || {
            let mut found = Vec::new();
            list.for_each(|key, count| found.push((*key, count.get())));
            found
        };
        assert_eq!(found(), [(1, 1), (2, 1)]);
        table.with(&3, Count::add);
        assert_eq!(found(), [(1, 1), (2, 1), (3, 1)]);
    }

    #[test]
    fn a_reader_on_another_thread_sees_what_the_loop_counts() {
        let list = Arc::new(SeriesList::<u8, Count>::default());
        let table = SeriesTable::new(Arc::clone(&list));
        table.with(&7, Count::add);
        let read = std::thread::spawn(move || {
            let mut sum = 0;
            list.for_each(|_, count| sum += count.get());
            sum
        });
        assert_eq!(read.join().unwrap(), 1);
    }
}
