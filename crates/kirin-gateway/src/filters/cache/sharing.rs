//! What the caches of several machines have in common: the server behind their stores.
//!
//! A response that this machine has stored is written to the server as well, behind the client's
//! back. A request that finds nothing here asks the server before it asks the place.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use kirin_cache::Forwarded;
use kirin_origin::{Begun, Lease, NearStore, NotStored, Purge};
use kirin_store::{Expires, Invalidation, ItemRef, NewItem, Now, Store};

use super::fetch::CacheFetch;
use super::keep::Keep;
use super::memory::{Cache, CacheEntry};
use super::varies_item::VariesItem;

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

/// A stored response on its way to the server.
struct SharedKeep {
    key: Vec<u8>,
    /// The item with the response.
    item: ItemRef,
    tags: Vec<Vec<u8>>,
    expires: Expires,
    begun: Arc<Begun>,
    lease: Lease,
    /// The names of the fields that responses vary by.
    varies: Option<VariesItem>,
}

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
        let Some(shared) = SharedKeep::of(keep, &self.store, Now::on_steady_clock()) else {
            return;
        };
        let bytes = shared.item.value_slice().len();
        if bytes > LONGEST_SHARED {
            shared.lease.note_useless();
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
        tokio::task::spawn_local(async move {
            shared.write(&on_the_way.cache.near).await;
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

impl SharedKeep {
    /// Returns `None` if the response is not in the store any more.
    fn of(keep: &Keep, store: &Store, now: Now) -> Option<Self> {
        Some(Self {
            key: keep.key().to_vec(),
            item: store.peek(keep.key(), now)?,
            tags: keep.tags().into_iter().map(<[u8]>::to_vec).collect(),
            expires: keep.expires(),
            begun: Arc::clone(keep.begun()),
            lease: keep.lease().clone(),
            varies: keep.varies(),
        })
    }

    async fn write(self, near: &NearStore) {
        let Self { key, item, tags, expires, begun, lease, varies } = self;
        let tags: Vec<&[u8]> = tags.iter().map(Vec::as_slice).collect();
        let new = NewItem::new(item.value_slice()).expires(expires).tags(&tags);
        let written = near.store_page(&key, new, &begun, Now::on_steady_clock()).await;
        drop(item);
        match written {
            // The store has no copy now. The next request must not wait for one.
            Ok(()) => drop(near.load(&[Bytes::from(key)]).await),
            // Both machines serve the same then.
            Err(NotStored::Newer) => near.reload(&key).await,
            Err(reason) => {
                tracing::debug!(%reason, "a cached response stays on this machine");
                return;
            }
        }
        // This comes after the response itself: a request that finds it looks for the response.
        if let Some(VariesItem { primary_key, value, tags }) = varies {
            let tags: Vec<&[u8]> = tags.iter().map(Vec::as_slice).collect();
            let new = NewItem::new(value.as_bytes()).expires(expires).tags(&tags);
            if let Err(error) =
                near.store_unless_same(&primary_key, new, Now::on_steady_clock()).await
            {
                tracing::debug!(%error, "the variants of a response stay on this machine");
            }
        }
        lease.release();
    }
}

impl CacheFetch {
    /// Asks the server behind the store for what this machine does not have.
    pub(super) async fn load(&mut self) {
        if self.cache.near.origin().is_none() {
            return;
        }
        for _ in 0..MOST_LOADS {
            let CacheEntry::Nothing { key, .. } = self.find() else { return };
            if !self.cache.near.is_unknown(&key, Now::on_steady_clock()) {
                return;
            }
            if self.cache.near.load(&[Bytes::from(key)]).await.iter().all(Option::is_none) {
                return;
            }
            if matches!(self.find(), CacheEntry::Response(_)) {
                // If it cannot be used as it is, this is why the place is asked.
                self.why = Forwarded::Stale;
            }
        }
    }
}
