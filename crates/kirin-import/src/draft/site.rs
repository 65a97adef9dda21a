//! A site of a `kirin.toml` while it is made.

use std::collections::HashMap;

use toml::{Table, Value};

use crate::draft::name_of;
use crate::error::ImportError;
use crate::report::Place;
use crate::section::Section;
use crate::steps::routes::routes;
use crate::steps::step::Step;

/// A site: its hosts, and its steps in the order of the other server.
#[derive(Debug, Default)]
pub(crate) struct Site {
    /// The hosts. Empty: all that no other site has.
    pub(crate) hosts: Vec<String>,
    /// The keys of the section `[[site]]` besides the hosts, and its comments.
    pub(crate) keys: Section,
    /// What the site does, as a list of which the first that matches counts.
    pub(crate) steps: Vec<Step>,
}

impl Site {
    /// Returns its sections.
    ///
    /// # Errors
    /// Returns an error if the routes would be too many.
    pub(crate) fn into_sections(self, file: &Place) -> Result<Vec<Section>, ImportError> {
        let mut routes = routes(&self.steps, file)?;
        if routes.is_empty() {
            routes.push(closed_route());
        }
        check_error_pages(&mut routes);
        if self.hosts.is_empty() && self.keys.keys.is_empty() {
            if let Some(first) = routes.first_mut() {
                first.comments.splice(0..0, self.keys.comments);
            }
            return Ok(with_header(routes, "[[route]]"));
        }
        let mut site = Section::new("[[site]]");
        site.comments = self.keys.comments;
        let everything = vec!["*".to_owned()];
        let hosts = if self.hosts.is_empty() { everything } else { self.hosts };
        if let Some(name) = needed_name(&hosts) {
            site.set("name", name);
        }
        site.set("hosts", hosts.into_iter().map(Value::from).collect::<Vec<_>>());
        site.keys.extend(self.keys.keys);
        common_keys(&mut site, &mut routes);
        let mut sections = vec![site];
        sections.extend(with_header(routes, "[[site.route]]"));
        Ok(sections)
    }
}

/// Returns the route of a site that answers nothing.
fn closed_route() -> Section {
    let mut route = Section::default();
    route.comment("There is nothing for this site to answer.");
    route.set("path", "/");
    route.set("deny", 404);
    route
}

/// Returns the name that a site needs because nobody can list the owners of its hosts.
fn needed_name(hosts: &[String]) -> Option<String> {
    let host = hosts.iter().find(|host| host.starts_with('~') || host.ends_with(".*"))?;
    Some(name_of(host.trim_matches(['~', '^', '$', '*', '.'])))
}

fn with_header(mut routes: Vec<Section>, header: &str) -> Vec<Section> {
    for route in &mut routes {
        header.clone_into(&mut route.header);
    }
    routes
}

/// Moves what all routes of a site say into the site. Of the tables these are their entries.
fn common_keys(site: &mut Section, routes: &mut [Section]) {
    if routes.len() < 2 {
        return;
    }
    for key in ["access_log", "error_pages", "headers"] {
        let Some(mut common) = routes.first().and_then(|route| route.get(key)).cloned() else {
            continue;
        };
        for route in routes.iter() {
            match (&mut common, route.get(key)) {
                (Value::Table(common), Some(Value::Table(own))) if key != "access_log" => {
                    common.retain(|name, value| own.get(name) == Some(value));
                }
                (common, Some(own)) if own == common => {}
                (common, _) => *common = Value::Table(Table::new()),
            }
        }
        if common.as_table().is_some_and(Table::is_empty) || site.get(key).is_some() {
            continue;
        }
        routes.iter_mut().for_each(|route| remove(route, key, &common));
        site.set(key, common);
    }
}

/// Removes what a site says from the key of a route.
fn remove(route: &mut Section, key: &str, common: &Value) {
    if let (Some((_, Value::Table(own))), Value::Table(common)) =
        (route.keys.iter_mut().find(|(name, _)| name == key), common)
    {
        own.retain(|name, _| !common.contains_key(name));
        if !own.is_empty() {
            return;
        }
    }
    route.keys.retain(|(name, _)| name != key);
}

/// Removes error pages that no route without conditions has in files. Kirin shows no others.
fn check_error_pages(routes: &mut [Section]) {
    let text = |route: &Section, key| route.get(key).and_then(Value::as_str).map(str::to_owned);
    let open: Vec<(String, bool)> = routes
        .iter()
        .filter(|route| route.get("match").is_none())
        .filter_map(|route| Some((text(route, "path")?, has_files(route))))
        .collect();
    let mut known = HashMap::new();
    for route in routes {
        let Some((_, Value::Table(pages))) =
            route.keys.iter_mut().find(|(key, _)| key == "error_pages")
        else {
            continue;
        };
        let before = pages.len();
        pages.retain(|_, page| {
            let page = page.as_str().unwrap_or_default();
            *known.entry(page.to_owned()).or_insert_with(|| is_shown(page, &open))
        });
        let (lost, none) = (pages.len() < before, pages.is_empty());
        if none {
            route.keys.retain(|(key, _)| key != "error_pages");
        }
        if lost {
            route.comment("An error page is left out: no open route has it in files.");
        }
    }
}

fn has_files(route: &Section) -> bool {
    let places = route.get("try").and_then(Value::as_array).into_iter().flatten();
    places.filter_map(Value::as_str).any(|place| place.starts_with("files:"))
}

/// Returns whether the most specific route of a page has files.
fn is_shown(page: &str, routes: &[(String, bool)]) -> bool {
    let matches = |path: &str| match path.strip_prefix("= ") {
        Some(exact) => exact == page,
        None => match path.split_once('*') {
            Some((start, end)) => page.starts_with(start) && page.ends_with(end),
            None => page
                .strip_prefix(path.trim_end_matches('/'))
                .is_some_and(|rest| rest.starts_with('/')),
        },
    };
    let found = routes.iter().filter(|(path, _)| matches(path));
    found.max_by_key(|(path, _)| path.len()).is_some_and(|(_, files)| *files)
}
