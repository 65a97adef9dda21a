//! Blocks `if`: routes with a `match`.

use toml::Table;

use super::base_route::{base_route, copy_answers_of_errors};
use super::conditions::{Condition, condition};
use super::content::is_for_missing_files;
use super::context::Context;
use super::copies::overlap;
use super::directive::Directive;
use super::fixed_answer::set_fixed_answer;
use super::host_blocks::{HostBlock, host_block};
use super::location::Location;
use super::paths::Form;
use super::protection::{close, refuses};
use super::redirect_maps::set_redirect_map;
use super::redirects::{set_return_redirect, status_of};
use super::referers::guard_referers;
use super::route::Route;

/// The most routes that blocks `if` may add to a site.
pub const MAX_ADDED: usize = 2000;

/// A location with its path, to which a block `if` belongs.
#[derive(Debug, Clone, Copy)]
pub struct Place<'p, 'a> {
    /// The location.
    pub location: &'p Location<'a>,
    /// The path that its route has.
    pub form: &'p Form,
}

/// Adds the routes of a block `if` before the route `main`. Closes `main` if the block keeps
/// visitors out in a way that Kirin does not have.
pub fn add_if<'a>(
    block: &'a Directive,
    main: &mut Route,
    place: Place<'_, 'a>,
    context: &Context<'a>,
) -> Vec<Route> {
    if is_for_missing_files(block) {
        if block
            .inside()
            .iter()
            .all(|directive| directive.name == "return" && directive.arg(0) == "404")
        {
            context.by_itself(block, "missing files are 404");
            block
                .inside()
                .iter()
                .for_each(|inner| context.by_itself(inner, "missing files are 404"));
        }
        return Vec::new();
    }
    match host_block(block, context.server) {
        Some(HostBlock::Redirects { .. }) => return Vec::new(),
        Some(HostBlock::RefusesOthers) => {
            let text = "requests for hosts that no site has get 421";
            context.by_itself(block, text);
            block.inside().iter().for_each(|inner| context.by_itself(inner, text));
            return Vec::new();
        }
        None => {}
    }
    let refusal = block.inside().iter().find(|directive| refuses(directive));
    if block.args.join(" ").contains("$invalid_referer")
        && let Some(refusal) = refusal
    {
        return guard_referers(block, refusal, main, place.location, context);
    }
    if let Some(refusal) = refusal.filter(|_| main.refuses_all()) {
        context.carried_but(block, "the route refuses everybody");
        context.carried(refusal);
        return Vec::new();
    }
    if refusal.is_none() && set_redirect_map(block, main, context) {
        return Vec::new();
    }
    let found = condition(block, context);
    let words = block.args.join(" ");
    if refusal.is_some() && (words.contains("$arg_") || words.contains("$cookie_")) {
        let text = "only for names and values that are spelt so: nginx finds names of arguments in \
                    any case, and takes the first of several values";
        context.globals.notes.protection_lost(block, text);
    }
    match (found, refusal) {
        (Err(why), Some(refusal)) => {
            context.left_out(refusal, "see the condition");
            close(main, block, &why, context);
            Vec::new()
        }
        (Err(why), None) => {
            note_unknown(block, &why, context);
            Vec::new()
        }
        (Ok(found), _) => with_condition(block, &found, refusal, main, place, context),
    }
}

/// Notes a block whose condition Kirin cannot have.
fn note_unknown<'a>(block: &'a Directive, why: &str, context: &Context<'a>) {
    let is_maintenance =
        block.inside().iter().any(|inner| inner.name == "return" && inner.arg(0) == "503");
    let text = match is_maintenance {
        true => "run `kirin maintenance on`, or write `maintenance = true`".to_owned(),
        false => why.to_owned(),
    };
    context.left_out(block, text.as_str());
    note_inside(block, context, "see the condition");
}

fn note_inside<'a>(block: &'a Directive, context: &Context<'a>, text: &str) {
    for directive in block.inside() {
        if context.globals.notes.is_open(directive) {
            context.left_out(directive, text);
        }
    }
}

