//! A path or URL with variables, such as `/u/{id}` and `https://{host}{path}`.
//!
//! Pure; made when the configuration is checked. Segments of a request's path take the places of
//! their names. Such a segment is not empty, has no slash and is neither `.` nor `..`. It is
//! percent-encoded again. So it stays within its segment, and leads neither up nor to another host.
//! Other values are made harmless in the same way ([`append_value`]).

use std::borrow::Cow;

use kirin_http::RequestPath;
use kirin_http::percent::{self, AsciiSet, NOT_IN_PATH, RESERVED};

use super::path_pattern::PathPattern;
use super::variables::{RequestValues, Variable};

/// A path with names, percent-encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A text, percent-encoded.
    Text(String),
    /// A variable.
    Variable(Variable),
}

impl PathTemplate {
    /// Parses `text`, which may have variables and names of `pattern`. `encode` encodes what stands
    /// between them. The error says what is allowed.
    pub fn parse(
        text: &str,
        pattern: &PathPattern,
        encode: impl Fn(&str) -> String,
    ) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or("a `{` has no `}` behind it")?;
            let variable = Variable::parse(name, pattern)?;
            parts.extend([Part::Text(encode(before)), Part::Variable(variable)]);
            rest = after;
        }
        parts.push(Part::Text(encode(rest)));
        match parts.iter().any(|part| matches!(part, Part::Text(text) if text.contains('}'))) {
            true => Err("a `}` has no `{` before it".into()),
            false => Ok(Self { parts }),
        }
    }

    /// Returns the path for a request.
    pub fn fill(&self, request: &RequestValues<'_>) -> Cow<'_, str> {
        self.fill_with(|variable| variable.value(request))
    }

    /// Returns the path for requests with the path `sent`. Returns `None` if it depends on other
    /// properties of a request.
    pub fn fill_path(&self, sent: &RequestPath<'_>) -> Option<Cow<'_, str>> {
        self.variables().all(is_segment).then(|| {
            self.fill_with(|variable| match variable {
                Variable::Segment(number) => {
                    Cow::Owned(sent.segment(*number).unwrap_or_default().to_vec())
                }
                _ => Cow::Borrowed(b""),
            })
        })
    }

    fn fill_with<'v>(&self, value: impl Fn(&Variable) -> Cow<'v, [u8]>) -> Cow<'_, str> {
        if let [Part::Text(text)] = self.parts.as_slice() {
            return Cow::Borrowed(text);
        }
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Variable(variable) => append_value(variable, &value(variable), &mut filled),
            }
        }
        Cow::Owned(filled)
    }

    /// Returns the variables.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Variable(variable) => Some(variable),
        })
    }

    /// Returns whether `variable` is one of its variables.
    pub fn has(&self, variable: &Variable) -> bool {
        self.variables().any(|other| other == variable)
    }

    /// Returns whether `path`, percent-encoded, may be a filled path or below one. A segment with a
    /// name counts as any.
    pub fn leads_to(&self, path: &[u8]) -> bool {
        let end = memchr::memchr(b'?', path).unwrap_or(path.len());
        let mut segments = path[..end].split(|byte| *byte == b'/');
        self.segments().iter().all(|wanted| match (wanted, segments.next()) {
            (Some(text), Some(segment)) => text.as_bytes() == segment,
            (None, Some(segment)) => !segment.is_empty(),
            (_, None) => false,
        })
    }

    /// Returns the segments, without those that have a name.
    fn segments(&self) -> Vec<Option<String>> {
        let mut segments = vec![Some(String::new())];
        for part in &self.parts {
            let text = match part {
                Part::Text(text) => text,
                // It may have any number of segments.
                Part::Variable(Variable::Path) => {
                    segments.pop();
                    return segments;
                }
                Part::Variable(_) => {
                    segments.pop();
                    segments.push(None);
                    continue;
                }
            };
            let mut texts = text.split('/');
            if let (Some(Some(last)), Some(first)) = (segments.last_mut(), texts.next()) {
                last.push_str(first);
            }
            segments.extend(texts.map(|text| Some(text.to_owned())));
        }
        segments
    }
}

fn is_segment(variable: &Variable) -> bool {
    matches!(variable, Variable::Segment(_))
}

