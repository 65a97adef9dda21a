//! The site of each route, so that the live table counts each site for itself.

use foldhash::{HashMap, HashMapExt};
use kirin_gateway::routing::settings::{GatewayConfig, SiteConfig};

/// The sites of a configuration, by the numbers that the live tables use. A site keeps its number
/// as long as the program runs.
#[derive(Debug)]
pub struct RouteSites {
    /// The names. The first is empty: it stands for routes at the top level, and for requests
    /// without a route. The others are those of this configuration and of all before it.
    names: Vec<String>,
    /// The number of the site of each route, by the number of the route.
    of_route: HashMap<u32, u32>,
}

impl RouteSites {
    /// The number of routes at the top level, and of requests without a route.
    pub const NONE: u32 = 0;

    /// Returns the sites of a configuration, which follows one with the sites of `before`.
    pub fn from_config(config: &GatewayConfig, before: Option<&Self>) -> Self {
        let of_site = |(at, site): (usize, &SiteConfig)| {
            let routes = site.routes.iter().map(|route| route.number).collect();
            (config.site_label(at).map(String::from), routes)
        };
        Self::of(config.sites.iter().enumerate().map(of_site), before)
    }

    /// Returns sites with these names and numbers of routes.
    fn of(sites: impl Iterator<Item = (Option<String>, Vec<u32>)>, before: Option<&Self>) -> Self {
        let mut names = before.map_or_else(|| vec![String::new()], |before| before.names.clone());
        let numbers = (0u32..).zip(&names).map(|(number, name)| (name.clone(), number));
        let mut numbers: HashMap<String, u32> = numbers.collect();
        let mut of_route = HashMap::new();
        for (name, routes) in sites {
            let number = name.map_or(Self::NONE, |name| {
                *numbers.entry(name).or_insert_with_key(|name| {
                    names.push(name.clone());
                    u32::try_from(names.len() - 1).unwrap_or(Self::NONE)
                })
            });
            of_route.extend(routes.into_iter().map(|route| (route, number)));
        }
        Self { names, of_route }
    }

    /// Returns the number of the site of a route.
    pub fn site_of(&self, route: Option<u32>) -> u32 {
        let site = route.and_then(|route| self.of_route.get(&route));
        site.copied().unwrap_or(Self::NONE)
    }

    /// Returns the name of a site by its number. It is empty for [`Self::NONE`].
    pub fn name(&self, site: u32) -> &str {
        self.names.get(site as usize).map_or("", String::as_str)
    }
}

impl Default for RouteSites {
    fn default() -> Self {
        Self::of(std::iter::empty(), None)
    }
}

#[cfg(test)]
impl RouteSites {
    /// Returns sites with these names, each with one route, whose number is its place in the list.
    pub fn with_one_route_each(names: &[&str]) -> Self {
        let named = names.iter().map(|name| Some((*name).to_owned()));
        Self::of(named.zip((0..).map(|route| vec![route])), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(of: &[(&str, &[u32])], before: Option<&RouteSites>) -> RouteSites {
        let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        RouteSites::of(of.iter().map(|(site, routes)| (name(site), routes.to_vec())), before)
    }

    #[test]
    fn a_route_has_the_name_of_its_site() {
        let sites = sites(&[("wiki", &[0, 1]), ("", &[2]), ("git", &[3])], None);
        let name_of = |route| sites.name(sites.site_of(route));
        let names = [Some(0), Some(1), Some(2), Some(3), Some(4), None].map(name_of);
        assert_eq!(names, ["wiki", "wiki", "", "git", "", ""]);
    }

    #[test]
    fn a_site_keeps_its_number_and_gone_ones_keep_theirs() {
        let before = sites(&[("wiki", &[0]), ("git", &[1])], None);
        let after = sites(&[("new", &[7]), ("git", &[1]), ("git", &[8])], Some(&before));
        assert_eq!(after.site_of(Some(1)), before.site_of(Some(1)));
        assert_eq!(after.site_of(Some(8)), before.site_of(Some(1)));
        assert_eq!(after.name(after.site_of(Some(7))), "new");
        assert_eq!(after.name(before.site_of(Some(0))), "wiki");
        assert_eq!(after.site_of(Some(0)), RouteSites::NONE);
    }
}
