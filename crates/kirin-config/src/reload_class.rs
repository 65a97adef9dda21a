//! What a running Kirin does about a key that has changed.
//!
//! [`TABLE`] gives every key its class. `docs/reload.md` has the same table for operators. Tests
//! say when a key is missing here, and when the page is not what the table says.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::LazyLock;

use ReloadClass::{AtOnce, NewGeneration, Upgrade};

/// How a changed key takes effect in a running Kirin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReloadClass {
    /// The change takes effect at once.
    AtOnce,
    /// The change starts a new generation of the application's workers.
    NewGeneration,
    /// The change needs an upgrade of the program. `kirin reload` refuses it.
    Upgrade,
}

impl fmt::Display for ReloadClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AtOnce => "at once",
            NewGeneration => "new generation",
            Upgrade => "upgrade",
        })
    }
}

/// Keys of one section that have the same class for the same reason.
struct KeyGroup {
    /// The section as the reference writes it, without the last dot. Empty for the top level.
    section: &'static str,
    class: ReloadClass,
    /// The keys, with spaces between them. The key of a section, such as `tls`, stands for adding
    /// and removing the table.
    keys: &'static str,
    /// The reason, for operators.
    reason: &'static str,
}

/// Makes a row of [`TABLE`].
const fn group(
    section: &'static str,
    class: ReloadClass,
    keys: &'static str,
    reason: &'static str,
) -> KeyGroup {
    KeyGroup { section, class, keys, reason }
}

