//! What directives add to routes: fields, passwords, rewrites and others.

use toml::{Table, Value};

use crate::caddy::matchers::Matcher;
use crate::section::Section;
use crate::steps::PathPattern;

/// What a directive adds to the routes that its matcher has.
#[derive(Debug, Clone)]
pub(crate) enum Effect {
    /// The directory of files and scripts.
    Root(String),
    /// Keys of the route.
    Keys(Section),
    /// Keys of the route that ask who the client is.
    Login(Section),
    /// The route is closed, because Kirin cannot do what protects it.
    Closed(String),
    /// Fields of the response.
    Headers(Table),
    /// Fields of the request.
    RequestHeaders(Table),
    /// Codings, for routes that have a place.
    Compress(Vec<Value>),
    /// The largest body, for routes that pass it to a program.
    BodyLimit(String),
    /// The path that is put before that of the request, or an exact path.
    Rewrite(String, bool),
    /// A prefix that is removed.
    StripPrefix(String),
    /// The page for paths that are no files.
    Fallback(String),
}

/// An effect and the requests that it is for.
#[derive(Debug, Clone)]
pub(crate) struct Scoped {
    pub(crate) matcher: Matcher,
    pub(crate) effect: Effect,
}

/// Returns the directory of the last `root` among effects.
pub(crate) fn root<'a>(effects: impl Iterator<Item = &'a Effect>) -> Option<String> {
    let roots = effects.filter_map(|effect| match effect {
        Effect::Root(directory) => Some(directory.clone()),
        _ => None,
    });
    roots.last()
}

/// Adds effects to the route of a path. `prefix` is what `handle_path` has removed.
/// Returns why the route must be closed, if it must be.
pub(crate) fn apply(
    route: &mut Section,
    effects: &[&Effect],
    path: &PathPattern,
    prefix: &str,
) -> Option<String> {
    let mut closed = None;
    let mut removed = prefix.to_owned();
    let mut added: Option<(String, bool)> = None;
    let has = |route: &Section, starts: &[&str]| {
        let places = route.get("try").and_then(Value::as_array).into_iter().flatten();
        let mut places = places.filter_map(Value::as_str);
        places.any(|place| starts.iter().any(|start| place.starts_with(start)))
    };
    let is_redirect = route.get("redirect").is_some();
    for effect in effects {
        match effect {
            Effect::Root(_) => {}
            Effect::Keys(keys) => set_all(route, keys),
            // Caddy redirects before it asks for a password.
            Effect::Login(_) | Effect::Closed(_) if is_redirect => {}
            Effect::Login(keys) => set_all(route, keys),
            Effect::Closed(reason) => closed = Some(reason.clone()),
            Effect::Headers(fields) => merge(route, "headers", fields),
            Effect::RequestHeaders(fields) if has(route, &["app:", "proxy:", "cgi:"]) => {
                merge(route, "request_headers", fields);
            }
            Effect::Compress(codings) if route.get("try").is_some() => {
                route.set("compress", codings.clone());
            }
            Effect::BodyLimit(limit) if has(route, &["app:", "proxy:", "cgi:"]) => {
                route.set("body_limit", limit.as_str());
            }
            Effect::Rewrite(to, whole) => added = Some((to.clone(), *whole)),
            Effect::StripPrefix(prefix) => removed.push_str(prefix),
            Effect::Fallback(page) if has(route, &["files:"]) => {
                route.set("fallback", page.trim_start_matches('/'));
            }
            _ => {}
        }
    }
    if route.get("try").is_some() {
        set_rewrite(route, path, &removed, added);
    }
    closed
}

fn set_rewrite(
    route: &mut Section,
    path: &PathPattern,
    removed: &str,
    added: Option<(String, bool)>,
) {
    let rest = path.start().strip_prefix(removed).unwrap_or(path.start());
    match added {
        Some((to, true)) => route.set("rewrite", to),
        Some((to, false)) => route.set("rewrite", format!("{}{rest}", to.trim_end_matches('/'))),
        None if !removed.is_empty() => {
            route.set("rewrite", if rest.is_empty() { "/" } else { rest });
        }
        None => {}
    }
}

fn set_all(route: &mut Section, keys: &Section) {
    for (key, value) in &keys.keys {
        route.set(key, value.clone());
    }
    for comment in keys
        .comments
        .iter()
        .filter(|comment| !route.comments.contains(comment))
        .cloned()
        .collect::<Vec<_>>()
    {
        route.comment(comment);
    }
}

/// Adds entries to the table of a key.
pub(crate) fn merge(route: &mut Section, key: &str, fields: &Table) {
    let mut table = match route.get(key) {
        Some(Value::Table(table)) => table.clone(),
        _ => Table::new(),
    };
    for (name, value) in fields {
        table.insert(name.clone(), value.clone());
    }
    if !table.is_empty() {
        route.set(key, table);
    }
}
