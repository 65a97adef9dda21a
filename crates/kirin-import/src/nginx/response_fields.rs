//! `add_header`, `expires` and `proxy_hide_header`: the fields of responses.

use toml::Value;

use super::context::Context;
use super::directive::Directive;
use super::route::{MAX_ENTRIES, Route};
use super::scope::Scope;
use super::tls::is_hsts;
use super::units::text;
use super::variables::{Target, Variables, only_variable};
use crate::times::milliseconds;

/// Fields that Kirin writes itself.
const OF_KIRIN: [&str; 11] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "content-length",
    "content-range",
    "date",
    "location",
];

/// A time from which files count as files that never change, in seconds.
const FOR_EVER: u64 = 365 * 86_400;

/// Fields that tell browsers to be careful. They do no harm on responses that do not need them.
const OF_SECURITY: [&str; 8] = [
    "content-security-policy",
    "cross-origin-embedder-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "permissions-policy",
    "referrer-policy",
    "x-frame-options",
    "x-xss-protection",
];

/// Adds the fields of responses that hold in a block.
pub fn add_response_fields<'a>(route: &mut Route, scope: &Scope<'a>, context: &Context<'a>) {
    let mut variables = context.variables(scope);
    for directive in scope.of_all_levels("auth_request_set") {
        // `auth_request` adds these fields.
        let name = directive.arg(0).trim_start_matches('$').to_owned();
        variables.known.insert(name, "\0".into());
    }
    let mut control = Vec::new();
    if let Some(expires) = scope.one("expires") {
        control.extend(cache_control(expires, &variables, context));
    }
    for directive in scope.list("add_header").iter().copied() {
        if directive.arg(0).eq_ignore_ascii_case("cache-control") {
            control.push((directive, directive.arg(1).to_owned()));
        } else {
            add_field(route, directive, directive.arg(0), directive.arg(1), &variables, context);
        }
    }
    add_cache_control(route, &control, &variables, context);
    for directive in scope.list("more_set_headers").iter().copied() {
        for line in &directive.args {
            match line.split_once(':') {
                Some((name, value)) if !line.starts_with('-') => {
                    add_field(route, directive, name.trim(), value.trim(), &variables, context);
                }
                _ => context.left_out(directive, "write the field into `headers`"),
            }
        }
    }
    let of_programs = ["proxy_hide_header", "fastcgi_hide_header", "uwsgi_hide_header"];
    for name in of_programs.into_iter().chain(["scgi_hide_header", "grpc_hide_header"]) {
        for directive in scope.list(name).iter().copied() {
            hide(route, directive, directive.arg(0), context);
        }
    }
    for directive in scope.list("more_clear_headers").iter().copied() {
        for name in &directive.args {
            hide(route, directive, name, context);
        }
    }
}

fn hide<'a>(route: &mut Route, directive: &'a Directive, name: &str, context: &Context<'a>) {
    if !may_be_set(name) {
        return context.left_out(directive, "Kirin writes this field itself");
    }
    if route.runs_code() {
        route.add_entry("headers", name, text(""));
    }
    context.carried(directive);
}

fn may_be_set(name: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty()
        && name.chars().all(is_name)
        && !OF_KIRIN.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// Adds a field. Values of the same field are joined, as a list has them.
fn add_field<'a>(
    route: &mut Route,
    directive: &'a Directive,
    name: &str,
    value: &str,
    variables: &Variables,
    context: &Context<'a>,
) {
    if only_variable(value) == Some("upstream_cache_status") {
        return context.by_itself(directive, "`Cache-Status` is always there");
    }
    if is_hsts(name) && context.server.has_listener_hsts {
        return context.carried_but(directive, "by `hsts` of the listener");
    }
    if !may_be_set(name) {
        return context.left_out(directive, "Kirin writes this field itself");
    }
    if value.is_empty() {
        return context.by_itself(directive, "a field without a value is not sent");
    }
    match variables.translate(value, Target::Field) {
        Err(variable) => match value_of_map(name, value, context) {
            Some(value) => {
                route.add_entry("headers", name, text(value));
                context
                    .carried_but(directive, "on every response, and not for some media types only");
            }
            None => {
                context.left_out(directive, format!("`headers` has no variable `${variable}`"));
            }
        },
        Ok(value) if value.contains('\0') => {
            context.carried_but(directive, "by `auth_request`");
        }
        Ok(value) if value.chars().any(char::is_control) => {
            context.left_out(directive, "a value has no control characters");
        }
        Ok(value) => set_field(route, directive, name, &value, context),
    }
}

