//! The names of the routes of a configuration, for metrics, traces and reports.
//!
//! A route has a number, by which requests refer to it. No other route has the number while the
//! program runs, so a count that was made under one configuration never belongs to another route
//! of the next. A route that a new configuration names again keeps its number, and so its counts.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// The names of all routes, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct RouteNames(HashMap<u32, RouteName, RandomState>);

/// The name of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteName {
    /// The label of its site. Empty for a site without a label.
    pub site: String,
    /// Its paths as configured.
    pub path: String,
    /// Its paths and conditions.
    pub route: String,
}

impl RouteNames {
    /// Returns the name of the route with this number.
    pub fn get(&self, number: u32) -> Option<&RouteName> {
        self.0.get(&number)
    }

    /// Returns the numbers and the names of all routes, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &RouteName)> {
        self.0.iter().map(|(number, name)| (*number, name))
    }

    /// Adds the names of other routes. A number is that of one route for ever.
    pub fn include(&mut self, other: &RouteNames) {
        self.0.extend(other.0.iter().map(|(number, name)| (*number, name.clone())));
    }

    /// Returns the labels of the sites of all routes.
    pub fn sites(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|name| name.site.as_str())
    }
}

impl FromIterator<(u32, RouteName)> for RouteNames {
    fn from_iter<T: IntoIterator<Item = (u32, RouteName)>>(names: T) -> Self {
        Self(names.into_iter().collect())
    }
}
