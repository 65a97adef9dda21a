//! What the caches of several machines have in common: the server behind their stores.
//!
//! A response that this machine has stored is written to the server as well, behind the client's
//! back. A request that finds nothing here asks the server before it asks the place.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use kirin_cache::Forwarded;
use kirin_origin::Purge;
use kirin_store::{Invalidation, Now};

use super::fetch::CacheFetch;
use super::keep::Keep;
use super::memory::{Cache, CacheEntry};

/// The most bytes of responses that an event loop is writing to the server. Further ones stay on
/// this machine until there is room.
const MOST_BYTES_ON_THE_WAY: usize = 16 << 20;

/// The longest value that is written to the server, in bytes. The server answers nobody while it
/// takes one: 2 ms for 1 MB, 10 ms for 4 MB (docs/many-machines.md).
const LONGEST_SHARED: usize = 1 << 20;

/// How often a request asks the server for items, one after the other: the names of the fields that
/// responses vary by, and its variant. No copy is kept of what has changed meanwhile. It is asked
/// for again.
const MOST_LOADS: usize = 6;

/// The bytes that are being written to the server. Dropping it takes them away from the sum.
struct OnTheWay {
    cache: Rc<Cache>,
    bytes: usize,
}

impl OnTheWay {
    /// Returns `None` if they are too many.
    fn begin(cache: &Rc<Cache>, bytes: usize) -> Option<Self> {
        let sum = cache.bytes_on_the_way.get() + bytes;
        if sum > MOST_BYTES_ON_THE_WAY {
            return None;
        }
        cache.bytes_on_the_way.set(sum);
        Some(Self { cache: Rc::clone(cache), bytes })
    }
}

impl Drop for OnTheWay {
    fn drop(&mut self) {
        let sum: &Cell<usize> = &self.cache.bytes_on_the_way;
        sum.set(sum.get().saturating_sub(self.bytes));
    }
}

impl Cache {
    /// Writes a response that is stored here to the server, so that other machines have it. Does
    /// not wait. Without a server, nothing happens.
    pub(super) fn share(self: &Rc<Self>, keep: &Keep) {
        if self.near.origin().is_none() {
            return;
        }
        let Some(item) = self.store.peek(keep.key(), Now::on_steady_clock()) else { return };
        let bytes = item.value_slice().len();
        if bytes > LONGEST_SHARED {
            keep.lease.note_useless();
            return;
        }
        let Some(on_the_way) = OnTheWay::begin(self, bytes) else {
            self.warnings.warn("unshared", || {
                tracing::warn!(
                    "cached responses stay on this machine: the origin takes them too slowly"
                );
            });
            return;
        };
        let keep = keep.clone();
        tokio::task::spawn_local(async move {
            keep.store_for_all(&on_the_way.cache.near, item).await;
        });
    }

    /// Drops a response, also on the server. Does not wait for that.
    pub(super) fn drop_everywhere(&self, key: &[u8]) {
        self.store.delete(key, Now::on_steady_clock());
        let Some(origin) = self.near.origin() else { return };
        let (origin, key) = (Arc::clone(origin), key.to_vec());
        tokio::task::spawn_local(async move {
            let purge = Purge { keys: &[&key], ..Purge::default() };
            // Another machine asks the place whether it is still valid.
            let _ = origin.purge(&purge, Invalidation::Hard, Now::on_steady_clock()).await;
        });
    }
}

impl CacheFetch {
    /// Asks the server behind the store for what this machine does not have.
    pub(super) async fn load(&mut self) {
        if self.cache.near.origin().is_none() {
            return;
        }
        for loads in 0..=MOST_LOADS {
            let key = match self.find() {
                CacheEntry::Nothing { key, .. } if loads < MOST_LOADS => key,
                CacheEntry::Response(_) if loads > 0 => {
                    // If it cannot be used as it is, this is why the place is asked.
                    self.why = Forwarded::Stale;
                    return;
                }
                _ => return,
            };
            if !self.cache.near.is_unknown(&key, Now::on_steady_clock()) {
                return;
            }
            let loaded = self.cache.near.load(&[Bytes::from(key)]).await;
            if loaded.iter().all(Option::is_none) {
                return;
            }
        }
    }
}
