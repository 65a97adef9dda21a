//! What the table finds, and that strangers cannot make it large or lose a count.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::{ConfiguredPattern, PatternLimits, UrlPatterns};

/// Counts paths as a caller does. Returns the counts by the text of the pattern.
fn count<'a>(
    patterns: &mut UrlPatterns,
    paths: impl IntoIterator<Item = &'a str>,
) -> BTreeMap<String, u64> {
    let mut counts = vec![0; patterns.most_patterns()];
    for path in paths {
        let id = patterns.pattern_of(path.as_bytes(), |merge| {
            assert_ne!(merge.from, merge.into);
            counts[merge.into.index()] += std::mem::take(&mut counts[merge.from.index()]);
        });
        counts[id.index()] += 1;
    }
    let named: Vec<_> = patterns.iter().map(|id| (patterns.name(id), counts[id.index()])).collect();
    assert_eq!(named.iter().map(|(_, count)| count).sum::<u64>(), counts.iter().sum::<u64>());
    let by_name: BTreeMap<_, _> = named.iter().filter(|(_, count)| *count > 0).cloned().collect();
    assert_eq!(
        by_name.len(),
        named.iter().filter(|(_, count)| *count > 0).count(),
        "two patterns have one name: {named:?}"
    );
    by_name
}

fn found(paths: &[&str]) -> BTreeMap<String, u64> {
    count(&mut UrlPatterns::new(Vec::new(), PatternLimits::default()), paths.iter().copied())
}

