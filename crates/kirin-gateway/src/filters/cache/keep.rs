//! Puts a response into the store, or a note that it must not be there.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use httparse::Header;
use kirin_cache::{Policy, Unstorable, Vary, key, storable, stored, surrogate, vary};
use kirin_http::FieldLines;
use kirin_origin::{Begun, Lease, NearStore, NotStored};
use kirin_store::{
    Change, Expires, ItemRef, NewItem, NewValue, Now, Store, StoreOutcome, StoreRequest,
    ValueBuffer,
};

use super::entry::StoredEntry;
use super::settings::CacheSettings;
use super::stored_response::StoredResponse;
use crate::request::context::Request;

/// How long it is remembered that responses to a target are not stored, in seconds. During this
/// time requests for it do not wait for each other.
const PASS_SECONDS: u64 = 60;

/// How long a stale response is kept so that it can be revalidated, in seconds.
const VALIDATABLE_SECONDS: u64 = 24 * 60 * 60;

/// The most field lines of a stored response. It is less than the parser of heads accepts.
const MAX_LINES: usize = 180;

/// A response that is to be stored, without its body.
#[derive(Clone, Debug)]
pub struct Keep {
    /// The key of the response.
    key: Vec<u8>,
    /// The key that requests look up first.
    primary_key: Vec<u8>,
    /// The request fields by which responses vary.
    by: Vec<String>,
    /// The value under the primary key, if responses vary.
    varies: Option<String>,
    /// The tags that the response names for purges.
    tags: Vec<Vec<u8>>,
    /// The tags of its target.
    target_tags: Vec<Vec<u8>>,
    /// The bytes before the body.
    head: Vec<u8>,
    expires: Expires,
    limit_bytes: usize,
    /// The moment when it was asked for. It is not stored if it has been purged since.
    begun: Arc<Begun>,
    /// For which other machines wait.
    pub(super) lease: Lease,
}

impl Keep {
    /// Prepares to store a response with `fields`, which are those to be stored. `primary_key` is
    /// the key of its target, `begun` the moment when it was asked for. Returns `None` if it cannot
    /// be stored.
    pub fn new(
        request: &Request<'_>,
        settings: &CacheSettings,
        primary_key: &[u8],
        begun: &Arc<Begun>,
        policy: &Policy,
        status: StatusCode,
        fields: &FieldLines,
    ) -> Option<Self> {
        let Vary::By(mut names) = Vary::from_fields(fields) else { return None };
        if settings.rules.ignore_cookies {
            // The place does not get cookies.
            names.retain(|name| name != "cookie");
        }
        let mut key = primary_key.to_vec();
        let varies = match names.is_empty() {
            true => None,
            false => {
                vary::append_secondary_key(&names, request.head.fields, &mut key);
                Some(stored::varies(&names)?)
            }
        };
        if fields.iter().count() > MAX_LINES {
            return None;
        }
        // A tag that belongs to another site is left out.
        let full_name = |tag| request.namespace.full_name(tag).map(Cow::into_owned);
        let tags: Vec<Vec<u8>> =
            surrogate::tags(fields).into_iter().filter_map(full_name).collect();
        let target_tags = key::target_tags_of(primary_key);
        let mut head = stored::response_line(policy).into_bytes();
        head.extend_from_slice(format!("HTTP/1.1 {}\r\n", status.as_u16()).as_bytes());
        fields.write_to(&mut head);
        head.extend_from_slice(b"\r\n");
        let useful_until =
            policy.useful_until(storable::has_validator(fields), VALIDATABLE_SECONDS);
        let expires = Expires::at(Now::from_unix_seconds(useful_until));
        let primary_key = primary_key.to_vec();
        Some(Self {
            key,
            primary_key,
            by: names,
            varies,
            tags,
            target_tags,
            head,
            expires,
            limit_bytes: settings.item_limit_bytes,
            begun: Arc::clone(begun),
            lease: Lease::default(),
        })
    }

    /// Keeps the lease until other machines have the response.
    pub(super) fn under(self, lease: Lease) -> Self {
        Self { lease, ..self }
    }

