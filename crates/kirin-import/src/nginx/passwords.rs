//! `auth_basic` and `auth_request`: who may see a location.

use toml::{Table, Value};

use super::context::Context;
use super::directive::Directive;
use super::location::Location;
use super::paths::Form;
use super::programs::{pass, push_program};
use super::route::Route;
use super::scope::Scope;
use super::units::{text, texts};
use super::variables::{field_name, only_variable};

/// Adds the question for a password. An error is the directive that Kirin cannot have, and why.
pub fn add_password<'a>(
    route: &mut Route,
    scope: &Scope<'a>,
    context: &Context<'a>,
) -> Result<(), (&'a Directive, String)> {
    let Some(directive) = scope.one("auth_basic") else { return Ok(()) };
    if directive.is_off() {
        context.carried(directive);
        return Ok(());
    }
    let variables = context.variables(scope);
    let Some(realm) = variables.constant(directive.arg(0)) else {
        return Err((directive, "`basic_auth_realm` has no variables".into()));
    };
    let Some(file) = scope.one("auth_basic_user_file") else {
        return Err((directive, "there is no `auth_basic_user_file`".into()));
    };
    let Some(path) = variables.constant(file.arg(0)) else {
        return Err((file, "`basic_auth` has no variables".into()));
    };
    route.section.set("basic_auth", text(context.globals.configuration_path(&path)));
    if realm != "Restricted" {
        route.section.set("basic_auth_realm", text(realm));
    }
    context.carried(directive);
    context.carried_but(file, "Kirin refuses plain text, DES, `$1$` and SHA-1 in it");
    Ok(())
}

/// Adds the question to another program. An error is the directive that Kirin cannot have, and why.
pub fn add_auth_request<'a>(
    route: &mut Route,
    scope: &Scope<'a>,
    context: &Context<'a>,
) -> Result<(), (&'a Directive, String)> {
    let Some(directive) = scope.one("auth_request") else { return Ok(()) };
    let path = directive.arg(0);
    if directive.is_off() {
        context.carried(directive);
        return Ok(());
    }
    if !path.starts_with('/') || path.contains(['$', '#']) {
        return Err((directive, "`ask` is a path without variables, or a place".into()));
    }
    let plain = path.split('?').next().unwrap_or(path);
    if !context.by_path.contains_key(plain) {
        return Err((directive, format!("there is no location {plain} that could be asked")));
    }
    let mut table = ask(path, context);
    add_fields(&mut table, scope, context);
    let value = match table.len() {
        1 => table.remove("ask").unwrap_or(Value::Boolean(false)),
        _ => Value::Table(table),
    };
    route.section.set("auth_request", value);
    context.carried_but(
        directive,
        "redirects, 401 and 403 are passed to the visitor with their bodies",
    );
    Ok(())
}

/// Returns what Kirin asks: the server of the location, or the path.
fn ask<'a>(path: &'a str, context: &Context<'a>) -> Table {
    let plain = path.split('?').next().unwrap_or(path);
    let asked = context.by_path.get(plain).filter(|location| pass(location).is_some());
    let place = asked.and_then(|location| place_of(location, context));
    match place {
        Some((place, path)) => {
            let mut table = Table::from_iter([("ask".to_owned(), text(place))]);
            if path != "/" {
                table.insert("path".into(), text(path));
            }
            table
        }
        None => Table::from_iter([("ask".to_owned(), text(path))]),
    }
}

/// Returns the place and the path that a location asks its server for.
fn place_of<'a>(location: &Location<'a>, context: &Context<'a>) -> Option<(String, String)> {
    let mut route = Route::new("/");
    push_program(&mut route, location, &Form::default(), context).ok()?;
    let place = route.places().pop().filter(|place| place.starts_with("proxy:"))?;
    let rewrite = route.section.get("rewrite").and_then(Value::as_str).map(str::to_owned);
    let has_path = location.own("proxy_pass").is_some_and(|pass| {
        let rest = pass.arg(0).split_once("://").map_or("", |(_, rest)| rest);
        rest.contains('/')
    });
    let path = match (has_path, rewrite) {
        (true, Some(rewrite)) => rewrite,
        (true, None) => "/".into(),
        (false, _) => location.pattern.to_owned(),
    };
    for directive in location.scope.own() {
        let text = "Kirin asks the server directly, without the body";
        if !context.globals.notes.is_open(directive) {
            continue;
        }
        if matches!(
            directive.name.as_str(),
            "proxy_pass_request_body" | "internal" | "proxy_set_header" | "proxy_cache"
        ) {
            context.by_itself(directive, text);
        }
    }
    context.carried(location.directive);
    Some((place, path))
}

/// Adds the fields of the answer that places and visitors get.
fn add_fields<'a>(table: &mut Table, scope: &Scope<'a>, context: &Context<'a>) {
    let (mut fields, mut response_fields, mut user) = (Vec::new(), Vec::new(), None);
    for set in scope.list("auth_request_set").iter().copied() {
        let source = only_variable(set.arg(1)).and_then(|name| {
            name.strip_prefix("upstream_http_").or_else(|| name.strip_prefix("sent_http_"))
        });
        let Some(source) = source else {
            context.left_out(set, "`fields` are fields of the answer");
            continue;
        };
        let variable = set.arg(0).trim_start_matches('$');
        let name = field_name(source);
        let is_of = |directive: &&&Directive| only_variable(directive.arg(1)) == Some(variable);
        let given = ["proxy_set_header", "fastcgi_param", "uwsgi_param", "grpc_set_header"]
            .iter()
            .find_map(|list| scope.list(list).iter().find(is_of));
        let to_visitor = scope.list("add_header").iter().find(is_of);
        if let Some(directive) = given {
            let target = directive.arg(0);
            match target {
                "REMOTE_USER" => user = Some(name.clone()),
                target if target.eq_ignore_ascii_case(&name) => {}
                target => context.left_out(
                    directive,
                    format!("servers get the field as {name}, and not as {target}"),
                ),
            }
            context.carried_but(directive, "by `fields` of `auth_request`");
            fields.push(name);
        } else if let Some(directive) = to_visitor {
            response_fields.push(directive.arg(0).to_owned());
            context.carried_but(directive, "by `response_fields` of `auth_request`");
        } else {
            context.left_out(set, "nothing that Kirin carries over uses this variable");
            continue;
        }
        context.carried(set);
    }
    if let Some(user) = user {
        table.insert("user".into(), text(user));
    }
    if !fields.is_empty() {
        table.insert("fields".into(), texts(fields));
    }
    if !response_fields.is_empty() {
        table.insert("response_fields".into(), texts(response_fields));
    }
}
