//! `rate_limit` of a route.

use std::sync::Arc;
use std::time::Duration;

use kirin_gateway::routing::path_pattern::PathPattern;
use kirin_gateway::routing::rate_limit::{RateKey, RateLimit};
use kirin_gateway::routing::value_template::ValueTemplate;
use kirin_gateway::routing::variables::Variable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::default::number;
use crate::source::{ConfigError, ConfigSource};
use crate::units::{Number, RequestRate};
use crate::written::Written;

/// The most requests that a rate limit may let pass at once.
const MAX_BURST: u64 = 1_000_000;

/// A limit on the rate of requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimitSection {
    /// What requests are counted by: `address` (of IPv6 the /64), `header:NAME`, `cookie:NAME`, or
    /// a text with [variables](routes.md#variables), such as `"{client} {path}"`. A request without
    /// the field, the cookie or any value counts for its address.
    #[serde(default)]
    pub key: Written<RateKeyText>,
    /// The number of requests in each `s`, `m` or `h` in the long run, such as `"10/s"`.
    pub rate: RequestRate,
    /// The most requests that may come at once after a pause.
    #[serde(default = "number::<10, 1, MAX_BURST>")]
    pub burst: Number<1, MAX_BURST>,
}

/// The `key` of a rate limit, as it is written.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(transparent)]
#[schemars(inline)]
pub struct RateKeyText(String);

impl Default for RateKeyText {
    fn default() -> Self {
        Self("address".into())
    }
}

/// Checks `section`.
pub fn check_rate_limit(
    section: &RateLimitSection,
    path: Option<&PathPattern>,
    source: &ConfigSource,
) -> Result<Arc<RateLimit>, ConfigError> {
    let text = section.key.0.as_str();
    let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    let key = match text.split_once(':') {
        None if text == "address" => Some(RateKey::Address),
        Some(("header", name)) => named(name).map(RateKey::Header),
        Some(("cookie", name)) => named(name).map(RateKey::Cookie),
        _ if text.contains('{') => {
            let pattern = path.cloned().unwrap_or_default();
            let template = ValueTemplate::parse(text, &pattern).and_then(|template| {
                match (template.as_text(), template.has(&Variable::User)) {
                    (Some(_), _) => Err("it has no variable".to_owned()),
                    (None, true) => Err("`{user}` is not known yet, because rates are counted before passwords are checked".into()),
                    (None, false) => Ok(template),
                }
            });
            let template = template.map_err(|why| {
                source.error(section.key.span(), format!("rate limit key `{text}`: {why}"))
            })?;
            Some(RateKey::Template(template))
        }
        _ => None,
    };
    let Some(key) = key else {
        let message = format!(
            "rate limit key `{text}`: allowed are address, header:NAME, cookie:NAME and a text with variables"
        );
        return Err(source.error(section.key.span(), message));
    };
    let per = Duration::from_secs(section.rate.seconds);
    let burst = section.burst.get();
    Ok(Arc::new(RateLimit::new(key, section.rate.requests, per, burst)))
}