/// The class of every key. A key that this table does not have needs an upgrade.
#[rustfmt::skip]
const TABLE: &[KeyGroup] = &[
    group("", Upgrade, "threads", "event loops start with the program"),
    group("", Upgrade, "user", "Kirin has given up the rights of root"),
    group("", Upgrade, "admin metrics", "their sockets are bound at the start"),
    group("", AtOnce, "include", "the keys of the files have their own rows"),
    group("", AtOnce, "connections traces url_patterns", ""),
    group("", AtOnce, "listener app upstream route site", ""),
    group("listener", AtOnce, "address", "a listener with another address is another listener"),
    group("listener", AtOnce, "tls", "for new connections"),
    group("listener", AtOnce, "access_log redirect_to_https", ""),
    group("listener", AtOnce, "keep_alive head_timeout body_timeout write_timeout min_rate", ""),
    group("listener", AtOnce, "head_limit request_line_limit", ""),
    group("listener", AtOnce, "connections_per_address client_memory client_disk", ""),
    group("listener", AtOnce, "trusted forwarded forwarded_host proxy_protocol", ""),
    group("listener.tls", AtOnce, "certificates handshake_time client_ca client_verify ticket_key_file early_data",
        "for new connections"),
    group("listener.tls", AtOnce, "hsts hsts_subdomains", ""),
    group("listener.tls", Upgrade, "http3", "the sockets are bound with the listener"),
    group("listener.tls", AtOnce, "acme", ""),
    group("listener.tls.acme", AtOnce, "domains email directory state shared_key_file",
        ""),
    group("listener.tls.acme", AtOnce, "external_account", ""),
    group("listener.tls.acme.external_account", AtOnce, "id key_file", ""),
    group("limits", AtOnce, "client_memory client_disk", ""),
    group("store", AtOnce, "memory", "becomes smaller step by step"),
    group("store", Upgrade, "item_limit", "the store is opened at the start"),
    group("store", Upgrade, "memcached", "the sockets are bound at the start"),
    group("store", Upgrade, "stampede_guard snapshot", "the store is opened at the start"),
    group("store", Upgrade, "origin origin_ca origin_password_file origin_prefix",
        "the store is opened at the start"),
    group("store", Upgrade, "origin_timeout stale_limit", "the store is opened at the start"),
    group("store", AtOnce, "session_cookie purge_from", ""),
    group("admin", Upgrade, "address", "the socket is bound at the start"),
    group("traces", AtOnce, "endpoint sample service", ""),
    group("app", AtOnce, "name", "an application with another name is another application"),
    group("app", AtOnce, "workers", "in the generation that serves"),
    group("app", AtOnce, "trial", "for the next trial"),
    group("app.trial", AtOnce, "share time", "for the next trial"),
    group("app", NewGeneration, "load interpreter adapter directory preload env", ""),
    group("app", NewGeneration, "queue queue_wait deadline slow start_limit body_limit", ""),
    group("app", NewGeneration, "sendfile max_requests max_age max_memory shared_memory", ""),
    group("open_file_cache", AtOnce, "paths memory descriptors small_file validity", ""),
    group("lua", AtOnce, "time_limit memory_limit body_limit", ""),
    group("upstream", AtOnce, "name servers balance hash_key sticky_cookie", ""),
    group("upstream", AtOnce, "max_failures ejection_time slow_start retry_percent", ""),
    group("upstream", AtOnce, "max_in_flight queue queue_wait", ""),
    group("upstream", AtOnce, "host forwarded via root index extension path_info", ""),
    group("upstream", AtOnce, "connect_timeout send_timeout first_byte_timeout idle_timeout", ""),
    group("upstream", AtOnce, "keep_connections keep_time max_requests max_age resolve", ""),
    group("upstream", AtOnce, "health tls sendfile accel_redirect", ""),
    group("upstream.health", AtOnce, "path host interval timeout status", ""),
    group("upstream.health", AtOnce, "healthy_after unhealthy_after", ""),
    group("upstream.tls", AtOnce, "ca server_name verify certificate", ""),
    group("route", AtOnce, "path match try headers request_headers", ""),
    group("route", AtOnce, "deny allow maintenance basic_auth basic_auth_realm rate_limit", ""),
    group("route", AtOnce, "auth_request in_flight_limit", ""),
    group("route", AtOnce, "redirect redirect_status redirects rewrite", ""),
    group("route", AtOnce, "error_pages intercept_errors access_log", ""),
    group("route", AtOnce, "listing follow_links precompressed index mime_types charset", ""),
    group("route", AtOnce, "fallback immutable", ""),
    group("route", AtOnce, "body_limit request_buffering", ""),
    group("route", AtOnce, "ssi esi compress cache mirror cgi", ""),
    group("route.match", AtOnce, "methods headers query clients cookies scheme not", ""),
    group("route.rate_limit", AtOnce, "key rate burst status page dry_run shared", ""),
    group("route.in_flight_limit", AtOnce, "key max status page dry_run", ""),
    group("route.maintenance", AtOnce, "page retry_after allow", ""),
    group("route.auth_request", AtOnce, "ask path fields user response_fields", ""),
    group("route.cache", AtOnce, "item_limit ttl negative_ttl stale_if_error", ""),
    group("route.mirror", AtOnce, "to share methods ignore", ""),
    group("route.cgi", AtOnce, "max_in_flight queue queue_wait",
        "programs that run do not count for the new limits"),
    group("route.cgi", AtOnce, "deadline env", "for new requests"),
    group("route.cache", AtOnce, "cookies bypass ignore_query wait reload", ""),
    group("site", AtOnce, "hosts name route", "every key of a route that a site has, too"),
    group("access_log", AtOnce, "path format status slower_than sample except", ""),
];

/// The tables that every configuration has, with defaults if they are not written. So they are
/// never added or removed, and only their keys have classes.
pub const TABLES_WITH_DEFAULTS: [&str; 4] = ["limits", "store", "open_file_cache", "lua"];

/// The names of all keys of [`TABLE`] as the reference writes them, with their classes.
static CLASSES: LazyLock<HashMap<String, ReloadClass>> = LazyLock::new(|| {
    TABLE.iter().flat_map(|group| group.names().map(|name| (name, group.class))).collect()
});

impl KeyGroup {
    /// Returns the names of the keys as the reference writes them.
    fn names(&self) -> impl Iterator<Item = String> {
        self.keys.split(' ').map(|key| match self.section {
            "" => key.to_owned(),
            section => format!("{section}.{key}"),
        })
    }
}

/// Returns the class of a key by its name in the reference, such as `listener.tls.hsts`. The name
/// of a table, such as `listener` or `listener.tls`, stands for adding and removing one.
pub fn class_of(key: &str) -> Option<ReloadClass> {
    CLASSES.get(key).copied()
}

