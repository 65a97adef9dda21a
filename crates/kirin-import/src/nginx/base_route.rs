//! The route of a location, without the conditions in it.

use toml::Value;

use super::access_rules::{AccessRules, Others, access_rules};
use super::cache::add_cache;
use super::content::set_content;
use super::context::Context;
use super::error_pages::add_error_pages;
use super::files::add_file_keys;
use super::limits::{add_body_limit, add_limits};
use super::location::{Kind, Location};
use super::logs::access_log;
use super::passwords::{add_auth_request, add_password};
use super::paths::{Ending, Form};
use super::programs::pass;
use super::protection::{close, close_without_guard, protects};
use super::response_fields::add_response_fields;
use super::route::{Program, Route};
use super::scope::Scope;
use super::units::texts;
use super::upstream::Protocol;

/// A route, and those that come before it.
#[derive(Debug, Clone)]
pub struct BaseRoute {
    /// Routes of the same path with a `match`.
    pub before: Vec<Route>,
    /// The route.
    pub main: Route,
}

/// Builds the route of a location. `settings` is the block whose settings hold, which may be a
/// block inside the location.
pub fn base_route<'a>(
    location: &Location<'a>,
    settings: &Scope<'a>,
    form: &Form,
    path: &str,
    context: &Context<'a>,
) -> BaseRoute {
    let mut route = Route::new(path);
    route.section.comment(location.directive.at());
    context.carried(location.directive);
    let is_prefix = matches!(location.kind, Kind::Prefix(_));
    if is_prefix && !location.pattern.ends_with('/') && protects(&location.scope) {
        let text = format!("not for paths that only begin with the text, such as {path}-x");
        context.globals.notes.protection_lost(location.directive, text);
    }
    if protects(&location.scope) && is_of_index_page(location, form) {
        let text = "not for the directory of which the page is the index: Kirin shows it by the \
                    route of the directory";
        context.globals.notes.protection_lost(location.directive, text);
    }
    if let Err((directive, why)) = set_content(&mut route, location, form, context) {
        if location.own("internal").is_some() {
            // `set_internal` refuses everybody in any case.
            route.remove_answer();
        } else {
            context.left_out(directive, format!("{why}. The route {path} refuses everybody"));
            route.close(&format!("{}: {why}", directive.at()));
        }
    }
    set_internal(&mut route, location, context);
    add_settings(&mut route, location, settings, context);
    let mut before = add_access(&mut route, location, settings, context);
    add_program_guard(&mut route, location, &mut before, context);
    BaseRoute { before, main: route }
}

/// Returns whether a path is one of index pages. nginx looks for the location of an index page.
fn is_of_index_page(location: &Location<'_>, form: &Form) -> bool {
    let names = location.scope.one("index").map(|directive| directive.args.as_slice());
    let default = ["index.html".to_owned()];
    let names = names.unwrap_or(&default);
    match &form.ending {
        Ending::Suffix(suffix) => names.iter().any(|name| name.ends_with(suffix)),
        Ending::Exact(_) => form.segments.last().is_some_and(|last| names.contains(last)),
        Ending::Below => false,
    }
}

/// Adds the keys besides those of the content.
fn add_settings<'a>(
    route: &mut Route,
    location: &Location<'a>,
    settings: &Scope<'a>,
    context: &Context<'a>,
) {
    let is_answer = !route.refuses_all() && !route.redirects();
    if is_answer {
        if route.has_place("files:") {
            add_file_keys(route, settings, context);
        }
        add_limits(route, settings, context);
        add_body_limit(route, settings, context);
        add_compression(route, settings, context);
        if let Some((program, protocol)) = program_of(route, location, context) {
            let is_here = program.directive.number == location.directive.number;
            let of_program = if is_here { settings } else { &program.scope };
            add_cache(route, of_program, protocol, context);
            add_buffering(route, of_program, protocol, context);
            add_interception(route, of_program, protocol, context);
            if !is_here {
                add_response_fields(route, of_program, context);
            }
        }
        if let Some(directive) = settings.one("ssi") {
            if directive.is_on() {
                route.section.set("ssi", true);
            }
            context.carried(directive);
        }
    }
    add_common_settings(route, settings, context);
}

