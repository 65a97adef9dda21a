//! The messages of serde and of the TOML parser in words for a user who writes a configuration:
//! `"a number"` and not `i64`, with the text to write if that is clear.

use toml::de::DeValue;

use crate::document::PathStep;

/// The longest text that a message repeats, in characters.
const LONGEST_SHOWN: usize = 40;

/// Returns the message of serde about the key or value at `path` in other words. `value` is the
/// text that is written there.
pub fn reword(message: &str, path: &[PathStep], value: Option<&DeValue<'_>>) -> String {
    let message = message.trim().replace('\n', "; ");
    let key = key_of(path);
    if let Some(missing) = message.strip_prefix("missing field ") {
        return format!("{missing} is missing");
    }
    if let Some(unknown) = message.strip_prefix("unknown field ") {
        return format!("unknown key {}", with_allowed(unknown));
    }
    if let Some((key, unknown)) = key.zip(message.strip_prefix("unknown variant ")) {
        return format!("`{key}` is {}", with_allowed(unknown));
    }
    // Bounds do not know the key that they are for.
    if let Some(key) = key.filter(|_| message.starts_with("is ")) {
        return format!("`{key}` {message}");
    }
    let is_about_value =
        ["invalid type: ", "invalid value: "].iter().any(|begin| message.starts_with(begin));
    match (key, value, message.split_once(", expected ")) {
        (Some(key), Some(value), Some((_, expected))) if is_about_value => {
            wrong_value(key, path, value, expected)
        }
        _ => message,
    }
}

/// Returns the name of a key that serde says is missing.
pub fn missing_key(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `")?.split('`').next()
}

/// Returns what the message about a line that is no TOML should add: a text without quotes is the
/// most frequent reason. `at` is where the parser stopped in the line, in bytes.
pub fn hint_for_syntax(line: &str, at: usize) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    let (key, value) = (key.trim(), value.split('#').next()?.trim());
    let is_plain = |text: &str| !text.contains(['"', '\'', '[', ']', '{', '}', ',', '=']);
    let is_text = !value.is_empty() && is_plain(key) && is_plain(value);
    let is_in_value = at > line.find('=')?;
    (is_text && is_in_value).then(|| format!("text is written in quotes: `{key} = \"{value}\"`"))
}

/// Returns the innermost key of a path.
fn key_of(path: &[PathStep]) -> Option<&str> {
    path.iter().rev().find_map(|step| match step {
        PathStep::Key(key) => Some(key.as_str()),
        PathStep::Item(_) => None,
    })
}

/// Returns what serde says about an unknown name, without its word for it. serde writes: `a`,
/// expected one of `b`, `c`. Or: `a`, expected `b` or `c`. Or: `a`, there are no fields.
fn with_allowed(message: &str) -> String {
    match message.split_once(", expected ") {
        Some((unknown, allowed)) => {
            format!("{unknown}: allowed are {}", allowed.trim_start_matches("one of "))
        }
        None => message.to_owned(),
    }
}

fn wrong_value(key: &str, path: &[PathStep], value: &DeValue<'_>, expected: &str) -> String {
    let is_item = matches!(path.last(), Some(PathStep::Item(_)));
    let found = shown(value);
    if is_item {
        return format!("`{key}` has {found} in its list: allowed is {}", allowed(expected));
    }
    let mut message = format!("`{key}` is {found}: allowed is {}", allowed(expected));
    if let Some(meant) = meant(key, path, value, expected) {
        message.push_str(&format!("; write `{meant}`"));
    }
    message
}

/// Returns what is written, short enough for a message.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.chars().count() <= LONGEST_SHOWN => format!("{text:?}"),
        DeValue::String(_) => "a text".into(),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(date) => format!("the date {date}"),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

/// Returns the words for a type of Rust, or of serde.
fn allowed(expected: &str) -> &str {
    match expected {
        "a string" | "a borrowed string" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        "i64" | "i32" | "u64" | "u32" | "u16" | "u8" | "usize" => "a whole number",
        "f64" | "f32" => "a number",
        _ if expected.starts_with("struct ") => "a table",
        _ => expected,
    }
}

