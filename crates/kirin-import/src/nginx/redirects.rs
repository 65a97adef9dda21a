//! `return` and `rewrite` that lead to another address.

use toml::Value;

use super::context::Context;
use super::directive::Directive;
use super::location::Location;
use super::paths::{Ending, Form};
use super::route::Route;
use super::units::text;
use super::variables::{Target, Variables};

/// Ends of targets that Kirin adds by itself: it keeps the query.
const QUERIES: [&str; 4] = ["$is_args$args", "?$args", "?$query_string", "$is_args$query_string"];

/// Sets the redirect of `return` in a route. An error says why Kirin cannot have it.
pub fn set_return_redirect<'a>(
    route: &mut Route,
    form: &Form,
    status: u16,
    target: &str,
    variables: &Variables,
    context: &Context<'a>,
    directive: &'a Directive,
) -> Result<(), String> {
    let target = without_query(target);
    let (start, has_path) = match strip_path(target) {
        Some(start) => (start, true),
        None => (target, false),
    };
    let mut written = translate(start, variables)?;
    let is_plain = !form.segments.iter().any(|segment| segment.starts_with('{'))
        && !matches!(form.ending, Ending::Suffix(_));
    if has_path && is_plain {
        // Kirin adds what follows the path of the route.
        let own: String = form.segments.iter().map(|segment| format!("/{segment}")).collect();
        written = format!("{}{own}", written.trim_end_matches('/'));
        let is_address = written.matches('/').count() <= 2 && written.contains("://");
        if written.is_empty() || is_address || matches!(form.ending, Ending::Exact(true)) {
            written.push('/');
        }
        if written == "/" || !form.segments.is_empty() && start.is_empty() {
            return Err("the redirect would lead to the same path again".into());
        }
    } else if has_path {
        written = format!("{}{{path}}", written.trim_end_matches('/'));
    }
    check_target(&written)?;
    if leads_back(&written, form, context) {
        return Err("the redirect would lead to the same route again".into());
    }
    set_redirect(route, &written, status);
    match has_path || matches!(form.ending, Ending::Exact(_)) {
        true => context.carried_but(directive, "Kirin keeps the query"),
        false => context.carried_but(directive, "Kirin appends the rest of the path and the query"),
    }
    Ok(())
}

/// Returns whether a redirect leads to a path of its own route, and to no other location.
fn leads_back(target: &str, form: &Form, context: &Context<'_>) -> bool {
    if !target.starts_with('/') || matches!(form.ending, Ending::Exact(_)) {
        return false;
    }
    if matches!(form.ending, Ending::Suffix(_)) {
        // Kirin appends the rest of the path, which ends in the same text.
        return true;
    }
    let segments = Form::below(target).segments;
    let is_own = segments.starts_with(&form.segments);
    let mut above = target;
    // A location of a longer path may have the target.
    while is_own && Form::below(above).segments.len() > form.segments.len() {
        let with_slash = format!("{}/", above.trim_end_matches('/'));
        if context.by_path.contains_key(above) || context.by_path.contains_key(with_slash.as_str())
        {
            return false;
        }
        above = above.trim_end_matches('/').rsplit_once('/').map_or("", |(above, _)| above);
    }
    is_own
}

/// Returns the route for a `rewrite` that is a redirect. An error says why Kirin cannot have it.
pub fn rewrite_redirects<'a>(
    rewrite: &'a Directive,
    location: &Location<'a>,
    context: &Context<'a>,
) -> Result<Vec<Route>, String> {
    let status = status_of(rewrite).ok_or("it is not a redirect")?;
    let found = super::paths::paths(rewrite.arg(0), false)
        .ok_or("the path of a route cannot say the same as the regular expression")?;
    if found.is_broader && context.protects_some {
        return Err("a route would match more paths than the regular expression".into());
    }
    let target = rewrite.arg(1);
    let target = without_query(target.strip_suffix('?').unwrap_or(target));
    let mut routes = Vec::new();
    for form in &found.forms {
        let Some(form) = inside(form, location) else { continue };
        let path = form.path().ok_or("it has no path that Kirin can have")?;
        let mut variables = context.variables(&location.scope);
        variables.known.extend(form.groups.clone());
        let start = without_rest(target, &form)?;
        let (start, has_path) = match strip_path(start) {
            Some(start) => (start, true),
            None => (start, false),
        };
        let mut written = translate(start, &variables)?;
        if has_path {
            written = format!("{}{{path}}", written.trim_end_matches('/'));
        } else if written.is_empty() {
            written.push('/');
        } else if form.rest.is_some() && written.starts_with('/') && written.len() > 1 {
            written.truncate(written.trim_end_matches('/').len());
        }
        let is_without_rest =
            form.rest.is_none() && form.ending == Ending::Below && start == target && !has_path;
        // Kirin would append the rest of the path, and nginx does not.
        let is_everything = path == "/" && is_without_rest;
        let path = match is_everything && location.pattern != "/" {
            true => format!("= {}", location.pattern.trim_end_matches('/')),
            false => path,
        };
        check_target(&written)?;
        if !routes.iter().any(|route: &Route| route.path() == path) {
            let mut route = Route::new(&path);
            route.section.comment(rewrite.at());
            set_redirect(&mut route, &written, status);
            routes.push(route);
        }
    }
    match found.missing.first() {
        Some(missing) => context.carried_but(rewrite, format!("but not {missing}")),
        None => context.carried_but(rewrite, "Kirin compares whole segments"),
    }
    Ok(routes)
}

