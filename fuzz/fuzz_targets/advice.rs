//! Answers that `kirin advise` observes. No body panics, chunks make no difference, and a page that
//! no visitor without a cookie got is never shared.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use kirin_advice::observation::{Observation, ObservedBody, Statement, ObservedTarget, Visitor};
use kirin_advice::own_values::OwnValues;
use kirin_advice::pieces::Splitter;
use kirin_advice::report::report;
use kirin_advice::survey::{Demands, Survey};
use kirin_advice::verdict::PageVerdict;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let key = BuildHasherDefault::<DefaultHasher>::default();
    let mut survey = Survey::default();
    let mut asked = Duration::ZERO;
    let mut got_by_strangers = BTreeSet::new();
    // An answer: the visitor, the page, the place of a cut, and the body.
    for answer in input.split(|byte| *byte == 0) {
        let [visitor, page, cut, body @ ..] = answer else { continue };
        let (path, value) = (format!("/{}", page % 4), [*visitor; 8]);
        let cookies = match visitor % 3 {
            0 => Vec::new(),
            _ => vec![("sid".to_owned(), key.hash_one(value))],
        };
        if cookies.is_empty() {
            got_by_strangers.insert(path.clone());
        }
        let (start, rest) = body.split_at(body.len().min((*cut).into()));
        let observe = |chunks: &[&[u8]]| {
            let mut splitter = Splitter::new(key.clone());
            let mut own = OwnValues::new([&value[..]].into_iter());
            for chunk in chunks {
                splitter.add(chunk);
                own.search(chunk);
            }
            (splitter.finish(), own.is_found())
        };
        let (hashed, has_own_value) = observe(&[body]);
        assert_eq!(observe(&[start, rest]), (hashed.clone(), has_own_value));
        survey.add(Observation {
            target: ObservedTarget { is_read: true, path, ..ObservedTarget::default() },
            visitor: Visitor {
                cookies,
                address: (visitor / 3 % 5).into(),
                language: (page / 4 % 3).into(),
                ..Visitor::default()
            },
            asked,
            answered: asked + Duration::from_millis(5),
            status: 200,
            statement: Statement {
                is_html: true,
                is_public: page.is_multiple_of(32),
                ..Statement::default()
            },
            body: ObservedBody::Complete { hashed, has_own_value },
            ..Observation::default()
        });
        asked += Duration::from_secs(1);
    }
    for entry in report(&survey, &Demands::default(), &BTreeMap::new(), 60.0).entries {
        let is_shared = matches!(
            entry.verdict,
            PageVerdict::Everybody
                | PageVerdict::WithoutCookie { .. }
                | PageVerdict::SameBut { .. }
                | PageVerdict::NeedsKey { .. }
        );
        // An entry of several pages has a pattern in place of their paths.
        let is_proven = match entry.pages {
            1 => got_by_strangers.contains(&entry.target),
            pages => got_by_strangers.len() as u64 >= pages as u64,
        };
        assert!(!is_shared || is_proven, "{entry:?}");
    }
});
