//! What the routes of a new configuration take over from those of the one before: their numbers,
//! and counts that go on while nothing about them has changed.

use std::collections::HashMap;
use std::sync::Arc;

use crate::routing::route_names::{RouteName, RouteNames};
use crate::routing::settings::{GatewayConfig, RouteConfig};

impl GatewayConfig {
    /// Returns the names of all routes.
    pub fn route_names(&self) -> RouteNames {
        let names = (0..self.sites.len()).flat_map(|site| {
            let label = self.site_label(site).unwrap_or_default();
            let routes = &self.sites[site].routes;
            routes.iter().map(move |route| (route.number, name_of(route, &label)))
        });
        names.collect()
    }

    /// Gives the routes their numbers: a route that `before` has with the same name has the number
    /// of that one, and all others have numbers from `next` on. Returns the next free number.
    pub fn number_routes(&mut self, before: Option<&Self>, mut next: u32) -> u32 {
        let mut known: HashMap<RouteName, Vec<u32>> = HashMap::new();
        for (site, config) in before.iter().flat_map(|before| before.sites.iter().enumerate()) {
            let label = before.and_then(|before| before.site_label(site)).unwrap_or_default();
            // From the last on, because the first of several with one name is taken first.
            for route in config.routes.iter().rev() {
                known.entry(name_of(route, &label)).or_default().push(route.number);
            }
        }
        for site in 0..self.sites.len() {
            let label = self.site_label(site).unwrap_or_default().into_owned();
            for route in &mut self.sites[site].routes {
                let kept = known.get_mut(&name_of(route, &label)).and_then(Vec::pop);
                route.number = kept.unwrap_or(next);
                if kept.is_none() {
                    next = next.saturating_add(1);
                }
            }
        }
        next
    }

    /// Takes over what goes on in the routes with the same names: the requests that a limit
    /// has counted and the pool of their CGI programs, if the limits are the same, the
    /// requests of the cache that are at a place, and the counters of their mirrors. Must be called
    /// before anything else refers to the routes, and after [`GatewayConfig::number_routes`].
    pub fn continue_routes(&mut self, before: &Self) {
        let routes_before = before.sites.iter().flat_map(|site| &site.routes);
        let routes_before: HashMap<u32, &RouteConfig> =
            routes_before.map(|route| (route.number, route)).collect();
        for route in self.sites.iter_mut().flat_map(|site| &mut site.routes) {
            if let Some(before) = routes_before.get(&route.number) {
                route.continue_from(before);
            }
        }
    }
}

impl RouteConfig {
    fn continue_from(&mut self, before: &Self) {
        if let Some(rules) = Arc::get_mut(&mut self.rules) {
            let known = &before.rules.in_flight_limits;
            for limit in &mut rules.in_flight_limits {
                if let Some(same) = known.iter().find(|known| known.is_same(limit)) {
                    *limit = Arc::clone(same);
                }
            }
            // Each is taken once: two equal limits of one route count a request twice.
            let mut known = before.rules.rate_limits.clone();
            for limit in &mut rules.rate_limits {
                if let Some(same) = known.iter().position(|known| known.is_same(limit)) {
                    *limit = known.swap_remove(same);
                }
            }
        }
        if let (Some(programs), Some(before)) = (&mut self.programs, &before.programs)
            && programs.pool.limits() == before.pool.limits()
        {
            programs.pool = Arc::clone(&before.pool);
        }
        if let (Some(cache), Some(before)) = (&mut self.cache, &before.cache)
            && let Some(cache) = Arc::get_mut(cache)
        {
            cache.pending_fetches = Arc::clone(&before.pending_fetches);
        }
        if let (Some(mirror), Some(before)) = (&mut self.mirror, &before.mirror)
            && let Some(mirror) = Arc::get_mut(mirror)
        {
            mirror.counters = Arc::clone(&before.counters);
        }
    }
}

/// Returns the name of a route. `site` is the label of its site.
fn name_of(route: &RouteConfig, site: &str) -> RouteName {
    let path = route.path.to_string();
    let with_conditions = format!("{path} {}", route.conditions);
    RouteName { site: site.to_owned(), path, route: with_conditions.trim_end().to_owned() }
}
