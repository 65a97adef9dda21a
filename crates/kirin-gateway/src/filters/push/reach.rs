//! The keys that requests are answered from. A page under another key is never served, which the
//! author of the application should hear.

use std::cell::Cell;

use kirin_http::RequestPath;

use crate::routing::protection::Protection;
use crate::routing::rewrite::Rewrite;

/// The routes, as the keys of the `store` place need them.
pub struct Reach(Vec<Reached>);

/// A route, as the keys of the `store` place need it.
pub struct ReachableRoute {
    /// The path, decoded and without a slash at its end.
    pub path: String,
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
    /// Collects the keys that `routes` serve, of which the longest path comes first.
    pub fn new(routes: impl Iterator<Item = ReachableRoute>) -> Self {
        Self(routes.map(|route| Reached { route, is_warned: Cell::default() }).collect())
    }

    /// Returns whether the log must warn that no route serves a page under `key` with this
    /// protection. The result is true only once for each route.
    pub fn warns_of(&self, key: &[u8], protection: Protection) -> bool {
        let path = key.split(|byte| *byte == b'?').next().unwrap_or_default();
        let Some(path) =
            std::str::from_utf8(path).ok().and_then(|path| RequestPath::parse(path).ok())
        else {
            return false;
        };
        let behind_rewrite = self.0.iter().any(|route| {
            route.may_serve(protection)
                && route.route.rewrite.as_ref().is_some_and(|rewrite| rewrite.leads_to(key))
        });
        let Some(route) =
            self.0.iter().find(|route| is_below(path.normalized(), &route.route.path))
        else {
            return false;
        };
        let is_served =
            behind_rewrite || (route.may_serve(protection) && route.route.rewrite.is_none());
        !is_served && !route.is_warned.replace(true)
    }
}

impl Reached {
    fn may_serve(&self, protection: Protection) -> bool {
        self.route.has_store && self.route.protection.may_serve(protection)
    }
}

fn is_below(path: &[u8], route: &str) -> bool {
    path.strip_prefix(route.as_bytes()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
