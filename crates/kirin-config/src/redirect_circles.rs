//! Redirects in a circle: those of routes, and those of the lines of `redirects`.

use std::fmt;

use kirin_gateway::routing::path_pattern::Ending;
use kirin_gateway::routing::redirect_file::LineError;
use kirin_gateway::routing::redirect_table::{RedirectLine, RedirectTable};
use kirin_gateway::routing::route_table::RouteTable;
use kirin_gateway::routing::settings::RouteConfig;
use kirin_http::RequestPath;

use crate::redirect_tables::push_errors;
use crate::route::RouteSection;
use crate::source::{ConfigSource, ErrorCollector};

/// The most redirects that a browser follows (Fetch Standard, HTTP-redirect fetch).
const MAX_REDIRECTS: usize = 20;

/// Refuses redirects that lead to themselves again, and lines of tables that lead over more
/// redirects than a browser follows. `routes` and `sections` have the same order, by which `table`
/// numbers them.
pub fn check_circles(
    routes: &[RouteConfig],
    table: &RouteTable,
    sections: &[RouteSection],
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) {
    for (number, (section, route)) in sections.iter().zip(routes).enumerate() {
        if let Some(target) = &section.redirect
            && target.starts_with('/')
            && !target.contains("{path}")
            && leads_back(route, number, target, table)
        {
            let message = format!(
                "redirect `{}` leads back to its own route `{}`",
                target.as_str(),
                section.path.as_str()
            );
            errors.push(source.error(target.span(), message));
        } else if let Some(target) = &section.redirect
            && let Some(way) = redirect_circle(routes, number, table)
        {
            let message = format!("redirects in a circle: {}", way.join(" → "));
            errors.push(source.error(target.span(), message));
        }
    }
    let mut checked: Vec<*const RedirectTable> = Vec::new();
    for (route, section) in routes.iter().zip(sections) {
        let (Some(redirects), Some(key)) = (&route.rules.redirects, &section.redirects) else {
            continue;
        };
        let own = &*redirects.table;
        if checked.contains(&std::ptr::from_ref(own)) {
            continue;
        }
        checked.push(own);
        let site = Redirecting { routes, table };
        let mut of_lines: Vec<LineError> = own
            .examples()
            .filter_map(|(target, line)| {
                let message = site.endless(own, &target, line)?;
                Some(LineError { number: line.number, line: String::new(), message })
            })
            .collect();
        of_lines.sort_by_key(|error| error.number);
        of_lines.dedup_by_key(|error| error.number);
        push_errors(&own.name, &of_lines, &key.span(), source, errors);
    }
}

/// The routes of a site, which redirect.
struct Redirecting<'a> {
    routes: &'a [RouteConfig],
    table: &'a RouteTable,
}

/// A line with its table.
type LineOfTable<'a> = (&'a RedirectTable, &'a RedirectLine);

/// One redirect on a way.
struct Step<'a> {
    /// The target of the request.
    target: String,
    /// The line that redirects it. `None`: the route has a `redirect`.
    line: Option<LineOfTable<'a>>,
}

impl<'a> Redirecting<'a> {
    /// Returns the line that redirects a request for `target`, and where it leads.
    fn follow(&self, target: &str) -> Option<(Option<LineOfTable<'a>>, String)> {
        let target = target.split('#').next().unwrap_or_default();
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let path = RequestPath::parse(path).ok().filter(|_| path.starts_with('/'))?;
        redirected(self.routes.get(self.table.find_by_path(&path)?)?, &path, query)
    }

