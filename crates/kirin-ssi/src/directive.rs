//! Directives as they stand in a page: `<!--# NAME PARAMETER="VALUE" … -->`.

use bytes::Bytes;

/// A directive, cut into its parts; they share the page's memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Directive {
    pub(crate) name: Bytes,
    pub(crate) parameters: Vec<Parameter>,
}

/// `NAME="VALUE"`. A value that stands alone, as recaro's `include KEY` has it, comes with an empty name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: Bytes,
    pub(crate) value: Bytes,
}

impl Directive {
    /// The value of the parameter `name`.
    pub(crate) fn value(&self, name: &str) -> Option<&Bytes> {
        self.parameters.iter().find(|parameter| parameter.name == name).map(|parameter| &parameter.value)
    }

    /// Whether all parameters are among `names`.
    pub(crate) fn has_only(&self, names: &[&str]) -> bool {
        self.parameters.iter().all(|parameter| names.iter().any(|name| parameter.name == *name))
    }
}

/// What [`next`] found.
pub(crate) struct Found {
    /// Where the directive starts, at `<!--#`.
    pub(crate) start: usize,
    /// Where the page goes on.
    pub(crate) end: usize,
    /// None if it is malformed.
    pub(crate) directive: Option<Directive>,
}

/// The first directive of `page` from byte `from` on. One that does not end is text.
pub(crate) fn next(page: &Bytes, from: usize) -> Option<Found> {
    let start = from + memchr::memmem::find(&page[from..], b"<!--#")?;
    let inside = start + 5;
    let mut scanner = Scanner { page, at: inside };
    if let Some(directive) = scanner.directive() {
        return Some(Found { start, end: scanner.at, directive: Some(directive) });
    }
    let length = memchr::memmem::find(&page[inside..], b"-->")?;
    Some(Found { start, end: inside + length + 3, directive: None })
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
            if !separated {
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

    /// A value in quotes. `\` keeps a quote from ending it; any other `\` stays, for regular expressions.
    fn quoted(&mut self, quote: u8) -> Option<Bytes> {
        self.at += 1;
        let rest = self.rest();
        let mut escapes = false;
        let mut length = 0;
        loop {
            match *rest.get(length)? {
                b'\\' => {
                    escapes |= rest.get(length + 1) == Some(&quote);
                    length += 2;
                }
                byte if byte == quote => break,
                _ => length += 1,
            }
        }
        let value = self.take(length);
        self.at += 1;
        if !escapes {
            return Some(value);
        }
        let mut unescaped = Vec::with_capacity(value.len());
        let mut bytes = value.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            if byte == b'\\' && bytes.peek() == Some(&quote) {
                continue;
            }
            unescaped.push(byte);
        }
        Some(Bytes::from(unescaped))
    }

    /// A value without quotes, up to white space or the end.
    fn bare(&mut self) -> Option<Bytes> {
        let rest = self.rest();
        let end = memchr::memmem::find(rest, b"-->").unwrap_or(rest.len());
        let length = rest[..end].iter().position(u8::is_ascii_whitespace).unwrap_or(end);
        let value = self.take(length);
        (length > 0 && !value.contains(&b'"')).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(page: &str) -> String {
        let page = Bytes::copy_from_slice(page.as_bytes());
        let Some(found) = next(&page, 0) else { return "text".into() };
        let Some(directive) = found.directive else {
            return format!("malformed|{}", String::from_utf8_lossy(&page[found.end..]));
        };
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let mut shown = text(&directive.name);
        for parameter in &directive.parameters {
            shown += &format!(" {}={}", text(&parameter.name), text(&parameter.value));
        }
        shown + "|" + &text(&page.slice(found.end..))
    }

    #[test]
    fn directives_are_cut_into_name_and_parameters() {
        for (page, shown) in [
            ("<!--# include k -->b", "include =k|b"),
            ("<!--#include k-->b", "include =k|b"),
            ("<!--#include virtual=\"/a?b\" wait='yes'-->", "include virtual=/a?b wait=yes|"),
            ("<!--# include key = 'k' -->", "include key=k|"),
            ("<!--# include \"k\" -->", "include =k|"),
            ("<!--# include key -->", "include =key|"),
            ("<!--# include a=b -->", "include a=b|"),
            ("<!--# include /a?b=c -->", "include =/a?b=c|"),
            ("<!--# else -->", "else|"),
            ("<!--#else-->", "else|"),
            ("<!--#\n  set\n var=\"a\"\n value=\"-->\"\n-->", "set var=a value=-->|"),
            ("<!--# set value=\"a\\\"b\\.c\" -->", "set value=a\"b\\.c|"),
            ("<!--# set value='\"' -->", "set value=\"|"),
            ("<!-- # else -->", "text"),
            ("<!--# include k", "text"),
            ("<!--# include key=\"k -->x", "malformed|x"),
            ("<!--# -->x", "malformed|x"),
            ("<!--# set var=\"a\"value=\"b\" -->x", "malformed|x"),
            ("<!--# set var= -->x", "malformed|x"),
            ("<!--# include a\"b -->x", "malformed|x"),
        ] {
            assert_eq!(show(page), shown, "{page}");
        }
    }

    proptest! {
        #[test]
        fn every_directive_is_inside_the_page(page in "(<!--#|-->|include|key|=|\"|'|\\\\| |x){0,30}") {
            let page = Bytes::from(page);
            let mut at = 0;
            while let Some(found) = next(&page, at) {
                prop_assert!(found.start >= at && found.end > found.start && found.end <= page.len());
                at = found.end;
            }
        }
    }
}
