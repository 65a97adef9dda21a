//! The files of `redirects`: read once, and checked for redirects in a circle.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kirin_gateway::routing::redirect_file::{self, LineError};
use kirin_gateway::routing::redirect_table::{RedirectLine, RedirectTable};
use kirin_gateway::routing::route_table::RouteTable;
use kirin_gateway::routing::settings::RouteConfig;
use kirin_http::RequestPath;

use crate::or_false::TextOrFalse;
use crate::route::RouteSection;
use crate::rules::MAX_REDIRECTS;
use crate::source::{ConfigSource, ErrorCollector};
use crate::written::Written;

/// The most errors of one file that are shown. A file in another format has one in each line.
const MAX_SHOWN_ERRORS: usize = 20;

/// The longest part of a line that an error shows, in characters.
const MAX_SHOWN_CHARACTERS: usize = 120;

/// The tables that routes name. Routes that name the same file share one. A table is missing if its
/// file has errors, which are shown once.
#[derive(Default)]
pub struct RedirectTables(RefCell<HashMap<PathBuf, Option<Arc<RedirectTable>>>>);

impl RedirectTables {
    /// Returns the table of a route. Returns `None` if its file has errors.
    pub fn read(
        &self,
        file: &Written<TextOrFalse>,
        name: &str,
        source: &ConfigSource,
        errors: &mut ErrorCollector,
    ) -> Option<Arc<RedirectTable>> {
        let path = source.path(name);
        let mut tables = self.0.borrow_mut();
        let table = tables.entry(path).or_insert_with_key(|path| {
            read_file(path, name, file.span(), source, errors).map(Arc::new)
        });
        table.clone()
    }

    /// Returns the paths of the files.
    pub fn into_paths(self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.0.into_inner().into_keys().collect();
        paths.sort_unstable();
        paths
    }
}

fn read_file(
    path: &Path,
    name: &str,
    span: Range<usize>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<RedirectTable> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("`redirects`: {} cannot be read: {error}", path.display());
            errors.push(source.error(span, message));
            return None;
        }
    };
    match redirect_file::parse(name, &bytes) {
        Ok(table) => Some(table),
        Err(of_lines) => {
            push_errors(name, &of_lines, &span, source, errors);
            None
        }
    }
}

/// Shows the errors of a file, which `span` names.
fn push_errors(
    name: &str,
    of_lines: &[LineError],
    span: &Range<usize>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) {
    for LineError { number, line, message } in of_lines.iter().take(MAX_SHOWN_ERRORS) {
        let shown: String = line.chars().take(MAX_SHOWN_CHARACTERS).collect();
        let message = match shown.is_empty() {
            true => message.clone(),
            false => format!("{message}\n    {shown}"),
        };
        errors.push(source.error_in_line(name, *number, span.start, message));
    }
    if let Some(more @ 1..) = of_lines.len().checked_sub(MAX_SHOWN_ERRORS) {
        let message = format!("`redirects`: {name} has {more} more errors");
        errors.push(source.error(span.clone(), message));
    }
}

/// Refuses lines of tables that lead to themselves again, or over more redirects than a browser
/// follows. `routes` and `sections` have the same order, by which `table` numbers them.
pub fn check_circles(
    routes: &[RouteConfig],
    table: &RouteTable,
    sections: &[RouteSection],
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) {
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
        let route = self.routes.get(self.table.find_by_path(&path)?)?;
        if let Some(redirects) = &route.rules.redirects
            && let Some(line) = redirects.table.find(&path, query)
        {
            return Some((Some((&redirects.table, line)), line.location(&path, query)));
        }
        let redirect = route.rules.redirect.as_ref()?;
        Some((None, redirect.fixed_target(&path, &route.path)?))
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

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some((_, line)) => write!(f, "{} (line {})", self.target, line.number),
            None => f.write_str(&self.target),
        }
    }
}

#[cfg(test)]
#[path = "redirect_tables_tests.rs"]
mod tests;
