//! The language ESI 1.0 (W3C note of 4 August 2001): tags, their attributes, variables.

use bytes::Bytes;

use crate::encoding::Encoding;
use crate::template::{Include, IncludeTarget, Instruction};
use crate::text::{Text, VariableReference, name};

/// The most attributes of one tag. Without this limit, a page of tags without an end would be read
/// again and again.
const MAX_ATTRIBUTES: usize = 16;

/// The longest variable with its key and default, in bytes.
const MAX_VARIABLE_BYTES: usize = 1024;

/// A tag: `<esi:NAME ATTRIBUTE="VALUE" … />`.
#[derive(Debug)]
pub(crate) struct EsiTag {
    pub(crate) name: Bytes,
    /// Whether it is `</esi:NAME>`.
    pub(crate) closes: bool,
    /// Whether it ends with `/>`.
    pub(crate) is_empty: bool,
    attributes: Vec<(Bytes, Bytes)>,
}

impl EsiTag {
    /// Returns the tag at byte `start` of `page`, and the position behind it. Returns `None` if it
    /// is malformed.
    pub(crate) fn read(page: &Bytes, start: usize) -> Option<(Self, usize)> {
        let mut scanner = EsiScanner { page, at: start + 1 };
        let closes = scanner.skip(b"/");
        scanner.skip(b"esi:").then_some(())?;
        let name = scanner.name()?;
        let mut attributes = Vec::new();
        loop {
            let separated = scanner.skip_white_space();
            let is_empty = scanner.skip(b"/>");
            if is_empty || scanner.skip(b">") {
                return Some((Self { name, closes, is_empty, attributes }, scanner.at));
            }
            if !separated || closes || attributes.len() == MAX_ATTRIBUTES {
                return None;
            }
            attributes.push(scanner.attribute()?);
        }
    }

    fn attribute(&self, name: &str) -> Option<Bytes> {
        let (_, value) = self.attributes.iter().find(|(other, _)| other == name)?;
        Some(with_characters(value))
    }
}

struct EsiScanner<'a> {
    page: &'a Bytes,
    at: usize,
}

impl EsiScanner<'_> {
    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> Bytes {
        let rest = &self.page[self.at..];
        let length = rest.iter().take_while(|byte| belongs(**byte)).count();
        self.at += length;
        self.page.slice(self.at - length..self.at)
    }

    fn skip(&mut self, expected: &[u8]) -> bool {
        let is_there = self.page[self.at..].starts_with(expected);
        self.at += if is_there { expected.len() } else { 0 };
        is_there
    }

    fn skip_white_space(&mut self) -> bool {
        !self.take_while(|byte| byte.is_ascii_whitespace()).is_empty()
    }

    fn name(&mut self) -> Option<Bytes> {
        let name = self
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':'));
        (!name.is_empty()).then_some(name)
    }

    fn attribute(&mut self) -> Option<(Bytes, Bytes)> {
        let name = self.name()?;
        self.skip_white_space();
        self.skip(b"=").then_some(())?;
        self.skip_white_space();
        let quote = *self.page.get(self.at).filter(|byte| matches!(byte, b'"' | b'\''))?;
        self.at += 1;
        let value = self.take_while(|byte| byte != quote);
        self.skip(&[quote]).then_some((name, value))
    }
}

/// Returns the instruction for `include`, or `None` if it has no source.
pub(crate) fn include(tag: &EsiTag) -> Option<Instruction> {
    let source = tag.attribute("src").filter(|source| !source.is_empty())?;
    let alternate = tag.attribute("alt").filter(|alternate| !alternate.is_empty());
    Some(Instruction::Include(Box::new(Include {
        target: IncludeTarget::Virtual,
        name: text(&source),
        alternate: alternate.as_ref().map(text),
        wait: false,
        set: None,
        stub: None,
        is_silent: tag.attribute("onerror").is_some_and(|answer| answer == "continue"),
    })))
}

/// Returns a value with `$(VARIABLES)` in it, for the target of a request.
fn text(value: &Bytes) -> Text {
    let mut text = Text::default();
    let (mut literal_start, mut at) = (0, 0);
    while let Some(found) = memchr::memmem::find(&value[at..], b"$(") {
        let start = at + found;
        match variable(&value[start..], Encoding::None) {
            Some((variable, length)) => {
                text.literal(value.slice(literal_start..start));
                text.variable(variable);
                at = start + length;
                literal_start = at;
            }
            None => at = start + 2,
        }
    }
    text.literal(value.slice(literal_start..));
    text
}

/// Returns the variable at the start of `rest` and its length in bytes. The forms are `$(NAME)` and
/// `$(NAME{KEY})`, each with `|DEFAULT` or `|'DEFAULT'` before the end. Names are in capitals, so
/// that `$(document)` of a script stays. The value gets this `encoding`.
pub(crate) fn variable(rest: &[u8], encoding: Encoding) -> Option<(VariableReference, usize)> {
    let all = &rest[..rest.len().min(MAX_VARIABLE_BYTES)];
    let mut inside = all.strip_prefix(b"$(")?;
    let length =
        inside.iter().take_while(|byte| byte.is_ascii_uppercase() || **byte == b'_').count();
    let (family, after) = inside.split_at(length);
    inside = after;
    let mut key = None;
    if let [b'{', after @ ..] = inside {
        let end = memchr::memchr(b'}', after)?;
        (key, inside) = (Some(&after[..end]), &after[end + 1..]);
    }
    let mut otherwise = Bytes::new();
    if let [b'|', after @ ..] = inside {
        let (end, text) = match after {
            [b'\'', quoted @ ..] => {
                let end = memchr::memchr(b'\'', quoted)?;
                (end + 2, &quoted[..end])
            }
            _ => {
                let end = memchr::memchr(b')', after)?;
                (end, &after[..end])
            }
        };
        otherwise = Bytes::copy_from_slice(text);
        inside = &after[end..];
    }
    let after = inside.strip_prefix(b")")?;
    let variable = VariableReference { name: variable_name(family, key)?, encoding, otherwise };
    Some((variable, all.len() - after.len()))
}

/// Returns SSI's name of the variable. An unknown family of names stays unchanged, and no variable
/// has such a name.
fn variable_name(family: &[u8], key: Option<&[u8]>) -> Option<Box<str>> {
    let Some(key) = key else { return name(family) };
    let name_of = |prefix: &[u8], suffix: &[u8]| name(&[prefix, key, suffix].concat());
    match family {
        _ if key.is_empty() => None,
        b"QUERY_STRING" => name_of(b"arg_", b""),
        b"HTTP_COOKIE" => name_of(b"cookie_", b""),
        b"SESSION" => name_of(b"session.", b""),
        b"" => None,
        family => name_of(&[family, b"{"].concat(), b"}"),
    }
}

/// Decodes XML's character references in an attribute's value.
fn with_characters(value: &Bytes) -> Bytes {
    if memchr::memchr(b'&', value).is_none() {
        return value.clone();
    }
    const REFERENCES: [(&[u8], u8); 5] =
        [(b"&amp;", b'&'), (b"&lt;", b'<'), (b"&gt;", b'>'), (b"&quot;", b'"'), (b"&apos;", b'\'')];
    let mut characters = Vec::with_capacity(value.len());
    let mut rest = &value[..];
    while let [byte, after @ ..] = rest {
        let reference = REFERENCES.iter().find(|(reference, _)| rest.starts_with(reference));
        let (character, after) = match reference {
            Some((reference, character)) => (*character, &rest[reference.len()..]),
            None => (*byte, after),
        };
        characters.push(character);
        rest = after;
    }
    Bytes::from(characters)
}