/// Appends a value so that it stays within its segment.
///
/// `{path}` is resolved and encoded already. In any other value, slashes, backslashes and control
/// characters become `_`, because an encoded slash counts as one. So do all dots of a value of dots
/// only, which would lead up. An empty value is `_`, because an empty segment would be left out.
fn append_value(variable: &Variable, value: &[u8], out: &mut String) {
    match variable {
        Variable::Path => {
            // Two slashes would begin a host.
            if out.ends_with('/') {
                out.pop();
            }
            out.push_str(&String::from_utf8_lossy(value));
        }
        Variable::Host => out.push_str(&percent::encode(value, NOT_IN_HOST)),
        _ if value.is_empty() => out.push('_'),
        _ => {
            let is_dots = value.iter().all(|byte| *byte == b'.');
            let is_harmful = |byte: u8| {
                matches!(byte, b'/' | b'\\' | 0..=0x1f | 0x7f) || (is_dots && byte == b'.')
            };
            let harmless: Vec<u8> = value
                .iter()
                .map(|byte| if is_harmful(*byte) && !is_segment(variable) { b'_' } else { *byte })
                .collect();
            out.push_str(&percent::encode(&harmless, NOT_IN_PATH));
        }
    }
}

/// The bytes that are not written in a host.
const NOT_IN_HOST: &AsciiSet = &RESERVED.remove(b':').remove(b'[').remove(b']');

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn template(text: &str) -> Result<PathTemplate, String> {
        let pattern = PathPattern::parse("/users/{id}/{file_2}").unwrap();
        PathTemplate::parse(text, &pattern, str::to_owned)
    }

    #[test]
    fn segments_take_the_places_of_names() {
        for (text, sent, filled) in [
            ("", "/users/1/a", ""),
            ("/u", "/users/1/a", "/u"),
            ("/u/{id}", "/users/1/a", "/u/1"),
            ("/{file_2}-{id}.html", "/users/1/a/b", "/a-1.html"),
            ("/{id}{id}", "/users/1/a", "/11"),
            ("/u/{id}", "/users/caf%c3%a9%20x%3f/a", "/u/caf%C3%A9%20x%3F"),
            ("/u/{id}", "/users/%5c%0d%0a%25/a", "/u/%5C%0D%0A%25"),
            ("/{id}", "/users/%2F%2Fevil.example/a", "/evil.example"),
            ("/{id}", "/users//..//users/%2e%2e%2Fusers/x/a", "/x"),
        ] {
            let sent = RequestPath::parse(sent).unwrap();
            assert_eq!(
                template(text).unwrap().fill_path(&sent).unwrap(),
                filled,
                "{text} {sent:?}"
            );
        }
    }

    #[test]
    fn a_name_that_the_route_lacks_is_refused() {
        for (text, expected) in [
            ("/{name}", "no `{name}`; its names are `{id}` and `{file_2}`"),
            ("/{}", "no `{}`"),
            ("/{id", "no `}` behind"),
            ("/id}", "no `{` before"),
            ("/{id}}", "no `{` before"),
            ("/{{id}}", "no `{{id}`"),
        ] {
            let error = template(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_template_leads_to_the_paths_below_it() {
        for (text, yes, no) in [
            ("", &["/", "/a"][..], &[][..]),
            ("/a", &["/a", "/a/b", "/a?b", "/a/?b"], &["/", "/ab", "/b/a"]),
            ("/a/{id}", &["/a/1", "/a/1/b?c"], &["/a", "/a/", "/b/1", "/a?/1"]),
            ("/a/x{id}.x/b", &["/a/1/b", "/a/1/b/c"], &["/a/1", "/a/1/c"]),
        ] {
            let template = template(text).unwrap();
            for (paths, expected) in [(yes, true), (no, false)] {
                for path in paths {
                    assert_eq!(template.leads_to(path.as_bytes()), expected, "{text} {path}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn no_segment_leads_out_of_its_place(sent in "/users/[/\\\\.%25fao;:@{}]{1,12}/[.%2ea]{1,4}") {
            let Ok(sent) = RequestPath::parse(&sent) else { return Ok(()) };
            let pattern = PathPattern::parse("/users/{id}/{file_2}").unwrap();
            if sent.segment(2).is_none() || sent.segment(0) != Some(b"users") {
                return Ok(());
            }
            for text in ["/{id}", "/u/{id}/x", "/.{id}/{file_2}.", "/{id}{file_2}"] {
                let template = PathTemplate::parse(text, &pattern, str::to_owned).unwrap();
                let filled = template.fill_path(&sent).unwrap();
                let slashes = |text: &str| text.matches('/').count();
                prop_assert_eq!(slashes(&filled), slashes(text), "{}", filled);
                prop_assert!(!filled.contains("//") && !filled.contains('\\'), "{}", filled);
                prop_assert!(filled.bytes().all(|byte| byte.is_ascii_graphic()), "{}", filled);
                prop_assert!(!format!("{filled}/").contains("/../"), "{}", filled);
                // What is read from it is one segment again.
                let read = RequestPath::parse(&filled).unwrap();
                prop_assert!(read.segment(slashes(text)).is_none(), "{}", filled);
                prop_assert!(read.segment(slashes(text) - 1).is_some(), "{}", filled);
                prop_assert!(template.leads_to(filled.as_bytes()), "{}", filled);
            }
        }
    }
}
