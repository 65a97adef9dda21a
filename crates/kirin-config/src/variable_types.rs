//! Makes numbers and booleans of variables, for the keys that want them.
//!
//! `workers = "${WORKERS}"` is a string to the parser. serde says that the key wants something
//! else. Then the text of the variable is read as TOML.

use serde_spanned::Spanned;
use toml::de::DeValue;

use crate::document::{Document, PathStep};
use crate::source::ConfigSource;

/// Returns whether a message of serde says that something else than a string is allowed.
pub fn is_about_text(message: &str) -> bool {
    ["invalid type: string ", "invalid value: string "]
        .iter()
        .any(|begin| message.starts_with(begin))
}

/// Converts the variable at `path`, and those of the same key in all other items, so that the
/// document is not read again for each of them. Returns whether the one at `path` was converted. A
/// value is converted if its string is one variable and nothing else.
pub fn convert_variables<'a>(
    document: &mut Document<'a>,
    path: &[PathStep],
    source: &'a ConfigSource,
) -> bool {
    let is_text = |value: Option<&DeValue<'_>>| matches!(value, Some(DeValue::String(_)));
    if !is_text(document.value_at(path)) {
        return false;
    }
    document.change_alike(path, &mut |value| convert(value, source));
    !is_text(document.value_at(path))
}

fn convert<'a>(value: &mut Spanned<DeValue<'a>>, source: &'a ConfigSource) {
    let expansion = source.expansions().get(&value.span().start);
    let Some(expansion) = expansion.filter(|expansion| expansion.is_one_variable) else { return };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    // No date, and none of the other forms of numbers, such as `1_000`.
    if !matches!(value.get_ref(), DeValue::String(_)) || !expansion.text.bytes().all(is_plain) {
        return;
    }
    let Ok(read) = DeValue::parse(&expansion.text) else { return };
    let is_wanted = match read.get_ref() {
        DeValue::Integer(number) => number.radix() == 10,
        DeValue::Float(number) => number.as_str().parse().is_ok_and(f64::is_finite),
        DeValue::Boolean(_) => true,
        _ => false,
    };
    if is_wanted {
        *value.get_mut() = read.into_inner();
    }
}

#[cfg(test)]
#[path = "variable_types_tests.rs"]
mod tests;
