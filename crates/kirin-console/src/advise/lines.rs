//! The lines of `kirin.toml` that put a page into memory: a copy of its route for this path only,
//! with `cache`.
//!
//! The copy has all keys of the route, because a route inherits nothing. A copy without its
//! `basic_auth` would open the page to everybody.

use std::fmt::Write;

use kirin_advice::report::{ReportEntry, StatedFreshness};
use kirin_advice::verdict::PageVerdict;
use kirin_config::literal;
use kirin_http::percent;
use toml::{Table, Value};

/// Lines for the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigLines {
    /// A new route at the top level.
    Route(String),
    /// A new route of the site with this name.
    SiteRoute(String, String),
    /// A key of the route for this path, which is there already.
    Key(String),
}

/// Why there are no lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLines {
    /// The verdict needs a change of the application, or there is nothing to gain.
    #[error("the configuration alone cannot do it")]
    Verdict,
    /// It was observed for less than a second.
    #[error("it was observed for less than a second, which says nothing about a `ttl`")]
    TooShort,
    /// There are more pages than one.
    #[error("these are many pages, and others like them may not be safe to share")]
    ManyPages,
    /// Another request for the same path got something else.
    #[error("other requests for this path get pages that are not safe to share")]
    MixedPath,
    /// The route has a `rewrite`, which means something else for another path.
    #[error("its route has a `rewrite`")]
    Rewrite,
    /// The path cannot be written in a configuration.
    #[error("the path cannot be written as `path` of a route")]
    Path,
    /// The configuration does not have the route, or has more that are alike.
    #[error("its route is not found in the configuration file")]
    Route,
}

impl ConfigLines {
    /// Returns the text for the file.
    pub fn text(&self) -> &str {
        match self {
            ConfigLines::Route(text) | ConfigLines::SiteRoute(_, text) | ConfigLines::Key(text) => {
                text
            }
        }
    }
}

/// Returns the lines for an entry of a report. `config` is the text of the configuration.
pub fn lines(config: &str, entry: &ReportEntry) -> Result<ConfigLines, NoLines> {
    let ignores_cookies = match entry.verdict {
        PageVerdict::Everybody => true,
        PageVerdict::WithoutCookie { .. } => false,
        _ => return Err(NoLines::Verdict),
    };
    let ttl = entry.steady.and_then(|steady| steady.ttl_seconds).ok_or(NoLines::TooShort)?;
    let sent = entry.path.as_deref().ok_or(NoLines::ManyPages)?;
    if entry.is_path_mixed {
        return Err(NoLines::MixedPath);
    }
    if entry.route.has_rewrite {
        return Err(NoLines::Rewrite);
    }
    let path = format!("= {}", decoded(sent).ok_or(NoLines::Path)?);
    let document: Table = config.parse().map_err(|_| NoLines::Route)?;
    let nothing = Table::new();
    let site = match entry.route.site.as_str() {
        "" => &document,
        name => sites(&document).find(|site| is_named(site, name)).ok_or(NoLines::Route)?,
    };
    let route = find(site, entry).ok_or(NoLines::Route)?;
    let inherited = if entry.route.site.is_empty() { &nothing } else { site };
    let mut cache = match route.get("cache").or_else(|| inherited.get("cache")) {
        Some(Value::Table(cache)) => cache.clone(),
        _ => Table::new(),
    };
    if entry.freshness == StatedFreshness::None {
        cache.insert("ttl".into(), format!("{ttl}s").into());
    }
    if ignores_cookies {
        cache.insert("cookies".into(), "ignore".into());
    }
    let cache = match cache.is_empty() {
        true => "cache = true\n".to_owned(),
        false => format!("cache = {}\n", Value::Table(cache)),
    };
    if shortest(route.get("path")) == Some(path.clone()) {
        return Ok(ConfigLines::Key(cache));
    }
    let mut text = format!("path = {}\n", Value::String(literal(&path)));
    for (key, value) in route.iter().filter(|(key, _)| !matches!(key.as_str(), "path" | "cache")) {
        let _ = writeln!(text, "{} = {value}", bare_or_quoted(key));
    }
    text += &cache;
    Ok(match entry.route.site.as_str() {
        "" => ConfigLines::Route(format!("[[route]]\n{text}")),
        name => ConfigLines::SiteRoute(name.to_owned(), format!("[[site.route]]\n{text}")),
    })
}

/// Returns the tables of an array of tables.
fn tables<'a>(table: &'a Table, key: &str) -> impl Iterator<Item = &'a Table> {
    table.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table)
}

fn sites(document: &Table) -> impl Iterator<Item = &Table> {
    tables(document, "site")
}

/// Returns whether a site has this name in the store: its `name`, or its first host without a
/// wildcard.
fn is_named(site: &Table, name: &str) -> bool {
    let own = site.get("name").and_then(Value::as_str);
    let hosts = || site.get("hosts").and_then(Value::as_array).into_iter().flatten();
    let first = || hosts().filter_map(Value::as_str).find(|host| !host.starts_with('*'));
    own.or_else(first) == Some(name)
}

/// Returns the only route with the path and the place of the entry.
fn find<'a>(site: &'a Table, entry: &ReportEntry) -> Option<&'a Table> {
    let is_it = |route: &&Table| {
        let places = route.get("try").and_then(Value::as_array);
        shortest(route.get("path")).as_deref() == Some(&entry.route.path)
            && places.into_iter().flatten().any(|place| place.as_str() == Some(&entry.route.place))
    };
    let mut found = tables(site, "route").filter(is_it);
    let route = found.next()?;
    found.next().is_none().then_some(route)
}

/// Returns the `path` of a route in its shortest form.
fn shortest(path: Option<&Value>) -> Option<String> {
    let path = path?.as_str()?;
    if let Some(exact) = path.strip_prefix('=') {
        return Some(format!("= {}", exact.trim_start_matches(' ')));
    }
    let path = if path.starts_with('*') { format!("/{path}") } else { path.to_owned() };
    Some(match path.strip_suffix('/') {
        Some(shorter) if !shorter.is_empty() => shorter.to_owned(),
        _ => path,
    })
}

/// Returns a path as configurations write it: decoded. `None` if it has another meaning there.
fn decoded(sent: &str) -> Option<String> {
    // An encoded slash is another path for applications than the slash that it means here.
    if sent.to_ascii_lowercase().contains("%2f") {
        return None;
    }
    let bytes = percent::decode_strict(sent.as_bytes())?;
    let path = String::from_utf8(bytes.into_owned()).ok()?;
    let is_special = |c: char| c.is_control() || "{}*%?#".contains(c);
    let mut segments = path.strip_prefix('/')?.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        if matches!(segment, "." | "..") || segment.is_empty() && !is_last {
            return None;
        }
    }
    (!path.contains(is_special)).then_some(path)
}

fn bare_or_quoted(key: &str) -> String {
    let is_bare = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_bare && !key.is_empty() {
        key.to_owned()
    } else {
        Value::String(key.to_owned()).to_string()
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
pub(crate) mod tests;
