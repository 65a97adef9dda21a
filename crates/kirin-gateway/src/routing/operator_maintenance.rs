//! The maintenance of sites and routes that an operator has begun in the running program, beside
//! that of the configuration.
//!
//! All event loops share it. While there is none, a request pays for one load. Routes are found by
//! their numbers, which stay over reloads ([`RouteNames`]).
//!
//! An operator's request may have the names of the configuration that a reload is replacing. So the
//! routes of the last reload are held, too, whatever names a request brings.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;
use kirin_sync::atomic::{AtomicBool, Ordering};
use kirin_sync::{Mutex, RwLock};

use crate::routing::access::Maintenance;
use crate::routing::route_names::{RouteName, RouteNames};

/// The maintenance that an operator has begun.
#[derive(Debug, Default)]
pub struct OperatorMaintenance {
    /// Whether any route is in maintenance.
    is_used: AtomicBool,
    begun: Mutex<BegunMaintenance>,
    /// The same by the numbers of the routes. Of several for a route, the last has begun last.
    by_route: RwLock<HashMap<u32, Arc<Maintenance>, RandomState>>,
}

/// What operators have begun, and for which routes.
#[derive(Debug, Default)]
struct BegunMaintenance {
    /// In the order in which they have begun.
    list: Vec<(HeldRoutes, Arc<Maintenance>)>,
    /// The routes since the last reload. None before the first one.
    names: RouteNames,
}

/// The routes that an operator names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldRoutes {
    /// The label of their site. `None`: all sites.
    pub site: Option<String>,
    /// The route, by its paths, with or without its conditions. `None`: all routes.
    pub route: Option<String>,
}

impl HeldRoutes {
    /// Returns whether a route is one of them.
    pub fn has(&self, name: &RouteName) -> bool {
        let is_site = self.site.as_ref().is_none_or(|site| *site == name.site);
        let is_route = |route: &String| *route == name.path || *route == name.route;
        is_site && self.route.as_ref().is_none_or(is_route)
    }
}

impl fmt::Display for HeldRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.site, &self.route) {
            (None, None) => f.write_str("all routes"),
            (None, Some(route)) => write!(f, "route {route}"),
            // A site without a label is the one for all other hosts.
            (Some(site), None) if site.is_empty() => f.write_str("the site without a name"),
            (Some(site), None) => write!(f, "site {site}"),
            (Some(site), Some(route)) => write!(f, "site {site}, route {route}"),
        }
    }
}

impl OperatorMaintenance {
    /// Begins the maintenance of `held`, or gives it another page and other exceptions. `names` are
    /// the routes of the configuration in force. Returns false, and does nothing, if none of them
    /// is meant.
    pub fn begin(&self, held: HeldRoutes, maintenance: Maintenance, names: &RouteNames) -> bool {
        if !names.iter().any(|(_, name)| held.has(name)) {
            return false;
        }
        let mut begun = self.begun.lock();
        begun.list.retain(|(present, _)| *present != held);
        begun.list.push((held, Arc::new(maintenance)));
        self.replace(begun.numbers_with(names));
        true
    }

    /// Ends the maintenance of exactly these routes. Returns whether there was one.
    pub fn end(&self, held: &HeldRoutes, names: &RouteNames) -> bool {
        let mut begun = self.begun.lock();
        let before = begun.list.len();
        begun.list.retain(|(present, _)| present != held);
        self.replace(begun.numbers_with(names));
        begun.list.len() < before
    }

    /// Returns all maintenance, in the order in which it has begun.
    pub fn list(&self) -> Vec<(HeldRoutes, Arc<Maintenance>)> {
        self.begun.lock().list.clone()
    }

    /// Returns whether any route is in maintenance.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Returns the maintenance of the route with this number.
    pub fn of(&self, route: u32) -> Option<Arc<Maintenance>> {
        self.by_route.read().get(&route).cloned()
    }

    /// Holds the routes of another configuration, too, before it comes into force.
    pub fn include(&self, names: &RouteNames) {
        let mut begun = self.begun.lock();
        begun.names.include(names);
        let mut by_route = self.by_route.read().clone();
        by_route.extend(numbers(&begun.list, names));
        self.replace(by_route);
    }

    /// Goes on with the routes of a configuration that has come into force. Maintenance ends if the
    /// configuration has none of its routes, or if `is_overridden`: the file now says something
    /// else about the same route. Returns what has ended.
    pub fn follow(
        &self,
        names: &RouteNames,
        is_overridden: impl Fn(u32) -> bool,
    ) -> Vec<HeldRoutes> {
        let mut begun = self.begun.lock();
        let mut ended = Vec::new();
        begun.names = names.clone();
        begun.list.retain(|(held, _)| {
            let mut of_routes = names.iter().filter(|(_, name)| held.has(name)).peekable();
            let stays = of_routes.peek().is_some()
                && (held.route.is_none() || !of_routes.any(|(number, _)| is_overridden(number)));
            if !stays {
                ended.push(held.clone());
            }
            stays
        });
        self.replace(numbers(&begun.list, names));
        ended
    }

