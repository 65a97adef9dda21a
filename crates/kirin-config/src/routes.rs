//! The routes of one site together.

use std::cmp::Reverse;

use kirin_gateway::routing::settings::RouteConfig;

use crate::route::{RouteContext, RouteSection, check_route};
use crate::rules::check_together;
use crate::source::{ErrorCollector, Source};
use crate::unique::check_unique;

/// Checks the routes of a site. Returns them sorted by descending length of their paths.
pub fn check_routes(
    sections: &[RouteSection],
    context: &RouteContext<'_>,
    source: &Source,
    errors: &mut ErrorCollector,
) -> Option<Vec<RouteConfig>> {
    let routes: Vec<_> =
        sections.iter().map(|section| check_route(section, context, source, errors)).collect();
    let mut routes = routes.into_iter().collect::<Option<Vec<_>>>()?;
    check_unique("route", "path", sections.iter().map(|route| &route.path), source, errors);
    routes.sort_by_key(|route| Reverse(route.path.len()));
    check_together(&routes, sections, source, errors);
    Some(routes)
}
