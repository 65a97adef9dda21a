//! The reference of the configuration, as Markdown made from the doc comments of its types.
//!
//! `docs/configuration.md` is this text; a test says when it is not.

use std::fmt::Write;

use serde_json::Value;

use crate::access::MaintenanceSection;
use crate::access_log::AccessLogSection;
use crate::auth_request::AuthRequestSection;
use crate::cache::CacheSection;
use crate::file::ConfigFile;
use crate::mirror::MirrorSection;

const INTRODUCTION: &str = "\
# Configuration reference

<!-- Generated from crates/kirin-config/src: `kirin config-reference > docs/configuration.md`. -->

`kirin serve --config kirin.toml` reads a TOML file, and those that it includes. `kirin check
--config kirin.toml` only checks them: it reports all errors at once, each with its file and line.
`kirin serve --print-config app.psgi` shows the file that a command line stands for.

- Relative paths are relative to the directory of the file, also in files that it includes.
- `${NAME}` and `${NAME:-DEFAULT}` in a string are environment variables
  ([configuration-files.md](configuration-files.md#name)).
- A key that is not on this page is an error.
- Sizes are written as `\"64MB\"` (B, KB, MB, GB; 1 KB is 1,024 bytes), times as `\"30s\"` (s, m, h, d).

Everything is one of: a listener, the store, an app, an upstream, a route, a site. `[admin]` is the
listener for operators.

## Contents

";

/// The sections: heading, type, and what stands before its keys.
const SECTIONS: [(&str, &str, &str); 21] = [
    ("`[[listener]]`: an address", "ListenerSection", "listener."),
    ("`[listener.tls]`: https on a listener", "TlsSection", "listener.tls."),
    (
        "`acme` of `[listener.tls]`: certificates from an authority",
        "AcmeSection",
        "listener.tls.acme.",
    ),
    (
        "`external_account` of `acme`: your account at the authority",
        "ExternalAccountSection",
        "listener.tls.acme.external_account.",
    ),
    ("`[limits]`: bytes held for clients", "LimitsSection", "limits."),
    ("`[store]`: items in memory", "StoreSection", "store."),
    ("`[admin]`: a listener for operators", "AdminSection", "admin."),
    ("`[traces]`: where traces of requests go", "TracesSection", "traces."),
    ("`[[app]]`: an application", "AppSection", "app."),
    ("`trial` of an application", "TrialSection", "app.trial."),
    (
        "`[open_file_cache]`: what is remembered of files",
        "OpenFileCacheSection",
        "open_file_cache.",
    ),
    ("`[lua]`: what scripts may take", "LuaSection", "lua."),
    ("`[[upstream]]`: other HTTP servers", "UpstreamSection", "upstream."),
    ("`health` of an upstream", "HealthSection", "upstream.health."),
    ("`tls` of an upstream", "UpstreamTlsSection", "upstream.tls."),
    ("`[[route]]`: which request goes where", "RouteSection", "route."),
    ("`match` of a route", "MatchSection", "route.match."),
    ("`rate_limit` of a route", "RateLimitSection", "route.rate_limit."),
    ("`in_flight_limit` of a route", "InFlightLimitSection", "route.in_flight_limit."),
    ("`cgi` of a route", "CgiSection", "route.cgi."),
    ("`[[site]]`: hosts with their own routes", "SiteSection", "site."),
];

const TOP_LEVEL: &str = "Top level";
const ACCESS_LOG: &str = "`access_log` of a listener, a route or a site";
const CACHE: &str = "`cache` of a route";
const MIRROR: &str = "`mirror` of a route";
const AUTH_REQUEST: &str = "`auth_request` of a route";
const MAINTENANCE: &str = "`maintenance` of a route";

/// Returns the reference as Markdown.
pub fn reference() -> String {
    let mut out = String::from(INTRODUCTION);
    let headings = SECTIONS.iter().map(|(heading, ..)| *heading);
    for heading in std::iter::once(TOP_LEVEL).chain(headings).chain([
        ACCESS_LOG,
        MAINTENANCE,
        AUTH_REQUEST,
        CACHE,
        MIRROR,
    ]) {
        let _ = writeln!(out, "- [{heading}](#{})", anchor(heading));
    }
    for_each_section(|heading, schema, prefix| write_section(&mut out, heading, schema, prefix));
    out
}

/// Calls `take` with the heading, the schema and the prefix of each section, in the order of the
/// reference.
fn for_each_section(mut take: impl FnMut(&str, &Value, &str)) {
    let schema = schemars::schema_for!(ConfigFile).to_value();
    take(TOP_LEVEL, &schema, "");
    for (heading, definition, prefix) in SECTIONS {
        take(heading, &schema["$defs"][definition], prefix);
    }
    let access_log = schemars::schema_for!(AccessLogSection).to_value();
    take(ACCESS_LOG, &access_log, "access_log.");
    let maintenance = schemars::schema_for!(MaintenanceSection).to_value();
    take(MAINTENANCE, &maintenance, "route.maintenance.");
    let auth_request = schemars::schema_for!(AuthRequestSection).to_value();
    take(AUTH_REQUEST, &auth_request, "route.auth_request.");
    let cache = schemars::schema_for!(CacheSection).to_value();
    take(CACHE, &cache, "route.cache.");
    let mirror = schemars::schema_for!(MirrorSection).to_value();
    take(MIRROR, &mirror, "route.mirror.");
}

/// Returns the names of all keys, as the reference has them: `listener.tls.hsts`.
#[cfg(test)]
pub(crate) fn keys() -> Vec<String> {
    let mut keys = Vec::new();
    for_each_section(|_, schema, prefix| {
        let properties = schema["properties"].as_object();
        let names = properties.into_iter().flat_map(serde_json::Map::keys);
        keys.extend(names.map(|key| format!("{prefix}{key}")));
    });
    keys
}

/// Returns the name by which Markdown links to a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn write_section(out: &mut String, heading: &str, schema: &Value, prefix: &str) {
    let _ = write!(out, "\n## {heading}\n\n| key | default | meaning |\n| --- | --- | --- |\n");
    let Some(properties) = schema["properties"].as_object() else { return };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (key, property) in properties {
        let is_section = property["$ref"].is_string() || property["items"]["$ref"].is_string();
        let default = match &property["default"] {
            _ if required.contains(&key.as_str()) => "required".to_owned(),
            _ if is_section => "none".to_owned(),
            Value::Null => "none".to_owned(),
            value => format!("`{value}`"),
        };
        let meaning = property["description"].as_str().unwrap_or("").replace('\n', " ");
        let _ = writeln!(out, "| `{prefix}{key}` | {default} | {meaning} |");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn docs_configuration_md_is_generated_from_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == super::reference(),
            "docs/configuration.md is not what the types say: run `cargo run -p kirin -- config-reference > docs/configuration.md`"
        );
    }
}