/// Returns the routes for a condition that Kirin has.
fn with_condition<'a>(
    block: &'a Directive,
    found: &Condition,
    refusal: Option<&'a Directive>,
    main: &mut Route,
    place: Place<'_, 'a>,
    context: &Context<'a>,
) -> Vec<Route> {
    let mut routes = Vec::new();
    if let Some(paths) = &found.paths {
        let mut forms = paths.forms.clone();
        if refusal.is_some() {
            // The route of the location would take some of these paths first.
            forms.extend(paths.forms.iter().filter_map(|form| overlap(form, place.form)));
        }
        for form in &forms {
            let Some(path) = form.path() else { continue };
            let place = Place { form, ..place };
            routes.extend(answer(block, &path, refusal, main, place, context));
        }
    }
    for conditions in &found.any_of {
        let Some(mut route) = answer(block, main.path(), refusal, main, place, context) else {
            break;
        };
        if route.add_conditions(conditions) {
            routes.push(route);
        }
    }
    if routes.is_empty() {
        match refusal {
            Some(_) => {
                close(main, block, "the condition and the route exclude each other", context)
            }
            None => context.left_out(block, "a route cannot do this for some requests only"),
        }
        return routes;
    }
    match (found.is_narrower, refusal) {
        (true, Some(_)) => context.globals.notes.protection_lost(
            block,
            "only some spellings are refused, because upper and lower case of values differ",
        ),
        (true, None) => context.carried_but(block, "upper and lower case of values differ"),
        (false, _) => context.carried(block),
    }
    routes
}

/// Returns the route for the requests of a condition, still without it.
fn answer<'a>(
    block: &'a Directive,
    path: &str,
    refusal: Option<&'a Directive>,
    main: &Route,
    place: Place<'_, 'a>,
    context: &Context<'a>,
) -> Option<Route> {
    let mut route = Route::new(path);
    route.section.comment(block.at());
    route.add_conditions(&conditions_of(main, path));
    if let Some(refusal) = refusal {
        let status = if refusal.arg(0) == "404" { 404 } else { 403 };
        route.section.set("deny", status);
        copy_answers_of_errors(main, &mut route);
        let is_same = refusal.arg(0) == status.to_string();
        let note = if is_same { String::new() } else { format!("with status {status}") };
        context.carried_but(refusal, note);
        return Some(route);
    }
    for directive in block.inside() {
        match directive.name.as_str() {
            "return" => return answer_of_return(route, directive, main, place, context),
            "rewrite" if status_of(directive).is_some() => {
                return answer_of_rewrite(route, directive, main, place, context);
            }
            _ => {}
        }
    }
    let inner = Location {
        directive: block,
        scope: place.location.scope.inner(block.inside()),
        ..place.location.clone()
    };
    let has_own = |name: &&str| inner.own(name).is_some();
    let of_content =
        ["proxy_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "grpc_pass", "root", "try_files"];
    let of_settings = [
        "add_header",
        "expires",
        "auth_basic",
        "access_log",
        "proxy_set_header",
        "gzip",
        "client_max_body_size",
    ];
    let content = if of_content.iter().any(has_own) { &inner } else { place.location };
    if !of_content.iter().chain(&of_settings).any(has_own) {
        note_inside(block, context, "a route cannot do this for some requests only");
        return None;
    }
    let mut built = base_route(content, &inner.scope, place.form, path, context);
    if !built.before.is_empty() && built.main.serves() {
        let why = "the block and its location keep different visitors out";
        close(&mut built.main, block, why, context);
    }
    Some(built.main)
}

/// Returns the conditions of the route that a block belongs to, if they are of the same path.
fn conditions_of(main: &Route, path: &str) -> Table {
    if main.path() == path { main.conditions() } else { Table::new() }
}

fn answer_of_return<'a>(
    mut route: Route,
    directive: &'a Directive,
    main: &Route,
    place: Place<'_, 'a>,
    context: &Context<'a>,
) -> Option<Route> {
    let variables = {
        let mut variables = context.variables(&place.location.scope);
        variables.known.extend(place.form.groups.clone());
        variables
    };
    let (status, target) = match (directive.arg(0).parse::<u16>(), directive.args.get(1)) {
        (Ok(status), Some(target)) => (status, target.as_str()),
        (Ok(status), None) => (status, ""),
        (Err(_), _) => (302, directive.arg(0)),
    };
    let result = match status {
        301 | 302 | 303 | 307 | 308 => set_return_redirect(
            &mut route, place.form, status, target, &variables, context, directive,
        ),
        503 => {
            context
                .left_out(directive, "run `kirin maintenance on`, or write `maintenance = true`");
            return None;
        }
        _ => set_fixed_answer(&mut route, place.location, directive, context),
    };
    if let Err(why) = result {
        context.left_out(directive, why);
        return None;
    }
    copy_answers_of_errors(main, &mut route);
    Some(route)
}

fn answer_of_rewrite<'a>(
    route: Route,
    directive: &'a Directive,
    main: &Route,
    place: Place<'_, 'a>,
    context: &Context<'a>,
) -> Option<Route> {
    match super::redirects::rewrite_redirects(directive, place.location, context) {
        Ok(found) => {
            let redirect = found.into_iter().find(|redirect| redirect.path() == route.path())?;
            let mut route = redirect;
            route.add_conditions(&conditions_of(main, route.path().to_owned().as_str()));
            copy_answers_of_errors(main, &mut route);
            Some(route)
        }
        Err(why) => {
            context.left_out(directive, why);
            None
        }
    }
}
