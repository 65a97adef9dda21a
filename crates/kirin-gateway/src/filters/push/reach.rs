//! The keys that requests are answered from. A page under another key is never served, which the
//! author of the application should hear.

use std::cell::Cell;
use std::sync::Arc;

use kirin_http::RequestPath;

use crate::routing::protection::Protection;
use crate::routing::rewrite::Rewrite;
use crate::routing::route_table::RouteTable;

/// The routes, as the keys of the `store` place need them.
pub struct Reach {
    table: Arc<RouteTable>,
    /// The routes, as the table numbers them.
    routes: Vec<Reached>,
}

/// A route, as the keys of the `store` place need it.
pub struct ReachableRoute {
    /// The path that its places see instead.
    pub rewrite: Option<Rewrite>,
    /// Whether the `store` place is one of its places.
    pub has_store: bool,
    /// The conditions that a request has passed when its places are asked.
    pub protection: Protection,
}

struct Reached {
    route: ReachableRoute,
    /// Whether the log has warned that pages below it are not served.
    is_warned: Cell<bool>,
}

impl Reach {
    /// Collects the keys that `routes` serve. `table` finds them.
    pub fn new(table: Arc<RouteTable>, routes: impl Iterator<Item = ReachableRoute>) -> Self {
        let routes = routes.map(|route| Reached { route, is_warned: Cell::default() }).collect();
        Self { table, routes }
    }

    /// Returns whether the log must warn that no route serves a page under `key` with this
    /// protection. The result is true only once for each route. A key says nothing about the
    /// conditions of routes, so that a page counts as served if any route of its path may serve it.
    pub fn warns_of(&self, key: &[u8], protection: Protection) -> bool {
        let path = key.split(|byte| *byte == b'?').next().unwrap_or_default();
        let Some(path) =
            std::str::from_utf8(path).ok().and_then(|path| RequestPath::parse(path).ok())
        else {
            return false;
        };
        let behind_rewrite = self.routes.iter().any(|route| {
            route.may_serve(protection)
                && route.route.rewrite.as_ref().is_some_and(|rewrite| rewrite.leads_to(key))
        });
        let possible = self.table.possible(&path);
        let mut possible = possible.iter().filter_map(|number| self.routes.get(*number));
        let Some(first) = possible.next() else { return false };
        let is_served = behind_rewrite
            || std::iter::once(first)
                .chain(possible)
                .any(|route| route.may_serve(protection) && route.route.rewrite.is_none());
        !is_served && !first.is_warned.replace(true)
    }
}

impl Reached {
    fn may_serve(&self, protection: Protection) -> bool {
        self.route.has_store && self.route.protection.may_serve(protection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::conditions::{Condition, RouteConditions};
    use crate::routing::path_pattern::PathPattern;

    /// Returns the reach of routes: path, method that the route wants, and whether it has `store`.
    fn reach(routes: &[(&str, &str, bool)]) -> Reach {
        let parts = routes.iter().map(|(path, method, _)| {
            let methods = Some(*method).filter(|method| !method.is_empty());
            let conditions =
                methods.map(|method| Condition::methods([method].into_iter()).unwrap());
            let conditions = RouteConditions::new(conditions.into_iter().collect());
            (PathPattern::parse(path).unwrap(), conditions)
        });
        let reachable = routes.iter().map(|(_, _, has_store)| ReachableRoute {
            rewrite: None,
            has_store: *has_store,
            protection: Protection::default(),
        });
        Reach::new(Arc::new(RouteTable::new(parts).unwrap()), reachable)
    }

    #[test]
    fn a_key_is_served_if_any_route_of_its_path_may_serve_it() {
        let with_store = [("/", "", true), ("/a/{x}", "", false), ("*.pdf", "", false)];
        let conditional = [("/", "", false), ("/", "GET", true)];
        let other_path = [("/", "", true), ("/a", "GET", false), ("/a", "", false)];
        for (routes, key, warns) in [
            (&with_store[..], "/b?c", false),
            (&with_store, "/a", false),
            (&with_store, "/a/b", true),
            (&with_store, "/b.pdf?x", true),
            (&with_store, "user:1", false),
            (&conditional, "/a", false),
            (&other_path, "/a", true),
            (&other_path[1..], "/b", false),
        ] {
            let reach = reach(routes);
            assert_eq!(reach.warns_of(key.as_bytes(), Protection::default()), warns, "{key}");
            assert!(!reach.warns_of(key.as_bytes(), Protection::default()), "only once");
        }
    }
}
