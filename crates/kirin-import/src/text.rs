//! Texts of another server as values of a `kirin.toml`.

use toml::Value;

use crate::section::Section;

/// Stands for the `$` of an environment variable that Kirin reads, while an import is made.
pub(crate) const VARIABLE: char = '\u{F8FF}';

/// Doubles each `$` before a brace in all values, so that it is no environment variable. Writes
/// the `$` in the place of [`VARIABLE`].
pub(crate) fn keep_dollars(section: &mut Section) {
    for (_, value) in &mut section.keys {
        keep_dollars_of(value);
    }
}

fn keep_dollars_of(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace("${", "$${").replace(VARIABLE, "$"),
        Value::Array(list) => list.iter_mut().for_each(keep_dollars_of),
        Value::Table(table) => table.iter_mut().for_each(|(_, value)| keep_dollars_of(value)),
        _ => {}
    }
}

/// Returns a text for a key that may have variables, so that its braces stand for themselves.
pub(crate) fn without_variables(text: &str) -> String {
    let doubled = text.replace('{', "{{");
    doubled.replace(&format!("{VARIABLE}{{{{"), &format!("{VARIABLE}{{"))
}

/// Returns a number of bytes as a size that Kirin reads.
pub(crate) fn size(bytes: u64) -> String {
    for (unit, factor) in [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)] {
        if bytes != 0 && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    format!("{bytes}B")
}

/// Returns whether `headers` may set a field.
pub(crate) fn is_settable(field: &str) -> bool {
    const REFUSED: [&str; 10] = [
        "connection",
        "keep-alive",
        "transfer-encoding",
        "content-length",
        "upgrade",
        "trailer",
        "te",
        "date",
        "location",
        "content-range",
    ];
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !field.is_empty()
        && field.bytes().all(is_token)
        && !REFUSED.contains(&field.to_ascii_lowercase().as_str())
}
