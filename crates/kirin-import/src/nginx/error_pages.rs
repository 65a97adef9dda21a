//! `error_page`.

use super::context::Context;
use super::directive::Directive;
use super::globals::Globals;
use super::route::Route;
use super::scope::Scope;
use super::server::Server;
use super::units::text;

/// The statuses of `5xx` that nginx itself answers.
const SERVER_ERRORS: [&str; 4] = ["500", "502", "503", "504"];

/// Adds the pages for errors that hold in a block.
pub fn add_error_pages<'a>(route: &mut Route, scope: &Scope<'a>, context: &Context<'a>) {
    for directive in scope.list("error_page").iter().copied() {
        let Some((target, statuses)) = directive.args.split_last() else { continue };
        if statuses.iter().any(|status| status.starts_with('=')) || !is_path(target) {
            // What answers for missing files is read with them.
            if context.globals.notes.is_open(directive) {
                context.left_out(directive, other_target(directive, target));
            }
            continue;
        }
        let path = target.split('?').next().unwrap_or(target);
        let is_class =
            SERVER_ERRORS.iter().all(|status| statuses.iter().any(|other| other == status));
        if is_class {
            route.add_entry("error_pages", "5xx", text(path));
        }
        for status in statuses {
            let of_class = is_class && status.starts_with('5');
            let is_status = status.parse::<u16>().is_ok_and(|status| (400..=599).contains(&status));
            match (of_class, is_status) {
                (true, _) => {}
                (false, true) => route.add_entry("error_pages", status, text(path)),
                (false, false) => {
                    context.left_out(directive, format!("there is no page for {status}"))
                }
            }
        }
        context.carried(directive);
    }
}

fn is_path(target: &str) -> bool {
    target.starts_with('/') && !target.contains(['$', '#', '{', '%'])
}

fn other_target(directive: &Directive, target: &str) -> &'static str {
    match target {
        target if target.starts_with('@') => {
            "the status stays, and no place is asked for an error: write a place into `try`"
        }
        _ if directive.args.iter().any(|arg| arg.starts_with('=')) => {
            "the status stays: `error_pages` changes the body only"
        }
        target if target.contains("://") => "an error page is a path of this site",
        _ => "the path of an error page has Kirin's variables only",
    }
}

/// Leaves out the pages that no route has, because Kirin refuses them.
pub fn check_error_pages<'a>(
    routes: &mut [Route],
    servers: &[&'a Server<'a>],
    globals: &Globals<'a>,
) {
    let finder = PageFinder::new(routes);
    for route in routes.iter_mut() {
        let pages = route.section.get("error_pages").and_then(toml::Value::as_table).cloned();
        let Some(mut pages) = pages else { continue };
        let missing: Vec<String> = pages
            .iter()
            .filter(|(_, page)| !page.as_str().is_some_and(|page| finder.has(page)))
            .map(|(status, _)| status.clone())
            .collect();
        for status in &missing {
            pages.remove(status);
        }
        if !missing.is_empty() {
            let scopes = servers.iter().map(|server| &server.scope);
            for directive in scopes.flat_map(|scope| scope.list("error_page")) {
                let text = "a route without `match` must have the page in files: write one";
                globals.notes.left_out(directive, text);
            }
        }
        match pages.is_empty() {
            true => {
                route.remove("error_pages");
                route.remove("intercept_errors");
            }
            false => route.section.set("error_pages", pages),
        }
    }
}

/// Finds the route of a page.
struct PageFinder {
    /// The paths of routes without `match`, and whether they have files.
    routes: std::collections::HashMap<String, bool>,
}

impl PageFinder {
    fn new(routes: &[Route]) -> Self {
        let without_match = routes.iter().filter(|route| route.conditions().is_empty());
        let routes = without_match.map(|route| {
            (route.path().to_owned(), route.has_place("files:") || route.has_place("store"))
        });
        Self { routes: routes.collect() }
    }

    /// Returns whether the route of `page` has files.
    fn has(&self, page: &str) -> bool {
        if let Some(has_files) = self.routes.get(&format!("= {page}")) {
            return *has_files;
        }
        let mut above = page.trim_end_matches('/');
        loop {
            let name = page.rsplit('/').next().unwrap_or_default();
            let mut suffixes = name.match_indices('.').filter_map(|(at, _)| name.get(at..));
            let of_suffix = |suffix: &str| {
                let parent = above.rsplit_once('/').map_or("", |(parent, _)| parent);
                let path = if parent.is_empty() {
                    format!("*{suffix}")
                } else {
                    format!("{parent}/*{suffix}")
                };
                self.routes.get(&path).copied()
            };
            if let Some(has_files) = self.routes.get(if above.is_empty() { "/" } else { above }) {
                return suffixes.find_map(of_suffix).unwrap_or(*has_files);
            }
            if let Some(has_files) = suffixes.find_map(of_suffix) {
                return has_files;
            }
            match above.rsplit_once('/') {
                Some((parent, _)) => above = parent,
                None => return false,
            }
        }
    }
}
