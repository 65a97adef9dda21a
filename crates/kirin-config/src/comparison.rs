//! Compares two documents, section by section and key by key.

use std::borrow::Cow;

use serde_spanned::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use crate::difference::{Change, ChangeKind, OldAndNew};
use crate::partners::Partners;
use crate::placement::as_written;
use crate::reload_class::{ReloadClass, TABLES_WITH_DEFAULTS, class_of, is_section};
use crate::source::ConfigSource;
use crate::value_text::{name_text, shown, shown_difference, value_text, write_key};

/// The arrays of tables at the top level.
const ITEMS: [&str; 5] = ["listener", "app", "upstream", "route", "site"];

/// The keys of a site that are not keys for its routes.
const OF_SITES_ONLY: [&str; 3] = ["hosts", "name", "route"];

/// The keys whose values are never shown, because they may hold secrets: variables with passwords,
/// fields and arguments with tokens, URLs with credentials.
const SECRET_KEYS: [&str; 8] = [
    "app.env",
    "listener.tls.acme.directory",
    "route.headers",
    "route.match.headers",
    "route.match.query",
    "store.origin",
    "traces.endpoint",
    "upstream.health.path",
];

/// The tables whose entries are not named. They are compared as one value.
const COMPARED_AS_ONE: [&str; 1] = ["app.env"];

/// The table of both documents that is compared.
#[derive(Clone)]
struct Position {
    /// The site that has the route.
    site: Option<String>,
    /// The name of the item.
    name: Option<String>,
    /// The section as it is written, such as `route.access_log`.
    section: String,
    /// What stands before the keys of the table, such as `access_log.`.
    prefix: String,
    /// The section in the reference, such as `access_log`. For a table with any keys, such as
    /// `route.headers`, the key of this table.
    reference: String,
}

/// The changes so far.
struct Comparison<'a> {
    changes: Vec<Change>,
    /// The old and the new configuration.
    sources: [&'a ConfigSource; 2],
}

/// A value with the place where it is written.
type PlacedValue<'v, 'a> = Option<&'v Spanned<DeValue<'a>>>;

/// Returns the changes that lead from the document `old` to the document `new`. They are of the
/// configurations in `sources`.
pub fn compare(old: &DeTable<'_>, new: &DeTable<'_>, sources: [&ConfigSource; 2]) -> Vec<Change> {
    let mut comparison = Comparison { changes: Vec::new(), sources };
    let top_level = Position::section("");
    for key in keys_of_both(old, new) {
        let (old_placed, new_placed) = (old.get(key), new.get(key));
        let [old, new] = [old_placed, new_placed].map(|value| value.map(Spanned::get_ref));
        let section = Position::section(key);
        if let Some(kind) = ITEMS.iter().find(|kind| **kind == key) {
            comparison.items(kind, None, &tables(old), &tables(new));
        } else if TABLES_WITH_DEFAULTS.contains(&key) {
            let none = DeTable::new();
            let table = |value: Option<&_>| value.and_then(DeValue::as_table).cloned();
            let (old, new) = (table(old), table(new));
            comparison.table(
                &section,
                old.as_ref().unwrap_or(&none),
                new.as_ref().unwrap_or(&none),
            );
        } else {
            match (old, new) {
                (Some(DeValue::Table(old)), Some(DeValue::Table(new))) => {
                    comparison.table(&section, old, new);
                }
                (None, Some(DeValue::Table(_))) => comparison.complete(section, key, true),
                (Some(DeValue::Table(_)), None) => comparison.complete(section, key, false),
                _ => comparison.key(&top_level, key, old_placed, new_placed),
            }
        }
    }
    comparison.changes
}

