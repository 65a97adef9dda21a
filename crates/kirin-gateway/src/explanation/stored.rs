//! The items that the store of a running Kirin has for a request: the page, and the cached
//! response.
//!
//! `kirin explain` makes a [`Question`] from the configuration, and the admin listener answers it.
//! The answer says nothing about contents. It counts no hit, and changes nothing but the copies of
//! what the server behind the store has.

use bytes::Bytes;
use httparse::Header;
use kirin_cache::{Policy, RequestDirectives, Reuse, Stored, reuse, vary};
use kirin_http::response_head::{self, Field};
use kirin_origin::NearStore;
use kirin_store::{ItemRef, Now, Store};
use serde::{Deserialize, Serialize};

use crate::pages::page::split_head;
use crate::routing::protection::Protection;

/// The items to look for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The key of the page. `None`: the route has no store.
    pub page: Option<String>,
    /// The conditions that a request of the route passes, as a page in the store names them.
    #[serde(default)]
    pub protection: String,
    /// The cached response. `None`: the route has no cache, or the request goes past it.
    pub cached: Option<CachedQuestion>,
}

/// The response that a cache would look for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachedQuestion {
    /// The primary key.
    pub key: String,
    /// The fields of the request: names and values.
    pub fields: Vec<(String, String)>,
    /// Whether the request has a cookie that the route does not ignore.
    pub has_cookie: bool,
    /// Whether it has `Authorization`.
    pub has_authorization: bool,
    /// Whether the route obeys a reload of the client.
    pub obeys_reload: bool,
}

/// The items that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAnswer {
    /// The item with the key of the page.
    pub page: Option<ItemAnswer>,
    /// The result of the cache for the target.
    pub cached: CachedAnswer,
}

/// An item, without its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemAnswer {
    /// The status of the response. `None`: the item has no head, so it can only be included.
    pub status: Option<u16>,
    /// The media type.
    pub media_type: String,
    /// The length of the value in bytes.
    pub bytes: usize,
    /// The seconds until it expires. `None`: it never does.
    pub expires_in_seconds: Option<u64>,
    /// Whether it has been purged softly.
    pub is_stale: bool,
    /// Its tags.
    pub tags: Vec<String>,
    /// The conditions that a request must have passed to get it, in words.
    pub protected_by: Vec<String>,
    /// Whether a request of the route passes these conditions, apart from a certificate of the
    /// client.
    pub is_admitted: bool,
}

/// The stored responses of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CachedAnswer {
    /// Nothing for the target.
    #[default]
    Nothing,
    /// Responses that vary by these fields, and none with the values of the request.
    OtherVariants(Vec<String>),
    /// A note that responses to the target are not stored.
    NotStored,
    /// A response.
    Response(CachedResponseAnswer),
}

/// A cached response, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedResponseAnswer {
    /// Its item.
    pub item: ItemAnswer,
    /// The request fields by which it varies.
    pub varies_by: Vec<String>,
    /// Its age in seconds.
    pub age_seconds: u64,
    /// The seconds for which it is still fresh; negative if it is stale.
    pub fresh_for_seconds: i64,
    /// The way in which the cache uses it, in words.
    pub reuse: String,
}

impl Question {
    /// Gets a copy of the page if only the server behind the store may have it.
    pub async fn load(&self, near: &NearStore, now: u64) {
        let Some(key) = &self.page else { return };
        if near.is_unknown(key.as_bytes(), Now::from_unix_seconds(now)) {
            near.load(&[Bytes::copy_from_slice(key.as_bytes())]).await;
        }
    }

    /// Looks into `store`, at `now` in Unix seconds of the steady clock.
    pub fn answer(&self, store: &Store, now: u64) -> StoredAnswer {
        let moment = Now::from_unix_seconds(now);
        let page = self.page.as_ref().and_then(|key| {
            let item = store.peek(key.as_bytes(), moment)?;
            Some(self.page_answer(&item, moment))
        });
        let cached = self.cached.as_ref().map(|cached| cached.answer(store, now));
        StoredAnswer { page, cached: cached.unwrap_or_default() }
    }

