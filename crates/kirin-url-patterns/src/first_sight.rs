//! The pattern of one path, without a table of the others.

use crate::segment::PathSegment;

/// Returns the pattern of a path without its query, by the segments that are variable at first
/// sight: `/memo/{id}` for `/memo/7`. Each other segment stays as it is, and so does `//`.
pub fn pattern_at_first_sight(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for (at, text) in path.split('/').enumerate() {
        if at > 0 {
            pattern.push('/');
        }
        if text.is_empty() {
            continue;
        }
        match PathSegment::of(text.as_bytes()) {
            PathSegment::Literal(_) => pattern.push_str(text),
            PathSegment::Variable(variable) => variable.write(&mut pattern),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::pattern_at_first_sight;
    use crate::{PatternLimits, UrlPatterns};

    #[test]
    fn ids_are_variable_in_each_segment() {
        for (path, expected) in [
            ("", ""),
            ("*", "*"),
            ("/", "/"),
            ("/memo/17", "/memo/{id}"),
            ("/memo/17/neighbours", "/memo/{id}/neighbours"),
            ("/2026/11/22/", "/{id}/{id}/{id}/"),
            ("/u/0189b2c4-7a1e-7c3f-9f00-aabbccddeeff", "/u/{id}"),
            ("/image/7.jpg", "/image/{id}.jpg"),
            ("/memo/17a", "/memo/17a"),
            ("/deadbeef", "/deadbeef"),
            ("//a//7", "//a//{id}"),
        ] {
            assert_eq!(pattern_at_first_sight(path), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn an_empty_table_finds_the_same_pattern(path in "(/[a-z0-9.é{}-]{1,12}){1,9}/?") {
            let mut patterns = UrlPatterns::new(Vec::new(), PatternLimits::default());
            let found = patterns.pattern_of(path.as_bytes(), |_| {});
            prop_assert_eq!(pattern_at_first_sight(&path), patterns.name(found));
        }
    }
}
