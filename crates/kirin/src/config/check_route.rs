//! Routes: from what a configuration says of them to what it means.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_files::FollowLinks;
use kirin_gateway::routing::password_checks::PasswordChecks;
use kirin_gateway::routing::rate_limit::{RateKey, RateLimit};
use kirin_gateway::routing::settings::{PlaceSite, RouteSite};
use kirin_proxy::{BodyBuffering, UpstreamConfig};
use serde_spanned::Spanned;

use super::check::{AppSite, absolute, existing_directory, within};
use super::load::{ConfigError, Source};
use super::{RateLimitConfig, RouteConfig, cache, rules};

/// Requests at most that a rate limit may let pass at once.
const MAX_BURST: usize = 1_000_000;

/// What routes name.
pub(super) struct Named<'a> {
    pub(super) apps: &'a [AppSite],
    pub(super) upstreams: &'a [UpstreamConfig],
}

/// Checks `route`.
pub(super) fn check_route(
    route: &RouteConfig,
    named: &Named<'_>,
    checks: &Arc<PasswordChecks>,
    item_limit_bytes: usize,
    source: &Source,
) -> Result<RouteSite, ConfigError> {
    let path = route.path.get_ref();
    if !path.starts_with('/') || path.contains(['?', '#', '%']) {
        let message = format!(
            "route path `{path}`: it must begin with `/` and is written decoded, without `%`, `?` and `#`"
        );
        return Err(source.error(route.path.span(), message));
    }
    let rules = Arc::new(rules::rules(route, checks, source)?);
    if route.places.is_empty() && route.redirect.is_none() {
        let message = format!(
            "`try` of route `{path}` is empty: name at least one of store, files:DIR, lua:FILE, app:NAME, proxy:NAME, or a `redirect`"
        );
        return Err(source.error(route.path.span(), message));
    }
    let mut places = Vec::new();
    for (index, place) in route.places.iter().enumerate() {
        let checked = check_place(place, named, source)?;
        if matches!(checked, PlaceSite::App(_) | PlaceSite::Proxy(_))
            && index + 1 < route.places.len()
        {
            let message =
                format!("`{}` always answers: it must be the last in `try`", place.get_ref());
            return Err(source.error(place.span(), message));
        }
        places.push(checked);
    }
    if route.listing && !places.iter().any(|place| matches!(place, PlaceSite::Files(_))) {
        let message = format!("`listing` of route `{path}`: there is no files:DIR in `try`");
        return Err(source.error(route.path.span(), message));
    }
    if route.follow_links.0 != FollowLinks::Inside
        && !places.iter().any(|place| matches!(place, PlaceSite::Files(_)))
    {
        let message = format!("`follow_links` of route `{path}`: there is no files:DIR in `try`");
        return Err(source.error(route.path.span(), message));
    }
    if route.esi && route.ssi == Some(false) {
        let message = format!(
            "`esi` of route `{path}`: pages of the store with ESI have SSI, too; leave out `ssi = false`"
        );
        return Err(source.error(route.path.span(), message));
    }
    let rate_limits = route
        .rate_limit
        .iter()
        .map(|limit| check_rate_limit(limit, source))
        .collect::<Result<_, _>>()?;
    let has_proxy = matches!(places.last(), Some(PlaceSite::Proxy(_)));
    if route.request_buffering == Some(true) && !has_proxy {
        let message =
            format!("`request_buffering` of route `{path}`: there is no proxy:NAME in `try`");
        return Err(source.error(route.path.span(), message));
    }
    let default_limit = super::default::body_limit();
    let body_limit =
        route.body_limit.or((route.request_buffering == Some(true)).then_some(default_limit));
    let body_limit_bytes = body_limit.map(|size| size.0);
    // Otherwise a few slow uploads would have all of a server's slots.
    let is_limited = match places.last() {
        Some(PlaceSite::Proxy(index)) => named.upstreams[*index].is_limited(),
        _ => false,
    };
    let request_buffering = match route.request_buffering {
        Some(true) => BodyBuffering::On,
        None if is_limited => {
            BodyBuffering::UnlessGrpc { limit_bytes: body_limit_bytes.unwrap_or(default_limit.0) }
        }
        Some(false) | None => BodyBuffering::Off,
    };
    let cache = cache::settings(&route.cache, item_limit_bytes, source)?;
    let runs_code = matches!(places.last(), Some(PlaceSite::App(_) | PlaceSite::Proxy(_)));
    if cache.is_some() && !runs_code {
        let message =
            format!("`cache` of route `{path}`: there is no app:NAME or proxy:NAME in `try`");
        return Err(source.error(route.path.span(), message));
    }
    Ok(RouteSite {
        path: path.trim_end_matches('/').to_owned(),
        places,
        listing: route.listing,
        follow_links: route.follow_links.0,
        rules,
        body_limit_bytes,
        request_buffering,
        rate_limits,
        compress: route.compress.0,
        cache,
        ssi: route.ssi,
        esi: route.esi,
    })
}

