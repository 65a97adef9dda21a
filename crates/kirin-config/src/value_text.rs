//! TOML values as text on one line, which shows a person what has changed.
//!
//! The text also compares values: two values have the same text only if they are the same. How a
//! value was quoted or laid out makes no difference.

use std::fmt::Write;

use toml::de::{DeInteger, DeTable, DeValue};

/// The most characters of a value or a name that are shown.
const SHOWN_CHARS: usize = 80;

/// The characters before the first difference that are shown of two long values.
const CHARS_BEFORE_DIFFERENCE: usize = 20;

/// Returns the text of a value, in full.
pub fn value_text(value: &DeValue<'_>) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

/// Returns a name as it is shown: on one line, and cut if it is long.
pub fn name_text(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        write_char(&mut out, c);
    }
    shown(&out)
}

/// Returns the beginning of `text`, with `…` if there is more.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => text.to_owned(),
        Some(_) => {
            let end = text.char_indices().nth(SHOWN_CHARS - 1).map_or(0, |(offset, _)| offset);
            format!("{}…", &text[..end])
        }
    }
}

/// Returns the parts of two different texts that show the difference, the old one first.
pub fn shown_difference(old: &str, new: &str) -> [String; 2] {
    let same = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
    let is_cut = |text: &str| text.chars().nth(SHOWN_CHARS).is_some();
    if same + CHARS_BEFORE_DIFFERENCE < SHOWN_CHARS || !(is_cut(old) || is_cut(new)) {
        return [shown(old), shown(new)];
    }
    let left_out = same - CHARS_BEFORE_DIFFERENCE;
    [old, new].map(|text| {
        let begin = text.char_indices().nth(left_out + 1).map_or(text.len(), |(offset, _)| offset);
        shown(&format!("…{}", &text[begin..]))
    })
}

fn write_value(out: &mut String, value: &DeValue<'_>) {
    match value {
        DeValue::String(text) => write_string(out, text),
        DeValue::Integer(integer) => write_integer(out, integer),
        DeValue::Float(float) => match float.as_str().parse::<f64>() {
            Ok(number) => drop(write!(out, "{number:?}")),
            Err(_) => write_string(out, float.as_str()),
        },
        DeValue::Boolean(is_on) => drop(write!(out, "{is_on}")),
        DeValue::Datetime(time) => drop(write!(out, "{time}")),
        DeValue::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_value(out, item.get_ref());
            }
            out.push(']');
        }
        DeValue::Table(table) => write_table(out, table),
    }
}

fn write_table(out: &mut String, table: &DeTable<'_>) {
    let mut entries: Vec<_> =
        table.iter().map(|(key, value)| (key.get_ref().as_ref(), value.get_ref())).collect();
    entries.sort_by_key(|(key, _): &(&str, _)| *key);
    if entries.is_empty() {
        out.push_str("{}");
        return;
    }
    for (index, (key, value)) in entries.into_iter().enumerate() {
        out.push_str(if index > 0 { ", " } else { "{ " });
        write_key(out, key);
        out.push_str(" = ");
        write_value(out, value);
    }
    out.push_str(" }");
}

/// Appends a key, in quotes if TOML asks for them.
pub fn write_key(out: &mut String, key: &str) {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match !key.is_empty() && key.bytes().all(is_bare) {
        true => out.push_str(key),
        false => write_string(out, key),
    }
}

/// Appends a number in decimal, however it was written.
fn write_integer(out: &mut String, integer: &DeInteger<'_>) {
    match i128::from_str_radix(integer.as_str(), integer.radix()) {
        Ok(number) => drop(write!(out, "{number}")),
        Err(_) => drop(write!(out, "{integer}")),
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            _ => write_char(out, c),
        }
    }
    out.push('"');
}

/// Appends a character of a string. What would break the line or change how a terminal shows it is
/// escaped as in TOML.
fn write_char(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if c.is_control() || is_format_character(c) => {
            let number = u32::from(c);
            let _ = match number <= 0xffff {
                true => write!(out, "\\u{number:04X}"),
                false => write!(out, "\\U{number:08X}"),
            };
        }
        _ => out.push(c),
    }
}

/// Returns whether a character is invisible, breaks a line, or changes the direction of text.
fn is_format_character(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(toml: &str) -> String {
        value_text(DeValue::parse(toml).unwrap().get_ref())
    }

    #[test]
    fn a_value_is_written_in_one_way() {
        for (written, text) in [
            ("'a'", "\"a\""),
            ("\"\"\"\na\nb\"\"\"", "\"a\\nb\""),
            ("'C:\\x \"y\"'", "\"C:\\\\x \\\"y\\\"\""),
            ("0x1F", "31"),
            ("1_000", "1000"),
            ("+7", "7"),
            ("0.10", "0.1"),
            ("1e2", "100.0"),
            ("nan", "NaN"),
            ("true", "true"),
            ("1979-05-27", "1979-05-27"),
            ("[ 1,\n 'x', ]", "[1, \"x\"]"),
            ("{b = 1, a.c = 2}", "{ a = { c = 2 }, b = 1 }"),
            ("{ 'a b' = 1, '' = 2 }", "{ \"\" = 2, \"a b\" = 1 }"),
            ("[]", "[]"),
            ("{}", "{}"),
            (
                "\"\\u001b[31m\\u202e\\u2028\\U000E0001\"",
                "\"\\u001B[31m\\u202E\\u2028\\U000E0001\"",
            ),
        ] {
            assert_eq!(text_of(written), text, "{written}");
        }
    }

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(name_text("a\nb\r\u{1b}[2J\u{9b}é"), "a\\nb\\r\\u001B[2J\\u009Bé");
        assert_eq!(name_text(&"é".repeat(80)), "é".repeat(80));
        assert_eq!(name_text(&"é".repeat(81)), format!("{}…", "é".repeat(79)));
    }

    #[test]
    fn two_long_values_are_shown_where_they_differ() {
        let long = |end: &str| format!("{}{end}", "é".repeat(100));
        let before = "é".repeat(19);
        for (old, new, shown_old, shown_new) in [
            ("a".to_owned(), "b".to_owned(), "a".to_owned(), "b".to_owned()),
            (long("a"), long("b"), format!("…{before}a"), format!("…{before}b")),
            (long(""), long("b"), format!("…{before}"), format!("…{before}b")),
            ("x".to_owned(), long(""), "x".to_owned(), format!("{}…", "é".repeat(79))),
            (
                format!("{}a", "é".repeat(70)),
                format!("{}b", "é".repeat(70)),
                format!("{}a", "é".repeat(70)),
                format!("{}b", "é".repeat(70)),
            ),
        ] {
            assert_eq!(shown_difference(&old, &new), [shown_old, shown_new], "{old} {new}");
        }
    }
}
