//! Tells an observer which items are evicted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use crate::store::Store;

/// An item that is being evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eviction<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The length of the value in bytes.
    pub value_len: usize,
    /// The seconds since the last access.
    pub idle_seconds: u64,
    /// Whether the item was fetched since it was stored.
    pub was_fetched: bool,
    /// The seconds that were left until the expiry. `None` if the item would never expire.
    pub seconds_left: Option<u64>,
}

/// A function that is called for each evicted item.
pub type EvictionObserver = Arc<dyn Fn(&Eviction<'_>) + Send + Sync>;

/// The observer of evictions, and whether it wants to be called at present.
#[derive(Default)]
pub(crate) struct EvictionWatch {
    is_on: AtomicBool,
    observer: RwLock<Option<EvictionObserver>>,
}

impl EvictionWatch {
    /// Tells the observer of an eviction, which `describe` describes. Costs one load if there is no
    /// watcher.
    pub(crate) fn note<'a>(&self, describe: impl FnOnce() -> Eviction<'a>) {
        if !self.is_on.load(Ordering::Relaxed) {
            return;
        }
        if let Some(observer) = &*self.observer.read() {
            observer(&describe());
        }
    }
}

impl Store {
    /// Sets the observer of evictions. It is called only while [`Store::watch_evictions`] has
    /// switched it on. A shard is locked then, so it must be short and must not call the store.
    pub fn set_eviction_observer(&self, observer: EvictionObserver) {
        *self.eviction_watch.observer.write() = Some(observer);
    }

    /// Switches the calls of the observer on or off.
    pub fn watch_evictions(&self, is_on: bool) {
        self.eviction_watch.is_on.store(is_on, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::clock::{Expires, Now};
    use crate::commands::storage::NewItem;
    use crate::config::StoreConfig;

    #[test]
    fn the_observer_is_told_of_evictions_while_it_is_switched_on() {
        const NOON: Now = Now::from_unix_seconds(1_700_000_000);
        let config =
            StoreConfig { memory_bytes: 1 << 20, item_limit_bytes: 4096, shards: 1, evict: true };
        let store = Store::new(config);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        store.set_eviction_observer(Arc::new(move |evicted| {
            let (key, left) = (evicted.key.to_vec(), evicted.seconds_left);
            sink.lock().push((key, evicted.value_len, left, evicted.idle_seconds));
        }));
        let fill = |from: u32| {
            let expires = Expires::after_seconds(100, NOON);
            for number in from..from + 3000 {
                let key = format!("key{number}");
                let now = NOON.plus_seconds(7);
                store.set(key.as_bytes(), NewItem::new(&[b'v'; 1000]).expires(expires), now);
            }
        };
        fill(0);
        assert!(store.stats().evictions > 0 && seen.lock().is_empty(), "nobody watches");
        store.watch_evictions(true);
        let before = store.stats().evictions;
        fill(10_000);
        assert_eq!(seen.lock().len() as u64, store.stats().evictions - before);
        let seen = seen.lock();
        let (key, value_len, left, idle_seconds) = &seen[0];
        assert!(key.starts_with(b"key"));
        assert_eq!((*value_len, *left, *idle_seconds), (1000, Some(93), 0));
    }
}