/// Returns the line that was probably meant.
fn meant(key: &str, path: &[PathStep], value: &DeValue<'_>, expected: &str) -> Option<String> {
    let line = |value: String| Some(format!("{key} = {value}"));
    let text = |value: &DeValue<'_>| match value {
        DeValue::String(text) if text.chars().count() <= LONGEST_SHOWN => Some(format!("{text:?}")),
        _ => None,
    };
    match (allowed(expected), value) {
        ("a text in quotes", DeValue::Integer(number)) => line(format!("\"{number}\"")),
        ("a text in quotes", DeValue::Array(list)) if list.len() == 1 => {
            line(text(list.first()?.get_ref())?)
        }
        ("a list", DeValue::String(_)) => line(format!("[{}]", text(value)?)),
        ("a list", DeValue::Table(_)) => {
            let keys = path.iter().filter_map(|step| key_of(std::slice::from_ref(step)));
            let keys: Vec<_> = keys.collect();
            Some(format!("[[{}]]", keys.join(".")))
        }
        ("a whole number", DeValue::String(text)) => line(text.parse::<u64>().ok()?.to_string()),
        ("true or false", DeValue::String(text)) => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => line("true".into()),
            "false" | "no" | "off" => line("false".into()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::*;
    use crate::document::Document;

    /// Returns the message about what is written at `at` in `text`.
    fn reworded(message: &str, text: &str, at: &str) -> String {
        let document = Document::new(DeTable::parse(text).expect(text));
        let path = document.path_at(text.find(at).expect("the place"));
        reword(message, &path, document.value_at(&path))
    }

    #[test]
    fn a_wrong_type_is_reported_with_what_to_write() {
        for (value, expected, found, said) in [
            ("8080", "a string", "the number 8080", "a text in quotes; write `a = \"8080\"`"),
            ("[\"b\"]", "a string", "a list", "a text in quotes; write `a = \"b\"`"),
            ("[1, 2]", "a string", "a list", "a text in quotes"),
            ("\"two\"", "i64", "\"two\"", "a whole number"),
            ("\"2\"", "usize", "\"2\"", "a whole number; write `a = 2`"),
            ("3.5", "u32", "the number 3.5", "a whole number"),
            ("\"f:p\"", "a sequence", "\"f:p\"", "a list; write `a = [\"f:p\"]`"),
            ("3", "a sequence", "the number 3", "a list"),
            ("\"On\"", "a boolean", "\"On\"", "true or false; write `a = true`"),
            ("\"maybe\"", "a boolean", "\"maybe\"", "true or false"),
            ("1979-05-27", "f64", "the date 1979-05-27", "a number"),
            ("true", "a text or false", "true", "a text or false"),
            ("1", "struct Tls", "the number 1", "a table"),
        ] {
            let message = format!("invalid type: something, expected {expected}");
            let expected = format!("`a` is {found}: allowed is {said}");
            assert_eq!(reworded(&message, &format!("a = {value}"), value), expected);
        }
        let message = "invalid type: map, expected a sequence";
        let said = "is a table: allowed is a list; write";
        assert_eq!(reworded(message, "[site]", "site"), format!("`site` {said} `[[site]]`"));
        let text = "[[site]]\n[site.route]\na = 1";
        let expected = format!("`route` {said} `[[site.route]]`");
        assert_eq!(reworded(message, text, "route"), expected);
        let said = reworded("invalid type: integer, expected a string", "try = [\"b\", 7]", "7");
        assert_eq!(said, "`try` has the number 7 in its list: allowed is a text in quotes");
    }

    #[test]
    fn a_long_text_is_not_repeated() {
        let text = format!("a = \"{}\"", "x".repeat(41));
        let said = reworded("invalid type: string, expected a sequence", &text, "x");
        assert_eq!(said, "`a` is a text: allowed is a list");
    }

    #[test]
    fn messages_say_key_and_not_field() {
        for (message, said) in [
            ("missing field `load`", "`load` is missing"),
            (
                "unknown field `x`, expected one of `b`, `c`",
                "unknown key `x`: allowed are `b`, `c`",
            ),
            ("unknown field `x`, expected `b` or `c`", "unknown key `x`: allowed are `b` or `c`"),
            ("unknown field `x`, there are no fields", "unknown key `x`, there are no fields"),
            ("unknown variant `x`, expected `b`", "`a` is `x`: allowed are `b`"),
            ("is 0: allowed is 1 to 9", "`a` is 0: allowed is 1 to 9"),
            ("`b` is not a place", "`b` is not a place"),
        ] {
            assert_eq!(reworded(message, "a = 1", "1"), said);
        }
        assert_eq!(missing_key("missing field `load`"), Some("load"));
        assert_eq!(missing_key("unknown field `load`"), None);
    }

    #[test]
    fn text_without_quotes_is_shown_with_quotes() {
        for (line, at, quoted) in [
            ("try = files:public", 6, Some("`try = \"files:public\"`")),
            ("  a =  1.2.3.4:80  # here", 11, Some("`a = \"1.2.3.4:80\"`")),
            ("a = 30s", 6, Some("`a = \"30s\"`")),
            ("a = \"x", 7, None),
            ("a = [x]", 5, None),
            ("a b = 3", 2, None),
            ("a =", 3, None),
            ("a = # nothing", 4, None),
            ("listen 80;", 7, None),
        ] {
            let expected = quoted.map(|line| format!("text is written in quotes: {line}"));
            assert_eq!(hint_for_syntax(line, at), expected, "{line}");
        }
    }
}
