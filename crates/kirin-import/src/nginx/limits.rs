//! `limit_req`, `limit_conn` and sizes.

use toml::{Table, Value};

use super::context::Context;
use super::directive::Directive;
use super::route::Route;
use super::scope::Scope;
use super::units::{bytes, text};
use super::variables::{Target, field_name, only_variable};
use crate::text::size;

/// The largest body that nginx accepts if nothing says otherwise.
const DEFAULT_BODY: u64 = 1 << 20;

/// Adds the limits that hold in a block.
pub fn add_limits<'a>(route: &mut Route, scope: &Scope<'a>, context: &Context<'a>) {
    for directive in scope.list("limit_req").iter().copied() {
        add_rate_limit(route, directive, scope, context);
    }
    for directive in scope.list("limit_conn").iter().copied() {
        add_in_flight_limit(route, directive, scope, context);
    }
}

/// Adds the largest body.
pub fn add_body_limit<'a>(route: &mut Route, scope: &Scope<'a>, context: &Context<'a>) {
    let directive = scope.one("client_max_body_size");
    let limit = directive.map_or(Some(DEFAULT_BODY), |directive| bytes(directive.arg(0)));
    let Some(limit) = limit else {
        if let Some(directive) = directive {
            context.left_out(directive, "`body_limit` is a size, such as \"10MB\"");
        }
        return;
    };
    if let Some(directive) = directive {
        context.carried(directive);
    }
    if limit > 0 && (route.has_place("proxy:") || route.has_place("cgi:")) {
        route.section.set("body_limit", size(limit));
    } else if limit == 0 && route.has_place("cgi:") {
        route.section.set("body_limit", text("1024GB"));
    }
}

fn add_rate_limit<'a>(
    route: &mut Route,
    directive: &'a Directive,
    scope: &Scope<'a>,
    context: &Context<'a>,
) {
    let name = directive.option("zone").unwrap_or_default();
    let Some(zone) = context.globals.named("limit_req_zone", name) else {
        return context.left_out(directive, format!("there is no limit_req_zone `{name}`"));
    };
    let Some(rate) = zone.option("rate").and_then(rate) else {
        return context.left_out(directive, "the rate of the zone is not understood");
    };
    let mut table = Table::new();
    add_key(&mut table, zone.arg(0), directive, context);
    table.insert("rate".into(), Value::String(rate));
    let burst = directive.option("burst").and_then(|burst| burst.parse::<i64>().ok()).unwrap_or(0);
    table.insert("burst".into(), Value::from(burst.clamp(0, 1_000_000) + 1));
    add_refusal(&mut table, scope, "limit_req", 429, context);
    route.push("rate_limit", table);
    context.carried(zone);
    let delays = burst > 0 && !directive.has("nodelay");
    context.carried_but(directive, if delays { "requests are never delayed" } else { "" });
}

/// Returns a rate as Kirin writes it.
fn rate(word: &str) -> Option<String> {
    let (number, unit) = word.split_once('/')?;
    let number: u64 = number.strip_suffix('r')?.parse().ok().filter(|number| *number > 0)?;
    matches!(unit, "s" | "m").then(|| format!("{number}/{unit}"))
}

fn add_in_flight_limit<'a>(
    route: &mut Route,
    directive: &'a Directive,
    scope: &Scope<'a>,
    context: &Context<'a>,
) {
    let name = directive.arg(0);
    let Some(zone) = context.globals.named("limit_conn_zone", name) else {
        return context.left_out(directive, format!("there is no limit_conn_zone `{name}`"));
    };
    let Some(max) = directive.arg(1).parse::<u32>().ok().filter(|max| *max > 0) else {
        return context.left_out(directive, "`max` is a number above 0");
    };
    let mut table = Table::new();
    add_key(&mut table, zone.arg(0), directive, context);
    table.insert("max".into(), Value::from(i64::from(max)));
    add_refusal(&mut table, scope, "limit_conn", 503, context);
    route.push("in_flight_limit", table);
    context.carried(zone);
    context.carried_but(directive, "requests in progress");
}

/// Adds what requests are counted by, unless it is the address.
fn add_key<'a>(table: &mut Table, key: &str, directive: &'a Directive, context: &Context<'a>) {
    let key = match only_variable(key) {
        Some("binary_remote_addr" | "remote_addr") => return,
        Some("server_name" | "server_port" | "hostname") => "route".to_owned(),
        Some(name) if name.starts_with("http_") => {
            format!("header:{}", field_name(name.trim_start_matches("http_")))
        }
        Some(name) if name.starts_with("cookie_") => {
            format!("cookie:{}", name.trim_start_matches("cookie_"))
        }
        _ => {
            let variables = context.variables(&context.server.scope);
            match variables.translate(key, Target::Field).ok().filter(|key| key.contains('{')) {
                Some(key) if !key.contains("{user}") => key,
                _ => {
                    let text = "requests are counted by the client's address, because `key` cannot \
                                be the same";
                    return context.carried_but(directive, text);
                }
            }
        }
    };
    table.insert("key".into(), text(key));
}

/// Adds the status of a refusal, and whether it is only counted.
fn add_refusal<'a>(
    table: &mut Table,
    scope: &Scope<'a>,
    prefix: &str,
    default: i64,
    context: &Context<'a>,
) {
    if let Some(directive) = scope.one(&format!("{prefix}_status")) {
        let status = directive.arg(0).parse::<i64>().unwrap_or(default);
        if status != default && (400..=599).contains(&status) {
            table.insert("status".into(), Value::from(status));
        }
        match status {
            444 => context.carried_but(directive, "the connection stays open"),
            _ => context.carried(directive),
        }
    }
    if let Some(directive) = scope.one(&format!("{prefix}_dry_run")) {
        if directive.is_on() {
            table.insert("dry_run".into(), Value::Boolean(true));
        }
        context.carried(directive);
    }
}