/// Adds the keys that every route may have, whatever it answers.
pub fn add_common_settings<'a>(route: &mut Route, settings: &Scope<'a>, context: &Context<'a>) {
    add_response_fields(route, settings, context);
    add_error_pages(route, settings, context);
    if route.section.get("error_pages").is_none() {
        route.remove("intercept_errors");
    }
    let of_listener = access_log(&context.globals.http, context.globals);
    let log = access_log(settings, context.globals);
    if log != of_listener
        && let Some(log) = log
    {
        route.section.set("access_log", log);
    }
}

/// Returns the location with the program that answers, and the protocol of the program.
pub fn program_of<'c, 'a>(
    route: &Route,
    location: &'c Location<'a>,
    context: &'c Context<'a>,
) -> Option<(&'c Location<'a>, Protocol)> {
    if !route.has_place("proxy:") && !route.has_place("cgi:") {
        return None;
    }
    let program = match &route.program {
        Program::OfRoute => Some(location),
        Program::Named(name) => context.named.get(name.as_str()),
        Program::ByPath(path) => context.by_path.get(path.as_str()),
        Program::Php => context.php.as_ref(),
    };
    program.and_then(|program| Some((program, pass(program)?.1)))
}

/// Adds what keeps visitors out of the location with the program. nginx looks at it when it comes
/// to that location. In Kirin it holds for the whole route.
fn add_program_guard<'a>(
    route: &mut Route,
    location: &Location<'a>,
    before: &mut Vec<Route>,
    context: &Context<'a>,
) {
    let Some((program, _)) = program_of(route, location, context) else { return };
    if program.directive.number == location.directive.number || route.refuses_all() {
        return;
    }
    let program = program.clone();
    if route.section.get("rate_limit").is_none() && !program.scope.own_named("limit_req").is_empty()
    {
        add_limits(route, &program.scope, context);
    }
    if !protects(&program.scope) || program.own("internal").is_some() {
        return;
    }
    let mut guard = Route::new(route.path());
    guard.set_places(&route.places());
    let more = add_access(&mut guard, &program, &program.scope, context);
    let why = "the location and its program keep different visitors out";
    if guard.refuses_all() || more.iter().any(|other| !other.refuses_all()) {
        return close(route, program.directive, why, context);
    }
    for key in ["allow", "basic_auth", "basic_auth_realm", "auth_request"] {
        match (route.section.get(key), guard.section.get(key)) {
            (None, Some(value)) => route.section.set(key, value.clone()),
            (Some(own), Some(value)) if own != value => {
                return close(route, program.directive, why, context);
            }
            _ => {}
        }
    }
    before.extend(more);
}

/// Sets the refusal of a location for inner requests only.
fn set_internal<'a>(route: &mut Route, location: &Location<'a>, context: &Context<'a>) {
    let Some(directive) = location.own("internal") else { return };
    let is_asked = context.asked.contains(location.pattern);
    let has_program = pass(location).is_some();
    if is_asked && !has_program {
        context.carried_but(directive, "visitors can ask the path, too");
        return;
    }
    if route.closed {
        return context.carried(directive);
    }
    if !is_asked && !context.error_pages.iter().any(|page| page.starts_with(location.pattern)) {
        context.accel_redirects.borrow_mut().extend(accel_redirect(route, location));
    }
    if has_program {
        for key in ["try", "rewrite", "request_headers", "cgi"] {
            route.remove(key);
        }
    }
    route.section.set("deny", 404);
    context.carried(directive);
}

/// Returns the path and the directory of `accel_redirect`.
fn accel_redirect(route: &Route, location: &Location<'_>) -> Option<(String, String)> {
    let places = route.places();
    let [place] = places.as_slice() else { return None };
    let directory = place.strip_prefix("files:")?;
    let path = location.pattern.trim_end_matches('/');
    let directory = match location.own("alias") {
        Some(_) => directory.to_owned(),
        None => format!("{}{path}", directory.trim_end_matches('/')),
    };
    (path.starts_with('/') && !path.contains(['%', '?', '*', '{']))
        .then(|| (path.to_owned(), directory))
}

fn add_compression<'a>(route: &mut Route, settings: &Scope<'a>, context: &Context<'a>) {
    for name in ["gzip", "brotli", "zstd"] {
        let Some(directive) = settings.one(name) else { continue };
        let is_of_program = route.has_place("proxy:") || route.has_place("cgi:");
        match (directive.is_on(), is_of_program) {
            (true, true) => {
                route.section.set("compress", true);
                context.carried_but(directive, "read docs/compression.md about BREACH");
            }
            (true, false) => context.by_itself(directive, "files are compressed"),
            (false, _) => {
                if name == "gzip" && route.has_place("files:") {
                    route.section.set("compress", false);
                }
                context.carried(directive);
            }
        }
    }
}

