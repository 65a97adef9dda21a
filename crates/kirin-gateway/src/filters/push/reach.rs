//! Which keys any request is answered from: a page that is stored under another is never served,
//! which its author should hear.

use std::cell::Cell;

use crate::routing::path_rest::meant_path;
use crate::routing::protection::Protection;
use crate::routing::rewrite::Rewrite;
use crate::routing::route::{Place, Route};

/// The routes, as far as the keys of the `store` place go.
pub struct Reach(Vec<Reached>);

struct Reached {
    /// Decoded, without a slash at its end.
    path: String,
    rewrite: Option<Rewrite>,
    has_store: bool,
    protection: Protection,
    /// Whether the log has said that what is stored below it is not served.
    is_said: Cell<bool>,
}

impl Reach {
    /// Of `routes`, the longest path first.
    pub fn of(routes: &[Route]) -> Self {
        let reached = |route: &Route| Reached {
            path: route.path.clone(),
            rewrite: route.rules.as_ref().and_then(|rules| rules.rewrite.clone()),
            has_store: route.places.iter().any(|place| matches!(place, Place::Store)),
            protection: route.protection,
            is_said: Cell::default(),
        };
        Self(routes.iter().map(reached).collect())
    }

    /// Whether a page under `key` with this protection is served by nobody and its route's author
    /// has not been told; once a route.
    pub fn is_news(&self, key: &[u8], protection: Protection) -> bool {
        let path = key.split(|byte| *byte == b'?').next().unwrap_or_default();
        let Ok(path) =
            std::str::from_utf8(path).map_err(drop).and_then(|path| meant_path(path).map_err(drop))
        else {
            return false;
        };
        let behind_rewrite = self.0.iter().any(|route| {
            route.may_serve(protection)
                && route.rewrite.as_ref().is_some_and(|rewrite| rewrite.leads_to(key))
        });
        let Some(route) = self.0.iter().find(|route| is_below(&path, &route.path)) else {
            return false;
        };
        let is_served = behind_rewrite || (route.may_serve(protection) && route.rewrite.is_none());
        !is_served && !route.is_said.replace(true)
    }
}

impl Reached {
    fn may_serve(&self, protection: Protection) -> bool {
        self.has_store && self.protection.may_serve(protection)
    }
}

fn is_below(path: &[u8], route: &str) -> bool {
    path.strip_prefix(route.as_bytes()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
