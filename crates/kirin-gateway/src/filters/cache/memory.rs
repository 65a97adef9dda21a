//! The cached responses of one event loop, in the memory of the store.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use httparse::Header;
use kirin_cache::{CacheStatus, Forwarded, Unstorable, vary};
use kirin_compress::Codings;
use kirin_http::{RequestHead, Response, SeldomWarnings};
use kirin_origin::NearStore;
use kirin_store::{ItemRef, Now, Store};

use super::cache_request::CacheRequest;
use super::counters::CacheCounters;
use super::entry::StoredEntry;
use super::keep::{self, Keep};
use super::stored_response::StoredResponse;
use crate::pages::page_response::PageResponses;
use crate::request::answered_by;

/// The cache of one event loop.
pub struct Cache {
    /// The memory of all loops.
    pub store: Arc<Store>,
    /// The same with the server behind it, which other machines share.
    pub near: NearStore,
    responses: Rc<PageResponses>,
    /// The counters of this loop.
    pub counters: Arc<CacheCounters>,
    pub(super) warnings: SeldomWarnings,
    /// The bytes of responses that are being written to the server.
    pub(super) bytes_on_the_way: Cell<usize>,
}

/// The item that the cache has for a request.
pub enum CacheEntry {
    /// Nothing. A response would be stored under this key.
    Nothing {
        /// The key.
        key: Vec<u8>,
        /// The reason for `Cache-Status`.
        why: Forwarded,
    },
    /// A note that the request cannot use the response under this key.
    Pass {
        /// The key.
        key: Vec<u8>,
        /// The reason for `Cache-Status`: the same as if there were no note.
        why: Forwarded,
    },
    /// A response.
    Response(StoredResponse),
}

impl Cache {
    /// Creates the cache in the store of `responses`, which makes its responses. Only this event
    /// loop counts in `counters`.
    pub fn new(responses: &Rc<PageResponses>, counters: Arc<CacheCounters>) -> Rc<Self> {
        let (near, responses) = (responses.near().clone(), Rc::clone(responses));
        Rc::new(Self {
            store: Arc::clone(near.store()),
            near,
            responses,
            counters,
            warnings: SeldomWarnings::default(),
            bytes_on_the_way: Cell::new(0),
        })
    }

    /// Returns what is stored for the request with these fields.
    pub fn find(&self, request: &CacheRequest, fields: &[Header<'_>], now: u64) -> CacheEntry {
        let now = Now::from_unix_seconds(now);
        let mut found = self.entry(&request.key, now);
        let mut variant_key = None;
        if let Some((_, entry)) = &found
            && let StoredEntry::Varies(by) = &**entry
        {
            let mut key = request.key.clone();
            vary::append_secondary_key(by, fields, &mut key);
            found = self.entry(&key, now);
            variant_key = Some(key);
        }
        let why = match variant_key {
            Some(_) => Forwarded::VaryMiss,
            None => Forwarded::UriMiss,
        };
        if let Some((item, entry)) = found {
            match &*entry {
                StoredEntry::Pass => return CacheEntry::Pass { key: item.key().to_vec(), why },
                StoredEntry::Response(cached) => {
                    return match request.may_have(&cached.policy) {
                        true => CacheEntry::Response(StoredResponse { item, entry }),
                        false => {
                            CacheEntry::Pass { key: item.key().to_vec(), why: Forwarded::Miss }
                        }
                    };
                }
                StoredEntry::Varies(_) | StoredEntry::Unreadable => {}
            }
        }
        if request.has_credentials()
            && let Some((_, entry)) = self.entry(&keep::credentials_key(&request.key), now)
            && matches!(*entry, StoredEntry::Pass)
        {
            return CacheEntry::Pass { key: request.key.clone(), why };
        }
        CacheEntry::Nothing { key: variant_key.unwrap_or_else(|| request.key.clone()), why }
    }

    fn entry(&self, key: &[u8], now: Now) -> Option<(ItemRef, Arc<StoredEntry>)> {
        let item = self.store.get(key, now)?;
        let entry = self.store.companion::<StoredEntry>(&item, now, StoredEntry::compile);
        Some((item, entry))
    }

    /// Stores a response with its body and counts it. Other machines get it, too.
    pub fn store(self: &Rc<Self>, keep: &Keep, body: &[Bytes]) -> Result<(), Unstorable> {
        let stored = keep.store(&self.store, body, Now::on_steady_clock());
        match stored {
            Ok(()) => {
                self.counters.stored.add();
                self.share(keep);
            }
            Err(_) => self.counters.not_stored.add(),
        }
        stored
    }

    /// Returns the response with what is stored: 200, 206, 304 or 412, as the request demands.
    pub fn respond(
        &self,
        stored: &StoredResponse,
        request: &RequestHead<'_>,
        codings: Codings,
        now: u64,
        status: CacheStatus,
    ) -> Response {
        let Some(cached) = stored.cached() else { return Response::error(StatusCode::NOT_FOUND) };
        let seconds = Now::from_unix_seconds(now);
        let mut response =
            self.responses.cached(&stored.item, &cached.page, request, codings, seconds);
        response.answered_by = answered_by::CACHE;
        response.fields.push("Age", cached.policy.age(now).to_string());
        let received = cached.page.head.as_ref().map_or(StatusCode::OK, |head| head.status);
        let status = status.for_codes(response.status.as_u16(), received.as_u16());
        response.fields.push("Cache-Status", status.to_string());
        response
    }
}
