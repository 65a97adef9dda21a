//! A stored item as the cache reads it: made once from its value and kept beside it, as pages are.

use std::sync::Arc;

use kirin_cache::{Policy, Stored};
use kirin_http::FieldLines;
use kirin_http::response_head::{self, Field};
use kirin_store::ItemRef;

use crate::pages::page::Page;

/// The companion of an item.
pub enum Entry {
    /// A response.
    Response(CachedResponse),
    /// Responses vary by these fields.
    Varies(Vec<String>),
    /// Requests go past.
    Pass,
    /// Nothing that can be read: as if it were not there.
    Unreadable,
}

/// A response that can be served.
pub struct CachedResponse {
    /// What may be done with it.
    pub policy: Policy,
    /// How it is served: head made once, variants beside it.
    pub page: Arc<Page>,
    /// Where it begins in the value.
    at: usize,
    /// Whether the place can be asked if it is still good.
    pub has_validator: bool,
}

impl Entry {
    /// Reads an item's value. The second part is the memory it takes beside the item, in bytes.
    pub fn compile(value: &bytes::Bytes) -> (Entry, usize) {
        let (entry, bytes) = match Stored::read(value) {
            None => (Entry::Unreadable, 0),
            Some(Stored::Pass) => (Entry::Pass, 0),
            Some(Stored::Varies { by }) => {
                let bytes = by.iter().map(|name| name.len() + size_of::<String>()).sum();
                (Entry::Varies(by), bytes)
            }
            Some(Stored::Response { policy, at }) => match Page::of_response(&value.slice(at..)) {
                None => (Entry::Unreadable, 0),
                Some((page, has_validator, bytes)) => {
                    let page = Arc::new(page);
                    (Entry::Response(CachedResponse { policy, page, at, has_validator }), bytes)
                }
            },
        };
        (entry, bytes + size_of::<Entry>() + 32)
    }

    /// The response, if it is one.
    pub fn response(&self) -> Option<&CachedResponse> {
        match self {
            Entry::Response(response) => Some(response),
            _ => None,
        }
    }
}

impl CachedResponse {
    /// Its fields as they were stored, of the item that it was made from.
    pub fn stored_fields(&self, item: &ItemRef) -> FieldLines {
        let value = item.value_slice().get(self.at..).unwrap_or_default();
        match response_head::parse(value, |_, _| Field::Keep) {
            Ok(Some((head, _))) => head.fields,
            _ => FieldLines::new(),
        }
    }
}