    fn replace(&self, by_route: HashMap<u32, Arc<Maintenance>, RandomState>) {
        let is_used = !by_route.is_empty();
        *self.by_route.write() = by_route;
        self.is_used.store(is_used, Ordering::Relaxed);
    }
}

impl BegunMaintenance {
    /// Returns the routes that are in maintenance, of `names` and of the last reload.
    fn numbers_with(&self, names: &RouteNames) -> HashMap<u32, Arc<Maintenance>, RandomState> {
        let mut by_route = numbers(&self.list, names);
        by_route.extend(numbers(&self.list, &self.names));
        by_route
    }
}

/// Returns the routes that are in maintenance.
fn numbers(
    begun: &[(HeldRoutes, Arc<Maintenance>)],
    names: &RouteNames,
) -> HashMap<u32, Arc<Maintenance>, RandomState> {
    let of_one = |(held, maintenance): &(HeldRoutes, Arc<Maintenance>)| {
        let held_routes = names.iter().filter(|(_, name)| held.has(name));
        held_routes.map(|(number, _)| (number, Arc::clone(maintenance))).collect::<Vec<_>>()
    };
    begun.iter().flat_map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(routes: &[(u32, &str, &str)]) -> RouteNames {
        let name = |&(number, site, route): &(u32, &str, &str)| {
            let path = route.split(' ').next().unwrap_or_default().to_owned();
            (number, RouteName { site: site.into(), path, route: route.into() })
        };
        routes.iter().map(name).collect()
    }

    fn held(site: Option<&str>, route: Option<&str>) -> HeldRoutes {
        HeldRoutes { site: site.map(str::to_owned), route: route.map(str::to_owned) }
    }

    fn maintenance(retry_after_seconds: u64) -> Maintenance {
        Maintenance { page: None, retry_after_seconds, except: Default::default() }
    }

    fn seconds(operator: &OperatorMaintenance, route: u32) -> Option<u64> {
        operator.of(route).map(|maintenance| maintenance.retry_after_seconds)
    }

    const ROUTES: &[(u32, &str, &str)] =
        &[(0, "a.org", "/"), (1, "a.org", "/x GET"), (2, "a.org", "/x POST"), (3, "", "/")];

    #[test]
    fn all_routes_a_site_or_a_route_are_held() {
        for (site, route, expected) in [
            (None, None, &[0, 1, 2, 3][..]),
            (Some("a.org"), None, &[0, 1, 2]),
            (Some(""), None, &[3]),
            (Some("a.org"), Some("/x"), &[1, 2]),
            (Some("a.org"), Some("/x POST"), &[2]),
            (None, Some("/"), &[0, 3]),
            (Some("b.org"), None, &[]),
            (Some(""), Some("/x"), &[]),
        ] {
            let operator = OperatorMaintenance::default();
            let names = names(ROUTES);
            let begins = operator.begin(held(site, route), maintenance(1), &names);
            assert_eq!(begins, !expected.is_empty(), "{site:?} {route:?}");
            let found: Vec<u32> = (0..4).filter(|route| operator.of(*route).is_some()).collect();
            assert_eq!(found, expected, "{site:?} {route:?}");
            assert_eq!(operator.end(&held(site, route), &names), begins);
            assert_eq!((0..4).find(|route| operator.of(*route).is_some()), None);
        }
    }

    #[test]
    fn what_has_begun_last_counts_and_what_is_below_comes_back() {
        let (operator, names) = (OperatorMaintenance::default(), names(ROUTES));
        operator.begin(held(None, None), maintenance(1), &names);
        operator.begin(held(Some("a.org"), Some("/")), maintenance(2), &names);
        assert_eq!((seconds(&operator, 0), seconds(&operator, 3)), (Some(2), Some(1)));
        assert!(!operator.end(&held(Some("a.org"), None), &names));
        assert!(operator.end(&held(Some("a.org"), Some("/")), &names));
        assert_eq!(seconds(&operator, 0), Some(1));
    }

    #[test]
    fn a_reload_keeps_maintenance_unless_the_file_says_something_else() {
        let (operator, before) = (OperatorMaintenance::default(), names(ROUTES));
        operator.begin(held(Some("a.org"), None), maintenance(1), &before);
        operator.begin(held(None, Some("/")), maintenance(2), &before);
        // The site has another route, and one with other conditions.
        let after = names(&[(0, "a.org", "/"), (4, "a.org", "/new"), (3, "", "/")]);
        operator.include(&after);
        for number in [0, 1, 2, 3, 4] {
            assert!(operator.of(number).is_some(), "both configurations are held: {number}");
        }
        assert_eq!(operator.follow(&after, |_| false), []);
        assert_eq!((seconds(&operator, 4), seconds(&operator, 1)), (Some(1), None));
        // The file has no key about a site, so it says nothing else about this one.
        assert_eq!(operator.follow(&after, |number| number == 0), [held(None, Some("/"))]);
        assert_eq!((seconds(&operator, 0), seconds(&operator, 3)), (Some(1), None));
        let gone = names(&[(3, "", "/")]);
        assert_eq!(operator.follow(&gone, |_| false), [held(Some("a.org"), None)]);
        assert_eq!(operator.list().len(), 0);
    }
}
