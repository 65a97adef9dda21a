//! Putting a response into the store, and what stands for one that is not to be there.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use httparse::Header;
use kirin_cache::{Policy, Unstorable, Vary, key, storable, stored, surrogate, vary};
use kirin_http::{FieldLines, RequestHead};
use kirin_store::{
    Change, Expires, Moment, NewItem, Now, Store, StoreOutcome, StoreRequest, Value, ValueBuffer,
};

use super::FoundResponse;
use super::entry::Entry;
use super::settings::CacheSettings;

/// How long it is remembered that responses to a target are not stored, so that requests for it do
/// not wait for each other.
const PASS_SECONDS: u64 = 60;

/// How long a stale response is kept to be asked if it is still good.
const VALIDATABLE_SECONDS: u64 = 24 * 60 * 60;

/// Field lines of a stored response at most: fewer than are read of a head.
const MAX_LINES: usize = 180;

/// A response that is to be stored, without its body.
#[derive(Debug)]
pub struct Keep {
    /// Where it goes.
    key: Vec<u8>,
    /// Where requests look first.
    primary_key: Vec<u8>,
    /// By which fields responses vary.
    by: Vec<String>,
    /// What requests find there then.
    varies: Option<String>,
    /// What the response says that it is purged by.
    tags: Vec<Vec<u8>>,
    /// What its target is purged by.
    target_tags: Vec<Vec<u8>>,
    /// What is before the body.
    head: Vec<u8>,
    expires: Expires,
    limit_bytes: usize,
    /// When it was asked for: what has been purged since is not stored.
    began: Arc<Moment>,
}

impl Keep {
    /// Prepares to store a response with `fields`, which are those to be stored. `primary_key` is
    /// its target's, `began` when it was asked for. None if it cannot be stored.
    pub fn of(
        request: &RequestHead<'_>,
        settings: &CacheSettings,
        (primary_key, began): (&[u8], &Arc<Moment>),
        policy: &Policy,
        status: StatusCode,
        fields: &FieldLines,
    ) -> Option<Self> {
        let Vary::By(mut names) = Vary::from_fields(fields) else { return None };
        if settings.rules.ignore_cookies {
            // The place has not seen them.
            names.retain(|name| name != "cookie");
        }
        let mut key = primary_key.to_vec();
        let varies = match names.is_empty() {
            true => None,
            false => {
                vary::append_secondary_key(&names, request.fields, &mut key);
                Some(stored::varies(&names)?)
            }
        };
        if fields.iter().count() > MAX_LINES {
            return None;
        }
        let tags: Vec<Vec<u8>> = surrogate::tags(fields).into_iter().map(<[u8]>::to_vec).collect();
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
            began: Arc::clone(began),
        })
    }

    /// Where it goes.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Where a request with these fields would find its variant, whose target has this key.
    pub fn key_for(&self, primary_key: &[u8], fields: &[Header<'_>]) -> Vec<u8> {
        let mut key = primary_key.to_vec();
        vary::append_secondary_key(&self.by, fields, &mut key);
        key
    }

    /// Why it is not stored and no answer to later requests: it has been purged since it was asked
    /// for.
    pub fn check_unpurged(&self, store: &Store) -> Result<(), Unstorable> {
        match store.change_since(&self.began, &self.key, &self.tags()) {
            None => Ok(()),
            Some(Change::Invalidated) => Err(Unstorable::PurgedWhileFetched),
            Some(Change::Unknown) => Err(Unstorable::TooManyPurges),
        }
    }

    /// The longest value that may be stored, in bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Whether a body of this length can be stored.
    pub fn has_room(&self, store: &Store, body_bytes: u64) -> bool {
        let Ok(body_bytes) = usize::try_from(body_bytes) else { return false };
        let value_bytes = self.head.len().saturating_add(body_bytes);
        value_bytes <= self.limit_bytes && store.is_storable(&self.key, value_bytes, &self.tags())
    }

    /// Stores it with its body, whole.
    pub fn store(&self, store: &Store, body: &[Bytes], now: Now) -> Result<(), Unstorable> {
        let body_bytes: usize = body.iter().map(Bytes::len).sum();
        if !self.has_room(store, body_bytes as u64) {
            return Err(Unstorable::TooLarge);
        }
        let tags = self.tags();
        let item = NewItem { expires: self.expires, ..NewItem::new(self.value(body, body_bytes)) };
        let request =
            StoreRequest { unchanged_since: Some(&self.began), ..StoreRequest::default() };
        match store.store(&self.key, item.tags(&tags), &request, now) {
            StoreOutcome::Stored { .. } => {}
            StoreOutcome::TooLarge => return Err(Unstorable::TooLarge),
            StoreOutcome::OutOfMemory => return Err(Unstorable::NoMemory),
            StoreOutcome::NotStored | StoreOutcome::Exists | StoreOutcome::NotFound => {
                self.check_unpurged(store)?;
                return Err(Unstorable::NewerStored);
            }
        }
        // Behind the response itself: a request that finds this looks for that.
        self.store_varies(store, now)
    }

    /// Stores by what responses vary, where requests look first. It carries the tags of the target,
    /// but not those of the response, which would take all others with it.
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

    /// What has been stored, for who has just asked for it. That is no use yet by which to tell
    /// what is asked for again, and nothing is kept beside the item before it is.
    pub(super) fn stored(&self, store: &Store, now: Now) -> Option<FoundResponse> {
        let item = store.peek(&self.key, now)?;
        let (entry, _) = Entry::compile(&item.value());
        let entry = Arc::new(entry);
        entry.response().is_some().then_some(FoundResponse { item, entry })
    }

    /// Has requests for this variant go by themselves for a while: the body turned out too large.
    pub fn remember_pass(&self, store: &Store, now: Now) {
        remember_pass(store, &self.key, &self.primary_key, now);
        // Without it they wait for each other, that is all.
        let _ = self.store_varies(store, now);
    }

    fn tags(&self) -> Vec<&[u8]> {
        self.tags.iter().chain(&self.target_tags).map(Vec::as_slice).collect()
    }

    fn value(&self, body: &[Bytes], body_bytes: usize) -> Value<'static> {
        let length = self.head.len() + body_bytes;
        let parts = std::iter::once(self.head.as_slice()).chain(body.iter().map(Bytes::as_ref));
        if length < ValueBuffer::WORTHWHILE_BYTES {
            let mut value = Vec::with_capacity(length);
            parts.for_each(|part| value.extend_from_slice(part));
            return Value::from(value);
        }
        let mut buffer = ValueBuffer::zeroed(length);
        let mut rest = &mut buffer[..];
        for part in parts {
            let (place, behind) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = behind;
        }
        Value::from(buffer)
    }
}

/// Where it is remembered that visitors who show who they are get responses of their own, while
/// others may share one.
pub fn credentials_key(primary_key: &[u8]) -> Vec<u8> {
    [primary_key, b"\0\0"].concat()
}

/// Remembers that what is under `key` is not stored, for a while.
pub fn remember_pass(store: &Store, key: &[u8], primary_key: &[u8], now: Now) {
    let tags = key::target_tags_of(primary_key);
    let tags: Vec<&[u8]> = tags.iter().map(Vec::as_slice).collect();
    let expires = Expires::after_seconds(PASS_SECONDS, now);
    let value = stored::pass();
    // Without it requests wait for each other once more, that is all.
    store.set(key, NewItem::new(value.as_bytes()).expires(expires).tags(&tags), now);
}