fn expected(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn numbers_are_variable_at_once_and_words_are_not() {
    assert_eq!(
        found(&[
            "/",
            "/?q=/a",
            "/memo/7",
            "/memo/8?x#y",
            "/memo/new",
            "/memo/",
            "/memo",
            "//memo//9"
        ]),
        expected(&[("/", 2), ("/memo", 1), ("/memo/", 1), ("/memo/new", 1), ("/memo/{id}", 3),])
    );
}

#[test]
fn targets_of_every_form_have_a_pattern() {
    assert_eq!(
        found(&["*", "example.org:443", "", "-", "http://a/memo/1", "https://b", "http://c?x"]),
        expected(&[("/", 2), ("/memo/{id}", 1), ("{other}", 4)])
    );
}

#[test]
fn a_deep_path_ends_in_rest() {
    assert_eq!(
        found(&[&"/a".repeat(12), &"/a".repeat(13), &"/a".repeat(5000)]),
        expected(&[(&"/a".repeat(12), 1), (&format!("{}/{{rest}}", "/a".repeat(12)), 2)])
    );
}

#[test]
fn rare_words_are_merged_with_all_below_them_and_frequent_ones_stay() {
    let mut paths = Vec::new();
    for user in 0..500 {
        paths.push("/login".to_owned());
        paths.push(format!("/user{user}x"));
        paths.push(format!("/user{user}x/posts"));
        paths.push(format!("/user{user}x/posts/{user}"));
        paths.push(format!("/user{user}x/icon.png"));
        paths.push(format!("/css/style{user}x.css"));
        // A user who is there all the time is no part of the structure.
        paths.push("/user7x".to_owned());
    }
    let mut patterns = UrlPatterns::new(Vec::new(), PatternLimits::default());
    assert_eq!(
        count(&mut patterns, paths.iter().map(String::as_str)),
        expected(&[
            ("/css/{name}.css", 500),
            ("/login", 500),
            ("/{name}", 1000),
            ("/{name}/icon.png", 500),
            ("/{name}/posts", 500),
            ("/{name}/posts/{id}", 500),
        ])
    );
}

#[test]
fn the_first_configured_pattern_that_matches_has_the_path() {
    let configured = ["/memo/new", "/memo/{id}", "/@{user}/*", "/memo/7"];
    let configured =
        configured.iter().map(|text| ConfiguredPattern::parse(text).expect("a pattern")).collect();
    let mut patterns = UrlPatterns::new(configured, PatternLimits::default());
    let paths = ["/memo/new?x", "/memo/7", "/memo/abc", "/@alice/a/b", "/else/1"];
    assert_eq!(
        count(&mut patterns, paths),
        expected(&[("/@{user}/*", 1), ("/else/{id}", 1), ("/memo/new", 1), ("/memo/{id}", 2)])
    );
}

#[test]
fn patterns_keep_their_text_in_another_table() {
    let names = ["/memo/{id}", "/{name}/{id}.jpg", "/", "/a/", "/x/{name}.css", "/y/{rest}"];
    assert_eq!(found(&names), names.iter().map(|name| ((*name).to_owned(), 1)).collect());
}

#[test]
fn a_full_table_counts_new_paths_as_other_and_keeps_its_patterns() {
    let limits = PatternLimits { patterns: 3, ..PatternLimits::default() };
    let mut patterns = UrlPatterns::new(Vec::new(), limits);
    let paths = ["/a/b", "/a/c", "/a/d", "/a/7", "/a/b", "/b", "/a/d?x"];
    let counts = count(&mut patterns, paths);
    assert_eq!(counts, expected(&[("/a/b", 2), ("/a/c", 1), ("/a/d", 2), ("{other}", 2)]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn memory_is_bounded_and_no_count_is_lost(
        paths in proptest::collection::vec("(/[a-e0]{0,2}(\\.css|\\.x)?){0,5}/?", 0..400),
        long in proptest::collection::vec("(/[!-~]{1,70}){1,14}", 0..40),
        words in 1_usize..8,
        nodes in 1_usize..60,
        names in 1_usize..40,
    ) {
        let limits = PatternLimits { words, nodes, patterns: names, word_bytes: 400 };
        let mut patterns = UrlPatterns::new(Vec::new(), limits);
        let all: Vec<&str> = paths.iter().chain(&long).map(String::as_str).collect();
        let counts = count(&mut patterns, all.iter().copied());
        prop_assert_eq!(counts.values().sum::<u64>(), all.len() as u64);
        prop_assert!(counts.len() <= names + 1);
        // 128 bytes for a node and its place in the index, 64 for growing by doubling.
        let most = nodes * 192 * 2 + names * 64 + 400 + 4096;
        prop_assert!(patterns.memory_bytes() <= most, "{} > {}", patterns.memory_bytes(), most);
    }

    #[test]
    fn any_bytes_have_a_pattern(path in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut patterns = UrlPatterns::new(Vec::new(), PatternLimits::default());
        let id = patterns.pattern_of(&path, |_| {});
        let name = patterns.name(id);
        prop_assert!(name.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{name:?}");
        let slashed = [b"/", path.as_slice()].concat();
        patterns.pattern_of(&slashed, |_| {});
    }
}

#[test]
fn the_words_of_one_site_do_not_merge_those_of_another() {
    let mut patterns = UrlPatterns::new(Vec::new(), PatternLimits::default());
    for number in 0..100 {
        patterns.pattern_in(1, format!("/word{number}x").as_bytes(), |_| {});
    }
    let mut name_in = |site, path: &str| {
        let pattern = patterns.pattern_in(site, path.as_bytes(), |_| {});
        patterns.name(pattern)
    };
    assert_eq!([0, 1, 2].map(|site| name_in(site, "/news")), ["/news", "/{name}", "/news"]);
    // A site without a root finds no room when all nodes are in use.
    let mut full =
        UrlPatterns::new(Vec::new(), PatternLimits { nodes: 3, ..PatternLimits::default() });
    full.pattern_of(b"/a/b", |_| {});
    assert_eq!(full.pattern_in(7, b"/a", |_| {}), crate::PatternId::OTHER);
}

#[test]
fn a_table_finds_the_merged_pattern_for_a_word_of_another_table() {
    let mut patterns = UrlPatterns::new(Vec::new(), PatternLimits::default());
    for number in 0..60 {
        for _ in 0..if number == 0 { 30 } else { 1 } {
            let word = if number == 0 { "login".to_owned() } else { format!("w{number}x") };
            patterns.pattern_of(format!("/{word}").as_bytes(), |_| {});
            patterns.pattern_of(format!("/{word}.php").as_bytes(), |_| {});
            patterns.pattern_of(format!("/{word}/Special:Version").as_bytes(), |_| {});
        }
    }
    for (text, expected) in [
        ("/index", Some("/{name}")),
        ("/index.php", Some("/{name}.php")),
        ("/wiki/Special:Version", Some("/{name}/Special:Version")),
        ("/{name}/Special:Version", Some("/{name}/Special:Version")),
        // A word that stays is its own row.
        ("/login", Some("/login")),
        // Nothing is said about what has not been counted.
        ("/index.css", None),
        ("/wiki/Special:Other", None),
        ("/{id}", None),
        ("*", None),
    ] {
        let found = patterns.pattern_for(0, text).map(|pattern| patterns.name(pattern));
        assert_eq!(found.as_deref(), expected, "{text}");
        assert_eq!(patterns.pattern_for(1, text), None, "{text}");
    }
}

fn with_configured(patterns: &[&str]) -> UrlPatterns {
    let parse = |text: &&str| ConfiguredPattern::parse(text).expect(text);
    UrlPatterns::new(patterns.iter().map(parse).collect(), PatternLimits::default())
}

#[test]
fn named_parameters_are_a_part_of_the_pattern() {
    let mut patterns =
        with_configured(&["/git?a=blob&f={file}", "/git?a", "/{x}.php?id&do", "/*?debug={x}"]);
    let targets = [
        "/git?p=x.git;a=summary",
        "/git?p=y.git&a=summary",
        "/git?a=blob;f=a/b",
        "/git?a=blob",
        "/git?a=",
        "/git?a=7",
        "/git",
        "/doku.php?id=start&x=1",
        "/doku.php?do=edit&id=start",
        "/doku.php?do=edit",
        "/doku.php?id=wiki%3Asyntax#x",
        "http://h/doku.php?id=a&do=b",
        "/doku.php",
        "/other?a=1",
        "/other?debug=1",
    ];
    let expected = expected(&[
        ("/git?a=summary", 2),
        ("/git?a=blob&f={file}", 1),
        ("/git?a=blob", 1),
        ("/git?a=", 1),
        ("/git?a={id}", 1),
        ("/git", 1),
        ("/{x}.php?id=start", 1),
        ("/{x}.php?id=start&do=edit", 1),
        ("/{x}.php?do=edit", 1),
        ("/{x}.php?id=wiki%3Asyntax", 1),
        ("/{x}.php?id=a&do=b", 1),
        ("/{x}.php", 1),
        ("/other", 1),
        ("/*?debug={x}", 1),
    ]);
    assert_eq!(count(&mut patterns, targets), expected);
    // Another table finds its own patterns by their texts.
    let mut other = with_configured(&["/git?a", "/{x}.php?id&do"]);
    for number in 0..50 {
        other.pattern_of(format!("/git?a=w{number}x").as_bytes(), |_| {});
        other.pattern_of(format!("/doku.php?id=w{number}x&do=edit").as_bytes(), |_| {});
        other.pattern_of(format!("/w{number}x").as_bytes(), |_| {});
    }
    for (text, expected) in [
        ("/git?a=summary", Some("/git?a={name}")),
        ("/git?a={name}", Some("/git?a={name}")),
        ("/git?a=", None),
        ("/git", None),
        ("/{x}.php?id=start&do=edit", Some("/{x}.php?id={name}&do=edit")),
        ("/{x}.php?id=start", None),
        ("/index", Some("/{name}")),
    ] {
        let found = other.pattern_for(0, text).map(|pattern| other.name(pattern));
        assert_eq!(found.as_deref(), expected, "{text}");
    }
}

#[test]
fn values_of_parameters_are_as_bounded_as_words() {
    let mut patterns = with_configured(&["/git?a&b&c&d"]);
    let long = "x".repeat(65);
    let targets: Vec<String> = (0..30_000)
        .map(|number| match number % 4 {
            0 => format!("/git?a=w{number}x&b=w{number}x&c={number}&d=\u{e4}{number}"),
            1 => format!("/git?a={long}{number}"),
            2 => format!("/git?b=\u{1b}[{number}J"),
            _ => format!("/git?{number}={number}"),
        })
        .collect();
    let counts = count(&mut patterns, targets.iter().map(String::as_str));
    assert_eq!(counts.values().sum::<u64>(), 30_000);
    assert_eq!(counts["/git?a={name}"], 7500, "{counts:?}");
    assert_eq!(counts["/git?b={name}"], 7500, "{counts:?}");
    assert_eq!(counts["/git"], 7500, "{counts:?}");
    assert!(counts.len() <= 45, "{counts:?}");
    assert!(patterns.memory_bytes() < 1 << 20, "{}", patterns.memory_bytes());
    assert!(counts.keys().all(|name| name.bytes().all(|byte| byte.is_ascii_graphic())));
}

proptest! {
    #[test]
    fn a_table_finds_its_own_patterns_by_their_texts(
        paths in proptest::collection::vec("(/[a-c0-9.é{}-]{0,5}){1,5}", 0..200),
        queries in proptest::collection::vec("(([ab]|[a-d])(=[a-c0-9{}é]{0,3})?[&;]){0,4}", 0..200),
    ) {
        let limits = PatternLimits { words: 6, ..PatternLimits::default() };
        let mut found = UrlPatterns::new(Vec::new(), limits);
        let configured = vec![ConfiguredPattern::parse("/x?a&b").expect("a pattern")];
        let mut of_queries = UrlPatterns::new(configured, limits);
        for path in &paths {
            found.pattern_of(path.as_bytes(), |_| {});
        }
        for query in &queries {
            of_queries.pattern_of(format!("/x?{query}").as_bytes(), |_| {});
        }
        for patterns in [&found, &of_queries] {
            for pattern in patterns.iter().filter(|pattern| patterns.is_found(*pattern)) {
                let name = patterns.name(pattern);
                prop_assert_eq!(patterns.pattern_for(0, &name), Some(pattern), "{}", name);
            }
        }
    }
}
