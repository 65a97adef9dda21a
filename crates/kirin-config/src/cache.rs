//! The `cache` key of a route: `true`, `false`, or a table.

use std::fmt;
use std::sync::Arc;

use kirin_cache::StorageRules;
use kirin_gateway::filters::cache::settings::{BypassCondition, CacheSettings};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::source::{ConfigError, ConfigSource};
use crate::units::{ByteSize, Seconds};
use crate::word::{ConfigWords, Word};
use crate::written::Written;

/// The value of the key. `true` is an empty table.
#[derive(Debug, Default)]
pub struct CacheKey(pub Option<CacheSection>);

/// How responses of an application or an upstream are stored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CacheSection {
    /// The largest response that is stored, head and body. Default: `store.item_limit`, which is
    /// the limit in any case.
    pub item_limit: Option<ByteSize>,
    /// How long a response without its own lifetime is fresh. Default: such a response is not
    /// stored.
    pub ttl: Option<Seconds>,
    /// The same for 404 and 410. Default: `ttl`.
    pub negative_ttl: Option<Seconds>,
    /// How long a stale response without its own limit may be used while the place fails. Default:
    /// not at all.
    pub stale_if_error: Option<Seconds>,
    /// `"pass"`: a request with a `Cookie` gets a stored response only if the response said that it
    /// is for everybody (`public`, `s-maxage`, `Vary: Cookie`). A response with `Set-Cookie` is not
    /// stored. `"ignore"`: GET requests reach the place without their `Cookie`, and stored
    /// responses lose their `Set-Cookie`.
    pub cookies: Word<Cookies>,
    /// Requests that bypass the cache: those with one of these, written `cookie:NAME`,
    /// `header:NAME` and `query:NAME`.
    pub bypass: Vec<Written<String>>,
    /// Arguments of the query that make no difference, such as `["utm_*", "fbclid"]`. The place
    /// does not see them.
    pub ignore_query: Vec<String>,
    /// How long a request waits for the response to the same request that is already at the place.
    /// Then it goes there itself.
    pub wait: Seconds,
    /// Whether clients can have a fresh response validated (`Cache-Control: no-cache`, `max-age`
    /// and `min-fresh` of requests: what browsers send to reload).
    pub reload: bool,
}

impl Default for CacheSection {
    fn default() -> Self {
        Self {
            item_limit: None,
            ttl: None,
            negative_ttl: None,
            stale_if_error: None,
            cookies: Word::default(),
            bypass: Vec::new(),
            ignore_query: Vec::new(),
            wait: Seconds(5),
            reload: false,
        }
    }
}

/// What cookies mean for the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cookies {
    /// They may make a response private.
    #[default]
    Pass,
    /// They are removed.
    Ignore,
}

impl ConfigWords for Cookies {
    const WORDS: &'static [(&'static str, Self)] =
        &[("pass", Self::Pass), ("ignore", Self::Ignore)];
}

/// Checks the key of a route. `store_limit_bytes` is the size of the store's largest item,
/// `conditions` the digest of the conditions of the route.
pub fn check_cache(
    key: &CacheKey,
    store_limit_bytes: usize,
    conditions: Option<u64>,
    source: &ConfigSource,
) -> Result<Option<Arc<CacheSettings>>, ConfigError> {
    let Some(section) = &key.0 else { return Ok(None) };
    let bypass = section.bypass.iter().map(|text| check_bypass(text, source));
    let seconds = |time: Option<Seconds>| time.map(|time| time.0);
    let limit = section.item_limit.map_or(usize::MAX, ByteSize::length);
    Ok(Some(Arc::new(CacheSettings {
        conditions,
        item_limit_bytes: limit.min(store_limit_bytes),
        rules: StorageRules {
            default_ttl: seconds(section.ttl),
            negative_ttl: seconds(section.negative_ttl),
            stale_if_error: seconds(section.stale_if_error),
            ignore_cookies: section.cookies.0 == Cookies::Ignore,
        },
        bypass: bypass.collect::<Result<_, _>>()?,
        ignore_query: section.ignore_query.clone(),
        wait: section.wait.into(),
        obeys_reload: section.reload,
        pending_fetches: Arc::default(),
    })))
}

fn check_bypass(
    text: &Written<String>,
    source: &ConfigSource,
) -> Result<BypassCondition, ConfigError> {
    match text.split_once(':') {
        Some(("cookie", name)) if !name.is_empty() => Ok(BypassCondition::Cookie(name.into())),
        Some(("header", name)) if !name.is_empty() => Ok(BypassCondition::Header(name.into())),
        Some(("query", name)) if !name.is_empty() => Ok(BypassCondition::Query(name.into())),
        _ => {
            let message = format!(
                "`bypass` has `{}`: allowed are cookie:NAME, header:NAME and query:NAME",
                text.as_str()
            );
            Err(source.error(text.span(), message))
        }
    }
}

impl<'de> Deserialize<'de> for CacheKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CacheVisitor)
    }
}

struct CacheVisitor;

impl<'de> Visitor<'de> for CacheVisitor {
    type Value = CacheKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false or a table such as { ttl = \"10s\" }")
    }

    fn visit_bool<E: Error>(self, is_on: bool) -> Result<CacheKey, E> {
        Ok(CacheKey(is_on.then(CacheSection::default)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CacheKey, A::Error> {
        CacheSection::deserialize(MapAccessDeserializer::new(map))
            .map(|section| CacheKey(Some(section)))
    }
}
