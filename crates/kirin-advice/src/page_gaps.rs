//! Finds the parts of a page that differ between visitors, and what decides each. The rest of the
//! page must be the same for enough visitors.

use std::collections::{BTreeMap, BTreeSet};

use crate::evidence::{BodyOf, CookieName, Evidence, Window};
use crate::gaps::{Comparison, Gap, compare};
use crate::judge::Judge;
use crate::key_part::value_of;
use crate::verdict::{Cause, NamedGap};

/// The most gaps of a page that is the same but for them.
const MAX_GAPS: usize = 12;

impl Judge<'_> {
    /// Returns the gaps of a page of which the rest is the same for enough visitors.
    pub(crate) fn gaps(&self, evidence: &Evidence) -> Option<Vec<NamedGap>> {
        let windows = [Some(&evidence.window), evidence.best_window.as_ref()];
        let windows = windows.into_iter().flatten().filter(|window| !window.anonymous.is_empty());
        let window = windows.max_by_key(|window| (window.known.len(), window.anonymous.len()))?;
        let window = self.at_one_time(evidence, window);
        if self.different_visitors(evidence, &window) < self.demands.visitors {
            return None;
        }
        let bodies: Vec<&BodyOf> = window.anonymous.iter().chain(&window.known).collect();
        let pieces: Vec<&[_]> = bodies.iter().map(|body| body.pieces.as_ref()).collect();
        let Comparison { gaps, common_bytes } = compare(&pieces);
        let longest: u64 = bodies.iter().map(|body| length(body)).max().unwrap_or(0);
        let is_like = !gaps.is_empty() && gaps.len() <= MAX_GAPS && common_bytes * 2 >= longest;
        is_like.then(|| gaps.into_iter().map(|gap| self.named(gap, &bodies, &window)).collect())
    }

    /// Returns the bodies of a window that were got while visitors without credentials got the
    /// same one: their differences are not those of time. Returns all if these are too few.
    fn at_one_time(&self, evidence: &Evidence, window: &Window) -> Window {
        let base = window.anonymous.first().map(|body| body.sample.body);
        let Some((first, last)) = base.and_then(|body| evidence.anonymous_versions.time_of(body))
        else {
            return window.clone();
        };
        let is_in = |body: &&BodyOf| body.sample.first >= first && body.sample.last <= last;
        let known: Vec<BodyOf> = window.known.iter().filter(is_in).cloned().collect();
        let anonymous = window.anonymous.iter().take(1).cloned().collect();
        let narrow = Window { anonymous, known };
        match self.different_visitors(evidence, &narrow) >= self.demands.visitors {
            true if !narrow.known.is_empty() => narrow,
            _ => window.clone(),
        }
    }

    /// Returns how many different visitors a window has: by the cookie that names sessions, or by
    /// address if nobody has one.
    fn different_visitors(&self, evidence: &Evidence, window: &Window) -> usize {
        if window.known.is_empty() {
            let is_proven = self.missing_of_anonymous(evidence).is_empty();
            return if is_proven { self.demands.visitors } else { 0 };
        }
        let sessions = self.sessions.iter().map(|name| {
            let values = window.known.iter().filter_map(|body| value_of(&body.sample, *name));
            values.collect::<BTreeSet<_>>().len()
        });
        sessions.max().unwrap_or(0)
    }

    /// Finds what makes the difference in a gap.
    fn named(&self, gap: Gap, bodies: &[&BodyOf], window: &Window) -> NamedGap {
        let Gap { offset, line, shortest, longest, contents } = gap;
        let anonymous = contents.iter().take(window.anonymous.len()).collect::<BTreeSet<_>>();
        let names =
            bodies.iter().flat_map(|body| body.sample.cookies.iter().map(|(name, _)| *name));
        let names: BTreeSet<CookieName> = names.collect();
        // The cookies that name sessions come first.
        let (first, rest): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| self.sessions.contains(name));
        let name = |name: CookieName| self.survey.cookie_name(name).to_owned();
        let values = |name: CookieName| bodies.iter().map(move |body| value_of(&body.sample, name));
        let follows = |keys: Vec<Option<u64>>| follows(&keys, &contents);
        let cause = if anonymous.len() > 1 {
            Cause::EachTime
        } else {
            let mut all = first.iter().chain(&rest).copied();
            let has = |name: CookieName| values(name).map(|value| value.map(|_| 1)).collect();
            let by_presence = rest.iter().chain(&first).copied().find(|name| follows(has(*name)));
            match by_presence {
                Some(found) => Cause::HasCookie(name(found)),
                None => match all.find(|name| follows(values(*name).collect())) {
                    Some(found) => Cause::Cookie(name(found)),
                    None => Cause::Unknown,
                },
            }
        };
        NamedGap { offset, line, shortest, longest, cause }
    }
}

