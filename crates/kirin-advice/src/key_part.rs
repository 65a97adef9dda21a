//! Finds the part of requests that explains why visitors get different bodies, and that a cache key
//! could have.

use std::collections::{BTreeMap, BTreeSet};

use crate::evidence::{CookieName, Evidence, Sample};
use crate::judge::Judge;
use crate::verdict::{KeyPart, PageVerdict, Reason};

/// The most values of a part of the key.
const MAX_KEY_VALUES: usize = 16;

/// Reads the hash of a field of a sample.
type ReadField = fn(&Sample) -> u64;

/// A part of a request that explains differences.
pub(crate) enum ExplainingPart {
    Field(&'static str),
    Address,
    Cookie(String),
}

pub(crate) fn key_verdict(reading: ExplainingPart, values: usize) -> PageVerdict {
    let key = match reading {
        ExplainingPart::Field("user-agent") => {
            return PageVerdict::Unsafe { reasons: vec![Reason::Agent] };
        }
        ExplainingPart::Address => return PageVerdict::Unsafe { reasons: vec![Reason::Address] },
        ExplainingPart::Field(name) => KeyPart::Field(name.to_owned()),
        ExplainingPart::Cookie(name) => KeyPart::Cookie(name),
    };
    PageVerdict::NeedsKey { key, values }
}

impl Judge<'_> {
    /// Returns the part of requests that explains all differences, and the number of its values.
    pub(crate) fn key_part(
        &self,
        evidence: &Evidence,
        samples: &[Sample],
    ) -> Option<(ExplainingPart, usize)> {
        let differ = |samples: &[Sample]| samples.iter().any(|one| one.body != samples[0].body);
        if samples.len() < 2 || !differ(samples) {
            return None;
        }
        let varies = |name: &str| evidence.said.vary.contains(name);
        let fields: [(ExplainingPart, ReadField); 4] = [
            (ExplainingPart::Field("accept-language"), |sample| sample.language),
            (ExplainingPart::Field("accept"), |sample| sample.accept),
            (ExplainingPart::Field("user-agent"), |sample| sample.agent),
            (ExplainingPart::Address, |sample| sample.address),
        ];
        for (reading, of) in fields {
            // What is in the key already explains nothing more.
            if matches!(reading, ExplainingPart::Field(name) if varies(name)) {
                continue;
            }
            if let Some(values) = explained(samples, |sample| Some(of(sample))) {
                return Some((reading, values));
            }
        }
        let names: BTreeSet<CookieName> = samples
            .iter()
            .flat_map(|sample| sample.cookies.iter().map(|(name, _)| *name))
            .collect();
        names.into_iter().filter(|name| !self.sessions.contains(name)).find_map(|name| {
            let values = explained(samples, |sample| value_of(sample, name))?;
            Some((ExplainingPart::Cookie(self.survey.cookie_name(name).to_owned()), values))
        })
    }
}

/// Returns the number of values of a part of requests, if it explains all differences between
/// samples: those with one value get one body after the other, and each of two values or more was
/// seen with several visitors.
fn explained(samples: &[Sample], of: impl Fn(&Sample) -> Option<u64>) -> Option<usize> {
    let mut groups: BTreeMap<Option<u64>, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        groups.entry(of(sample)).or_default().push(sample);
    }
    let mut shared = 0;
    let mut bodies: BTreeSet<Vec<u64>> = BTreeSet::new();
    for group in groups.values_mut() {
        group.sort_by_key(|sample| (sample.variant, sample.first));
        let is_mixed = |pair: &[&Sample]| {
            pair[0].variant == pair[1].variant
                && pair[0].body != pair[1].body
                && (pair[0].last > pair[1].first || pair[0].count + pair[1].count < 3)
        };
        if group.windows(2).any(is_mixed) {
            return None;
        }
        let who = group.iter().map(|sample| (sample.identity(), sample.address, sample.agent));
        let visitors = who.collect::<BTreeSet<_>>().len();
        let requests: u64 = group.iter().map(|sample| sample.count).sum();
        // One visitor with a page of his own does not show that others get it, too.
        if visitors > 1 || requests > 2 && group[0].identity().is_none() {
            shared += 1;
            bodies.insert(group.iter().map(|sample| sample.body).collect());
        }
    }
    (groups.len() <= MAX_KEY_VALUES && shared > 1 && bodies.len() > 1).then_some(groups.len())
}

/// Returns the hash of the value of a cookie.
pub(crate) fn value_of(sample: &Sample, name: CookieName) -> Option<u64> {
    sample.cookies.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Statement;
    use crate::test_site::{PAGE, TestSite, Visit};

    #[test]
    fn a_page_by_language_needs_a_key_unless_it_varies_by_it() {
        for vary in [&[][..], &["accept-language"]] {
            let mut site = TestSite::new();
            for number in 0..12 {
                let address = format!("10.0.0.{number}");
                let (language, body) = [("de", "<p>Guten Tag</p>"), ("en", PAGE)][number % 2];
                let vary = vary.iter().map(|name| (*name).to_owned()).collect();
                let statement = Statement { vary, ..Statement::default() };
                site.ask(Visit {
                    address: &address,
                    language,
                    body,
                    statement,
                    ..Visit::default()
                });
            }
            let expected = match vary {
                [] => PageVerdict::NeedsKey {
                    key: KeyPart::Field("accept-language".into()),
                    values: 2,
                },
                _ => PageVerdict::WithoutCookie { others_differ: false },
            };
            assert_eq!(site.verdict(), expected);
        }
    }

    #[test]
    fn a_cookie_with_few_values_that_explains_all_differences_is_a_key() {
        let mut site = TestSite::new();
        for number in 0..16 {
            let (address, session) =
                (format!("10.0.0.{number}"), format!("0123456789abcdef{number}"));
            let (language, body) =
                [("de", "<p>Guten Tag</p>"), ("en", "<p>Good day</p>")][number % 2];
            let cookies = [("lang", language), ("sid", session.as_str())];
            site.ask(Visit { cookies: &cookies, address: &address, body, ..Visit::default() });
        }
        site.strangers(4, "<p>Good day</p>");
        let key = KeyPart::Cookie("lang".into());
        assert_eq!(site.verdict(), PageVerdict::NeedsKey { key, values: 3 });
    }
}
