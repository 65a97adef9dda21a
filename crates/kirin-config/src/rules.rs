//! The rules of a route besides its places: clients, rates, redirects, passwords, paths, error
//! pages and fields.

use std::sync::Arc;

use kirin_gateway::routing::basic_auth::BasicAuth;
use kirin_gateway::routing::path_pattern::PathPattern;
use kirin_gateway::routing::redirect::{Redirect, redirect_status};
use kirin_gateway::routing::redirect_table::Redirects;
use kirin_gateway::routing::rewrite::Rewrite;
use kirin_gateway::routing::route_table::RouteTable;
use kirin_gateway::routing::rules::Rules;
use kirin_gateway::routing::settings::RouteConfig;
use kirin_http::RequestPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::check_access;
use crate::or_false::TextOrFalse;
use crate::redirect_circles::check_circles;
use crate::request_limits::{check_in_flight_limit, check_rate_limit};
use crate::route::{RouteContext, RouteSection};
use crate::source::{ConfigError, ConfigSource, ErrorCollector};

/// The status of a redirect.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(transparent)]
#[schemars(inline)]
pub struct RedirectStatus(u16);

impl Default for RedirectStatus {
    fn default() -> Self {
        Self(308)
    }
}

/// What a password is for.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Realm(String);

impl Default for Realm {
    fn default() -> Self {
        Self("Restricted".into())
    }
}

/// Checks the rules of a route. `path` is missing if it has an error; then nothing is checked that
/// may have names of its segments.
pub fn check_rules(
    section: &RouteSection,
    path: Option<&PathPattern>,
    context: &RouteContext<'_>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<Rules> {
    let access = check_access(section, source, errors);
    let mut is_good = access.is_some();
    let check_rate = |limit| check_rate_limit(limit, path, context.has_origin, source);
    let rate_limits = section.rate_limit.iter().map(check_rate);
    let rate_limits = errors.keep(rate_limits.collect::<Result<_, ConfigError>>());
    let in_flight =
        section.in_flight_limit.iter().map(|limit| check_in_flight_limit(limit, path, source));
    let in_flight = errors.keep(in_flight.collect::<Result<_, ConfigError>>());
    is_good &= rate_limits.is_some() && in_flight.is_some();
    let (access, rate_limits) = (access.unwrap_or_default(), rate_limits.unwrap_or_default());
    let in_flight_limits = in_flight.unwrap_or_default();
    let mut rules = Rules { access, rate_limits, in_flight_limits, ..Rules::default() };
    match check_redirects(section, context, source, errors) {
        Some(redirects) => rules.redirects = redirects,
        None => is_good = false,
    }
    let mut refuse = |span, message: String| {
        is_good = false;
        errors.push(source.error(span, message));
    };
    if let Some(path) = path {
        match check_redirect(section, path) {
            Ok(redirect) => rules.redirect = redirect,
            Err((span, message)) => refuse(span, message),
        }
        if let Some(prefix) = &section.rewrite {
            match Rewrite::new(prefix, path) {
                Ok(rewrite) => rules.rewrite = Some(rewrite),
                Err(message) => refuse(prefix.span(), message),
            }
        }
    }
    if let Some(file) = &section.basic_auth
        && let TextOrFalse::Text(name) = &**file
    {
        let path = source.directory.join(name);
        match BasicAuth::open(&path, &section.basic_auth_realm.0, Arc::clone(context.checks)) {
            Ok(basic_auth) => rules.basic_auth = Some(basic_auth),
            Err(error) => refuse(file.span(), format!("`basic_auth`: {error}")),
        }
    }
    let pattern = path.cloned().unwrap_or_default();
    // A name of a path with an error is not known.
    let is_checked = |value: &str| path.is_some() || !value.contains('{');
    for (statuses, page) in section.error_pages.iter().filter(|(_, page)| is_checked(page)) {
        if let Err(error) = rules.error_pages.add(statuses, page, &pattern) {
            refuse(page.span(), format!("`error_pages`: {error}"));
        }
    }
    let headers = section.request_headers.iter();
    for (name, value) in headers.filter(|(_, value)| is_checked(value)) {
        if let Err(message) = rules.given_fields.add(name, value, &pattern) {
            refuse(value.span(), message);
        }
    }
    rules.error_pages.intercept = section.intercept_errors;
    for (name, value) in section.headers.iter().filter(|(_, value)| is_checked(value)) {
        if let Err(message) = rules.response_fields.add(name, value, &pattern) {
            refuse(value.span(), message);
        }
    }
    is_good.then_some(rules)
}

/// Returns the table of redirects of a route. Returns `None` if it has errors.
fn check_redirects(
    section: &RouteSection,
    context: &RouteContext<'_>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<Option<Redirects>> {
    let Some(file) = &section.redirects else { return Some(None) };
    let TextOrFalse::Text(name) = &**file else { return Some(None) };
    let table = context.redirect_tables.read(file, name, source, errors);
    let status = &section.redirect_status;
    let default_status = match redirect_status(status.0) {
        Ok(default_status) => default_status,
        Err(message) => {
            errors.push(source.error(status.span(), message));
            return None;
        }
    };
    Some(Some(Redirects { table: table?, default_status }))
}

/// Returns the redirect of a route. An error has the place that it points at.
fn check_redirect(
    section: &RouteSection,
    path: &PathPattern,
) -> Result<Option<Redirect>, (std::ops::Range<usize>, String)> {
    let Some(target) = &section.redirect else { return Ok(None) };
    if let Some(place) = section.places.first() {
        return Err((place.span(), "a route has either `try` or `redirect`".into()));
    }
    let status = &section.redirect_status;
    Redirect::new(target, status.0, path).map(Some).map_err(|error| {
        let is_about_status = error.starts_with("redirect_status");
        (if is_about_status { status.span() } else { target.span() }, error)
    })
}

/// Checks what the rules of routes say about other routes. `routes` and `sections` have the same
/// order, by which `table` numbers them.
pub fn check_together(
    routes: &[RouteConfig],
    table: &RouteTable,
    sections: &[RouteSection],
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) {
    let leads_to = |path: &str| {
        let path = RequestPath::parse(path).ok()?;
        routes.get(table.find_by_path(&path)?)
    };
    for section in sections {
        let error_pages = section.error_pages.values().map(|page| ("error page", page));
        let maintenance = section.maintenance.0.as_ref().and_then(|section| section.page.as_ref());
        let maintenance = maintenance.map(|page| ("maintenance page", page));
        let of_rates = section.rate_limit.iter().filter_map(|limit| limit.page.as_ref());
        let in_flight = section.in_flight_limit.iter().filter_map(|limit| limit.page.as_ref());
        let of_limits = of_rates.chain(in_flight).map(|page| ("page of a limit", page));
        for (name, page) in error_pages.chain(maintenance).chain(of_limits) {
            let has_pages =
                |route: &RouteConfig| route.places.iter().any(|place| !place.kind.runs_code);
            // With variables it is known for each request only.
            if !page.contains('{') && !leads_to(page).is_some_and(has_pages) {
                let message = format!(
                    "{name} `{}`: no route without `match` has it with `store` or \
                     `files:DIR` in `try`",
                    page.as_str()
                );
                errors.push(source.error(page.span(), message));
            }
        }
    }
    check_circles(routes, table, sections, source, errors);
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
