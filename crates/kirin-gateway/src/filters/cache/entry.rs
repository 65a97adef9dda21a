//! A stored item as the cache reads it. It is made once from the item's value and kept beside it,
//! as pages are.

use std::sync::Arc;

use kirin_cache::{Policy, Stored};
use kirin_http::FieldLines;
use kirin_http::response_head::{self, Field};
use kirin_store::ItemRef;

use crate::pages::page::Page;

/// The companion of an item.
pub enum StoredEntry {
    /// A response.
    Response(CachedResponse),
    /// The request fields by which responses to this target vary.
    Varies(Vec<String>),
    /// A note that requests go past the cache.
    Pass,
    /// A value that cannot be read. It counts as absent.
    Unreadable,
}

/// A response that can be served.
pub struct CachedResponse {
    /// The rules by which it may be reused.
    pub policy: Policy,
    /// The page by which it is served, with its head and coded variants.
    pub page: Arc<Page>,
    /// The offset of the response in the value, in bytes.
    at: usize,
    /// Whether it has a validator, with which the place can be asked for a revalidation.
    pub has_validator: bool,
}

impl StoredEntry {
    /// Reads an item's value. The second part is the memory it takes beside the item, in bytes.
    pub fn compile(value: &bytes::Bytes) -> (StoredEntry, usize) {
        let (entry, bytes) = match Stored::read(value) {
            None => (StoredEntry::Unreadable, 0),
            Some(Stored::Pass) => (StoredEntry::Pass, 0),
            Some(Stored::Varies { by }) => {
                let bytes = by.iter().map(|name| name.len() + size_of::<String>()).sum();
                (StoredEntry::Varies(by), bytes)
            }
            Some(Stored::Response { policy, at }) => {
                match Page::from_response(&value.slice(at..)) {
                    None => (StoredEntry::Unreadable, 0),
                    Some((page, has_validator, bytes)) => {
                        let page = Arc::new(page);
                        (
                            StoredEntry::Response(CachedResponse {
                                policy,
                                page,
                                at,
                                has_validator,
                            }),
                            bytes,
                        )
                    }
                }
            }
        };
        (entry, bytes + size_of::<StoredEntry>() + 32)
    }

    /// Returns the response, if it is one.
    pub fn response(&self) -> Option<&CachedResponse> {
        match self {
            StoredEntry::Response(response) => Some(response),
            _ => None,
        }
    }
}

impl CachedResponse {
    /// Returns the fields as they were stored. `item` is the item that this was made from.
    pub fn stored_fields(&self, item: &ItemRef) -> FieldLines {
        let value = item.value_slice().get(self.at..).unwrap_or_default();
        match response_head::parse(value, |_, _| Field::Keep) {
            Ok(Some((head, _))) => head.fields,
            _ => FieldLines::new(),
        }
    }
}
