//! The routes of one site together.

use kirin_gateway::routing::route_table::{DuplicateRoute, RouteTable};
use kirin_gateway::routing::settings::RouteConfig;

use crate::auth_request::check_asked_routes;
use crate::route::{RouteContext, RouteSection, check_route};
use crate::rules::check_together;
use crate::source::{ConfigSource, ErrorCollector};

/// Checks the routes of a site. Returns them in the order of the file, and the table that finds
/// them.
pub fn check_routes(
    sections: &[RouteSection],
    context: &RouteContext<'_>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<(Vec<RouteConfig>, RouteTable)> {
    let routes: Vec<_> =
        sections.iter().map(|section| check_route(section, context, source, errors)).collect();
    let routes = routes.into_iter().collect::<Option<Vec<_>>>()?;
    let table = check_table(&routes, sections, source, errors)?;
    check_together(&routes, &table, sections, source, errors);
    check_asked_routes(&routes, &table, sections, source, errors);
    Some((routes, table))
}

/// Builds the table of `routes`. Refuses a route that would never be found. `sections` are the same
/// routes.
fn check_table(
    routes: &[RouteConfig],
    sections: &[RouteSection],
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<RouteTable> {
    let parts = routes.iter().map(|route| (route.path.clone(), route.conditions.clone()));
    let duplicates = match RouteTable::new(parts) {
        Ok(table) => return Some(table),
        Err(duplicates) => duplicates,
    };
    for DuplicateRoute { first, second } in duplicates {
        let first_path = sections[first].path.span();
        let (first, second, path) = (&routes[first], &routes[second], &sections[second].path);
        let line = source.line_seen_from(first_path.start, path.span().start);
        let mut message = format!("a second [[route]] with the path `{}`", path.as_str());
        if !second.conditions.is_empty() {
            message.push_str(" and the same `match`");
        }
        if first.path != second.path {
            message.push_str(&format!(": `{}` matches the same", first.path));
        }
        message.push_str(&format!("; the first is on {line}"));
        errors.push(source.error(path.span(), message));
    }
    None
}
