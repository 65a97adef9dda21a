//! Looks for a visitor's own values in a body: of the cookies and credentials of the request. A
//! body that has one is that visitor's own.

use memchr::memmem::Finder;

/// The shortest value that is looked for, in bytes. Shorter ones, such as `de`, are in every page.
const MIN_BYTES: usize = 6;

/// The longest start of a value that is looked for, in bytes.
const MAX_BYTES: usize = 256;

/// The most values that are looked for.
const MAX_VALUES: usize = 32;

/// A search for the values of one request in the body of its response, which arrives in chunks.
pub struct OwnValues {
    finders: Vec<Finder<'static>>,
    longest: usize,
    /// The end of the last chunk, in which a value may begin.
    tail: Vec<u8>,
    is_found: bool,
}

impl OwnValues {
    /// Prepares the search for `values`. Of a value with marks, such as `s:4f2a…e1.signature`, each
    /// long part is looked for, too. With more values than can be looked for, the body counts as
    /// having one.
    pub fn new<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut wanted: Vec<&[u8]> = Vec::new();
        let mut has_too_many = false;
        for value in values {
            let parts = value.split(|byte| !byte.is_ascii_alphanumeric() && !b"-_".contains(byte));
            for part in std::iter::once(value).chain(parts) {
                let part = &part[..part.len().min(MAX_BYTES)];
                if part.len() < MIN_BYTES || wanted.contains(&part) {
                    continue;
                }
                has_too_many |= wanted.len() == MAX_VALUES;
                if has_too_many {
                    break;
                }
                wanted.push(part);
            }
        }
        let longest = wanted.iter().map(|value| value.len()).max().unwrap_or(0);
        let finders = wanted.into_iter().map(|value| Finder::new(value).into_owned()).collect();
        Self { finders, longest, tail: Vec::new(), is_found: has_too_many }
    }

    /// Searches the next bytes of the body.
    pub fn search(&mut self, chunk: &[u8]) {
        if self.is_found || self.finders.is_empty() {
            return;
        }
        let kept = self.longest - 1;
        // A value may begin in the chunks before.
        self.tail.extend_from_slice(&chunk[..chunk.len().min(kept)]);
        self.is_found = self.has(&self.tail) || self.has(chunk);
        if chunk.len() >= kept {
            self.tail.clear();
            self.tail.extend_from_slice(&chunk[chunk.len() - kept..]);
        } else {
            self.tail.drain(..self.tail.len().saturating_sub(kept));
        }
    }

    /// Returns whether the body has one of the values.
    pub fn is_found(&self) -> bool {
        self.is_found
    }

    fn has(&self, bytes: &[u8]) -> bool {
        self.finders.iter().any(|finder| finder.find(bytes).is_some())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(values: &[&str], chunks: &[&str]) -> bool {
        let mut own = OwnValues::new(values.iter().map(|value| value.as_bytes()));
        chunks.iter().for_each(|chunk| own.search(chunk.as_bytes()));
        own.is_found()
    }

    #[test]
    fn a_visitors_values_are_found_complete_and_in_parts() {
        for (values, chunks, expected) in [
            (&["4f2ae1"][..], &["<b>4f2ae1</b>"][..], true),
            (&["4f2ae1"], &["<b>4f2", "ae1</b>"], true),
            (&["4f2ae1"], &["4", "f", "2", "a", "e", "1"], true),
            (&["4f2ae1"], &["4f2", "ae2"], false),
            (&["s:4f2ae1.sig"], &["id=4f2ae1"], true),
            (&["de", "1", ""], &["de 1"], false),
            (&["aaaaaa", "abcdefgh"], &["xx abcd", "efgh"], true),
            (&[], &["anything"], false),
        ] {
            assert_eq!(found(values, chunks), expected, "{values:?} in {chunks:?}");
        }
    }

    #[test]
    fn a_body_with_too_many_values_counts_as_personal() {
        let many: Vec<_> = (0..=MAX_VALUES).map(|number| format!("value{number:04}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert!(found(&many, &["nothing"]));
        assert!(!found(&many[1..], &["nothing"]));
    }

    #[test]
    fn a_long_value_is_searched_for_by_its_start() {
        let long = "x".repeat(MAX_BYTES * 4);
        assert!(found(&[&long], &[&"x".repeat(MAX_BYTES)]));
    }

    proptest! {
        #[test]
        fn the_search_does_not_depend_on_how_the_body_is_cut(body in "[ab]{0,40}", cuts in prop::collection::vec(0usize..40, 0..6)) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut start = 0;
            for cut in cuts.into_iter().chain([body.len()]) {
                chunks.push(&body[start..cut]);
                start = cut;
            }
            prop_assert_eq!(found(&["abbaba"], &chunks), body.contains("abbaba"));
        }
    }
}