/// Sets a field, or adds the value to that of the same field.
fn set_field<'a>(
    route: &mut Route,
    directive: &'a Directive,
    name: &str,
    value: &str,
    context: &Context<'a>,
) {
    let is_for_all = directive.has("always");
    route.section.change_table("headers", |table| {
        let is_full = table.len() >= MAX_ENTRIES;
        let Some(old) = table.get(name).and_then(Value::as_str) else {
            if is_full {
                return context.left_out(directive, "a route has very many fields already");
            }
            table.insert(name.to_owned(), text(value));
            return context.carried_but(directive, if is_for_all { "" } else { "on every status" });
        };
        if old == value {
            return context.carried(directive);
        }
        if name.eq_ignore_ascii_case("set-cookie") {
            return context.left_out(directive, "`headers` has one line of a field");
        }
        let joined = format!("{old}, {}", value.replace("${", "$${"));
        table.insert(name.to_owned(), Value::String(joined));
        context.carried_but(directive, "in one line with the other value of the field");
    });
}

/// Returns the `Cache-Control` of `expires`.
fn cache_control<'a>(
    expires: &'a Directive,
    variables: &Variables,
    context: &Context<'a>,
) -> Option<(&'a Directive, String)> {
    let written = expires.arg(0);
    if let Some(map) = only_variable(written).and_then(|name| context.globals.named("map", name)) {
        let text = "a `Cache-Control` cannot depend on the media type: write `headers` into routes \
                    for extensions, such as path = \"*.css\", or `immutable = true` for files with \
                    fingerprints in their names";
        context.left_out(map, text);
        context.left_out(expires, "see the map");
        return None;
    }
    let constant = variables.constant(written).unwrap_or_default();
    let value = match constant.as_str() {
        "off" => {
            context.carried(expires);
            return None;
        }
        "epoch" => "no-cache".to_owned(),
        "max" => "max-age=315360000".to_owned(),
        word if word.starts_with('-') => "no-cache".to_owned(),
        word => match milliseconds(word) {
            Some(time) => format!("max-age={}", time / 1000),
            None => {
                context.left_out(expires, "write a `Cache-Control` into `headers`");
                return None;
            }
        },
    };
    Some((expires, value))
}

/// Adds `Cache-Control`, or `immutable` for files that are kept for a year.
fn add_cache_control<'a>(
    route: &mut Route,
    control: &[(&'a Directive, String)],
    variables: &Variables,
    context: &Context<'a>,
) {
    let mut values: Vec<&str> = Vec::new();
    for (_, value) in control {
        let parts = value.split(',').map(str::trim).filter(|part| !part.is_empty());
        values.extend(parts.filter(|part| !values.contains(part)).collect::<Vec<_>>());
    }
    if values.is_empty() {
        return;
    }
    let age = values.iter().find_map(|value| value.strip_prefix("max-age=")?.parse::<u64>().ok());
    let is_common = |value: &&str| {
        matches!(*value, "public" | "immutable" | "no-transform") || value.starts_with("max-age=")
    };
    let is_of_files =
        route.has_place("files:") && !route.runs_code() && route.section.get("fallback").is_none();
    if age.is_some_and(|age| age >= FOR_EVER) && values.iter().all(is_common) && is_of_files {
        route.section.set("immutable", true);
        for (directive, _) in control {
            context.carried_but(directive, "on files, and not on errors");
        }
        return;
    }
    let joined = values.join(", ");
    let first = control.first().map(|(directive, _)| *directive);
    if let Some(directive) = first {
        add_field(route, directive, "Cache-Control", &joined, variables, context);
    }
    for (directive, _) in control {
        let text = match directive.name.as_str() {
            "expires" => "on errors, too; there is no `Expires`",
            _ => "on errors, too",
        };
        context.carried_but(directive, text);
    }
}

/// Returns the only value that a map by media type has for a field of security.
fn value_of_map<'a>(name: &str, value: &str, context: &Context<'a>) -> Option<&'a str> {
    let map = context.globals.named("map", only_variable(value)?)?;
    if !OF_SECURITY.iter().any(|field| field.eq_ignore_ascii_case(name))
        || only_variable(map.arg(0)) != Some("sent_http_content_type")
    {
        context.left_out(map, "see where it is used");
        return None;
    }
    let mut values =
        map.inside().iter().map(|entry| entry.arg(0)).filter(|value| !value.is_empty());
    let first = values.next().filter(|value| !value.contains(['$', '{']))?;
    if values.any(|other| other != first) {
        return None;
    }
    context.carried_but(map, "on every response");
    Some(first)
}
