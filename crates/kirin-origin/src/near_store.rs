//! A store, and the server behind it if there is one.
//!
//! The web side reads by it. A hit is a hit of the store. A miss may be something that the server
//! has: then the request waits for one trip.

use std::sync::Arc;

use bytes::Bytes;
use kirin_store::{ItemRef, KEY_LIMIT_BYTES, Moment, Now, Store};

use crate::origin::{MOST_KEYS_IN_FLIGHT, StoreOrigin};
use crate::page_begin::PageBegin;

/// A store, and the server behind it if there is one. A clone is the same store.
#[derive(Clone, Debug)]
pub struct NearStore {
    pub(crate) store: Arc<Store>,
    pub(crate) origin: Option<Arc<StoreOrigin>>,
}

/// What is known of a key without waiting.
#[derive(Debug)]
pub enum Look {
    /// The item.
    Item(ItemRef),
    /// There is none, or it cannot be had.
    Nothing,
    /// The server may have it ([`NearStore::load`]).
    Unknown,
}

/// Why items were not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotLoaded {
    /// The server is away, or has not answered in time.
    #[error("the origin does not answer")]
    NoAnswer,
    /// They are larger than the caller wants.
    #[error("the items are too large together")]
    TooLarge,
}

/// The moment at which something was begun that is to be stored later. It is not stored if it was
/// purged since.
#[derive(Debug)]
pub struct Begun {
    /// The moment in the store of this machine.
    pub moment: Moment,
    /// What was known of the server.
    pub(crate) page: Option<PageBegin>,
}

impl NearStore {
    /// Joins a store and the server behind it.
    pub fn new(store: Arc<Store>, origin: Option<Arc<StoreOrigin>>) -> Self {
        Self { store, origin }
    }

    /// Returns the store of this machine.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the server behind it.
    pub fn origin(&self) -> Option<&Arc<StoreOrigin>> {
        self.origin.as_ref()
    }

    /// Looks for an item in the memory of this machine.
    #[inline]
    pub fn look(&self, key: &[u8], now: Now) -> Look {
        match self.store.get(key, now) {
            Some(item) => Look::Item(item),
            None if self.may_have(key) => Look::Unknown,
            None => Look::Nothing,
        }
    }

    /// Returns whether the server may have an item that this machine does not have.
    #[inline]
    fn may_have(&self, key: &[u8]) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.may_have(key))
    }

    /// Returns whether only the server may have an item. This counts as no use of the item.
    pub fn is_unknown(&self, key: &[u8], now: Now) -> bool {
        self.may_have(key) && self.store.peek(key, now).is_none()
    }

    /// Asks the server for items, and keeps copies of them. It takes no longer than a command for
    /// each 64 keys. An item that cannot be had counts as none.
    pub async fn load(&self, keys: &[Bytes]) -> Vec<Option<ItemRef>> {
        let loaded = self.load_within(keys, usize::MAX).await;
        loaded.unwrap_or_else(|_| vec![None; keys.len()])
    }

    /// Does the same, and gives up as soon as the items have more than `limit_bytes` bytes, or if
    /// the server does not answer in time.
    pub async fn load_within(
        &self,
        keys: &[Bytes],
        limit_bytes: usize,
    ) -> Result<Vec<Option<ItemRef>>, NotLoaded> {
        let Some(origin) = &self.origin else { return Ok(vec![None; keys.len()]) };
        let (mut items, mut bytes) = (Vec::with_capacity(keys.len()), 0);
        for keys in keys.chunks(MOST_KEYS_IN_FLIGHT) {
            let loading = self.load_from(origin, keys);
            let loaded = tokio::time::timeout(origin.config.timeout, loading).await;
            let loaded = loaded.unwrap_or(Err(NotLoaded::NoAnswer))?;
            bytes += loaded.iter().flatten().map(|item| item.value_slice().len()).sum::<usize>();
            if bytes > limit_bytes {
                return Err(NotLoaded::TooLarge);
            }
            items.extend(loaded);
        }
        Ok(items)
    }

    async fn load_from(
        &self,
        origin: &StoreOrigin,
        keys: &[Bytes],
    ) -> Result<Vec<Option<ItemRef>>, NotLoaded> {
        // Many requests may want the same item at the same moment. One of them asks.
        let _turn = match keys {
            [key] => {
                let turn = origin.read_turn(key).await;
                let now = Now::on_steady_clock();
                if let Some(item) = self.store.peek(key, now) {
                    return Ok(vec![Some(item)]);
                }
                if !origin.may_have(key) {
                    return Ok(vec![None]);
                }
                turn
            }
            _ => None,
        };
        let loaded = match origin.load(keys).await {
            Ok(loaded) => loaded,
            Err(error) => {
                tracing::debug!(%error, "items cannot be had from the origin");
                return Err(NotLoaded::NoAnswer);
            }
        };
        let now = Now::on_steady_clock();
        let item_of = |loaded: &crate::Loaded| {
            let item = loaded.item.as_ref()?;
            let kept = self.store.peek(&loaded.key, now).filter(|kept| kept.cas() == item.cas);
            Some(kept.unwrap_or_else(|| item.detached(&loaded.key, now)))
        };
        Ok(loaded.iter().map(item_of).collect())
    }

    /// Forgets an item of this machine, and asks the server for its own.
    pub async fn reload(&self, key: &[u8]) {
        if let Some(origin) = &self.origin {
            origin.key_has_changed(key);
            self.load(&[Bytes::copy_from_slice(key)]).await;
        }
    }

    /// Returns the present moment, for something that is begun now and stored later.
    pub fn begin(&self) -> Begun {
        // What is known of the server comes first: a purge that is reported in between is after
        // both.
        let page = self.origin.as_ref().map(|origin| origin.begin_page());
        Begun { moment: self.store.moment(), page }
    }
}

impl StoreOrigin {
    /// Returns whether the server may have an item that the store does not have, and can be asked.
    #[cold]
    fn may_have(&self, key: &[u8]) -> bool {
        key.len() <= KEY_LIMIT_BYTES && self.is_connected() && !self.is_absent(key)
    }
}
