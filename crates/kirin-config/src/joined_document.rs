//! Joins the documents of all files of a configuration into one.

use serde::Deserialize;
use serde_spanned::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::document::Document;
use crate::placement::placed;
use crate::source::{ConfigError, ConfigErrors, ConfigSource};
use crate::source_file::SourceFile;
use crate::wording::hint_for_syntax;

/// The keys whose lists are joined. Any other key is in one file at most.
const JOINED: [&str; 6] = ["include", "listener", "app", "upstream", "route", "site"];

/// The document of a configuration, and what is wrong with its files.
pub struct JoinedDocument<'a> {
    /// All keys.
    pub document: Document<'a>,
    /// The errors of the syntax, one for each line.
    pub syntax_errors: Vec<ConfigError>,
    /// The errors about keys that two files have.
    pub repeated: Vec<ConfigError>,
}

impl<'a> JoinedDocument<'a> {
    /// Parses the files of a configuration.
    pub fn parse(source: &'a ConfigSource) -> Self {
        let mut joined = DeTable::new();
        let mut end = 0;
        let (mut syntax_errors, mut repeated) = (Vec::new(), Vec::new());
        for file in source.files() {
            let (table, errors) = DeTable::parse_recoverable(&file.text);
            // The parser continues in the rest of a line.
            let mut last_line = None;
            for error in errors {
                let at = file.begin + error.span().map_or(0, |span| span.start);
                if last_line.replace(file.line_of(at)) != Some(file.line_of(at)) {
                    syntax_errors.push(syntax_error(file, &error, source));
                }
            }
            let table = placed(table.into_inner(), file.begin, source.expansions());
            end = file.next_begin();
            match joined.is_empty() {
                true => joined = table,
                false => join(&mut joined, table, source, &mut repeated),
            }
        }
        let document = Document::new(Spanned::new(0..end, joined));
        Self { document, syntax_errors, repeated }
    }
}

/// Returns the table of all files, with the values of variables. Only its syntax is checked.
pub fn toml_table(source: &ConfigSource) -> Result<toml::Table, ConfigErrors> {
    let JoinedDocument { document, syntax_errors, .. } = JoinedDocument::parse(source);
    if let Some(error) = syntax_errors.into_iter().next() {
        return Err(error.into());
    }
    toml::Table::deserialize(document.deserializer())
        .map_err(|error| source.error_in_all(error.message()).into())
}

/// Returns an error of the parser.
fn syntax_error(file: &SourceFile, error: &toml::de::Error, source: &ConfigSource) -> ConfigError {
    let mut message = error.message().trim().replace('\n', "; ");
    let span = error.span().unwrap_or(0..1);
    let (begin, end) = (file.begin + span.start, file.begin + span.end);
    let hint = file.line_at(begin).and_then(|(line, at)| hint_for_syntax(line, at));
    if let Some(hint) = hint {
        message.push_str(&format!("; {hint}"));
    }
    source.error(begin..end.max(begin + 1), message)
}

/// Adds the keys of another file.
fn join<'a>(
    joined: &mut DeTable<'a>,
    table: DeTable<'a>,
    source: &ConfigSource,
    repeated: &mut Vec<ConfigError>,
) {
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let Some((first, present)) = joined.get_key_value(name) else {
            joined.insert(key, value);
            continue;
        };
        if !JOINED.contains(&name) {
            let line = source.line_seen_from(first.span().start, key.span().start);
            let message =
                format!("`{name}` is already on {line}; only one file of a configuration has it");
            repeated.push(source.error(key.span(), message));
            continue;
        }
        match (present.get_ref(), value.get_ref()) {
            (DeValue::Array(_), DeValue::Array(_)) => append(joined, name, value),
            // What is no list is kept alone, so that reading it is an error.
            (DeValue::Array(_), _) => {
                joined.remove(name);
                joined.insert(key, value);
            }
            _ => {}
        }
    }
}

fn append<'a>(joined: &mut DeTable<'a>, name: &str, value: Spanned<DeValue<'a>>) {
    let DeValue::Array(more) = value.into_inner() else { return };
    if let Some(DeValue::Array(items)) = joined.get_mut(name).map(Spanned::get_mut) {
        more.into_iter().for_each(|item| DeArray::push(items, item));
    }
}
