//! Moves the document of one file to its place among all files of a configuration.
//!
//! The parser counts from the begin of a file. Here each key and value gets the offset that it has
//! in the configuration ([`crate::source_file`]), and a string with variables its expanded text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_spanned::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::variables::Expansion;

/// The strings with variables, by the offset at which each begins.
pub type Expansions = BTreeMap<usize, Expansion>;

/// Returns `table` with the offsets of a file that begins at `begin`.
pub fn placed<'a>(table: DeTable<'a>, begin: usize, expansions: &'a Expansions) -> DeTable<'a> {
    match begin == 0 && expansions.is_empty() {
        true => table,
        false => placed_table(table, begin, expansions),
    }
}

fn placed_table<'a>(table: DeTable<'a>, begin: usize, expansions: &'a Expansions) -> DeTable<'a> {
    let place = |(key, value): (Spanned<DeString<'a>>, Spanned<DeValue<'a>>)| {
        let key = Spanned::new(moved(key.span(), begin), key.into_inner());
        (key, placed_value(value, begin, expansions))
    };
    table.into_iter().map(place).collect()
}

fn placed_value<'a>(
    value: Spanned<DeValue<'a>>,
    begin: usize,
    expansions: &'a Expansions,
) -> Spanned<DeValue<'a>> {
    let span = moved(value.span(), begin);
    let value = match value.into_inner() {
        DeValue::String(text) => DeValue::String(match expansions.get(&span.start) {
            Some(expansion) => DeString::Borrowed(expansion.text.as_str()),
            None => text,
        }),
        DeValue::Array(items) => DeValue::Array(
            items.into_iter().map(|item| placed_value(item, begin, expansions)).collect(),
        ),
        DeValue::Table(table) => DeValue::Table(placed_table(table, begin, expansions)),
        other => other,
    };
    Spanned::new(span, value)
}

fn moved(span: Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}

/// Returns a value with its strings as they are written, without the values of variables.
pub fn as_written<'v, 'a>(
    value: &'v Spanned<DeValue<'a>>,
    expansions: &'v Expansions,
) -> Cow<'v, DeValue<'a>>
where
    'v: 'a,
{
    match expansions.is_empty() {
        true => Cow::Borrowed(value.get_ref()),
        false => Cow::Owned(written_value(value, expansions)),
    }
}

fn written_value<'v, 'a>(value: &Spanned<DeValue<'a>>, expansions: &'v Expansions) -> DeValue<'a>
where
    'v: 'a,
{
    let inside =
        |value: &Spanned<DeValue<'a>>| Spanned::new(value.span(), written_value(value, expansions));
    match value.get_ref() {
        DeValue::String(text) => DeValue::String(match expansions.get(&value.span().start) {
            Some(expansion) => DeString::Borrowed(expansion.written.as_str()),
            None => text.clone(),
        }),
        DeValue::Array(items) => DeValue::Array(items.iter().map(inside).collect()),
        DeValue::Table(table) => {
            let entries = table.iter();
            DeValue::Table(entries.map(|(key, value)| (key.clone(), inside(value))).collect())
        }
        other => other.clone(),
    }
}

/// Calls `take` with each string of a table: the innermost key, where the string is written, and
/// its text.
pub fn for_each_string(table: &DeTable<'_>, take: &mut impl FnMut(&str, Range<usize>, &str)) {
    for (key, value) in table {
        strings_of_value(key.get_ref(), value, take);
    }
}

fn strings_of_value(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    take: &mut impl FnMut(&str, Range<usize>, &str),
) {
    match value.get_ref() {
        DeValue::String(text) => take(key, value.span(), text),
        DeValue::Array(items) => items.iter().for_each(|item| strings_of_value(key, item, take)),
        DeValue::Table(table) => for_each_string(table, take),
        _ => {}
    }
}
