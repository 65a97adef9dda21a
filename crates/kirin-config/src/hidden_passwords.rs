//! Leaves passwords out of what errors show of a configuration.
//!
//! An error shows the line that it points at, and some messages repeat a value. The address of an
//! origin may have a password, and errors go to logs.

use std::borrow::Cow;

/// The key whose value is never shown. A password in it may lack its `@`.
const SECRET_KEY: &str = "origin";

/// How the schemes of an origin begin.
const SCHEME: &str = "redis";

/// What stands before a password at the end of an address.
const SENTINEL_PASSWORD: &str = "sentinel_password=";

/// Returns `text` without the values of `origin`, and without the passwords in other addresses of
/// an origin, before an `@` and for Sentinels: `orign = "redis://:secret@host"` has one, too.
pub fn without_passwords(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(shown_line).collect();
    lines.join("\n")
}

fn shown_line(line: &str) -> Cow<'_, str> {
    if let Some((before, value)) = split_at_value(line) {
        // Messages quote what they want to be written.
        let end = if value.ends_with('`') { "`" } else { "" };
        return format!("{before} …{end}").into();
    }
    let rest = line.split_once(SCHEME).and_then(|(_, rest)| rest.split_once("://"));
    let Some((_, rest)) = rest else { return line.into() };
    let (before, _) = line.split_at(line.len() - rest.len());
    let (address, option, end) = match rest.split_once(SENTINEL_PASSWORD) {
        Some((address, _)) => (address, SENTINEL_PASSWORD, "…"),
        None => (rest, "", ""),
    };
    match address.rsplit_once('@') {
        Some((_, after)) => format!("{before}…@{after}{option}{end}").into(),
        None => format!("{before}{address}{option}{end}").into(),
    }
}

/// Splits a line behind `origin =`, if it has this key.
fn split_at_value(line: &str) -> Option<(&str, &str)> {
    line.match_indices(SECRET_KEY).find_map(|(at, _)| {
        let (before, key) = line.split_at(at);
        let is_end_of_other = |last: char| last.is_alphanumeric() || matches!(last, '_' | '-');
        let rest = key.strip_prefix(SECRET_KEY)?.trim_start_matches(['"', '\'']).trim_start();
        let value = rest.strip_prefix('=')?;
        (!before.ends_with(is_end_of_other)).then(|| line.split_at(line.len() - value.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_origin_and_passwords_of_urls_are_left_out() {
        for (line, shown) in [
            ("origin = \"redis://:secret@a\"", "origin = …"),
            ("origin=secret", "origin= …"),
            ("\"origin\" = 'secret'", "\"origin\" = …"),
            (
                "store = { memory = \"8MB\", origin = \"secret\" }",
                "store = { memory = \"8MB\", origin = …",
            ),
            ("store.origin = \"\"\"", "store.origin = …"),
            ("write `origin = \"secret\"`", "write `origin = …`"),
            ("first\norigin = secret\nlast", "first\norigin = …\nlast"),
            ("orign = \"redis://u:se@cret@a/1\"", "orign = \"redis://…@a/1\""),
            (
                "orign = \"redis-sentinel://:se@b/c?sentinel_password=se@cret\"",
                "orign = \"redis-sentinel://…@b/c?sentinel_password=…",
            ),
            ("origin_ca = \"ca.pem\"", "origin_ca = \"ca.pem\""),
            ("an_origin = 1 # origin", "an_origin = 1 # origin"),
            ("servers = [\"http://a\", \"http://b\"]", "servers = [\"http://a\", \"http://b\"]"),
            ("me@a redis", "me@a redis"),
            ("no redis://a", "no redis://a"),
            ("allowed is http://a, or `@`", "allowed is http://a, or `@`"),
            ("rediss+é://é@ö", "rediss+é://…@ö"),
            ("", ""),
        ] {
            assert_eq!(without_passwords(line), shown, "{line}");
        }
    }
}
