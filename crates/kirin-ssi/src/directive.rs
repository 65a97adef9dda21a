//! Directives in the text of a page: `<!--# NAME PARAMETER="VALUE" … -->`.

use bytes::Bytes;

/// The start of a directive.
pub(crate) const OPENING: &[u8] = b"<!--#";

/// The most parameters of one directive. No directive has as many. Without this limit, a page of
/// directives without an end would be read again and again.
const MAX_PARAMETERS: usize = 16;

/// A directive, split into its parts. They share the page's memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Directive {
    pub(crate) name: Bytes,
    pub(crate) parameters: Vec<Parameter>,
}

/// `NAME="VALUE"`. A value without a name, as in recaro's `include KEY`, has an empty name. The
/// value still has its backslashes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: Bytes,
    pub(crate) value: Bytes,
}

impl Directive {
    /// Returns the value of the parameter `name`.
    pub(crate) fn value(&self, name: &str) -> Option<&Bytes> {
        self.parameters
            .iter()
            .find(|parameter| parameter.name == name)
            .map(|parameter| &parameter.value)
    }

    /// Returns whether all parameters are in `names`, and none is there twice.
    pub(crate) fn has_only(&self, names: &[&str]) -> bool {
        let is_first =
            |index: usize, name: &Bytes| self.parameters[..index].iter().all(|it| it.name != name);
        let allowed = |name: &Bytes| names.iter().any(|other| *name == *other);
        self.parameters
            .iter()
            .enumerate()
            .all(|(index, parameter)| allowed(&parameter.name) && is_first(index, &parameter.name))
    }
}

/// The text behind an [`OPENING`].
pub(crate) enum FoundDirective {
    /// A directive, and the position behind it.
    Directive(Directive, usize),
    /// Malformed text that ends as a directive does, and the position behind it.
    Malformed(usize),
    /// Text without a `-->` in the rest of the page.
    Unended,
}

/// Reads the directive that starts at byte `start` of `page`.
pub(crate) fn read(page: &Bytes, start: usize) -> FoundDirective {
    let inside = start + OPENING.len();
    let mut scanner = Scanner { page, at: inside };
    if let Some(directive) = scanner.directive() {
        return FoundDirective::Directive(directive, scanner.at);
    }
    match memchr::memmem::find(&page[inside..], b"-->") {
        Some(length) => FoundDirective::Malformed(inside + length + 3),
        None => FoundDirective::Unended,
    }
}

struct Scanner<'a> {
    page: &'a Bytes,
    at: usize,
}