    /// Returns the key of the response.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the key of the variant for a request with these fields, whose target has this key.
    pub fn key_for(&self, primary_key: &[u8], fields: &[Header<'_>]) -> Vec<u8> {
        let mut key = primary_key.to_vec();
        vary::append_secondary_key(&self.by, fields, &mut key);
        key
    }

    /// Fails if the response has been purged since it was asked for. It is not stored then, and
    /// later requests must not get it.
    pub fn check_unpurged(&self, store: &Store) -> Result<(), Unstorable> {
        match store.change_since(&self.begun.moment, &self.key, &self.tags()) {
            None => Ok(()),
            Some(Change::Invalidated) => Err(Unstorable::PurgedWhileFetched),
            Some(Change::Unknown) => Err(Unstorable::TooManyPurges),
        }
    }

    /// Makes sure that purges on other machines reach the response when it is stored. Fails as
    /// [`Keep::check_unpurged`] does. Without a server behind the store it does not wait.
    pub async fn watch(&self, near: &NearStore) -> Result<(), Unstorable> {
        if near.origin().is_some() {
            match near.watch(&self.tags(), &self.begun).await {
                Ok(true) => {}
                Ok(false) => return Err(Unstorable::PurgedWhileFetched),
                Err(error) => {
                    tracing::debug!(%error, "a response is not stored: the origin does not say what was purged");
                    return Err(Unstorable::PurgesUnknown);
                }
            }
        }
        self.check_unpurged(near.store())
    }

    /// Returns the longest value that may be stored, in bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Returns whether a body of this length can be stored.
    pub fn has_room(&self, store: &Store, body_bytes: u64) -> bool {
        let Ok(body_bytes) = usize::try_from(body_bytes) else { return false };
        let value_bytes = self.head.len().saturating_add(body_bytes);
        value_bytes <= self.limit_bytes && store.is_storable(&self.key, value_bytes, &self.tags())
    }

    /// Stores the response with its complete body.
    pub fn store(&self, store: &Store, body: &[Bytes], now: Now) -> Result<(), Unstorable> {
        let body_bytes: usize = body.iter().map(Bytes::len).sum();
        if !self.has_room(store, body_bytes as u64) {
            return Err(Unstorable::TooLarge);
        }
        let tags = self.tags();
        let item = NewItem { expires: self.expires, ..NewItem::new(self.value(body, body_bytes)) };
        let request =
            StoreRequest { unchanged_since: Some(&self.begun.moment), ..StoreRequest::default() };
        match store.store(&self.key, item.tags(&tags), &request, now) {
            StoreOutcome::Stored { .. } => {}
            StoreOutcome::TooLarge => return Err(Unstorable::TooLarge),
            StoreOutcome::OutOfMemory => return Err(Unstorable::NoMemory),
            StoreOutcome::NotStored | StoreOutcome::Exists | StoreOutcome::NotFound => {
                self.check_unpurged(store)?;
                return Err(Unstorable::NewerStored);
            }
        }
        // This comes after the response itself: a request that finds it looks for the response.
        self.store_varies(store, now)
    }

    /// Stores the response on the server behind the store. `item` has it on this machine.
    pub(super) async fn store_for_all(self, near: &NearStore, item: ItemRef) {
        let tags = self.tags();
        let new = NewItem::new(item.value_slice()).expires(self.expires).tags(&tags);
        let stored = near.store_page(&self.key, new, &self.begun, Now::on_steady_clock()).await;
        drop(item);
        match stored {
            // The store has no copy now. The next request must not wait for one.
            Ok(()) => drop(near.load(&[Bytes::copy_from_slice(&self.key)]).await),
            // Both machines serve the same then.
            Err(NotStored::Newer) => near.reload(&self.key).await,
            Err(reason) => {
                tracing::debug!(%reason, "a cached response stays on this machine");
                return;
            }
        }
        // This comes after the response itself, as in `store`.
        if let Some(varies) = &self.varies {
            let tags: Vec<&[u8]> = self.target_tags.iter().map(Vec::as_slice).collect();
            let new = NewItem::new(varies.as_bytes()).expires(self.expires).tags(&tags);
            let now = Now::on_steady_clock();
            if let Err(error) = near.store_unless_same(&self.primary_key, new, now).await {
                tracing::debug!(%error, "the variants of a response stay on this machine");
            }
        }
        self.lease.release();
    }

    /// Stores the names of the fields by which responses vary, where requests look first. The item
    /// has the tags of the target only. With those of the response, a purge of one variant would
    /// remove all of them.
    fn store_varies(&self, store: &Store, now: Now) -> Result<(), Unstorable> {
        let Some(varies) = &self.varies else { return Ok(()) };
        let tags: Vec<&[u8]> = self.target_tags.iter().map(Vec::as_slice).collect();
        match store
            .set(&self.primary_key, NewItem::new(varies.as_bytes()).tags(&tags), now)
            .is_stored()
        {
            true => Ok(()),
            false => Err(Unstorable::NoMemory),
        }
    }

    /// Returns what has been stored, for the request that asked for it. This does not count as a
    /// use of the item, and nothing is kept beside it yet.
    pub(super) fn stored(&self, store: &Store, now: Now) -> Option<StoredResponse> {
        let item = store.peek(&self.key, now)?;
        let (entry, _) = StoredEntry::compile(&item.value());
        let entry = Arc::new(entry);
        entry.response().is_some().then_some(StoredResponse { item, entry })
    }

    /// Makes requests for this variant go by themselves for a while: the body is too large.
    pub fn remember_pass(&self, store: &Store, now: Now) {
        remember_pass(store, &self.key, &self.primary_key, now);
        // Without it requests wait for each other, and nothing else happens.
        let _ = self.store_varies(store, now);
    }

    fn tags(&self) -> Vec<&[u8]> {
        self.tags.iter().chain(&self.target_tags).map(Vec::as_slice).collect()
    }

    fn value(&self, body: &[Bytes], body_bytes: usize) -> NewValue<'static> {
        let length = self.head.len() + body_bytes;
        let parts = std::iter::once(self.head.as_slice()).chain(body.iter().map(Bytes::as_ref));
        if length < ValueBuffer::WORTHWHILE_BYTES {
            let mut value = Vec::with_capacity(length);
            parts.for_each(|part| value.extend_from_slice(part));
            return NewValue::from(value);
        }
        let mut buffer = ValueBuffer::zeroed(length);
        let mut rest = &mut buffer[..];
        for part in parts {
            let (place, behind) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = behind;
        }
        NewValue::from(buffer)
    }
}

/// Returns the key of the note that visitors with credentials get responses of their own, while
/// others may share one.
pub fn credentials_key(primary_key: &[u8]) -> Vec<u8> {
    [primary_key, b"\0\0"].concat()
}

/// Remembers for a while that the response under `key` is not stored.
pub fn remember_pass(store: &Store, key: &[u8], primary_key: &[u8], now: Now) {
    let tags = key::target_tags_of(primary_key);
    let tags: Vec<&[u8]> = tags.iter().map(Vec::as_slice).collect();
    let expires = Expires::after_seconds(PASS_SECONDS, now);
    let value = stored::pass();
    // Without it requests wait for each other again; there is no other effect.
    store.set(key, NewItem::new(value.as_bytes()).expires(expires).tags(&tags), now);
}
