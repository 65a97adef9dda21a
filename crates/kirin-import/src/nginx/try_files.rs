//! `try_files`: files, and what answers for those that are missing.

use super::content::{may_be_directory, push_named, push_php};
use super::context::Context;
use super::directive::Directive;
use super::files::{index_has_script, push_files};
use super::location::Location;
use super::paths::{Ending, Form};
use super::programs::{pass, push_program};
use super::redirects::without_query;
use super::route::{Program, Route};
use super::units::text;
use super::variables::Target;

/// Sets the places of `try_files`. An error says why Kirin cannot have it.
pub fn set_try_files<'a>(
    route: &mut Route,
    location: &Location<'a>,
    form: &Form,
    directive: &'a Directive,
    context: &Context<'a>,
) -> Result<(), String> {
    let Some((last, tests)) = directive.args.split_last() else {
        return Err("it has no words".into());
    };
    let of_uri = |word: &str| {
        ["$uri", "$document_uri", "$request_filename", "$request_uri"]
            .iter()
            .any(|name| word.starts_with(name))
    };
    let has_files = tests.iter().any(|word| of_uri(word)) || of_uri(last);
    let fixed: Vec<_> = tests.iter().filter(|word| !of_uri(word)).collect();
    if has_files {
        push_files(route, location, form, context)?;
        note_other_names(directive, tests, context);
        for word in &fixed {
            let note = format!("`{word}` is not looked for: `try` has no single files");
            context.left_out(directive, note);
        }
    } else if let ([word], true) = (fixed.as_slice(), last.starts_with('=')) {
        return set_one_file(route, location, form, directive, word, context);
    }
    set_last(route, form, directive, last, context)?;
    if route.places().is_empty() {
        return Err("no place of Kirin is left".into());
    }
    let is_root = form.segments.is_empty();
    if is_root
        && index_has_script(&location.scope)
        && may_be_directory(form)
        && !route.runs_code()
        && route.section.get("fallback").is_none()
    {
        push_php(route, context);
        let note =
            "scripts in directories run, and index.php of the root answers for what is missing";
        context.carried_but(directive, note);
    }
    context.carried(directive);
    Ok(())
}

/// Notes names that are made of the path, such as `$uri.html`.
fn note_other_names<'a>(directive: &'a Directive, tests: &[String], context: &Context<'a>) {
    for word in tests {
        let rest = word.strip_prefix("$uri").unwrap_or_default();
        if !matches!(rest, "" | "/" | "/index.html" | "/index.htm") {
            let note = format!("`{word}` is not looked for: files have the name in the path");
            context.left_out(directive, note);
        }
    }
}

/// Sets the route for one file that answers all requests.
fn set_one_file<'a>(
    route: &mut Route,
    location: &Location<'a>,
    form: &Form,
    directive: &'a Directive,
    word: &str,
    context: &Context<'a>,
) -> Result<(), String> {
    let path = context
        .variables(&location.scope)
        .translate(word, Target::Path)
        .map_err(|name| format!("`rewrite` has no variable `${name}`"))?;
    push_files(route, location, form, context)?;
    if route.section.get("rewrite").is_some()
        || !path.starts_with('/')
        || path.contains(['?', '#', '%'])
    {
        return Err("`rewrite` cannot name this file".into());
    }
    let is_page = !path.contains('{') && path.len() > 1 && !path.ends_with('/');
    route.section.set("rewrite", text(&path));
    if is_page && form.ending == Ending::Below {
        // Kirin appends what follows the path of the route, so no other path leads to the file.
        route.section.set("fallback", text(path.trim_start_matches('/')));
        context
            .carried_but(directive, "below the path for pages only: scripts and pictures get 404");
    } else {
        context.carried_but(directive, "for the path of the route alone");
    }
    Ok(())
}

/// Sets what answers if there is no file.
fn set_last<'a>(
    route: &mut Route,
    form: &Form,
    directive: &'a Directive,
    last: &'a str,
    context: &Context<'a>,
) -> Result<(), String> {
    if let Some(status) = last.strip_prefix('=') {
        if status != "404" {
            context.left_out(directive, format!("missing files are 404, and not {status}"));
        }
        return Ok(());
    }
    if last.starts_with('@') {
        let named =
            context.named.get(last).ok_or_else(|| format!("there is no location {last}"))?;
        return push_named(route, named, form, context);
    }
    let path = without_query(last).split('?').next().unwrap_or_default();
    let script = path.split('$').next().unwrap_or_default();
    if script.ends_with(".php") {
        if script.matches('/').count() > 1 && !script.starts_with("/index.php") {
            let note = format!("index.php of the upstream's `root` answers, and not {script}");
            context.left_out(directive, note);
        }
        return match push_php(route, context) {
            true => Ok(()),
            false => Err("no location runs PHP".into()),
        };
    }
    if path.starts_with("$uri") {
        return Ok(());
    }
    if let Some(program) = context.by_path.get(path).filter(|location| pass(location).is_some()) {
        push_program(route, program, form, context)?;
        route.program = Program::ByPath(path.to_owned());
        route.remove("rewrite");
        context.left_out(
            directive,
            format!("the server sees the path of the request, and not {path}"),
        );
        return Ok(());
    }
    set_fallback(route, directive, path, context)
}

/// Sets the page for navigations.
fn set_fallback<'a>(
    route: &mut Route,
    directive: &'a Directive,
    path: &str,
    context: &Context<'a>,
) -> Result<(), String> {
    let is_page = path.starts_with('/') && !path.ends_with('/') && !path.contains(['$', '#', '%']);
    if !is_page {
        return Err(format!("`fallback` is the page of a path, and not `{path}`"));
    }
    let page = path.trim_start_matches('/');
    if page.is_empty() || page.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(format!("`fallback` is the page of a path, and not `{path}`"));
    }
    if route.has_place("files:") {
        // An alias or a root with variables would look for another file.
        if route.section.get("rewrite").is_some() {
            context.carried_but(directive, "the page is below the directory of `files:`");
        }
        route.section.set("fallback", text(page));
        context.carried_but(directive, "for pages only: scripts and pictures get 404");
    } else {
        return Err("there are no files before it".into());
    }
    Ok(())
}