/// Sets whether error pages replace the errors of a program.
fn add_interception<'a>(
    route: &mut Route,
    settings: &Scope<'a>,
    protocol: Protocol,
    context: &Context<'a>,
) {
    let Some(directive) = settings.one(&format!("{}_intercept_errors", protocol.prefix())) else {
        return;
    };
    if directive.is_on() {
        // Without pages it has no effect, and is removed.
        route.section.set("intercept_errors", true);
    }
    context.carried(directive);
}

fn add_buffering<'a>(
    route: &mut Route,
    settings: &Scope<'a>,
    protocol: Protocol,
    context: &Context<'a>,
) {
    let name = format!("{}_request_buffering", protocol.prefix());
    let Some(directive) = settings.one(&name) else { return };
    if directive.is_on() && route.has_place("proxy:") {
        route.section.set("request_buffering", true);
    }
    context.carried(directive);
}

/// Adds who may see the route. Returns routes that come before it.
fn add_access<'a>(
    route: &mut Route,
    location: &Location<'a>,
    settings: &Scope<'a>,
    context: &Context<'a>,
) -> Vec<Route> {
    let rules = match access_rules(settings, context) {
        Ok(rules) => rules,
        Err((directive, why)) => {
            close(route, directive, why, context);
            for other in settings.list_of_any(&["allow", "deny"]) {
                context.carried_but(other, "the route refuses everybody");
            }
            AccessRules::default()
        }
    };
    close_without_guard(route, settings, context);
    if route.refuses_all() {
        return Vec::new();
    }
    if !route.redirects() {
        if let Err((directive, why)) = add_password(route, settings, context) {
            close(route, directive, &why, context);
        }
        if !context.asked.contains(location.pattern)
            && let Err((directive, why)) = add_auth_request(route, settings, context)
        {
            close(route, directive, &why, context);
        }
    }
    if route.closed {
        return Vec::new();
    }
    let asks =
        route.section.get("basic_auth").is_some() || route.section.get("auth_request").is_some();
    let satisfy = settings.one("satisfy");
    let any = satisfy.is_some_and(|satisfy| satisfy.arg(0) == "any") && asks;
    if let Some(satisfy) = satisfy {
        context.carried(satisfy);
    }
    if any { any_of(route, &rules) } else { all_of(route, &rules) }
}

/// Applies the rules to a route whose visitors need a password besides.
fn all_of(route: &mut Route, rules: &AccessRules) -> Vec<Route> {
    match &rules.others {
        Others::All => {}
        Others::Nobody => {
            route.remove_answer();
            route.section.set("deny", 403);
        }
        Others::Only(addresses) => route.section.set("allow", texts(addresses)),
    }
    let refused = |conditions: &toml::Table| {
        let mut refusal = Route::new(route.path());
        refusal.section.set("match", conditions.clone());
        refusal.section.set("deny", 403);
        copy_answers_of_errors(route, &mut refusal);
        refusal
    };
    rules.refused.iter().map(refused).collect()
}

/// Copies what belongs to refusals, too.
pub fn copy_answers_of_errors(from: &Route, to: &mut Route) {
    for key in ["headers", "error_pages", "access_log"] {
        if let Some(value) = from.section.get(key) {
            to.section.set(key, value.clone());
        }
    }
}

/// Applies the rules to a route whose visitors need a password or an address.
fn any_of(route: &mut Route, rules: &AccessRules) -> Vec<Route> {
    let Others::Only(addresses) = &rules.others else { return Vec::new() };
    let mut open = route.clone();
    open.remove("basic_auth");
    open.remove("basic_auth_realm");
    open.remove("auth_request");
    let clients = toml::Table::from_iter([("clients".to_owned(), texts(addresses))]);
    open.section.set("match", clients);
    vec![open]
}

/// Closes a route with the status page that everybody could see.
pub fn close_open_status(route: &mut Route) {
    if route.refuses_all() && route.has_place("status") {
        return route.remove("try");
    }
    let is_protected = ["allow", "basic_auth", "auth_request"]
        .iter()
        .any(|key| route.section.get(key).is_some_and(|value| *value != Value::Boolean(false)));
    if route.has_place("status") && !is_protected {
        route.close("the status page needs `allow` or `basic_auth`");
    }
}
