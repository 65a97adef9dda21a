//! Compiling: from the bytes of a page to literal parts and directives.

use bytes::Bytes;
use memchr::memmem;

/// What a page shows in the place of a directive that cannot be carried out; the text nginx and Apache show.
pub const ERROR_MESSAGE: &[u8] = b"[an error occurred while processing the directive]";

/// A compiled page. Its parts share the page's memory.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
    includes: usize,
}

/// A part of a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// Bytes that stay as they are.
    Literal(Bytes),
    /// `<!--# include KEY -->`: what the store holds under the key.
    Include(Bytes),
}

impl Template {
    /// Cuts `page` at its directives, `<!--# NAME ARGUMENTS -->`, with or without white space around the name.
    ///
    /// A directive that is unknown or malformed becomes nginx's error message; one that does not end is text.
    pub fn compile(page: &Bytes) -> Self {
        let mut template = Template::default();
        let mut literal_start = 0;
        let mut search_from = 0;
        while let Some(found) = memmem::find(&page[search_from..], b"<!--#") {
            let start = search_from + found;
            let Some(length) = memmem::find(&page[start..], b"-->") else { break };
            let inside = page.slice(start + 5..start + length);
            let end = start + length + 3;
            template.push_literal(page.slice(literal_start..start));
            match parse_directive(&inside) {
                Some(part) => template.push(part),
                None => template.push_literal(Bytes::from_static(ERROR_MESSAGE)),
            }
            literal_start = end;
            search_from = end;
        }
        template.push_literal(page.slice(literal_start..));
        template
    }

    /// The parts in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether there is anything to fill in.
    pub fn has_includes(&self) -> bool {
        self.includes > 0
    }

    /// Memory beside the page itself, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.parts.capacity() * size_of::<Part>()
    }

    fn push(&mut self, part: Part) {
        self.includes += usize::from(matches!(part, Part::Include(_)));
        self.parts.push(part);
    }

    fn push_literal(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.parts.push(Part::Literal(bytes));
        }
    }
}

/// The directive between `<!--#` and `-->`.
fn parse_directive(inside: &Bytes) -> Option<Part> {
    let text = inside.trim_ascii();
    let name_end = text.iter().position(u8::is_ascii_whitespace)?;
    let (name, argument) = text.split_at(name_end);
    if name != b"include" {
        return None;
    }
    let key = parse_include_key(argument.trim_ascii())?;
    Some(Part::Include(inside.slice_ref(key)))
}

/// `KEY`, `"KEY"` or `key="KEY"`.
fn parse_include_key(argument: &[u8]) -> Option<&[u8]> {
    let value = match argument.strip_prefix(b"key") {
        Some(rest) if rest.trim_ascii_start().starts_with(b"=") => {
            rest.trim_ascii_start()[1..].trim_ascii_start()
        }
        _ => argument,
    };
    let key = match value.first()? {
        quote @ (b'"' | b'\'') => value[1..].strip_suffix(&[*quote])?,
        _ => value,
    };
    let is_key = !key.is_empty() && key.iter().all(|byte| *byte > b' ' && *byte != 0x7f && *byte != b'"');
    is_key.then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(page: &str) -> String {
        let template = Template::compile(&Bytes::copy_from_slice(page.as_bytes()));
        let parts = template.parts().iter().map(|part| match part {
            Part::Literal(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Part::Include(key) => format!("{{{}}}", String::from_utf8_lossy(key)),
        });
        parts.collect::<Vec<_>>().join("|")
    }

    #[test]
    fn pages_are_cut_at_their_directives() {
        for (page, parts) in [
            ("", ""),
            ("plain", "plain"),
            ("a<!--# include k -->b", "a|{k}|b"),
            ("a<!--#include k-->b", "a|{k}|b"),
            ("<!--#include key=\"/a?b\" -->", "{/a?b}"),
            ("<!--# include key = 'k' -->", "{k}"),
            ("<!--# include \"k\" -->", "{k}"),
            ("<!--# include keyboard -->", "{keyboard}"),
            ("<!--# include key -->", "{key}"),
            ("<!--# include a --><!--# include b -->", "{a}|{b}"),
            ("<!-- # include k -->", "<!-- # include k -->"),
            ("<!-- a --><!--# include k -->", "<!-- a -->|{k}"),
            ("a<!--# include k", "a<!--# include k"),
        ] {
            assert_eq!(show(page), parts, "{page}");
        }
    }

    #[test]
    fn what_is_no_directive_shows_the_error_message() {
        for page in [
            "<!--# -->",
            "<!--# include -->",
            "<!--# include a b -->",
            "<!--# include \"k -->",
            "<!--# exec cmd=\"rm\" -->",
            "<!--# include key= -->",
        ] {
            assert_eq!(show(page).as_bytes(), ERROR_MESSAGE, "{page}");
        }
    }

    proptest! {
        #[test]
        fn a_page_without_the_opening_is_kept_to_the_byte(page in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assume!(memmem::find(&page, b"<!--#").is_none());
            let template = Template::compile(&Bytes::from(page.clone()));
            let literal: Vec<u8> = template.parts().iter().flat_map(|part| match part {
                Part::Literal(bytes) => bytes.to_vec(),
                Part::Include(_) => panic!("no include was in there"),
            }).collect();
            prop_assert_eq!(literal, page);
        }

        #[test]
        fn no_page_panics(page in "(<!--#|-->|include|key|=|\"| |x){0,30}") {
            Template::compile(&Bytes::from(page));
        }
    }
}
