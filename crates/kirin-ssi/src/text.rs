//! Text with variables, whose value is built when a page is rendered.

use bytes::Bytes;

use crate::encoding::Encoding;
use crate::value::VariableValue;

/// The longest name of a variable in bytes. A longer name is text.
const MAX_NAME_BYTES: usize = 256;

/// A value of a parameter or attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(Vec<TextPart>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TextPart {
    Literal(Bytes),
    Variable(Box<VariableReference>),
}

/// The place of a variable's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VariableReference {
    pub(crate) name: Box<str>,
    pub(crate) encoding: Encoding,
    /// The text to use if the variable is missing or empty.
    pub(crate) otherwise: Bytes,
}

impl Text {
    /// Splits a value of SSI at `$variable` and `${variable}`. Their values are inserted unchanged.
    /// A `$` that no name follows is a dollar sign. A `\` before a dollar sign, a quote or a `\`
    /// escapes it, and stays before any other character.
    pub(crate) fn parse(value: &Bytes) -> Self {
        let mut text = Self::default();
        let (mut literal_start, mut at) = (0, 0);
        while let Some(found) = memchr::memchr2(b'$', b'\\', &value[at..]) {
            let special = at + found;
            at = special + 1;
            if value[special] == b'\\' {
                if matches!(value.get(at), Some(b'\\' | b'$' | b'"' | b'\'')) {
                    text.literal(value.slice(literal_start..special));
                    literal_start = at;
                    at += 1;
                }
            } else if let Some((name, length)) = variable(&value[at..]) {
                text.literal(value.slice(literal_start..special));
                text.variable(VariableReference {
                    name,
                    encoding: Encoding::None,
                    otherwise: Bytes::new(),
                });
                at += length;
                literal_start = at;
            }
        }
        text.literal(value.slice(literal_start..));
        text
    }

    pub(crate) fn literal(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.0.push(TextPart::Literal(bytes));
        }
    }

    pub(crate) fn variable(&mut self, variable: VariableReference) {
        self.0.push(TextPart::Variable(Box::new(variable)));
    }

    /// Returns the value, with `lookup` for its variables. Missing variables are empty. The value
    /// ends at a megabyte.
    pub(crate) fn evaluate(
        &self,
        mut lookup: impl FnMut(&str) -> Option<VariableValue>,
    ) -> VariableValue {
        let mut part = |part: &TextPart| match part {
            TextPart::Literal(bytes) => VariableValue::authors(bytes.clone()),
            TextPart::Variable(variable) => match lookup(&variable.name) {
                Some(value) if !value.bytes.is_empty() => match variable.encoding {
                    Encoding::None => value,
                    // The value is written only into a page, so its origin does not matter.
                    encoding => VariableValue::authors(encoding.encode(value.bytes)),
                },
                _ => VariableValue::authors(variable.otherwise.clone()),
            },
        };
        match &self.0[..] {
            [] => VariableValue::default(),
            [only] => part(only),
            parts => VariableValue::concat(parts.iter().map(part)),
        }
    }

    /// Returns the value, if it has no variables.
    pub(crate) fn constant(&self) -> Option<Bytes> {
        let is_literal = |part: &TextPart| matches!(part, TextPart::Literal(_));
        self.0.iter().all(is_literal).then(|| self.evaluate(|_| None).bytes)
    }

    /// Returns the names of its variables.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            TextPart::Literal(_) => None,
            TextPart::Variable(variable) => Some(&*variable.name),
        })
    }

    /// Returns the memory besides the page, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.capacity() * (size_of::<TextPart>() + size_of::<VariableReference>() + 16)
    }
}

/// Returns a value without variables, and without its backslashes.
pub(crate) fn unescape(value: &Bytes) -> Bytes {
    if memchr::memchr(b'\\', value).is_none() {
        return value.clone();
    }
    let mut unescaped = Vec::with_capacity(value.len());
    let mut bytes = value.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escaped =
            bytes.next_if(|next| byte == b'\\' && matches!(next, b'\\' | b'$' | b'"' | b'\''));
        unescaped.push(escaped.unwrap_or(byte));
    }
    Bytes::from(unescaped)
}

/// Returns the name at the start of `rest`, which follows a `$`, and its length in bytes.
pub(crate) fn variable(rest: &[u8]) -> Option<(Box<str>, usize)> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if rest.first() == Some(&b'{') {
        let end = memchr::memchr(b'}', &rest[..rest.len().min(MAX_NAME_BYTES + 2)])?;
        let inside = &rest[1..end];
        let is_name = inside.iter().all(|byte| allowed(byte) || matches!(byte, b'.' | b'-'));
        return is_name.then(|| name(inside)).flatten().map(|name| (name, end + 1));
    }
    // Without braces a name ends where letters end, so that `$a.html` means the variable `a`.
    // `session.` is a family of names.
    let family = if rest.starts_with(b"session.") { 8 } else { 0 };
    let length = family + rest[family..].iter().take_while(|byte| allowed(byte)).count();
    Some((name(&rest[..length])?, length))
}

/// Returns the name of a variable in lower case, as in nginx: `$HTTP_HOST` is `$http_host`.
pub(crate) fn name(bytes: &[u8]) -> Option<Box<str>> {
    if bytes.is_empty() || bytes.len() > MAX_NAME_BYTES {
        return None;
    }
    Some(std::str::from_utf8(bytes).ok()?.to_ascii_lowercase().into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::MAX_BYTES;

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
            ("${cookie_a-b}", "[cookie_a-b]"),
            ("5$ and $", "5$ and $"),
            ("${a", "${a"),
            ("${}", "${}"),
            ("${a b}", "${a b}"),
            ("$$a", "$[a]"),
        ] {
            let text = Text::parse(&Bytes::from_static(value.as_bytes()));
            let got = text
                .evaluate(|name| Some(VariableValue::authors(Bytes::from(format!("[{name}]")))))
                .bytes;
            assert_eq!(got, filled, "{value}");
        }
    }

    #[test]
    fn a_backslash_escapes_special_characters() {
        for (value, filled) in [
            ("\\$a", "$a"),
            ("x\\$a$b", "x$a[b]"),
            ("\\\\$a", "\\[a]"),
            ("\\\"\\'", "\"'"),
            ("\\d\\", "\\d\\"),
            ("\\\\\\\\", "\\\\"),
        ] {
            let value = Bytes::from_static(value.as_bytes());
            let got = Text::parse(&value)
                .evaluate(|name| Some(VariableValue::authors(Bytes::from(format!("[{name}]")))))
                .bytes;
            assert_eq!(got, filled, "{value:?}");
            if memchr::memchr(b'[', filled.as_bytes()).is_none() {
                assert_eq!(unescape(&value), filled, "{value:?}");
                assert_eq!(Text::parse(&value).constant().unwrap(), filled, "{value:?}");
            }
        }
    }

    #[test]
    fn a_missing_variable_is_empty() {
        assert_eq!(Text::parse(&Bytes::from_static(b"a$b.c")).evaluate(|_| None).bytes, "a.c");
    }

    #[test]
    fn a_value_ends_at_a_megabyte() {
        let text = Text::parse(&Bytes::from("$a".repeat(1000)));
        let value = Bytes::from(vec![b'x'; MAX_BYTES - 1]);
        assert_eq!(
            text.evaluate(|_| Some(VariableValue::authors(value.clone()))).bytes.len(),
            MAX_BYTES
        );
    }
}
