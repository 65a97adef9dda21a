//! `proxy_cache` and its relatives.

use toml::{Table, Value};

use super::context::Context;
use super::directive::Directive;
use super::route::Route;
use super::scope::Scope;
use super::units::{bytes, text, texts};
use super::upstream::Protocol;
use super::variables::{Part, field_name, only_variable, parts};
use crate::text::size;
use crate::times::{seconds, time, time_of};

/// The most memory that a cache on disk gets in memory without a person's decision.
const MAX_MEMORY: u64 = 1 << 30;

/// Adds the cache that holds in a block for programs of this protocol.
pub fn add_cache<'a>(
    route: &mut Route,
    scope: &Scope<'a>,
    protocol: Protocol,
    context: &Context<'a>,
) {
    let prefix = protocol.prefix();
    let one = |name: &str| scope.one(&format!("{prefix}_{name}"));
    let list = |name: &str| scope.list(&format!("{prefix}_{name}")).to_vec();
    let Some(directive) = one("cache") else { return };
    if directive.is_off() {
        return context.carried(directive);
    }
    let mut table = Table::new();
    if let Err((at, why)) =
        add_bypass(&mut table, &list("cache_bypass"), &list("no_cache"), context)
    {
        context.left_out(at, why);
        let text = "not cached, because Kirin would keep responses that nginx does not keep: write \
                    `cache = { … }` with `bypass` if that is right";
        return context.left_out(directive, text);
    }
    if let Some(key) = one("cache_key") {
        if !is_common_key(key.arg(0)) {
            context.left_out(
                key,
                "the key is scheme, host, path and query; `ignore_query` leaves out arguments",
            );
            let text = "not cached, because Kirin's key does not distinguish the same requests";
            return context.left_out(directive, text);
        }
        context.by_itself(key, "the key is scheme, host, path and query");
    }
    add_times(&mut table, &list("cache_valid"), context);
    add_stale(&mut table, one("cache_use_stale"), zone(directive, prefix, context), context);
    if let Some(lock) = one("cache_lock") {
        context.by_itself(lock, "one request at a time goes to the place");
    }
    if let Some(timeout) = one("cache_lock_timeout")
        && let Some(time) = time_of(timeout.arg(0))
    {
        table.insert("wait".into(), time);
        context.carried(timeout);
    }
    if let Some(ignore) = one("ignore_headers") {
        add_ignored(&mut table, ignore, context);
    }
    set_memory(zone(directive, prefix, context), context);
    route.section.set("cache", if table.is_empty() { Value::Boolean(true) } else { table.into() });
    context.carried_but(directive, "in memory, and as the responses' `Cache-Control` allows");
}

fn zone<'a>(directive: &Directive, prefix: &str, context: &Context<'a>) -> Option<&'a Directive> {
    let kind = match prefix {
        "fastcgi" => "fastcgi_cache_path",
        "uwsgi" => "uwsgi_cache_path",
        "scgi" => "scgi_cache_path",
        _ => "proxy_cache_path",
    };
    context.globals.named(kind, directive.arg(0))
}

/// Sets the memory of the store by the size of a zone.
fn set_memory<'a>(zone: Option<&'a Directive>, context: &Context<'a>) {
    let Some(zone) = zone else { return };
    let Some(wanted) = zone.option("max_size").and_then(bytes) else {
        return context
            .carried_but(zone, "in memory; `memory` of [store] says how much, 64 MB by default");
    };
    let memory = wanted.clamp(1 << 20, MAX_MEMORY);
    let mut store = context.output.store.borrow_mut();
    let known = store.get("memory").and_then(Value::as_str).unwrap_or_default().to_owned();
    let known = known.strip_suffix('B').and_then(bytes).unwrap_or(0);
    if memory > known {
        store.set("memory", size(memory));
    }
    let text = match wanted > memory {
        true => "in memory and not on disk, so 1 GB: write what the machine has into `memory`",
        false => "in memory, and not on disk",
    };
    context.carried_but(zone, text);
}