/// Returns whether a name is that of a section, such as `listener.tls`. Other tables, such as
/// `route.headers`, have any keys, and the class of all of them is that of the table.
pub(crate) fn is_section(name: &str) -> bool {
    TABLE.iter().any(|group| group.section == name)
}

/// Returns the table of all keys in Markdown. Neighbouring groups that differ in their keys only
/// are one row.
pub fn reload_table() -> String {
    let mut out = String::from("| key | takes effect | why |\n| --- | --- | --- |\n");
    let is_one_row = |a: &KeyGroup, b: &KeyGroup| {
        (a.section, a.class, a.reason) == (b.section, b.class, b.reason)
    };
    for row in TABLE.chunk_by(is_one_row) {
        let names: Vec<String> =
            row.iter().flat_map(KeyGroup::names).map(|name| describe(&name)).collect();
        if let [KeyGroup { class, reason, .. }, ..] = row {
            let _ = writeln!(out, "| {} | {class} | {reason} |", names.join(", "));
        }
    }
    out
}

/// Returns a name as the table of the page writes it. The keys of a section are in rows of their
/// own.
fn describe(name: &str) -> String {
    match is_section(name) || name.ends_with(".access_log") {
        true if ["listener", "app", "upstream", "route", "site"].contains(&name) => {
            format!("`[[{name}]]` added or removed")
        }
        true => format!("`{name}` as a whole"),
        false => format!("`{name}`"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const BEGIN: &str = "<!-- The table is generated: KIRIN_WRITE_DOCS=1 cargo test -p kirin-config reload_md -->\n";
    const END: &str = "<!-- End of the table. -->\n";

    #[test]
    fn every_key_has_one_class() {
        let mut named = BTreeSet::new();
        for name in TABLE.iter().flat_map(KeyGroup::names) {
            assert!(named.insert(name.clone()), "TABLE in reload_class.rs has `{name}` twice");
        }
        let mut keys: BTreeSet<String> = crate::reference::keys().into_iter().collect();
        for table in TABLES_WITH_DEFAULTS {
            assert!(keys.remove(table), "`{table}` of TABLES_WITH_DEFAULTS is not a key");
        }
        let missing: Vec<_> = keys.difference(&named).collect();
        assert!(
            missing.is_empty(),
            "TABLE in reload_class.rs lacks these keys: {missing:?}. Add each to a group of its \
             section; a key that a running Kirin cannot change is of the class Upgrade."
        );
        let unknown: Vec<_> = named.difference(&keys).collect();
        assert!(
            unknown.is_empty(),
            "TABLE in reload_class.rs has keys that the configuration lacks: {unknown:?}. \
             Remove them."
        );
    }

    #[test]
    fn keys_are_found_by_their_names_in_the_reference() {
        for (name, class) in [
            ("threads", Some(Upgrade)),
            ("listener.keep_alive", Some(AtOnce)),
            ("listener.tls", Some(AtOnce)),
            ("listener.tls.hsts", Some(AtOnce)),
            ("listener.tls.acme.email", Some(AtOnce)),
            ("store.session_cookie", Some(AtOnce)),
            ("store.memory", Some(AtOnce)),
            ("store.item_limit", Some(Upgrade)),
            ("app", Some(AtOnce)),
            ("app.env", Some(NewGeneration)),
            ("access_log.path", Some(AtOnce)),
            ("listener.nothing", None),
            ("", None),
        ] {
            assert_eq!(class_of(name), class, "{name}");
        }
    }

    #[test]
    fn docs_reload_md_has_the_table_of_classes() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reload.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap_or_else(|| panic!("no line {BEGIN}"));
        let (table, after) = rest.split_once(END).unwrap_or_else(|| panic!("no line {END}"));
        let generated = format!("\n{}\n", reload_table());
        if std::env::var_os("KIRIN_WRITE_DOCS").is_some_and(|value| value == "1") {
            std::fs::write(path, format!("{before}{BEGIN}{generated}{END}{after}")).unwrap();
            return;
        }
        assert!(
            table == generated,
            "the table of docs/reload.md is not what reload_class.rs says: run \
             `KIRIN_WRITE_DOCS=1 cargo test -p kirin-config reload_md`"
        );
    }
}
