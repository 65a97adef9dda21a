//! Reads the keys from the files of a configuration.
//!
//! serde stops at the first wrong value. So [`load`] takes a wrong key out of the document and
//! reads it again, until only good keys are left. That way a user sees all errors at once.

use serde::Deserialize;
use serde_spanned::Spanned;
use toml::de::{DeTable, DeValue};

use crate::document::{Document, PathStep, ValuePath};
use crate::file::ConfigFile;
use crate::inherit::{INHERITED, inherit, unusable_keys};
use crate::joined_document::JoinedDocument;
use crate::source::{ConfigError, ConfigSource};
use crate::suggestion::closest;
use crate::variable_types::{convert_variables, is_about_text};
use crate::wording::{missing_key, reword};

/// The most errors that are looked for. Each of them reads the document once more.
const MAX_ERRORS: usize = 50;

/// The good keys of a configuration, and the errors in the others.
#[derive(Debug)]
pub struct Loaded<'a> {
    /// The good keys. `None` if a table lacks a key that it must have: the rest cannot be checked.
    pub file: Option<ConfigFile>,
    /// The errors in the keys that were left out.
    pub errors: Vec<ConfigError>,
    /// The tables from which a key was left out.
    damaged: Vec<ValuePath>,
    /// The keys that were probably meant by unknown ones, with the offsets of those.
    meant: Vec<(usize, String)>,
    /// The document as it is written.
    document: Document<'a>,
}

/// Reads the keys of a configuration. Unknown keys, wrong types and bad values are errors.
pub fn load(source: &ConfigSource) -> Loaded<'_> {
    load_joined(JoinedDocument::parse(source), source)
}

/// Reads only the keys by which commands find a running Kirin, as [`load`] does. The environment of
/// a command may lack the variables of others.
pub fn load_command_addresses(source: &ConfigSource) -> Loaded<'_> {
    let mut joined = JoinedDocument::parse(source);
    let root = joined.document.root_mut();
    keep_only(root, &["admin", "store"]);
    if let Some(DeValue::Table(store)) = root.get_mut("store").map(Spanned::get_mut) {
        keep_only(store, &["memcached"]);
    }
    load_joined(joined, source)
}

fn keep_only(table: &mut DeTable<'_>, keys: &[&str]) {
    let is_kept = |key: &str| keys.contains(&key);
    let all = std::mem::take(table).into_iter();
    table.extend(all.filter(|(key, _)| is_kept(key.get_ref())));
}

fn load_joined<'a>(joined: JoinedDocument<'a>, source: &'a ConfigSource) -> Loaded<'a> {
    let JoinedDocument { document, syntax_errors, repeated } = joined;
    let mut good = document.clone();
    let mut loaded =
        Loaded { file: None, errors: Vec::new(), damaged: Vec::new(), meant: Vec::new(), document };
    loaded.errors = syntax_errors;
    loaded.errors.extend(source.include_errors());
    if !loaded.errors.is_empty() {
        // A key after such an error may be in another table than its writer meant, and the keys of
        // a file may be missing.
        return loaded;
    }
    loaded.errors.extend(repeated);
    for (offset, error) in source.variable_errors() {
        if loaded.errors.len() >= MAX_ERRORS {
            break;
        }
        let path = good.path_at(offset);
        if good.remove(&path) {
            loaded.errors.push(error);
            loaded.damaged.push(table_of(&path));
        }
    }
    let mut is_complete = true;
    while loaded.errors.len() < MAX_ERRORS {
        let error = match ConfigFile::deserialize(inherit(&good).deserializer()) {
            Ok(file) => {
                loaded.file = is_complete.then_some(file);
                return loaded;
            }
            Err(error) => error,
        };
        let start = error.span().map_or(0, |span| span.start);
        let path = good.path_at(start);
        if is_about_text(error.message()) && convert_variables(&mut good, &path, source) {
            continue;
        }
        let missing = missing_key(error.message());
        is_complete &= missing.is_none();
        if !missing.is_some_and(|key| loaded.has_lost(start, key)) {
            let meant = meant_key(error.message(), other_keys(&path));
            loaded.errors.push(describe(&error, &path, &good, meant, source));
            loaded.meant.extend(meant.map(|key| (start, key.to_owned())));
        }
        if !good.remove(&path) {
            return loaded;
        }
        loaded.damaged.push(table_of(&path));
    }
    loaded
}