impl Comparison<'_> {
    /// Compares the items of an array of tables. `kind` is the name of the array.
    fn items(
        &mut self,
        kind: &str,
        site: Option<&str>,
        old: &[&DeTable<'_>],
        new: &[&DeTable<'_>],
    ) {
        let partners = partners(kind, old, new);
        let at = |item: &DeTable<'_>| Position {
            site: site.map(str::to_owned),
            name: Some(item_name(kind, item)),
            ..Position::section(kind)
        };
        // Two routes can match the same request, and then the first of them gets it.
        if kind == "route" && partners.is_reordered() {
            let place = Position { site: site.map(str::to_owned), ..Position::section(kind) };
            self.push(place, None, ChangeKind::Reordered, class_for("route"));
        }
        for (item, partner) in new.iter().zip(&partners.old_of_new) {
            match partner {
                Some(index) => self.table(&at(item), old[*index], item),
                None => self.complete(at(item), kind, true),
            }
        }
        for index in partners.removed {
            self.complete(at(old[index]), kind, false);
        }
    }

    /// Adds the change that a complete item or table is added or removed.
    fn complete(&mut self, at: Position, reference: &str, is_added: bool) {
        let kind = match is_added {
            true => ChangeKind::Added { value: None },
            false => ChangeKind::Removed { value: None },
        };
        self.push(at, None, kind, class_for(reference));
    }

    /// Compares two tables key by key.
    fn table(&mut self, at: &Position, old: &DeTable<'_>, new: &DeTable<'_>) {
        for key in keys_of_both(old, new) {
            self.key(at, key, old.get(key), new.get(key));
        }
    }

    /// Compares the values of a key. Tables are compared key by key.
    fn key(
        &mut self,
        at: &Position,
        key: &str,
        old_placed: PlacedValue<'_, '_>,
        new_placed: PlacedValue<'_, '_>,
    ) {
        let reference = reference_of(&at.reference, key);
        let [old, new] = [old_placed, new_placed].map(|value| value.map(Spanned::get_ref));
        match (old, new) {
            _ if reference == "site.route" => {
                self.items("route", at.name.as_deref(), &tables(old), &tables(new));
            }
            (Some(DeValue::Array(old)), Some(DeValue::Array(new)))
                if reference == "upstream.servers" =>
            {
                self.servers(at, old, new);
            }
            (Some(DeValue::Table(old)), Some(DeValue::Table(new)))
                if !COMPARED_AS_ONE.contains(&reference.as_str()) =>
            {
                self.table(&at.table_inside(key, &reference), old, new);
            }
            _ => self.value(at, key, &reference, old_placed, new_placed),
        }
    }

    /// Compares two values as a whole.
    fn value(
        &mut self,
        at: &Position,
        key: &str,
        reference: &str,
        old: PlacedValue<'_, '_>,
        new: PlacedValue<'_, '_>,
    ) {
        let is_secret = [old, new]
            .into_iter()
            .flatten()
            .any(|value| may_hold_secret(reference, value.get_ref()));
        let [old_source, new_source] = self.sources;
        let one = |value, source| (!is_secret).then(|| shown(&written_text(value, source)));
        let kind = match (old, new) {
            (None, None) => return,
            (None, Some(new)) => ChangeKind::Added { value: one(new, new_source) },
            (Some(old), None) => ChangeKind::Removed { value: one(old, old_source) },
            (Some(old), Some(new)) if value_text(old.get_ref()) == value_text(new.get_ref()) => {
                return;
            }
            (Some(old), Some(new)) => {
                let (old, new) = (written_text(old, old_source), written_text(new, new_source));
                // The same variable can have another value.
                let values = (!is_secret && old != new).then(|| {
                    let [old, new] = shown_difference(&old, &new);
                    OldAndNew { old, new }
                });
                ChangeKind::Changed { values }
            }
        };
        self.push(at.clone(), Some(at.key(key)), kind, class_for(reference));
    }

    /// Compares the servers of an upstream.
    fn servers(&mut self, at: &Position, old: &DeArray<'_>, new: &DeArray<'_>) {
        let (old, new) = (server_tables(old), server_tables(new));
        let address = |server: &Cow<'_, DeTable<'_>>| text_of(server, "address");
        let partners = Partners::find(&old, &new, &[&address]);
        let class = class_for("upstream.servers");
        let shown_key = |server: &_| format!("server {}", name_text(&address(server)));
        if partners.is_reordered() {
            self.push(at.clone(), Some("servers".into()), ChangeKind::Reordered, class);
        }
        for (server, partner) in new.iter().zip(&partners.old_of_new) {
            let key = shown_key(server);
            match partner {
                Some(index) => {
                    let prefix = format!("{key}, ");
                    let inside =
                        Position { prefix, ..at.table_inside("servers", "upstream.servers") };
                    self.table(&inside, &old[*index], server);
                }
                None => {
                    self.push(at.clone(), Some(key), ChangeKind::Added { value: None }, class);
                }
            }
        }
        for index in partners.removed {
            let kind = ChangeKind::Removed { value: None };
            self.push(at.clone(), Some(shown_key(&old[index])), kind, class);
        }
    }

    fn push(&mut self, at: Position, key: Option<String>, kind: ChangeKind, class: ReloadClass) {
        let Position { site, name, section, .. } = at;
        self.changes.push(Change { section, site, name, key, kind, class });
    }
}

