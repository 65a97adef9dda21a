//! Maps from old addresses to new ones: a file of `redirects`.

use super::context::Context;
use super::directive::Directive;
use super::paths::{Ending, paths};
use super::route::Route;
use super::units::text;
use super::variables::only_variable;

/// Sets the file of redirects for `if ($new) { return 301 $new; }` with a map of the path. Returns
/// whether the block is such a one.
pub fn set_redirect_map<'a>(block: &'a Directive, main: &mut Route, context: &Context<'a>) -> bool {
    let Some((map, answer)) = redirect_map(block, context) else { return false };
    let status = match answer.name.as_str() {
        "return" => answer.arg(0).parse().unwrap_or(302),
        _ => super::redirects::status_of(answer).unwrap_or(302),
    };
    let file =
        context.output.file_of(map.number, "redirects", ".tsv", || lines(map, status, context));
    if main.section.get("deny").and_then(toml::Value::as_integer) == Some(404) && !main.closed {
        // A route with a file of redirects answers 404 by itself, and `deny` would come before it.
        main.remove("deny");
    }
    main.section.set("redirects", text(&file));
    for directive in [map, block, answer] {
        context.carried_but(directive, format!("by the file {file}"));
    }
    true
}

/// Returns the map and the redirect of a block.
fn redirect_map<'a>(
    block: &'a Directive,
    context: &Context<'a>,
) -> Option<(&'a Directive, &'a Directive)> {
    let condition = block.args.join(" ");
    let condition = condition.trim().trim_start_matches('(').trim_end_matches(')').trim();
    let (subject, rest) = condition.split_once(' ').unwrap_or((condition, ""));
    if !matches!(rest.trim(), "" | "!= \"\"" | "!=" | "!= ''") {
        return None;
    }
    let name = only_variable(subject)?;
    let map = context.globals.named("map", name)?;
    only_variable(map.arg(0)).filter(|source| matches!(*source, "request_uri" | "uri"))?;
    let is_answer = |directive: &&Directive| {
        let target = match directive.name.as_str() {
            "return" => directive.args.last().map_or("", String::as_str),
            "rewrite" => directive.arg(1),
            _ => "",
        };
        only_variable(target.trim_end_matches('?')) == Some(name)
    };
    Some((map, block.inside().iter().find(is_answer)?))
}

/// Returns the lines of the file.
fn lines<'a>(map: &'a Directive, status: u16, context: &Context<'a>) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in map.inside() {
        if matches!(entry.name.as_str(), "default" | "volatile" | "hostnames" | "include") {
            continue;
        }
        match line(&entry.name, entry.arg(0)) {
            Some(line) if status == 308 => lines.push(line),
            Some(line) => lines.push(format!("{line}\t{status}")),
            None => context
                .left_out(map, format!("no line of `redirects` is the same as `{}`", entry.name)),
        }
    }
    lines
}

/// Returns the line for an entry, without its status.
fn line(from: &str, to: &str) -> Option<String> {
    let is_target = to.starts_with('/') || to.starts_with("http://") || to.starts_with("https://");
    if !is_target || to.contains(char::is_whitespace) {
        return None;
    }
    let Some(expression) = from.strip_prefix('~') else {
        let is_path =
            from.starts_with('/') && !from.contains(char::is_whitespace) && !to.contains('$');
        return is_path.then(|| format!("{}\t{to}", from.replace('*', "%2A")));
    };
    let (expression, to) = without_query(expression.strip_prefix('*').unwrap_or(expression), to);
    let found = paths(&expression, false)?;
    let form = found
        .forms
        .first()
        .filter(|form| form.segments.iter().all(|segment| !segment.starts_with('{')))?;
    let path = form.path()?;
    match (&form.ending, &form.rest) {
        (Ending::Exact(_), _) if !to.contains('$') => {
            Some(format!("{}\t{to}", path.trim_start_matches("= ")))
        }
        (Ending::Below, None) if !to.contains('$') => {
            Some(format!("{}/*\t{to}", path.trim_end_matches('/')))
        }
        (Ending::Below, Some((group, has_slash))) => {
            let start = [format!("${group}"), format!("${{{group}}}")]
                .iter()
                .find_map(|name| to.strip_suffix(name.as_str()).map(str::to_owned))?;
            let is_segment = start.ends_with('/') || *has_slash;
            (is_segment && !start.contains('$')).then(|| {
                format!("{}/*\t{}/*", path.trim_end_matches('/'), start.trim_end_matches('/'))
            })
        }
        _ => None,
    }
}

/// Returns an expression and its target without the query at their ends, which Kirin keeps.
fn without_query<'t>(expression: &str, to: &'t str) -> (String, &'t str) {
    let Some(start) = expression.strip_suffix("\\?.*)?$") else {
        return (expression.to_owned(), to);
    };
    let Some((before, group)) = start.rsplit_once('(') else { return (expression.to_owned(), to) };
    let name = group.strip_prefix("?<").or_else(|| group.strip_prefix("?P<"));
    let name = name.and_then(|name| name.strip_suffix('>'));
    let to = name.and_then(|name| to.strip_suffix(&format!("${name}"))).unwrap_or(to);
    (format!("{before}$"), to)
}