impl Loaded<'_> {
    /// Returns whether all sections of this name were left out, because they are no sections.
    pub fn has_left_out(&self, section: &str) -> bool {
        self.damaged.iter().any(|path| matches!(&path[..], [PathStep::Key(key)] if key == section))
    }

    /// Returns whether a key is only missing in the table at `offset` because its value or its name
    /// was wrong.
    fn has_lost(&self, offset: usize, key: &str) -> bool {
        let path = self.document.path_at(offset);
        let table = self.document.value_at(&path).and_then(|value| value.as_table());
        let is_in_table = |offset: usize| {
            self.document.path_at(offset).split_last().is_some_and(|(_, table)| table == path)
        };
        table.is_some_and(|table| table.contains_key(key))
            || self.meant.iter().any(|(offset, meant)| meant == key && is_in_table(*offset))
    }

    /// Returns errors for keys of sites that no route can use. They are looked for in a file that
    /// is right otherwise, because such an error may follow from another.
    pub fn unusable_keys(&self, source: &ConfigSource) -> Vec<ConfigError> {
        match self.errors.is_empty() {
            true => unusable_keys(&self.document, source),
            false => Vec::new(),
        }
    }

    /// Returns the errors that do not follow from a key that was left out: `try` is not missing if
    /// its value was wrong.
    pub fn own_errors(&self, errors: Vec<ConfigError>) -> Vec<ConfigError> {
        if self.damaged.is_empty() {
            return errors;
        }
        // The places of all keys and values, and whether their table lacks a key.
        let mut places = Vec::new();
        self.document.for_each_place(&mut |path, offset| {
            places.push((offset, self.damaged.iter().any(|table| *table == table_of(path))));
        });
        // Sorting keeps the order of a key and what is inside.
        places.sort_by_key(|(offset, _)| *offset);
        let is_own = |error: &ConfigError| {
            let Some(offset) = error.offset() else { return true };
            let innermost = places.partition_point(|(begin, _)| *begin <= offset).checked_sub(1);
            !innermost.is_some_and(|index| places[index].1)
        };
        errors.into_iter().filter(is_own).collect()
    }
}

/// Returns the way to the table of the file that the value at `path` belongs to.
fn table_of(path: &[PathStep]) -> ValuePath {
    let end = match path {
        [_, PathStep::Item(_), PathStep::Key(_), PathStep::Item(_), ..]
            if is_route_of_site(path) =>
        {
            4
        }
        [_, PathStep::Item(_), ..] => 2,
        _ => path.len().min(1),
    };
    path[..end].to_vec()
}

fn is_route_of_site(path: &[PathStep]) -> bool {
    let is = |step: usize, name: &str| matches!(&path[step], PathStep::Key(key) if key == name);
    is(0, "site") && is(2, "route")
}

/// Returns the keys that serde does not know to be allowed at `path`: a site also has those of its
/// routes.
fn other_keys(path: &[PathStep]) -> &[String] {
    match path {
        [PathStep::Key(site), PathStep::Item(_), PathStep::Key(_)] if site == "site" => &INHERITED,
        _ => &[],
    }
}

/// Returns an error of serde with the key, and with the key that was probably meant.
fn describe(
    error: &toml::de::Error,
    path: &[PathStep],
    document: &Document<'_>,
    meant: Option<&str>,
    source: &ConfigSource,
) -> ConfigError {
    let start = error.span().map_or(0, |span| span.start);
    let expansion = source.expansions().get(&start);
    let written = expansion.map(|expansion| DeValue::String(expansion.written.as_str().into()));
    let value = document.value_at(path);
    let is_text = value.is_some_and(|value| matches!(value, DeValue::String(_)));
    let value = written.as_ref().filter(|_| is_text).or(value);
    let mut message = reword(error.message(), path, value);
    if let Some(meant) = meant {
        message.push_str(&format!("; did you mean `{meant}`?"));
    } else if error.message().starts_with("unknown field `include`") {
        message.push_str("; `include` stands before the first [table] of a file");
    }
    at_span(error, message, source)
}

fn at_span(error: &toml::de::Error, message: String, source: &ConfigSource) -> ConfigError {
    match error.span() {
        Some(span) => source.error(span.start..span.end.max(span.start + 1), message),
        None => source.error_in_all(message),
    }
}

/// Returns the allowed key that is closest to the unknown one. serde writes: unknown field `a`,
/// expected one of `b`, `c`. The keys in `more` are allowed, too.
fn meant_key<'a>(message: &'a str, more: &'a [String]) -> Option<&'a str> {
    let mut quoted = message.strip_prefix("unknown field `")?.split('`');
    let unknown = quoted.next()?;
    // Between two names in quotes is `, `.
    closest(unknown, quoted.skip(1).step_by(2).chain(more.iter().map(String::as_str)))
}
