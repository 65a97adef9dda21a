//! Blocks `upstream`: servers, and how one of them is chosen.

use toml::{Table, Value};

use super::context::Context;
use super::directive::Directive;
use super::units::text;
use super::upstream::{Protocol, Target, time_option};
use crate::section::Section;
use crate::times::time_of;

/// The largest weight of a server.
const MAX_WEIGHT: u32 = 1000;

/// Adds the keys of a block.
pub fn add_block<'a>(
    section: &mut Section,
    target: &Target,
    block: &'a Directive,
    context: &Context<'a>,
) -> Result<(), String> {
    context.carried(block);
    let mut servers = Vec::new();
    for directive in block.inside() {
        if directive.name == "server" {
            servers.extend(server(section, target, directive, context));
        }
    }
    if servers.is_empty() {
        return Err(format!("the upstream `{}` has no server that Kirin can have", block.arg(0)));
    }
    section.set("servers", Value::Array(servers));
    for directive in block.inside().iter().filter(|directive| directive.name != "server") {
        option(section, target, directive, context);
    }
    Ok(())
}

/// Returns a server of a block.
fn server<'a>(
    section: &mut Section,
    target: &Target,
    directive: &'a Directive,
    context: &Context<'a>,
) -> Option<Value> {
    if directive.has("down") {
        let text = "write `kirin upstream disable` when the server must get no requests; it is not \
                    in `servers`";
        context.left_out(directive, text);
        return None;
    }
    let Some(address) = target.server_address(directive.arg(0), 80) else {
        context.left_out(directive, "Kirin cannot have this address in `servers`");
        return None;
    };
    let mut table = Table::from_iter([("address".to_owned(), text(&address))]);
    if let Some(weight) = directive.option("weight").and_then(|weight| weight.parse::<u32>().ok()) {
        table.insert("weight".into(), Value::from(i64::from(weight.clamp(1, MAX_WEIGHT))));
    }
    if directive.has("backup") {
        table.insert("backup".into(), Value::Boolean(true));
    }
    let max = directive.option("max_conns").and_then(|max| max.parse::<u32>().ok());
    if let Some(max) = max.filter(|max| *max > 0) {
        table.insert("max_in_flight".into(), Value::from(i64::from(max)));
    }
    let failures = directive.option("max_fails").and_then(|max| max.parse::<u32>().ok());
    if let Some(failures) = failures {
        section.set("max_failures", i64::from(failures));
    }
    if let Some(time) = time_option(directive, "fail_timeout") {
        section.set("ejection_time", time);
    }
    if let Some(time) = time_option(directive, "slow_start") {
        section.set("slow_start", time);
    }
    context.carried(directive);
    Some(if table.len() == 1 { text(address) } else { Value::Table(table) })
}

/// Adds a directive of a block that is no server.
fn option<'a>(
    section: &mut Section,
    target: &Target,
    directive: &'a Directive,
    context: &Context<'a>,
) {
    let word = directive.arg(0);
    let number = word.parse::<u32>().ok();
    let keeps = matches!(target.protocol, Protocol::Http | Protocol::Grpc | Protocol::FastCgi);
    match (directive.name.as_str(), number) {
        ("least_conn", _) => section.set("balance", text("least-connections")),
        ("least_time", _) => section.set("balance", text("latency")),
        ("ip_hash", _) => hash(section, "address"),
        ("hash", _) => {
            let Some(key) = hash_key(word) else {
                let text = "`hash_key` is `target`, `address`, `header:NAME` or `cookie:NAME`";
                context.left_out(directive, text);
                return;
            };
            hash(section, &key);
        }
        ("random", _) => {
            let by_requests = directive.has("least_conn");
            let balance = if by_requests { "least-connections" } else { "latency" };
            section
                .set("balance", text(if directive.has("two") { balance } else { "round-robin" }));
        }
        ("sticky", _) if word == "cookie" => section.set("sticky_cookie", text(directive.arg(1))),
        ("keepalive", Some(number)) if keeps => section.set("keep_connections", i64::from(number)),
        ("keepalive_timeout", _) if keeps => {
            let Some(time) = time_of(word) else { return };
            section.set("keep_time", time);
        }
        ("keepalive_requests", Some(number)) if keeps => {
            section.set("max_requests", i64::from(number));
        }
        ("keepalive_time", _) if keeps => {
            let Some(time) = time_of(word) else { return };
            section.set("max_age", time);
        }
        ("queue", Some(number)) => {
            section.set("queue", i64::from(number));
            if let Some(time) = time_option(directive, "timeout") {
                section.set("queue_wait", time);
            }
        }
        ("resolver", _) => {
            section.set("resolve", text("30s"));
            let text = "the resolver is that of the system";
            return context.carried_but(directive, text);
        }
        (
            "zone" | "keepalive" | "keepalive_timeout" | "keepalive_requests" | "keepalive_time",
            _,
        ) => {
            return context.by_itself(directive, "all event loops know the same servers");
        }
        _ => return context.left_out(directive, "an [[upstream]] has no such key"),
    }
    context.carried(directive);
}

fn hash(section: &mut Section, key: &str) {
    section.set("balance", text("hash"));
    section.set("hash_key", text(key));
}

/// Returns the key of a hash as Kirin writes it.
fn hash_key(word: &str) -> Option<String> {
    use super::variables::{field_name, only_variable};
    Some(match only_variable(word) {
        Some("request_uri" | "uri") => "target".into(),
        Some("remote_addr" | "binary_remote_addr") => "address".into(),
        Some(name) => match name.strip_prefix("http_") {
            Some(field) => format!("header:{}", field_name(field)),
            None => format!("cookie:{}", name.strip_prefix("cookie_")?),
        },
        None if matches!(word, "$scheme$proxy_host$request_uri" | "$host$request_uri") => {
            "target".into()
        }
        None => return None,
    })
}
