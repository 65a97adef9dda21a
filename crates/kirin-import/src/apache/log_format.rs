//! Formats of `CustomLog`.

/// The longest name in braces, in bytes.
const LONGEST_NAME: usize = 200;

/// Returns a format of Apache as one of Kirin, or the directive that Kirin lacks.
pub(crate) fn format(text: &str) -> Result<String, String> {
    let mut written = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('%') {
        let (before, behind) = rest.split_at(start);
        written.push_str(before);
        let behind = behind.get(1..).unwrap_or_default();
        let condition =
            behind.find(|c: char| !c.is_ascii_digit() && !matches!(c, '!' | ',' | '<' | '>'));
        let behind = behind.get(condition.unwrap_or(behind.len())..).unwrap_or_default();
        let (name, after) = match braced(behind) {
            Some((name, after)) => (Some(name), after),
            None => (None, behind),
        };
        let letter = after.chars().next().unwrap_or('%');
        let found = match (name, letter) {
            (None, '%') => "%%".to_owned(),
            (None, 'O') => "%B".to_owned(),
            (None, 'I') => "%{bytes_in}k".to_owned(),
            (None, letter) if "halutrmUqHsbBDTvVpP".contains(letter) => format!("%{letter}"),
            (Some(name), letter) if "ioCet".contains(letter) => format!("%{{{name}}}{letter}"),
            (Some("c"), 'a') => "%{c}a".to_owned(),
            (Some("s" | "ms" | "us"), 'T') => format!("%{{{}}}T", name.unwrap_or_default()),
            (None, letter) => return Err(format!("%{letter}")),
            (Some(name), letter) => return Err(format!("%{{{name}}}{letter}")),
        };
        written.push_str(&found);
        rest = after.get(letter.len_utf8()..).unwrap_or_default();
    }
    written.push_str(rest);
    Ok(written)
}

/// Splits off a name in braces, which is short.
fn braced(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('{')?;
    let end = inner.bytes().take(LONGEST_NAME).position(|byte| byte == b'}')?;
    Some((inner.get(..end)?, inner.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_debian_are_those_of_kirin() {
        let combined = "%h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\"";
        assert_eq!(
            format(combined),
            Ok("%h %l %u %t \"%r\" %s %B \"%{Referer}i\" \"%{User-Agent}i\"".to_owned())
        );
        assert_eq!(format("%400,501{A}i %{B}x"), Err("%{B}x".to_owned()));
        assert_eq!(format("%!200{A}i%"), Ok("%{A}i%%".to_owned()));
    }
}
