//! What directives add to routes: fields, passwords, rewrites and others.

use toml::{Table, Value};

use crate::draft::notes::one_line;
use crate::section::Section;
use crate::steps::path_pattern::PathPattern;
use crate::steps::routes::for_path;
use crate::steps::scope::Scope;
use crate::steps::step::Step;

/// The most scopes of one directive. Each scope of what is added can double them.
const MOST_SCOPES: usize = 256;

/// What a directive adds to the routes that its matcher has.
#[derive(Debug, Clone)]
pub(crate) enum Effect {
    /// The directory of files and scripts.
    Root(String),
    /// Keys of the route.
    Keys(Section),
    /// Keys of the route, if it has files.
    OfFiles(Section),
    /// Entries of `error_pages`.
    ErrorPages(Table),
    /// Keys of the route that ask who the client is.
    Login(Section),
    /// The route is closed, because Kirin cannot do what protects it.
    Closed(String),
    /// Who is served, in place of what effects before it say: keys such as `allow` and `deny`.
    Access(Section),
    /// Fields of the response.
    Headers(Table),
    /// Fields of the request.
    RequestHeaders(Table),
    /// Keys of `cache`, for routes that pass requests to a program. Lists are appended.
    Cache(Table),
    /// The route has no cache.
    NoCache,
    /// Of the places of the route only files answer, so that no script runs.
    FilesOnly,
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
    pub(crate) scope: Scope,
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
fn apply(
    route: &mut Section,
    effects: &[&Effect],
    path: &PathPattern,
    prefix: &str,
) -> Option<String> {
    let mut closed = None;
    let mut removed = prefix.to_owned();
    let mut added: Option<(String, bool)> = None;
    let is_redirect = route.get("redirect").is_some();
    if effects.iter().any(|effect| matches!(effect, Effect::FilesOnly)) {
        files_only(route);
    }
    for effect in effects {
        match effect {
            // Caddy redirects before it asks for a password.
            Effect::Login(_) | Effect::Closed(_) if is_redirect => {}
            Effect::Login(keys) => set_all(route, keys),
            Effect::Closed(reason) => closed = Some(reason.clone()),
            Effect::Access(keys) => {
                closed = None;
                let access = ["allow", "deny", "basic_auth", "basic_auth_realm"];
                route.keys.retain(|(key, _)| !access.contains(&key.as_str()));
                set_all(route, keys);
            }
            Effect::Rewrite(to, whole) => added = Some((to.clone(), *whole)),
            Effect::StripPrefix(prefix) => removed.push_str(prefix),
            _ => apply_keys(route, effect),
        }
    }
    let no_cache = effects.iter().any(|effect| matches!(effect, Effect::NoCache));
    if no_cache {
        route.keys.retain(|(key, _)| key != "cache");
    } else if route.get("cache").and_then(Value::as_table).is_some_and(Table::is_empty) {
        route.set("cache", true);
    }
    // They are the defaults.
    let off = Value::from(false);
    route.keys.retain(|(key, value)| {
        *value != off || !matches!(key.as_str(), "listing" | "follow_links")
    });
    if route.get("try").is_some() {
        set_rewrite(route, path, &removed, added);
    }
    closed
}

/// Adds an effect that is about keys of the route alone.
fn apply_keys(route: &mut Section, effect: &Effect) {
    let has = |starts: &[&str]| {
        let places = route.get("try").and_then(Value::as_array).into_iter().flatten();
        let mut places = places.filter_map(Value::as_str);
        places.any(|place| starts.iter().any(|start| place.starts_with(start)))
    };
    let (files, programs) = (has(&["files:"]), has(&["app:", "proxy:", "cgi:"]));
    let cgi = has(&["cgi:"]);
    match effect {
        Effect::Keys(keys) => set_all(route, keys),
        Effect::OfFiles(keys) if files => merge_all(route, keys),
        Effect::OfFiles(keys) if cgi => {
            if let Some(links) = keys.get("follow_links") {
                route.set("follow_links", links.clone());
            }
        }
        Effect::ErrorPages(pages) => merge(route, "error_pages", pages),
        Effect::Headers(fields) => merge(route, "headers", fields),
        Effect::RequestHeaders(fields) if programs => merge(route, "request_headers", fields),
        Effect::Compress(codings) if route.get("try").is_some() => {
            route.set("compress", codings.clone());
        }
        Effect::BodyLimit(limit) if programs => route.set("body_limit", limit.as_str()),
        Effect::Cache(keys) if programs => cache(route, keys),
        Effect::Fallback(page) if files => {
            route.set("fallback", page.trim_start_matches('/'));
        }
        _ => {}
    }
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

/// Removes all places but files from a route that has files.
fn files_only(route: &mut Section) {
    let Some((_, Value::Array(places))) = route.keys.iter_mut().find(|(key, _)| key == "try")
    else {
        return;
    };
    let is_files = |place: &Value| place.as_str().is_some_and(|place| place.starts_with("files:"));
    if places.iter().any(is_files) {
        places.retain(is_files);
    }
}

/// Adds keys to `cache`.
fn cache(route: &mut Section, keys: &Table) {
    let mut table = match route.get("cache") {
        Some(Value::Table(table)) => table.clone(),
        _ => Table::new(),
    };
    for (key, value) in keys {
        match (table.get_mut(key), value) {
            (Some(Value::Array(own)), Value::Array(more)) => {
                let new: Vec<_> =
                    more.iter().filter(|value| !own.contains(value)).cloned().collect();
                own.extend(new);
            }
            _ => drop(table.insert(key.clone(), value.clone())),
        }
    }
    route.set("cache", table);
}

/// Sets keys. Tables get the entries of tables.
fn merge_all(route: &mut Section, keys: &Section) {
    for (key, value) in &keys.keys {
        match value {
            Value::Table(entries) => merge(route, key, entries),
            _ => route.set(key, value.clone()),
        }
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

/// A step of an answer, and the requests that it is for.
pub(crate) type ScopedStep = (Scope, Step);

/// Returns the steps of an answer: one for each set of effects that its requests can have. `None`:
/// the conditions of the effects cannot be combined with it.
///
/// `prefix` is what was removed from paths. `login_first` says that a redirect is behind a
/// password, too.
pub(crate) fn steps_of(
    answer: &Section,
    closed: Option<&str>,
    scope: &Scope,
    effects: &[Scoped],
    prefix: &str,
    login_first: bool,
) -> Option<Vec<ScopedStep>> {
    let mut steps = Vec::new();
    let whole = scope.patterns();
    for scope in scopes(scope.clone(), effects)? {
        let covering = effects.iter().filter(|scoped| scoped.scope.covers(&scope));
        let effects: Vec<_> = covering.map(|scoped| &scoped.effect).collect();
        for path in scope.patterns() {
            let mut step = Step { paths: vec![path.clone()], ..Step::default() };
            step.route.clone_from(answer);
            for_path(&mut step.route, &whole, &path);
            let own = apply(&mut step.route, &effects, &path, prefix);
            let mut reason = closed.map(str::to_owned).or(own);
            let login = |effect: &&Effect| matches!(effect, Effect::Login(_) | Effect::Closed(_));
            if login_first && answer.get("redirect").is_some() && effects.iter().any(login) {
                reason = Some("a redirect of Kirin asks for no password".to_owned());
            }
            if let Some(reason) = reason {
                step.close(&format!("Closed: {}.", one_line(&reason)));
            }
            steps.push((Scope { paths: vec![path], ..scope.clone() }, step));
        }
    }
    Some(without_repeated(steps))
}

/// Leaves out the steps that do the same as the next one that has all of their requests.
fn without_repeated(steps: Vec<ScopedStep>) -> Vec<ScopedStep> {
    let repeated = |number: usize, (scope, step): &ScopedStep| {
        let mut behind = steps.iter().skip(number + 1);
        let next = behind.find(|(wider, _)| wider.covers(scope));
        next.is_some_and(|(_, next)| next.route == step.route)
    };
    let numbered = steps.iter().enumerate();
    let kept = numbered.filter(|(number, step)| !repeated(*number, step));
    kept.map(|(_, step)| step.clone()).collect()
}

/// Returns a scope and its parts for which effects hold that do not hold for all of it. Parts with
/// more effects come first. `None`: they cannot be combined, or are too many.
fn scopes(scope: Scope, effects: &[Scoped]) -> Option<Vec<Scope>> {
    let mut scopes = vec![scope];
    let mut done: Vec<&Scope> = Vec::new();
    for scoped in effects {
        let other = &scoped.scope;
        if *other == Scope::default() || done.contains(&other) {
            continue;
        }
        done.push(other);
        let mut parts = Vec::new();
        for scope in &scopes {
            let part = scope.both(other).ok()?;
            parts.extend(part.filter(|part| part != scope));
        }
        parts.append(&mut scopes);
        scopes = Vec::new();
        for part in parts {
            if !scopes.contains(&part) {
                scopes.push(part);
            }
        }
        if scopes.len() > MOST_SCOPES {
            return None;
        }
    }
    Some(scopes)
}
