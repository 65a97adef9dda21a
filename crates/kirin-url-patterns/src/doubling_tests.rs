//! The cost of a path, and of a table of paths, grows with its input (`kirin-doubling`).

use std::fmt::Write;

use kirin_doubling::Table;

use crate::{ConfiguredPattern, PatternLimits, UrlPatterns, pattern_at_first_sight};

/// Puts many paths into an empty table.
fn fill(paths: &[String], limits: PatternLimits) -> usize {
    let mut patterns = UrlPatterns::new(Vec::new(), limits);
    for path in paths {
        patterns.pattern_of(path.as_bytes(), |_| {});
    }
    patterns.memory_bytes()
}

#[test]
fn a_path_costs_no_more_than_its_bytes() {
    let mut table = Table::new();
    for piece in ["/", "/a", "a", "7", "/7", "%41", "?", "/{id}", ".jpg", "/.", "-", "\u{e4}"] {
        let text = |count: usize| format!("/{}", piece.repeat(count));
        table.check(&format!("found {piece}"), 300, text, |path| {
            UrlPatterns::new(Vec::new(), PatternLimits::default())
                .pattern_of(path.as_bytes(), |_| {})
        });
        table.check(&format!("url {piece}"), 300, text, |path| {
            let url = format!("http://{path}");
            UrlPatterns::new(Vec::new(), PatternLimits::default())
                .pattern_of(url.as_bytes(), |_| {})
        });
        table.check(&format!("at first sight {piece}"), 300, text, |path| {
            pattern_at_first_sight(path)
        });
        for pattern in ["/{a}/{b}/*", "/a{b}a", "/*"] {
            let pattern = ConfiguredPattern::parse(pattern).expect("a pattern");
            table.check(&format!("{} for {piece}", pattern.text()), 300, text, |path| {
                pattern.matches(path.as_bytes(), b"")
            });
        }
    }
    for piece in ["a", "&", ";", "&a=1", ";b", "=", "&a", "%41", "{id}"] {
        let text = |count: usize| format!("/?{}", piece.repeat(count));
        table.check(&format!("query {piece}"), 300, text, |target| {
            let pattern = ConfiguredPattern::parse("/?a&b&c=1{d}1&d").expect("a pattern");
            let bare = ConfiguredPattern::parse("/?a&b&c&d").expect("a pattern");
            UrlPatterns::new(vec![pattern, bare], PatternLimits::default())
                .pattern_of(target.as_bytes(), |_| {})
        });
    }
    for piece in ["{", "}", "{a", "/{a}", "a", "/", "*", "?", "&", "?a", "&a", "=", "?a={b}"] {
        let text = |count: usize| format!("/{}", piece.repeat(count));
        table.check(&format!("configured {piece}"), 300, text, |text| {
            ConfiguredPattern::parse(text).is_ok()
        });
    }
    table.finish();
}

#[test]
fn a_table_costs_no_more_than_its_paths() {
    let mut table = Table::new();
    // Each shape makes a path of a number. Words do not look like identifiers.
    let word = |number: usize| format!("w{number}x");
    let shapes: [(&str, &dyn Fn(usize) -> String); 5] = [
        ("one directory", &|n| format!("/{}", word(n))),
        ("words below words", &|n| format!("/{}/{}", word(n % 61), word(n))),
        ("same words below words", &|n| format!("/{}/a/{}/b", word(n), word(n % 39))),
        ("deep", &|n| {
            let mut path = String::new();
            let mut rest = n;
            for _ in 0..12 {
                let _ = write!(path, "/{}", word(rest % 7));
                rest /= 7;
            }
            path
        }),
        ("numbers", &|n| format!("/a/{n}/{}", word(n % 100))),
    ];
    for (name, shape) in shapes {
        let paths = |count: usize| (0..count).map(shape).collect::<Vec<_>>();
        table.check(name, 2000, paths, |paths| fill(paths, PatternLimits::default()));
        let small = PatternLimits { nodes: 500, patterns: 100, ..PatternLimits::default() };
        table.check(&format!("{name}, full"), 2000, paths, |paths| fill(paths, small));
    }
    table.finish();
}