impl Position {
    /// Returns the position of a table at the top level. The top level itself is `""`.
    fn section(name: &str) -> Self {
        Self {
            site: None,
            name: None,
            section: name.into(),
            prefix: String::new(),
            reference: name.into(),
        }
    }

    /// Returns the position of a table in this one, which is the value of `key`.
    fn table_inside(&self, key: &str, reference: &str) -> Self {
        let shown_key = shown_key(key);
        Self {
            section: format!("{}.{shown_key}", self.section),
            prefix: format!("{}{shown_key}.", self.prefix),
            reference: section_of(reference).into(),
            ..self.clone()
        }
    }

    /// Returns a key of the table as it is shown.
    fn key(&self, key: &str) -> String {
        format!("{}{}", self.prefix, shown_key(key))
    }
}

/// Returns the text of a value without the values of its variables.
fn written_text(value: &Spanned<DeValue<'_>>, source: &ConfigSource) -> String {
    value_text(&as_written(value, source.expansions()))
}

/// Returns the class of a key. What is not known needs an upgrade, which can change everything.
fn class_for(reference: &str) -> ReloadClass {
    class_of(reference).unwrap_or(ReloadClass::Upgrade)
}

/// Returns the section in the reference for the table of a key.
fn section_of(reference: &str) -> &str {
    if reference.ends_with(".access_log") { "access_log" } else { reference }
}

/// Returns the name in the reference of a key in a section. In a table with any keys it is the name
/// of this table.
fn reference_of(section: &str, key: &str) -> String {
    let name = match section {
        "" => return key.into(),
        "site" if !OF_SITES_ONLY.contains(&key) => format!("route.{key}"),
        _ => format!("{section}.{key}"),
    };
    if is_section(section) { name } else { section.into() }
}

/// Returns whether a value may hold a secret, itself or in a table inside.
fn may_hold_secret(reference: &str, value: &DeValue<'_>) -> bool {
    SECRET_KEYS.contains(&reference)
        || match value {
            DeValue::Table(table) => table.iter().any(|(key, value)| {
                let inside = reference_of(section_of(reference), key.get_ref());
                may_hold_secret(&inside, value.get_ref())
            }),
            DeValue::Array(items) => {
                items.iter().any(|item| may_hold_secret(reference, item.get_ref()))
            }
            _ => false,
        }
}

/// Finds the items that are in both files.
fn partners(kind: &str, old: &[&DeTable<'_>], new: &[&DeTable<'_>]) -> Partners {
    type Item<'a, 'b> = &'a DeTable<'b>;
    match kind {
        "listener" => Partners::find(old, new, &[&|item: &Item<'_, '_>| text_of(item, "address")]),
        // A route whose `match` has changed is still the route of that path.
        "route" => Partners::find(
            old,
            new,
            &[&|route| [text_of(route, "path"), text_of(route, "match")].join("\n"), &|route| {
                text_of(route, "path")
            }],
        ),
        // A site that gets another host or a name is the same site while its first host is.
        "site" => Partners::find(
            old,
            new,
            &[&|site| site_identity(site), &|site| {
                hosts(site).first().cloned().unwrap_or_default()
            }],
        ),
        _ => Partners::find(old, new, &[&|item| text_of(item, "name")]),
    }
}

/// Returns what identifies a site: its name, or else its hosts.
fn site_identity(site: &DeTable<'_>) -> String {
    if site.contains_key("name") {
        return format!("name {}", text_of(site, "name"));
    }
    let mut hosts = hosts(site);
    hosts.sort();
    format!("hosts {}", hosts.join("\n"))
}

/// Returns the hosts of a site, in the order of the file.
fn hosts(site: &DeTable<'_>) -> Vec<String> {
    let hosts = value_of(site, "hosts").and_then(DeValue::as_array);
    hosts
        .into_iter()
        .flat_map(|hosts| hosts.iter())
        .map(|host| plain_text(host.get_ref()))
        .collect()
}