fn check_rate_limit(
    limit: &RateLimitConfig,
    source: &Source,
) -> Result<Arc<RateLimit>, ConfigError> {
    let text = limit.key.get_ref();
    let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    let key = match text.split_once(':') {
        None if text == "address" => Some(RateKey::Address),
        Some(("header", name)) => named(name).map(RateKey::Header),
        Some(("cookie", name)) => named(name).map(RateKey::Cookie),
        _ => None,
    };
    let Some(key) = key else {
        let message =
            format!("rate limit key `{text}`: allowed are address, header:NAME and cookie:NAME");
        return Err(source.error(limit.key.span(), message));
    };
    let burst = within(&limit.burst, MAX_BURST, "`burst`", source)?;
    let per = Duration::from_secs(limit.rate.seconds);
    Ok(Arc::new(RateLimit::new(key, limit.rate.requests, per, burst as u64, Instant::now())))
}

fn check_place(
    place: &Spanned<String>,
    named: &Named<'_>,
    source: &Source,
) -> Result<PlaceSite, ConfigError> {
    let text = place.get_ref();
    if text == "store" {
        return Ok(PlaceSite::Store);
    }
    if let Some(directory) = text.strip_prefix("files:") {
        let directory = Spanned::new(place.span(), directory.to_owned());
        return existing_directory(&directory, source).map(PlaceSite::Files);
    }
    if let Some(name) = text.strip_prefix("app:") {
        let found = named.apps.iter().position(|app| app.name == name).map(PlaceSite::App);
        return found.ok_or_else(|| {
            let names: Vec<&str> = named.apps.iter().map(|app| app.name.as_str()).collect();
            let known =
                if names.is_empty() { "there is no [[app]]".into() } else { names.join(", ") };
            source.error(place.span(), format!("there is no app `{name}`; apps: {known}"))
        });
    }
    if let Some(file) = text.strip_prefix("lua:") {
        let path = absolute(&source.directory.join(file));
        if !path.is_file() {
            return Err(source.error(place.span(), format!("there is no file {}", path.display())));
        }
        return Ok(PlaceSite::Lua(path));
    }
    if let Some(name) = text.strip_prefix("proxy:") {
        let found =
            named.upstreams.iter().position(|upstream| upstream.name == name).map(PlaceSite::Proxy);
        return found.ok_or_else(|| {
            let names: Vec<&str> =
                named.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
            let known =
                if names.is_empty() { "there is no [[upstream]]".into() } else { names.join(", ") };
            source.error(place.span(), format!("there is no upstream `{name}`; upstreams: {known}"))
        });
    }
    let message = format!(
        "`{text}` is not a place; allowed are store, files:DIR, lua:FILE, app:NAME and proxy:NAME"
    );
    Err(source.error(place.span(), message))
}
