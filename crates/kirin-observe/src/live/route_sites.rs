//! The site of each route, so that the live table counts each site for itself.

use kirin_gateway::routing::settings::GatewayConfig;

/// The sites of a configuration, by the numbers that the live tables use.
#[derive(Debug)]
pub struct RouteSites {
    /// The names. The first is empty: it stands for routes at the top level, and for requests
    /// without a route.
    names: Vec<String>,
    /// The number of the site of each route, by the number of the route.
    of_route: Vec<u32>,
}

impl RouteSites {
    /// The number of routes at the top level, and of requests without a route.
    pub const NONE: u32 = 0;

    /// Returns the sites of a configuration.
    pub fn from_config(config: &GatewayConfig) -> Self {
        let label = |index| config.site_label(index);
        Self::of(config.sites.iter().enumerate().map(|(at, site)| (label(at), site.routes.len())))
    }

    /// Returns sites with these names and numbers of routes.
    fn of(sites: impl Iterator<Item = (Option<impl Into<String>>, usize)>) -> Self {
        let (mut names, mut of_route) = (vec![String::new()], Vec::new());
        for (name, routes) in sites {
            let number = name.map_or(Self::NONE, |name| {
                names.push(name.into());
                u32::try_from(names.len() - 1).unwrap_or(Self::NONE)
            });
            of_route.resize(of_route.len() + routes, number);
        }
        Self { names, of_route }
    }

    /// Returns the number of the site of a route.
    pub fn site_of(&self, route: Option<u32>) -> u32 {
        let site = route.and_then(|route| self.of_route.get(route as usize));
        site.copied().unwrap_or(Self::NONE)
    }

    /// Returns the name of a site by its number. It is empty for [`Self::NONE`].
    pub fn name(&self, site: u32) -> &str {
        self.names.get(site as usize).map_or("", String::as_str)
    }
}

impl Default for RouteSites {
    fn default() -> Self {
        Self::of(std::iter::empty::<(Option<String>, usize)>())
    }
}

#[cfg(test)]
impl RouteSites {
    /// Returns sites with these names, each with one route, whose number is its place in the list.
    pub fn with_one_route_each(names: &[&str]) -> Self {
        Self::of(names.iter().map(|name| (Some(*name), 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_has_the_name_of_its_site() {
        let sites = RouteSites::of([(Some("wiki"), 2), (None, 1), (Some("git"), 1)].into_iter());
        let name_of = |route| sites.name(sites.site_of(route));
        let names = [Some(0), Some(1), Some(2), Some(3), Some(4), None].map(name_of);
        assert_eq!(names, ["wiki", "wiki", "", "git", "", ""]);
    }
}