/// Returns the name of an item by which a person recognises it.
fn item_name(kind: &str, item: &DeTable<'_>) -> String {
    let name = match kind {
        "listener" => text_of(item, "address"),
        "route" => return route_name(item),
        "site" if !item.contains_key("name") => hosts(item).into_iter().next().unwrap_or_default(),
        _ => text_of(item, "name"),
    };
    name_text(&name)
}

/// Returns the path of a route, with what its `match` asks for. Values of fields and arguments are
/// left out, because they may be secrets.
fn route_name(route: &DeTable<'_>) -> String {
    let path = name_text(&text_of(route, "path"));
    let Some(DeValue::Table(conditions)) = value_of(route, "match") else { return path };
    let mut parts = Vec::new();
    for key in keys_of_both(conditions, conditions) {
        match value_of(conditions, key) {
            Some(DeValue::Array(methods)) if key == "methods" => {
                parts.extend(methods.iter().map(|method| plain_text(method.get_ref())));
            }
            Some(DeValue::Table(names)) => {
                parts.extend(keys_of_both(names, names).iter().map(|name| format!("{key} {name}")));
            }
            _ => parts.push(key.into()),
        }
    }
    match parts.is_empty() {
        true => path,
        false => format!("{path} ({})", name_text(&parts.join(", "))),
    }
}

/// Returns the tables of an array of tables.
fn tables<'v, 'a>(value: Option<&'v DeValue<'a>>) -> Vec<&'v DeTable<'a>> {
    let items = value.and_then(DeValue::as_array);
    let items = items.into_iter().flat_map(|items| items.iter());
    items.filter_map(|item| item.get_ref().as_table()).collect()
}

/// Returns the servers of an upstream as tables. A text alone stands for a table with that address.
fn server_tables<'v, 'a>(servers: &'v DeArray<'a>) -> Vec<Cow<'v, DeTable<'a>>> {
    let table = |server: &'v Spanned<DeValue<'a>>| match server.get_ref() {
        DeValue::Table(table) => Cow::Borrowed(table),
        _ => {
            let key = Spanned::new(server.span(), DeString::Borrowed("address"));
            let mut table = DeTable::new();
            table.insert(key, server.clone());
            Cow::Owned(table)
        }
    };
    servers.iter().map(table).collect()
}

/// Returns the keys of both tables: those of the new one in the order of its file, then those that
/// only the old one has.
fn keys_of_both<'v>(old: &'v DeTable<'_>, new: &'v DeTable<'_>) -> Vec<&'v str> {
    let in_order = |table: &'v DeTable<'_>| {
        let mut keys: Vec<_> = table.keys().collect();
        keys.sort_by_key(|key| key.span().start);
        keys.into_iter().map(|key| key.get_ref().as_ref())
    };
    let removed = in_order(old).filter(|key: &&str| !new.contains_key(*key));
    in_order(new).chain(removed).collect()
}

fn value_of<'v, 'a>(table: &'v DeTable<'a>, key: &str) -> Option<&'v DeValue<'a>> {
    table.get(key).map(Spanned::get_ref)
}

/// Returns a value as a name or part of one: a text without quotes, anything else as TOML. It is
/// empty if the table does not have the key.
fn text_of(table: &DeTable<'_>, key: &str) -> String {
    value_of(table, key).map(plain_text).unwrap_or_default()
}

fn plain_text(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.clone().into_owned(),
        value => value_text(value),
    }
}

fn shown_key(key: &str) -> String {
    let mut out = String::new();
    write_key(&mut out, key);
    shown(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_secrets_are_keys() {
        for key in SECRET_KEYS.iter().chain(&COMPARED_AS_ONE) {
            assert!(class_of(key).is_some(), "`{key}` is not a key of the configuration");
        }
    }

    #[test]
    fn a_key_has_its_name_in_the_reference() {
        for (section, key, name) in [
            ("", "threads", "threads"),
            ("listener", "tls", "listener.tls"),
            ("site", "hosts", "site.hosts"),
            ("site", "cache", "route.cache"),
            ("route.headers", "X-Frame-Options", "route.headers"),
            ("route.match", "headers", "route.match.headers"),
            ("access_log", "path", "access_log.path"),
            ("upstream.servers", "weight", "upstream.servers"),
            ("listener", "unknown", "listener.unknown"),
        ] {
            assert_eq!(reference_of(section, key), name, "{section} {key}");
        }
    }
}
