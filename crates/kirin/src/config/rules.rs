//! Checks what a route says besides where to look.

use std::sync::Arc;

use kirin_gateway::routing::basic_auth::BasicAuth;
use kirin_gateway::routing::password_checks::PasswordChecks;
use kirin_gateway::routing::redirect::Redirect;
use kirin_gateway::routing::rewrite::Rewrite;
use kirin_gateway::routing::rules::Rules;
use kirin_gateway::routing::settings::{PlaceSite, RouteSite};
use serde_spanned::Spanned;

use super::RouteConfig;
use super::load::{ConfigError, Source};

/// The rules of `route`; all password files share `checks`.
pub fn rules(
    route: &RouteConfig,
    checks: &Arc<PasswordChecks>,
    source: &Source,
) -> Result<Rules, ConfigError> {
    let mut rules = Rules::default();
    if let Some(target) = &route.redirect {
        if let Some(place) = route.places.first() {
            let message = "a route has either `try` or `redirect`";
            return Err(source.error(place.span(), message));
        }
        let status = *route.redirect_status.get_ref();
        let redirect = Redirect::new(target.get_ref(), status);
        let at = |error: &str| {
            if error.starts_with("redirect_status") {
                route.redirect_status.span()
            } else {
                target.span()
            }
        };
        rules.redirect = Some(redirect.map_err(|error| source.error(at(&error), error))?);
    }
    if let Some(prefix) = &route.rewrite {
        rules.rewrite = Some(
            Rewrite::new(prefix.get_ref()).map_err(|error| source.error(prefix.span(), error))?,
        );
    }
    if let Some(file) = &route.basic_auth {
        let path = source.directory.join(file.get_ref());
        let opened = BasicAuth::open(&path, route.basic_auth_realm.get_ref(), Arc::clone(checks));
        rules.basic_auth = Some(
            opened.map_err(|error| source.error(file.span(), format!("`basic_auth`: {error}")))?,
        );
    }
    for (errors, path) in &route.error_pages {
        let added = rules.error_pages.add(errors.get_ref(), path.get_ref());
        added.map_err(|error| source.error(path.span(), format!("`error_pages`: {error}")))?;
    }
    rules.error_pages.intercept = route.intercept_errors;
    for (name, value) in &route.headers {
        let added = rules.response_fields.add(name.get_ref(), value.get_ref());
        added.map_err(|error| source.error(value.span(), error))?;
    }
    Ok(rules)
}

/// Checks what rules say of other routes; `routes` are sorted, the longest path first, and
/// `written` are in any order.
pub fn check_together(
    routes: &[RouteSite],
    written: &[RouteConfig],
    source: &Source,
) -> Result<(), ConfigError> {
    let leads_to = |path: &str| routes.iter().find(|route| is_below(path, &route.path));
    for config in written {
        for page in config.error_pages.values() {
            let has_pages = |route: &RouteSite| {
                let is_asked = |place: &PlaceSite| {
                    !matches!(place, PlaceSite::App(_) | PlaceSite::Lua(_) | PlaceSite::Proxy(_))
                };
                route.places.iter().any(is_asked)
            };
            if !leads_to(page.get_ref()).is_some_and(has_pages) {
                let message = format!(
                    "error page `{}`: no route has it with `store` or `files:DIR` in `try`",
                    page.get_ref()
                );
                return Err(source.error(page.span(), message));
            }
        }
        if let Some(target) = &config.redirect
            && target.get_ref().starts_with('/')
            && leads_to(target.get_ref()).is_some_and(|route| is_route(route, &config.path))
        {
            let message = format!(
                "redirect `{}` leads back to its own route `{}`",
                target.get_ref(),
                config.path.get_ref()
            );
            return Err(source.error(target.span(), message));
        }
    }
    Ok(())
}

fn is_below(path: &str, route: &str) -> bool {
    path.strip_prefix(route).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_route(route: &RouteSite, path: &Spanned<String>) -> bool {
    route.path == path.get_ref().trim_end_matches('/')
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
