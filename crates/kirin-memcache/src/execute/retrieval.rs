//! `get`, `gets`, `gat` and `gats`.

use std::time::Duration;

use kirin_store::{Expires, GetRequest, ItemRef, MetaOutcome};

use super::{Executed, Executor};
use crate::codec::Retrieval;
use crate::output::{OUTPUT_LIMIT_BYTES, OutputBuffer};
use crate::watch::ObservedFlags;

impl Executor {
    pub(super) fn retrieve(
        &self,
        retrieval: Retrieval<'_>,
        observed: ObservedFlags,
        output: &mut OutputBuffer,
    ) -> Executed {
        let mut keys = retrieval.keys;
        let mut from = keys.rest();
        while let Some(key) = keys.next() {
            if !self.retrieve_key(key, &retrieval, observed, output) {
                return Executed::AtOrigin(Some(rest_of_line(&retrieval, from)));
            }
            from = keys.rest();
            if output.unsent_bytes() > OUTPUT_LIMIT_BYTES && { keys }.next().is_some() {
                return Executed::Paused(rest_of_line(&retrieval, keys.rest()));
            }
        }
        output.push(b"END\r\n");
        Executed::Done
    }

    /// Looks up one key and writes what is found. Returns false, and does nothing, if the origin
    /// must be asked.
    #[inline]
    pub(super) fn retrieve_key(
        &self,
        key: &[u8],
        retrieval: &Retrieval<'_>,
        observed: ObservedFlags,
        output: &mut OutputBuffer,
    ) -> bool {
        // A copy is looked at first: whoever asks the origin tells watchers then.
        let is_copy = self.has_origin();
        if observed.is_any() && !is_copy {
            self.note_fetch(key, observed);
        }
        let found = self.find(key, retrieval);
        if is_copy && self.is_at_origin(key, found.as_ref()) {
            return false;
        }
        if observed.is_any() {
            if is_copy {
                self.note_fetch(key, observed);
            }
            self.count_get(key, found.is_some(), observed);
        }
        if let Some(item) = found {
            push_item(item, key, retrieval.with_cas, output);
        }
        true
    }

    /// Returns whether the origin must be asked: it may have what is not here, and it decides who
    /// recaches an item.
    #[cold]
    fn is_at_origin(&self, key: &[u8], found: Option<&ItemRef>) -> bool {
        match found {
            None => !self.is_absent(key),
            Some(item) => self
                .server()
                .options()
                .stampede_guard
                .is_some_and(|guard| self.needs_recaching(item, guard)),
        }
    }

    fn find(&self, key: &[u8], retrieval: &Retrieval<'_>) -> Option<ItemRef> {
        let now = self.now();
        if let Some(exptime) = retrieval.touch {
            return self.store().get_and_touch(key, exptime.expires(now), now);
        }
        let item = self.store().get(key, now)?;
        match self.server().options().stampede_guard {
            Some(guard) if !self.has_origin() => self.guarded(key, item, guard),
            _ => Some(item),
        }
    }

    /// Returns whether an item is stale or about to expire, and no client recaches it yet.
    fn needs_recaching(&self, item: &ItemRef, guard: Duration) -> bool {
        let soon = Expires::after_seconds(guard.as_secs(), self.now());
        let expires_soon = match (item.expires().time(), soon.time()) {
            (Some(expires), Some(soon)) => expires < soon,
            _ => false,
        };
        !item.is_won() && (expires_soon || item.is_stale())
    }

    /// Hides an item that is stale or about to expire from one client. That client recaches it,
    /// while the others read the old item.
    fn guarded(&self, key: &[u8], item: ItemRef, guard: Duration) -> Option<ItemRef> {
        if !self.needs_recaching(&item, guard) {
            return Some(item);
        }
        let now = self.now();
        let soon = Expires::after_seconds(guard.as_secs(), now);
        let request = GetRequest { recache_before: Some(soon), ..GetRequest::default() };
        match self.store().meta_get(key, &request, now) {
            MetaOutcome::Hit(hit) if !hit.won => Some(hit.item),
            _ => None,
        }
    }
}

fn push_item(item: ItemRef, key: &[u8], with_cas: bool, output: &mut OutputBuffer) {
    output.push(b"VALUE ");
    output.push(key);
    output.push(b" ");
    output.number(item.flags());
    output.push(b" ");
    output.number(item.value_len());
    if with_cas {
        output.push(b" ");
        output.number(item.cas());
    }
    output.push(b"\r\n");
    output.value(item);
    output.push(b"\r\n");
}

/// Returns the command line for the remaining keys.
pub(super) fn rest_of_line(retrieval: &Retrieval<'_>, keys: &[u8]) -> Vec<u8> {
    let mut line = match (retrieval.touch, retrieval.with_cas) {
        (None, false) => b"get".to_vec(),
        (None, true) => b"gets".to_vec(),
        (Some(exptime), false) => format!("gat {}", exptime.0).into_bytes(),
        (Some(exptime), true) => format!("gats {}", exptime.0).into_bytes(),
    };
    line.push(b' ');
    line.extend_from_slice(keys);
    line.extend_from_slice(b"\r\n");
    line
}
