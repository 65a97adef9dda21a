//! `rate_limit` and `in_flight_limit` of a route.

use std::sync::Arc;
use std::time::Duration;

use kirin_gateway::routing::error_page::check_path;
use kirin_gateway::routing::in_flight_limit::InFlightLimit;
use kirin_gateway::routing::limit_refusal::{LimitRefusal, RefusalSettings};
use kirin_gateway::routing::path_pattern::PathPattern;
use kirin_gateway::routing::rate_limit::RateLimit;
use kirin_gateway::routing::request_key::RequestKey;
use kirin_gateway::routing::value_template::ValueTemplate;
use kirin_gateway::routing::variables::Variable;
use kirin_http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::default::number;
use crate::source::{ConfigError, ConfigSource};
use crate::units::{Number, RequestRate};
use crate::written::Written;

/// The most requests that a limit may let pass at once.
const MAX_BURST: u64 = 1_000_000;

/// A limit on the rate of requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimitSection {
    /// What requests are counted by: `address` (of IPv6 the /64), `header:NAME`, `cookie:NAME`,
    /// `route` for all requests together, or a text with [variables](routes.md#variables), such as
    /// `"{client} {path}"`. A request without the field, the cookie or any value counts for its
    /// address.
    #[serde(default)]
    pub key: Written<LimitKeyText>,
    /// The number of requests in each `s`, `m` or `h` in the long run, such as `"10/s"`.
    pub rate: RequestRate,
    /// The most requests that may come at once after a pause.
    #[serde(default = "number::<10, 1, MAX_BURST>")]
    pub burst: Number<1, MAX_BURST>,
    /// The status of a refusal, from 400 to 599. Default: 429.
    pub status: Option<Written<u16>>,
    /// The path of the page for refusals. It is in the store or in files, as those of `error_pages`
    /// are. Default: the page that `error_pages` has for the status.
    pub page: Option<Written<String>>,
    /// Whether requests above the limit pass, and are only counted and logged.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether all machines with the same `store.origin` count together
    /// ([limits.md](limits.md#rates-on-several-machines)). Otherwise each counts for itself.
    #[serde(default)]
    pub shared: Written<bool>,
}

/// A limit on requests that are in progress at the same time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InFlightLimitSection {
    /// What requests are counted by, as for `rate_limit`.
    #[serde(default)]
    pub key: Written<LimitKeyText>,
    /// The most requests of a key at the same time. A request counts until its response has been
    /// sent, and an upgraded connection until it closes.
    pub max: Number<1, MAX_BURST>,
    /// The status of a refusal, from 400 to 599. Default: 503.
    pub status: Option<Written<u16>>,
    /// The path of the page for refusals, as for `rate_limit`.
    pub page: Option<Written<String>>,
    /// Whether requests above the limit pass, and are only counted and logged.
    #[serde(default)]
    pub dry_run: bool,
}

/// The `key` of a limit, as it is written.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(transparent)]
#[schemars(inline)]
pub struct LimitKeyText(String);

impl Default for LimitKeyText {
    fn default() -> Self {
        Self("address".into())
    }
}

/// Checks a limit on the rate. `has_origin`: whether there is a `store.origin`.
pub fn check_rate_limit(
    section: &RateLimitSection,
    path: Option<&PathPattern>,
    has_origin: bool,
    source: &ConfigSource,
) -> Result<Arc<RateLimit>, ConfigError> {
    let key = check_key("rate limit", &section.key, path, source)?;
    let RateLimitSection { status, page, dry_run, .. } = section;
    let default = StatusCode::TOO_MANY_REQUESTS;
    let refusal = check_refusal(status.as_ref(), default, page.as_ref(), *dry_run, source)?;
    let per = Duration::from_secs(section.rate.seconds);
    let burst = section.burst.get();
    let limit = RateLimit::new(key, section.rate.requests, per, burst, refusal);
    match (*section.shared, has_origin) {
        (false, _) => Ok(Arc::new(limit)),
        (true, true) => Ok(Arc::new(limit.shared())),
        (true, false) => {
            let message = "`shared = true` of a rate limit needs `store.origin`, the server on \
                           which all machines count together";
            Err(source.error(section.shared.span(), message))
        }
    }
}

/// Checks a limit on requests in progress.
pub fn check_in_flight_limit(
    section: &InFlightLimitSection,
    path: Option<&PathPattern>,
    source: &ConfigSource,
) -> Result<Arc<InFlightLimit>, ConfigError> {
    let key = check_key("in-flight limit", &section.key, path, source)?;
    let InFlightLimitSection { status, page, dry_run, .. } = section;
    let default = StatusCode::SERVICE_UNAVAILABLE;
    let refusal = check_refusal(status.as_ref(), default, page.as_ref(), *dry_run, source)?;
    let max = u32::try_from(section.max.get()).unwrap_or(u32::MAX);
    Ok(Arc::new(InFlightLimit::new(key, max, refusal)))
}