    /// Follows the redirects from `first` as a browser does, which gives up after
    /// [`MAX_REDIRECTS`]. Returns the error if they do not end. `line` of `own` is the first. A
    /// circle is the error of its first line only.
    fn endless(&self, own: &RedirectTable, first: &str, line: &RedirectLine) -> Option<String> {
        let mut way: Vec<Step<'_>> = Vec::new();
        let mut target = first.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let (line, next) = self.follow(&target)?;
            way.push(Step { target: std::mem::replace(&mut target, next), line });
        }
        let is_own = |step: &Step<'_>, line: &RedirectLine| {
            step.line.is_some_and(|(table, other)| {
                std::ptr::eq(table, own) && other.number == line.number
            })
        };
        if !is_own(way.first()?, line) {
            // Another line or another route is for the example.
            return None;
        }
        let back = way.iter().skip(1).position(|step| is_own(step, line));
        let Some(back) = back.map(|at| at + 1) else {
            let is_circle = |at: usize| way[..at].iter().any(|step| step.target == way[at].target);
            // A circle that this line only leads to is the error of one of its own lines.
            return (!(1..way.len()).any(is_circle))
                .then(|| format!("more than {MAX_REDIRECTS} redirects follow one another"));
        };
        let is_earlier = |step: &Step<'_>| {
            step.line.is_some_and(|(table, other)| {
                std::ptr::eq(table, own) && other.number < line.number
            })
        };
        if way[..back].iter().any(is_earlier) {
            return None;
        }
        if way[0].target == way[1].target {
            return Some(format!("{} leads to itself", way[0].target));
        }
        let names: Vec<String> = way[..=back].iter().map(Step::to_string).collect();
        Some(format!("redirects in a circle: {}", names.join(" → ")))
    }
}

/// Returns the line by which `route` redirects a request, and where it leads. `None` in place of
/// the line: its `redirect`, which is for the requests that no line is for.
fn redirected<'a>(
    route: &'a RouteConfig,
    path: &RequestPath<'_>,
    query: Option<&str>,
) -> Option<(Option<LineOfTable<'a>>, String)> {
    if let Some(redirects) = &route.rules.redirects
        && let Some(line) = redirects.table.find(path, query)
    {
        return Some((Some((&redirects.table, line)), line.location(path, query)));
    }
    let redirect = route.rules.redirect.as_ref()?;
    Some((None, redirect.fixed_target(path, &route.path)?))
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some((_, line)) => write!(f, "{} (line {})", self.target, line.number),
            None => f.write_str(&self.target),
        }
    }
}

/// Follows the redirects from the path of a route as a browser does, which gives up after
/// [`MAX_REDIRECTS`]. Returns the paths up to the first that has the same route again, if the
/// redirects do not end. A circle is the error of its first route only.
fn redirect_circle(
    routes: &[RouteConfig],
    first: usize,
    table: &RouteTable,
) -> Option<Vec<String>> {
    // The name of a segment is its value, without the braces, which a redirect would encode.
    let start = routes
        .get(first)?
        .path
        .to_string()
        .trim_start_matches("= ")
        .replace('*', "x")
        .replace(['{', '}'], "");
    let (mut way, mut path, mut number) = (Vec::new(), start, first);
    let mut is_back = false;
    for _ in 0..MAX_REDIRECTS {
        let sent = RequestPath::parse(&path).ok()?;
        // A line of a table is checked with the others of its table.
        let (None, next) = redirected(routes.get(number)?, &sent, None)? else { return None };
        if !is_back {
            way.push(std::mem::replace(&mut path, next));
        } else {
            path = next;
        }
        let parsed = RequestPath::parse(&path).ok().filter(|_| path.starts_with('/'))?;
        number = table.find_by_path(&parsed)?;
        if number < first {
            return None;
        }
        if number == first && !is_back {
            is_back = true;
            way.push(path.clone());
        }
    }
    is_back.then_some(way)
}

/// Returns whether the redirect of a route to the path `target` leads to the same route again. A
/// name in the path stands for itself.
fn leads_back(route: &RouteConfig, number: usize, target: &str, table: &RouteTable) -> bool {
    let with_rest;
    let target = match route.path.ending() {
        // Such a path always has a rest, which the redirect keeps.
        Ending::Suffix(suffix) => {
            with_rest = format!("{}/x{suffix}", target.trim_end_matches('/'));
            &with_rest
        }
        Ending::Below | Ending::Exact { .. } => target,
    };
    let Ok(path) = RequestPath::parse(target) else { return false };
    // A client that follows the redirect may use another method. All other conditions hold again.
    let is_first = table.possible(&path).first() == Some(&number);
    table.find_by_path(&path) == Some(number) || (is_first && !route.conditions.has_methods())
}