/// Returns the status of a redirect by `rewrite`.
pub fn status_of(rewrite: &Directive) -> Option<u16> {
    let target = rewrite.arg(1);
    let is_address =
        ["http://", "https://", "$scheme"].iter().any(|start| target.starts_with(start));
    match rewrite.arg(2) {
        "permanent" => Some(301),
        "redirect" => Some(302),
        _ if is_address => Some(302),
        _ => None,
    }
}

/// Returns the form for the part of its paths that is in a location. An expression for all paths
/// has those of the location.
fn inside(form: &Form, location: &Location<'_>) -> Option<Form> {
    let paths = location.paths()?;
    let own = paths.forms.first()?;
    if own.segments.is_empty() && own.ending == Ending::Below {
        return Some(form.clone());
    }
    if form.segments.is_empty() && form.ending == Ending::Below {
        return Some(Form { rest: None, groups: form.groups.clone(), ..own.clone() });
    }
    form.segments.starts_with(&own.segments).then(|| form.clone())
}

/// Returns a target without the group at its end that is the rest of the path, which Kirin appends
/// itself.
pub fn without_rest<'t>(target: &'t str, form: &Form) -> Result<&'t str, String> {
    let Some((group, _)) = &form.rest else { return Ok(target) };
    let named = [format!("${group}"), format!("${{{group}}}")];
    let start = named.iter().find_map(|name| target.strip_suffix(name.as_str()));
    match start {
        Some(start) => Ok(start),
        None if named.iter().any(|name| target.contains(name.as_str())) => {
            Err("the rest of the path can only stand at the end of the target".into())
        }
        None if form.segments.is_empty() => Ok(target),
        None => Err("Kirin always appends the rest of the path".into()),
    }
}

/// Returns a target without the query of the request at its end.
pub fn without_query(target: &str) -> &str {
    QUERIES.iter().find_map(|query| target.strip_suffix(query)).unwrap_or(target)
}

/// Returns a target without the path of the request at its end.
fn strip_path(target: &str) -> Option<&str> {
    ["$request_uri", "$uri", "${request_uri}", "$document_uri"]
        .iter()
        .find_map(|path| target.strip_suffix(path))
}

fn translate(target: &str, variables: &Variables) -> Result<String, String> {
    variables
        .translate(target, Target::Path)
        .map_err(|name| format!("a `redirect` has no variable `${name}`"))
}

/// Checks that a target is one that Kirin can have.
fn check_target(target: &str) -> Result<(), String> {
    let is_address = ["https://", "http://", "{scheme}://"]
        .iter()
        .find_map(|start| target.strip_prefix(start))
        .map(|rest| rest.split('/').next().unwrap_or_default());
    let host_is_good = is_address.is_none_or(|host| {
        !host.is_empty() && {
            let host = host.split("{path}").next().unwrap_or_default().replace("{host}", "h");
            !host.is_empty() && !host.contains(['{', '}'])
        }
    });
    let is_path = target.starts_with('/') && !target.starts_with("//");
    let is_clean = |c: char| c.is_ascii_graphic() && !"\"<>\\^`|?#@".contains(c);
    if !(is_address.is_some() || is_path) || !target.chars().all(is_clean) {
        return Err(
            "the target of `redirect` is a path or an address without `?` and `#`; a line \
                    of `redirects` may have a query"
                .into(),
        );
    }
    match host_is_good {
        true => Ok(()),
        false => Err("only `{host}` may stand in the host of a redirect".into()),
    }
}

/// Sets the keys of a redirect.
pub fn set_redirect(route: &mut Route, target: &str, status: u16) {
    route.section.set("redirect", text(target));
    if status != 308 {
        route.section.set("redirect_status", Value::from(i64::from(status)));
    }
}