/// Adds the requests that bypass the cache. An error is a directive that Kirin cannot have.
fn add_bypass<'a>(
    table: &mut Table,
    bypass: &[&'a Directive],
    no_cache: &[&'a Directive],
    context: &Context<'a>,
) -> Result<(), (&'a Directive, String)> {
    let mut entries: Vec<String> = Vec::new();
    for directive in bypass.iter().chain(no_cache).copied() {
        for arg in &directive.args {
            let name = only_variable(arg).unwrap_or_default();
            let entry = match name.split_once('_') {
                Some(("cookie", name)) => format!("cookie:{name}"),
                Some(("http", "authorization" | "cookie")) => {
                    // The cache looks at these by itself.
                    continue;
                }
                Some(("http", name)) => format!("header:{}", field_name(name)),
                Some(("arg", name)) => format!("query:{name}"),
                _ => return Err((directive, format!("`bypass` cannot have {arg}"))),
            };
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        context.carried(directive);
    }
    if !entries.is_empty() {
        table.insert("bypass".into(), texts(entries));
    }
    Ok(())
}

/// Returns whether a key has the scheme, the host, the method, the path and the query only.
fn is_common_key(key: &str) -> bool {
    let mut has_path = false;
    let common = parts(key).into_iter().all(|part| match part {
        Part::Text(text) => text.chars().all(|c| c.is_ascii_punctuation() || c == ' '),
        Part::Variable(name) => {
            has_path |= matches!(name, "request_uri" | "uri");
            matches!(
                name,
                "scheme"
                    | "request_method"
                    | "host"
                    | "http_host"
                    | "server_name"
                    | "proxy_host"
                    | "request_uri"
                    | "uri"
                    | "is_args"
                    | "args"
                    | "query_string"
                    | "server_port"
            )
        }
    });
    common && has_path
}

/// Adds how long responses are fresh that say nothing themselves.
fn add_times<'a>(table: &mut Table, valid: &[&'a Directive], context: &Context<'a>) {
    let (mut ttl, mut negative) = (None, None);
    for directive in valid.iter().copied() {
        let Some((last, statuses)) = directive.args.split_last() else { continue };
        let Some(seconds) = seconds(last).filter(|_| !matches!(last.as_str(), "0" | "0s")) else {
            context.left_out(directive, "`ttl` is a time above 0");
            continue;
        };
        let has = |wanted: &[&str]| statuses.iter().any(|status| wanted.contains(&status.as_str()));
        if statuses.is_empty() || has(&["200", "301", "302", "any"]) {
            ttl.get_or_insert(seconds);
        }
        if has(&["404", "410", "any"]) {
            negative.get_or_insert(seconds);
        }
        context.carried_but(directive, "for responses that say nothing themselves");
    }
    if let Some(ttl) = ttl {
        table.insert("ttl".into(), time(ttl));
        if negative != Some(ttl) {
            // Without it, `ttl` would count for 404, too.
            table.insert("negative_ttl".into(), time(negative.unwrap_or(1)));
        }
    } else if let Some(negative) = negative {
        table.insert("negative_ttl".into(), time(negative));
    }
}

fn add_stale<'a>(
    table: &mut Table,
    directive: Option<&'a Directive>,
    zone: Option<&'a Directive>,
    context: &Context<'a>,
) {
    let Some(directive) = directive.filter(|directive| !directive.is_off()) else { return };
    let is_error = |arg: &String| arg == "error" || arg == "timeout" || arg.starts_with("http_5");
    if !directive.args.iter().any(is_error) {
        return context.by_itself(directive, "`stale-while-revalidate` of the response");
    }
    let kept = zone.and_then(|zone| zone.option("inactive")).and_then(time_of);
    table.insert("stale_if_error".into(), kept.unwrap_or_else(|| text("1h")));
    context.carried(directive);
}

fn add_ignored<'a>(table: &mut Table, directive: &'a Directive, context: &Context<'a>) {
    let has = |name: &str| directive.args.iter().any(|arg| arg.eq_ignore_ascii_case(name));
    if has("Set-Cookie") {
        table.insert("cookies".into(), text("ignore"));
        context.carried_but(directive, "the place does not see cookies of GET then");
    }
    if has("Cache-Control") || has("Expires") || has("Vary") {
        context
            .left_out(directive, "Kirin obeys `Cache-Control`, `Expires` and `Vary` of responses");
    } else if !has("Set-Cookie") {
        context.by_itself(directive, "the fields X-Accel-… have no effect");
    }
}