/// Returns whether equal keys have equal contents, and different contents are there.
fn follows(keys: &[Option<u64>], contents: &[u64]) -> bool {
    let mut of_key: BTreeMap<Option<u64>, u64> = BTreeMap::new();
    let is_function = keys
        .iter()
        .zip(contents)
        .all(|(key, content)| *of_key.entry(*key).or_insert(*content) == *content);
    is_function && of_key.values().collect::<BTreeSet<_>>().len() > 1
}

fn length(body: &BodyOf) -> u64 {
    body.pieces.iter().map(|piece| piece.length()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_site::{PAGE, TestSite, Visit};
    use crate::verdict::PageVerdict;

    #[test]
    fn the_clock_in_a_page_is_a_gap() {
        let mut site = TestSite::new();
        for number in 0..30 {
            let address = format!("10.0.0.{number}");
            let body = format!("{PAGE}<time>{number:02}</time>\n");
            site.ask(Visit { address: &address, body: &body, ..Visit::default() });
        }
        let verdict = site.verdict();
        let PageVerdict::SameBut { gaps } = &verdict else { panic!("{verdict:?}") };
        assert_eq!(
            (gaps.len(), gaps[0].line, &gaps[0].cause),
            (1, 4, &Cause::EachTime),
            "{gaps:?}"
        );
    }

    #[test]
    fn the_name_of_a_member_is_a_gap_with_its_cookie() {
        let mut site = TestSite::new();
        let with = |bar: &str| format!("<header>news</header>\n<nav>\n{bar}</nav>\n{PAGE}");
        let stranger = with("<a href=\"/signin\">Sign in</a>\n");
        site.strangers(3, &stranger);
        site.members(4, &with("signed in as <b>{}</b>\n"));
        site.strangers(1, &stranger);
        let verdict = site.verdict();
        let PageVerdict::SameBut { gaps } = &verdict else { panic!("{verdict:?}") };
        assert_eq!((gaps.len(), gaps[0].line), (1, 3), "{gaps:?}");
        assert_eq!(gaps[0].cause, Cause::Cookie("sid".into()), "{gaps:?}");
        // What all have is in the page of strangers, so nobody learns anything new.
        assert!(gaps[0].offset >= 21 && gaps[0].longest < 60, "{gaps:?}");
    }

    #[test]
    fn a_change_of_the_page_with_time_is_not_a_gap() {
        let mut site = TestSite::new();
        let page = |version: usize, bar: &str| {
            format!("<nav>{bar}</nav>\n<p>Item {version} of the list, which changes</p>\n{PAGE}")
        };
        for version in 0..3 {
            let stranger = page(version, "Sign in");
            site.strangers(2, &stranger);
            // Of the last version fewer members are seen than of those before.
            site.members(5 - version, &page(version, "<b>{}</b>"));
            site.strangers(2, &stranger);
        }
        let verdict = site.verdict();
        let PageVerdict::SameBut { gaps } = &verdict else { panic!("{verdict:?}") };
        assert_eq!((gaps.len(), gaps[0].line), (1, 1), "{gaps:?}");
    }
}
