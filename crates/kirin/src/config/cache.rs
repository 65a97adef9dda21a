//! The `cache` key of a route: `true`, `false`, or a table.

use std::sync::Arc;

use kirin_cache::StorageRules;
use kirin_gateway::filters::cache::settings::{Bypass, CacheSettings};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_spanned::Spanned;

use super::load::{ConfigError, Source};
use super::units::{ByteSize, Seconds};

/// What of a route's answers is kept: `true` is a table in which nothing is said.
#[derive(Debug, Default)]
pub struct Cache(pub Option<CacheConfig>);

/// How the answers of an application or another server are kept.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CacheConfig {
    /// The largest response that is kept, head and body. Default: `store.item_limit`, which is the
    /// limit in any case.
    #[schemars(with = "Option<String>")]
    pub item_limit: Option<ByteSize>,
    /// How long responses that say nothing of it are fresh. Default: they are not kept.
    #[schemars(with = "Option<String>")]
    pub ttl: Option<Seconds>,
    /// The same for 404 and 410. Default: what `ttl` says.
    #[schemars(with = "Option<String>")]
    pub negative_ttl: Option<Seconds>,
    /// How long a response that does not say may be used after its time when the place fails.
    /// Default: not at all.
    #[schemars(with = "Option<String>")]
    pub stale_if_error: Option<Seconds>,
    /// `"pass"`: a request with a `Cookie` gets what is kept only if the response said that it is
    /// for everybody (`public`, `s-maxage`, `Vary: Cookie`), and what has `Set-Cookie` is not kept.
    /// `"ignore"`: GETs reach the place without their `Cookie`, and what is kept loses its
    /// `Set-Cookie`.
    #[schemars(with = "String", default = "pass")]
    pub cookies: Option<Spanned<String>>,
    /// Requests that go past the cache: `cookie:NAME`, `header:NAME` and `query:NAME`, if they have
    /// one of these.
    #[schemars(with = "Vec<String>")]
    pub bypass: Vec<Spanned<String>>,
    /// Arguments of the query that make no difference, such as `["utm_*", "fbclid"]`: the place
    /// does not see them.
    pub ignore_query: Vec<String>,
    /// How long a request waits for the same one before it, which is at the place already, until it
    /// goes there itself.
    #[schemars(with = "String", default = "wait")]
    pub wait: Seconds,
    /// Whether clients can have a fresh response validated (`Cache-Control: no-cache`, `max-age`
    /// and `min-fresh` of requests: what browsers send to reload).
    pub reload: bool,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            item_limit: None,
            ttl: None,
            negative_ttl: None,
            stale_if_error: None,
            cookies: None,
            bypass: Vec::new(),
            ignore_query: Vec::new(),
            wait: wait(),
            reload: false,
        }
    }
}

fn wait() -> Seconds {
    Seconds(5)
}

fn pass() -> &'static str {
    "pass"
}

/// Checks the key of a route. `store_limit_bytes` is the store's own.
pub fn settings(
    cache: &Cache,
    store_limit_bytes: usize,
    source: &Source,
) -> Result<Option<Arc<CacheSettings>>, ConfigError> {
    let Some(config) = &cache.0 else { return Ok(None) };
    let ignores_cookies = match &config.cookies {
        None => false,
        Some(text) => match text.get_ref().as_str() {
            "pass" => false,
            "ignore" => true,
            other => {
                let message = format!("`cookies` is `{other}`: allowed are pass and ignore");
                return Err(source.error(text.span(), message));
            }
        },
    };
    let bypass = config.bypass.iter().map(|text| {
        let of = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        let bypass = match text.get_ref().split_once(':') {
            Some(("cookie", name)) => of(name).map(Bypass::Cookie),
            Some(("header", name)) => of(name).map(Bypass::Header),
            Some(("query", name)) => of(name).map(Bypass::Query),
            _ => None,
        };
        bypass.ok_or_else(|| {
            let message = format!(
                "`bypass` has `{}`: allowed are cookie:NAME, header:NAME and query:NAME",
                text.get_ref()
            );
            source.error(text.span(), message)
        })
    });
    let seconds = |time: Option<Seconds>| time.map(|time| time.0);
    let limit =
        config.item_limit.map_or(usize::MAX, |size| usize::try_from(size.0).unwrap_or(usize::MAX));
    let rules = StorageRules {
        default_ttl: seconds(config.ttl),
        negative_ttl: seconds(config.negative_ttl),
        stale_if_error: seconds(config.stale_if_error),
        ignore_cookies: ignores_cookies,
    };
    Ok(Some(Arc::new(CacheSettings {
        item_limit_bytes: limit.min(store_limit_bytes),
        rules,
        bypass: bypass.collect::<Result<_, _>>()?,
        ignore_query: config.ignore_query.clone(),
        wait: config.wait.into(),
        obeys_reload: config.reload,
        flights: Arc::default(),
    })))
}

impl<'de> Deserialize<'de> for Cache {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CacheVisitor)
    }
}

struct CacheVisitor;

impl<'de> Visitor<'de> for CacheVisitor {
    type Value = Cache;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("true, false or a table such as { ttl = \"10s\" }")
    }

    fn visit_bool<E: Error>(self, is_on: bool) -> Result<Cache, E> {
        Ok(Cache(is_on.then(CacheConfig::default)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Cache, A::Error> {
        CacheConfig::deserialize(MapAccessDeserializer::new(map)).map(|config| Cache(Some(config)))
    }
}