fn check_key(
    limit: &str,
    key: &Written<LimitKeyText>,
    path: Option<&PathPattern>,
    source: &ConfigSource,
) -> Result<RequestKey, ConfigError> {
    let text = key.0.as_str();
    let refuse = |why: String| source.error(key.span(), format!("{limit} key `{text}`: {why}"));
    let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    let found = match text.split_once(':') {
        None if text == "address" => Some(RequestKey::Address),
        None if text == "route" => Some(RequestKey::Route),
        Some(("header", name)) => named(name).map(RequestKey::Header),
        Some(("cookie", name)) => named(name).map(RequestKey::Cookie),
        _ if text.contains('{') => {
            let pattern = path.cloned().unwrap_or_default();
            let template = ValueTemplate::parse(text, &pattern).map_err(refuse)?;
            if template.has(&Variable::User) {
                let why = "`{user}` is not known yet, because passwords are checked after limits";
                return Err(refuse(why.into()));
            }
            template.as_text().is_none().then_some(RequestKey::Template(template))
        }
        _ => None,
    };
    found.ok_or_else(|| {
        let allowed = "address, route, header:NAME, cookie:NAME and a text with variables";
        refuse(format!("allowed are {allowed}"))
    })
}

fn check_refusal(
    status: Option<&Written<u16>>,
    default: StatusCode,
    page: Option<&Written<String>>,
    is_dry_run: bool,
    source: &ConfigSource,
) -> Result<LimitRefusal, ConfigError> {
    let status = match status {
        None => default,
        Some(written) => StatusCode::from_u16(**written)
            .ok()
            .filter(|status| status.is_client_error() || status.is_server_error())
            .ok_or_else(|| {
                let message = format!("`status` is {}: allowed are 400 to 599", **written);
                source.error(written.span(), message)
            })?,
    };
    if let Some(page) = page {
        check_path(page)
            .map_err(|message| source.error(page.span(), format!("page of a limit {message}")))?;
    }
    let page = page.map(|page| page.to_string());
    Ok(LimitRefusal::new(RefusalSettings { status, page, is_dry_run }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Config;
    use crate::check::tests::{LISTENER, check_text};

    const ORIGIN: &str = "[store]\norigin = \"redis://127.0.0.1\"\n";

    /// Returns all limits on rates, in the order of the file.
    fn limits(config: &Config) -> Vec<&Arc<RateLimit>> {
        let routes = config.gateway.sites.iter().flat_map(|site| &site.routes);
        routes.flat_map(|route| &route.rules.rate_limits).collect()
    }

    #[test]
    fn a_shared_limit_needs_an_origin() {
        let route = "[[route]]\npath = \"/\"\ntry = [\"store\"]\n";
        let limit = "rate_limit = [{ rate = \"1/s\", shared = true }]\n";
        let error = check_text(&format!("{LISTENER}{route}{limit}")).unwrap_err();
        for part in ["kirin.toml:6:40", "`shared = true` of a rate limit needs `store.origin`"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(check_text(&format!("{LISTENER}{ORIGIN}{route}{limit}")).is_ok());
        let alone = limit.replace("true", "false");
        assert!(check_text(&format!("{LISTENER}{route}{alone}")).is_ok());
    }

    #[test]
    fn each_shared_limit_counts_for_itself_and_on_all_machines_alike() {
        let route = |table: &str, path: &str, limits: &[&str]| {
            let limits: Vec<String> =
                limits.iter().map(|limit| format!("{{ {limit}, shared = true }}")).collect();
            let limits = limits.join(", ");
            format!("[[{table}]]\npath = \"{path}\"\ntry = [\"store\"]\nrate_limit = [{limits}]\n")
        };
        let site = |host: &str| {
            let route = route("site.route", "/", &["rate = \"1/s\""]);
            format!("[[site]]\nhosts = [\"{host}\"]\n{route}")
        };
        let twice = ["rate = \"1/s\"", "rate = \"1/s\""];
        let others =
            ["rate = \"2/s\"", "rate = \"1/s\", burst = 3", "rate = \"1/s\", key = \"route\""];
        let text = [
            route("route", "/", &twice),
            route("route", "/a", &others),
            route("route", "/b", &twice[..1]),
            site("a.example"),
            site("*.b.example"),
        ];
        let text = format!("{LISTENER}{ORIGIN}{}", text.concat());
        let (one, other) = (check_text(&text).unwrap(), check_text(&text).unwrap());
        let (one, other) = (limits(&one), limits(&other));
        assert_eq!(one.len(), 8);
        for (index, limit) in one.iter().enumerate() {
            let same: Vec<bool> = other.iter().map(|other| limit.is_same(other)).collect();
            let expected: Vec<bool> = (0..8).map(|other| other == index).collect();
            assert_eq!(same, expected, "{index}");
        }
        let alone = check_text(&text.replace("shared = true", "shared = false")).unwrap();
        let alone = limits(&alone);
        assert!(alone[0].is_same(alone[1]) && !alone[0].is_same(one[0]));
    }
}