impl Scanner<'_> {
    fn rest(&self) -> &[u8] {
        &self.page[self.at..]
    }

    fn skip_white_space(&mut self) -> usize {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += count;
        count
    }

    fn take(&mut self, count: usize) -> Bytes {
        let taken = self.page.slice(self.at..self.at + count);
        self.at += count;
        taken
    }

    fn end(&mut self) -> bool {
        let ends = self.rest().starts_with(b"-->");
        self.at += if ends { 3 } else { 0 };
        ends
    }

    fn directive(&mut self) -> Option<Directive> {
        self.skip_white_space();
        let length = self.rest().iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let name = self.take(length);
        let mut parameters = Vec::new();
        loop {
            let separated = self.skip_white_space() > 0;
            if self.end() {
                return (!name.is_empty()).then_some(Directive { name, parameters });
            }
            if !separated || parameters.len() == MAX_PARAMETERS {
                return None;
            }
            parameters.push(self.parameter()?);
        }
    }

    fn parameter(&mut self) -> Option<Parameter> {
        let is_name = |byte: &&u8| byte.is_ascii_alphabetic() || **byte == b'_';
        let length = self.rest().iter().take_while(is_name).count();
        let after = &self.rest()[length..];
        let space = after.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if length == 0 || after.get(space) != Some(&b'=') {
            return Some(Parameter { name: Bytes::new(), value: self.value()? });
        }
        let name = self.take(length);
        self.at += space + 1;
        self.skip_white_space();
        Some(Parameter { name, value: self.value()? })
    }

    fn value(&mut self) -> Option<Bytes> {
        match *self.rest().first()? {
            quote @ (b'"' | b'\'') => self.quoted(quote),
            _ => self.bare(),
        }
    }

    /// Reads a value in quotes. A character behind a `\` does not end it.
    fn quoted(&mut self, quote: u8) -> Option<Bytes> {
        self.at += 1;
        let mut length = 0;
        loop {
            match *self.rest().get(length)? {
                b'\\' => length += 2,
                byte if byte == quote => break,
                _ => length += 1,
            }
        }
        let value = self.take(length);
        self.at += 1;
        Some(value)
    }

    /// Reads a value without quotes, up to white space or the end.
    fn bare(&mut self) -> Option<Bytes> {
        let rest = self.rest();
        let is_end = |at: &usize| {
            rest[*at].is_ascii_whitespace() || rest[*at] == b'"' || rest[*at..].starts_with(b"-->")
        };
        let length = (0..rest.len()).find(is_end)?;
        let is_quoted = rest[length] == b'"';
        let value = self.take(length);
        (length > 0 && !is_quoted).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(page: &str) -> String {
        let page = Bytes::copy_from_slice(page.as_bytes());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match read(&page, 0) {
            FoundDirective::Unended => "unended".into(),
            FoundDirective::Malformed(end) => format!("malformed|{}", text(&page[end..])),
            FoundDirective::Directive(directive, end) => {
                let mut shown = text(&directive.name);
                for parameter in &directive.parameters {
                    shown += &format!(" {}={}", text(&parameter.name), text(&parameter.value));
                }
                shown + "|" + &text(&page[end..])
            }
        }
    }

    #[test]
    fn directives_are_split_into_name_and_parameters() {
        for (page, shown) in [
            ("<!--# include k -->b", "include =k|b"),
            ("<!--#include k-->b", "include =k|b"),
            ("<!--#include virtual=\"/a?b\" wait='yes'-->", "include virtual=/a?b wait=yes|"),
            ("<!--# include key = 'k' -->", "include key=k|"),
            ("<!--# include \"k\" -->", "include =k|"),
            ("<!--# include key -->", "include =key|"),
            ("<!--# include a=b -->", "include a=b|"),
            ("<!--# include /a?b=c -->", "include =/a?b=c|"),
            ("<!--# include a--b -->", "include =a--b|"),
            ("<!--# else -->", "else|"),
            ("<!--#else-->", "else|"),
            ("<!--#\n  set\n var=\"a\"\n value=\"-->\"\n-->", "set var=a value=-->|"),
            ("<!--# set value=\"a\\\"b\\.c\" -->", "set value=a\\\"b\\.c|"),
            ("<!--# set value='\"' -->", "set value=\"|"),
            ("<!--# include k", "unended"),
            ("<!--# include key=\"k -->x", "malformed|x"),
            ("<!--# -->x", "malformed|x"),
            ("<!--# set var=\"a\"value=\"b\" -->x", "malformed|x"),
            ("<!--# set var= -->x", "malformed|x"),
            ("<!--# include a\"b -->x", "malformed|x"),
            ("<!--# include key=\"k\\", "unended"),
        ] {
            assert_eq!(show(page), shown, "{page}");
        }
        let parameters = |count| format!("<!--# include{} -->x", " k".repeat(count));
        assert!(show(&parameters(MAX_PARAMETERS)).starts_with("include"));
        assert_eq!(show(&parameters(MAX_PARAMETERS + 1)), "malformed|x");
    }

    proptest! {
        #[test]
        fn every_directive_is_inside_the_page(page in "(<!--#|-->|include|key|=|\"|'|\\\\| |x){0,30}") {
            let page = Bytes::from(page);
            for start in memchr::memmem::find_iter(&page, OPENING) {
                if let FoundDirective::Directive(_, end) | FoundDirective::Malformed(end) = read(&page, start) {
                    prop_assert!(end > start + OPENING.len() && end <= page.len());
                }
            }
        }
    }
}
