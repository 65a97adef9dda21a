//! Values of parameters: text with `$variable` and `${variable}` in it.

use bytes::Bytes;

/// Longest name of a variable in bytes. A longer one is no variable but text.
const MAX_NAME_BYTES: usize = 64;

/// A value that is put together when the page is rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(Bytes),
    Variable(Box<str>),
}

impl Text {
    /// Cuts `value` at its variables. A `$` that no name follows, and `\$`, are a dollar sign.
    pub(crate) fn parse(value: &Bytes) -> Self {
        let mut parts = Vec::new();
        let (mut literal_start, mut at) = (0, 0);
        let literal = |parts: &mut Vec<Part>, range: std::ops::Range<usize>| {
            if !range.is_empty() {
                parts.push(Part::Literal(value.slice(range)));
            }
        };
        while let Some(found) = memchr::memchr(b'$', &value[at..]) {
            let dollar = at + found;
            if dollar > literal_start && value[dollar - 1] == b'\\' {
                literal(&mut parts, literal_start..dollar - 1);
                (literal_start, at) = (dollar, dollar + 1);
                continue;
            }
            match variable(&value[dollar + 1..]) {
                Some((name, length)) => {
                    literal(&mut parts, literal_start..dollar);
                    parts.push(Part::Variable(name));
                    at = dollar + 1 + length;
                    literal_start = at;
                }
                None => at = dollar + 1,
            }
        }
        literal(&mut parts, literal_start..value.len());
        Self(parts)
    }

    /// The value, with `lookup` for its variables; those that are not there are empty.
    pub(crate) fn evaluate(&self, mut lookup: impl FnMut(&str) -> Option<Bytes>) -> Bytes {
        match &self.0[..] {
            [] => Bytes::new(),
            [Part::Literal(bytes)] => bytes.clone(),
            [Part::Variable(name)] => lookup(name).unwrap_or_default(),
            parts => {
                let mut whole = Vec::new();
                for part in parts {
                    match part {
                        Part::Literal(bytes) => whole.extend_from_slice(bytes),
                        Part::Variable(name) => whole.extend_from_slice(&lookup(name).unwrap_or_default()),
                    }
                }
                Bytes::from(whole)
            }
        }
    }

    /// The value, if it has no variables.
    pub(crate) fn constant(&self) -> Option<Bytes> {
        match &self.0[..] {
            [] => Some(Bytes::new()),
            [Part::Literal(bytes)] => Some(bytes.clone()),
            _ => None,
        }
    }

    /// Memory beside the page, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.capacity() * (size_of::<Part>() + 16)
    }
}

/// The name at the start of `rest`, which follows a `$`, and the bytes that it takes.
fn variable(rest: &[u8]) -> Option<(Box<str>, usize)> {
    if rest.first() == Some(&b'{') {
        let end = memchr::memchr(b'}', &rest[..rest.len().min(MAX_NAME_BYTES + 2)])?;
        return Some((name(&rest[1..end])?, end + 1));
    }
    // Without braces a name ends where letters end, so that `$a.html` means what it looks like. `session.` is a family of
    // names.
    let family = if rest.starts_with(b"session.") { 8 } else { 0 };
    let is_end = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b'_';
    let length = family + rest[family..].iter().position(is_end).unwrap_or(rest.len() - family);
    Some((name(&rest[..length])?, length))
}

/// A name of a variable in lower case, as nginx has them: `$HTTP_HOST` is `$http_host`.
pub(crate) fn name(bytes: &[u8]) -> Option<Box<str>> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if bytes.is_empty() || bytes.len() > MAX_NAME_BYTES || !bytes.iter().all(allowed) {
        return None;
    }
    Some(std::str::from_utf8(bytes).ok()?.to_ascii_lowercase().into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in() {
        for (value, filled) in [
            ("", ""),
            ("plain", "plain"),
            ("$a", "[a]"),
            ("${a}", "[a]"),
            ("x$a.html", "x[a].html"),
            ("${a}b$c", "[a]b[c]"),
            ("$A_b1-", "[a_b1]-"),
            ("$session.name!", "[session.name]!"),
            ("${session.name}!", "[session.name]!"),
            ("5$ and $", "5$ and $"),
            ("\\$a", "$a"),
            ("x\\$a$b", "x$a[b]"),
            ("${a", "${a"),
            ("${}", "${}"),
            ("${a b}", "${a b}"),
            ("$$a", "$[a]"),
        ] {
            let text = Text::parse(&Bytes::from_static(value.as_bytes()));
            let got = text.evaluate(|name| Some(Bytes::from(format!("[{name}]"))));
            assert_eq!(got, filled, "{value}");
        }
    }

    #[test]
    fn what_is_not_there_is_empty() {
        assert_eq!(Text::parse(&Bytes::from_static(b"a$b.c")).evaluate(|_| None), "a.c");
    }
}
