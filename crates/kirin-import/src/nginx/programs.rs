//! `proxy_pass` and its relatives: the programs that answer.

use toml::Value;

use super::context::Context;
use super::directive::Directive;
use super::fastcgi::{FastCgi, fastcgi};
use super::location::{Kind, Location};
use super::paths::{Ending, Form};
use super::redirects::{without_query, without_rest};
use super::request_fields::add_request_fields;
use super::route::Route;
use super::units::text;
use super::upstream::{Protocol, Target, add_upstream};
use super::variables::Target as Place;

/// The directives that name a program, with the protocol that it speaks.
pub const PASSES: [(&str, Protocol); 5] = [
    ("proxy_pass", Protocol::Http),
    ("grpc_pass", Protocol::Grpc),
    ("fastcgi_pass", Protocol::FastCgi),
    ("uwsgi_pass", Protocol::Uwsgi),
    ("scgi_pass", Protocol::Scgi),
];

/// Returns the directive of a location that names a program.
pub fn pass<'a>(location: &Location<'a>) -> Option<(&'a Directive, Protocol)> {
    PASSES.iter().find_map(|(name, protocol)| Some((location.own(name)?, *protocol)))
}

/// Adds the program of a location to the places of a route. An error says why Kirin cannot have it.
pub fn push_program<'a>(
    route: &mut Route,
    location: &Location<'a>,
    form: &Form,
    context: &Context<'a>,
) -> Result<(), String> {
    let Some((directive, protocol)) = pass(location) else { return Ok(()) };
    let mut variables = context.variables(&location.scope);
    variables.known.extend(form.groups.clone());
    let written = without_query(directive.arg(0));
    let (written, passes_path) = match ["$request_uri", "$uri", "$document_uri"]
        .iter()
        .find_map(|path| written.strip_suffix(path))
    {
        Some(start) => (start, true),
        None => (written, false),
    };
    let start = match location.is_expression() {
        true => without_rest(written, form)?,
        false => written,
    };
    let address = variables
        .translate(start, Place::Path)
        .map_err(|name| format!("the server depends on the variable `${name}`"))?;
    let target = Target::read(protocol, &address).ok_or_else(|| {
        format!("Kirin cannot have the server `{address}`: servers stand in the file")
    })?;
    let name = match protocol {
        Protocol::FastCgi => match fastcgi(location, form, &target, context)? {
            FastCgi::Program { path, environment } => {
                route.push("try", text(format!("cgi:{path}")));
                if !environment.is_empty() {
                    let env =
                        toml::Table::from_iter([("env".to_owned(), Value::Table(environment))]);
                    route.section.set("cgi", env);
                }
                context.carried_but(directive, "Kirin runs the programs itself");
                return Ok(());
            }
            FastCgi::Server(keys) => add_upstream(&target, &location.scope, context, keys)?,
        },
        _ => add_upstream(&target, &location.scope, context, Vec::new())?,
    };
    if !passes_path && let Some(path) = &target.path {
        add_rewrite(route, location, form, path)?;
    }
    route.push("try", text(format!("proxy:{name}")));
    add_request_fields(route, &location.scope, protocol, context);
    context.carried(directive);
    Ok(())
}

/// Sets `rewrite` for the path behind the address.
fn add_rewrite(
    route: &mut Route,
    location: &Location<'_>,
    form: &Form,
    path: &str,
) -> Result<(), String> {
    if path.contains(['?', '#', '%', '\\']) || path.contains("//") {
        return Err("the path behind the server has a query or an encoded character".into());
    }
    let own: String = form.segments.iter().map(|segment| format!("/{segment}")).collect();
    let trimmed = match path.trim_end_matches('/') {
        "" => "/",
        trimmed => trimmed,
    };
    let is_same = match location.kind {
        Kind::Exact => path == location.pattern,
        _ => trimmed.trim_end_matches('/') == own,
    };
    if is_same {
        return Ok(());
    }
    if route.has_place("files:") {
        return Err("files and the server would see different paths".into());
    }
    let is_fixed = location.is_expression() && form.rest.is_none() && form.ending == Ending::Below;
    if is_fixed && !form.segments.is_empty() {
        // nginx sends this path for every request; Kirin appends what follows the segments.
        route.section.comment("Kirin appends the rest of the path to `rewrite`.");
    }
    route.section.set("rewrite", text(trimmed));
    Ok(())
}
