//! A response that the cache has stored.

use std::sync::Arc;

use kirin_cache::validation;
use kirin_http::FieldLines;
use kirin_store::ItemRef;

use super::entry::{CachedResponse, StoredEntry};

/// An item of the store that is a cached response.
pub struct StoredResponse {
    /// The item.
    pub item: ItemRef,
    /// The entry that was compiled from its value.
    pub entry: Arc<StoredEntry>,
}

impl StoredResponse {
    /// Returns the response, if the value can be read.
    pub fn cached(&self) -> Option<&CachedResponse> {
        self.entry.response()
    }

    /// Returns the seconds of freshness that are left at `now`. They are negative for a stale
    /// response.
    pub fn ttl(&self, cached: &CachedResponse, now: u64) -> i64 {
        match cached.policy.ttl(now) {
            // It has been purged softly.
            ttl if self.item.is_stale() => ttl.min(0),
            ttl => ttl,
        }
    }

    /// Returns the fields with which the backend is asked whether the response is still valid.
    pub fn conditions(&self) -> Vec<(&'static str, Vec<u8>)> {
        match self.cached() {
            Some(cached) if cached.has_validator => {
                validation::conditions(&cached.stored_fields(&self.item))
            }
            _ => Vec::new(),
        }
    }

    /// Returns whether a 304 with these fields is about this response.
    pub fn is_meant_by(&self, not_modified: &FieldLines) -> bool {
        self.cached().is_some_and(|cached| {
            validation::applies_to(&cached.stored_fields(&self.item), not_modified)
        })
    }
}