    fn page_answer(&self, item: &ItemRef, now: Now) -> ItemAnswer {
        let answer = item_answer(item, now);
        let Some((status, mut fields, _)) = split_head(&item.value()) else { return answer };
        let page = Protection::take(&mut fields);
        let passed = Protection::parse(&self.protection).unwrap_or_default();
        ItemAnswer {
            status: Some(status.as_u16()),
            media_type: text(fields.get("content-type").unwrap_or_default()),
            protected_by: page.words().into_iter().map(str::to_owned).collect(),
            is_admitted: passed.may_serve(page),
            ..answer
        }
    }
}

impl CachedQuestion {
    fn answer(&self, store: &Store, now: u64) -> CachedAnswer {
        let moment = Now::from_unix_seconds(now);
        let read = |key: &[u8]| {
            let item = store.peek(key, moment)?;
            let value = item.value();
            Some((item, value.clone(), Stored::read(&value)?))
        };
        let fields: Vec<Header<'_>> = (self.fields.iter())
            .map(|(name, value)| Header { name, value: value.as_bytes() })
            .collect();
        let (mut found, mut varies_by) = (read(self.key.as_bytes()), Vec::new());
        if let Some((_, _, Stored::Varies { by })) = found {
            let mut key = self.key.clone().into_bytes();
            vary::append_secondary_key(&by, &fields, &mut key);
            (found, varies_by) = (read(&key), by);
        }
        match found {
            Some((item, value, Stored::Response { policy, at })) => {
                let reuse = self.reuse(&policy, &fields, now, item.is_stale());
                let ttl = policy.ttl(now);
                CachedAnswer::Response(CachedResponseAnswer {
                    item: response_answer(&item, &value.slice(at.min(value.len())..), moment),
                    varies_by,
                    age_seconds: policy.age(now),
                    fresh_for_seconds: if item.is_stale() { ttl.min(0) } else { ttl },
                    reuse: reuse.to_owned(),
                })
            }
            Some((_, _, Stored::Pass)) => CachedAnswer::NotStored,
            _ if !varies_by.is_empty() => CachedAnswer::OtherVariants(varies_by),
            _ => CachedAnswer::Nothing,
        }
    }

    fn reuse(
        &self,
        policy: &Policy,
        fields: &[Header<'_>],
        now: u64,
        is_purged: bool,
    ) -> &'static str {
        if self.has_cookie && !policy.serves_cookies {
            return "not for this request: it has a cookie";
        }
        if self.has_authorization && !policy.serves_authorization {
            return "not for this request: it has credentials";
        }
        let directives = RequestDirectives::from_fields(fields);
        let directives = if self.obeys_reload { directives } else { directives.without_reload() };
        match reuse(policy, &directives, now, is_purged) {
            Reuse::Fresh => "fresh: it answers the request",
            Reuse::Stale => "stale: it answers the request, which accepts that",
            Reuse::StaleWhileRevalidate => "stale: it answers the request while it is renewed",
            Reuse::ValidateStale => "stale: it must be validated first",
            Reuse::ValidateRequested => "fresh, but the request wants it validated first",
        }
    }
}

fn item_answer(item: &ItemRef, now: Now) -> ItemAnswer {
    ItemAnswer {
        bytes: item.value_len(),
        expires_in_seconds: item.expires().seconds_left(now),
        is_stale: item.is_stale(),
        // Tags of the cache's own begin with a NUL.
        tags: item.tags().filter(|tag| !tag.starts_with(b"\0")).map(text).collect(),
        is_admitted: true,
        ..ItemAnswer::default()
    }
}

fn response_answer(item: &ItemRef, response: &Bytes, now: Now) -> ItemAnswer {
    let answer = item_answer(item, now);
    match response_head::parse(response, |_, _| Field::Keep) {
        Ok(Some((head, _))) => ItemAnswer {
            status: Some(head.status.as_u16()),
            media_type: text(head.fields.get("content-type").unwrap_or_default()),
            ..answer
        },
        _ => answer,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
