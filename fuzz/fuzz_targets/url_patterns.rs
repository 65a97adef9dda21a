//! Targets of requests, and a pattern of the operator. No target panics or is lost, and a pattern
//! that is found has visible ASCII only.
#![no_main]

use kirin_url_patterns::{ConfiguredPattern, PatternLimits, UrlPatterns, pattern_at_first_sight};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // The first line is the operator's. Each further one is a target.
    let mut lines = input.split(|byte| *byte == b'\n');
    let first = lines.next().and_then(|line| std::str::from_utf8(line).ok());
    let configured: Vec<_> =
        first.and_then(|text| ConfiguredPattern::parse(text).ok()).into_iter().collect();
    let found_from = 1 + configured.len();
    // A pattern with values of parameters begins with the text of the operator.
    let is_graphic = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    let is_visible = configured.iter().all(|pattern| is_graphic(pattern.text()));
    // With small limits a short input reaches all of them.
    let limits = PatternLimits { words: 6, nodes: 64, word_bytes: 256, patterns: 24 };
    let mut patterns = UrlPatterns::new(configured, limits);
    let mut counts = vec![0_usize; patterns.most_patterns()];
    let mut sent = 0;
    for target in lines {
        let pattern = patterns.pattern_of(target, |merge| {
            assert_ne!(merge.from, merge.into);
            counts[merge.into.index()] += std::mem::take(&mut counts[merge.from.index()]);
        });
        counts[pattern.index()] += 1;
        sent += 1;
        if let Ok(path) = std::str::from_utf8(target) {
            let pattern = pattern_at_first_sight(path);
            assert!(pattern.bytes().all(|byte| byte.is_ascii_graphic()), "{pattern:?}");
            assert_eq!(pattern_at_first_sight(&pattern), pattern);
        }
    }
    assert_eq!(counts.iter().sum::<usize>(), sent);
    assert!(patterns.iter().count() <= patterns.most_patterns());
    for pattern in patterns.iter().skip(found_from) {
        let name = patterns.name(pattern);
        assert!(is_graphic(&name) || !is_visible, "{name:?}");
        if found_from == 1 {
            assert_eq!(patterns.pattern_for(0, &name), Some(pattern), "{name:?}");
        }
    }
});
