//! Requests by site, method and URL pattern, of one log or of two that are compared.

use std::collections::BTreeSet;

use kirin_url_patterns::{ConfiguredPattern, Merge, PatternId, PatternLimits, UrlPatterns};

use crate::line::LogRecord;
use crate::tally::Tally;

/// The methods that have rows of their own. The last one is for all others.
const METHODS: [&str; 11] =
    ["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "QUERY", "PURGE", "-", "other"];

/// The most tallies in memory. Requests that need another one are counted as pattern `{other}`.
const MOST_TALLIES: usize = 4000;

/// The most places with names of their own. Others are `other`.
const MOST_PLACES: usize = 32;

/// The longest name of a place in bytes.
const LONGEST_PLACE: usize = 64;

/// The most sites with names of their own. The requests of others are of the site `other`.
const MOST_SITES: usize = 100;

/// The longest name of a site in bytes: that of a host.
const LONGEST_SITE: usize = 253;

/// The tallies of a pattern by method.
type Tallies = [Option<Box<Tally>>; METHODS.len()];

/// The tallies of a pattern by the number of the site. A pattern that was found has one site.
type SiteTallies = Vec<(u32, Tallies)>;

/// Requests by site, method and pattern. A summary of two logs has two sides, which share the
/// patterns.
///
/// Memory is bounded whatever the logs hold: by the limits of the patterns, the number of tallies,
/// and the size of a tally (about 10 KB).
pub struct Summary {
    patterns: UrlPatterns,
    sides: Vec<Vec<SiteTallies>>,
    tally_count: usize,
    places: Vec<Box<[u8]>>,
    /// The names of the sites with the numbers from 1 on. Requests without a site have the 0.
    sites: Vec<String>,
}

/// A site, a method and a pattern, with the tally of each side.
pub struct PatternRow<'a> {
    /// The name of the site. Empty for requests without one.
    pub site: String,
    /// The method.
    pub method: &'static str,
    /// The pattern.
    pub pattern: String,
    /// The tally of each side, if it has such requests.
    pub tallies: Vec<Option<&'a Tally>>,
}

impl Summary {
    /// Creates a summary with a number of sides.
    pub fn new(configured: Vec<ConfiguredPattern>, sides: usize) -> Self {
        let patterns = UrlPatterns::new(configured, PatternLimits::default());
        let sides = (0..sides).map(|_| Vec::new()).collect();
        Self { patterns, sides, tally_count: 0, places: Vec::new(), sites: Vec::new() }
    }

    /// Adds a request of a site to a side. An empty `site` stands for none.
    pub fn add(&mut self, side: usize, site: &str, record: &LogRecord<'_>) {
        let site = self.site_number(site);
        let (sides, tally_count) = (&mut self.sides, &mut self.tally_count);
        let mut pattern = self.patterns.pattern_in(site, &record.target, |merge| {
            for side in sides.iter_mut() {
                *tally_count -= fold(side, merge);
            }
        });
        let place = record.place.as_deref().map(|name| self.place_number(name));
        let method = method_number(&record.method);
        let Some(rows) = self.sides.get_mut(side) else { return };
        let is_known = |rows: &[SiteTallies]| {
            let tallies = rows.get(pattern.index()).and_then(|sites| of_site(sites, site));
            tallies.is_some_and(|tallies| tallies[method].is_some())
        };
        if self.tally_count >= MOST_TALLIES && !is_known(rows) {
            pattern = PatternId::OTHER;
        }
        if rows.len() <= pattern.index() {
            rows.resize_with(pattern.index() + 1, SiteTallies::default);
        }
        let tally = &mut of_site_mut(&mut rows[pattern.index()], site)[method];
        if tally.is_none() {
            self.tally_count += 1;
        }
        tally.get_or_insert_default().add(record, place);
    }

    /// Returns the number of a place, and gives it one if it is new.
    fn place_number(&mut self, name: &[u8]) -> u8 {
        let known = self.places.iter().position(|place| **place == *name);
        let number = known.unwrap_or_else(|| {
            let is_name = name.len() <= LONGEST_PLACE
                && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b":._-/".contains(byte));
            if is_name && self.places.len() < MOST_PLACES {
                self.places.push(name.into());
                self.places.len() - 1
            } else {
                MOST_PLACES
            }
        });
        u8::try_from(number).unwrap_or(u8::MAX)
    }

    /// Returns the number of a site, and gives it one if it is new.
    fn site_number(&mut self, name: &str) -> u32 {
        let known = match name {
            "" => return 0,
            name => self.sites.iter().position(|site| site == name),
        };
        let number = known.unwrap_or_else(|| {
            let is_name = name.len() <= LONGEST_SITE
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b".-_:*[]".contains(&byte));
            if is_name && self.sites.len() < MOST_SITES {
                self.sites.push(name.to_owned());
                self.sites.len() - 1
            } else {
                MOST_SITES
            }
        });
        u32::try_from(number + 1).unwrap_or(0)
    }

    /// Returns the name of a site by its number.
    fn site_name(&self, site: u32) -> String {
        match (site as usize).checked_sub(1) {
            None => String::new(),
            Some(at) => self.sites.get(at).map_or("other", String::as_str).to_owned(),
        }
    }

    /// Returns whether a request had a site.
    pub fn has_sites(&self) -> bool {
        !self.sites.is_empty()
    }

    /// Returns the name of a place by its number.
    pub fn place_name(&self, place: u8) -> String {
        self.places
            .get(usize::from(place))
            .map_or_else(|| "other".to_owned(), |name| String::from_utf8_lossy(name).into_owned())
    }

    /// Returns all rows with requests.
    pub fn rows(&self) -> Vec<PatternRow<'_>> {
        let mut rows = Vec::new();
        for pattern in self.patterns.iter() {
            let of_sides: Vec<_> =
                self.sides.iter().map(|side| side.get(pattern.index())).collect();
            let known = of_sides.iter().flatten().flat_map(|sites| sites.iter());
            let sites: BTreeSet<u32> = known.map(|(site, _)| *site).collect();
            for site in sites {
                for (number, method) in METHODS.into_iter().enumerate() {
                    let tallies: Vec<_> = of_sides
                        .iter()
                        .map(|sites| of_site((*sites)?, site)?[number].as_deref())
                        .collect();
                    if tallies.iter().any(Option::is_some) {
                        let (site, pattern) = (self.site_name(site), self.patterns.name(pattern));
                        rows.push(PatternRow { site, method, pattern, tallies });
                    }
                }
            }
        }
        rows
    }

    /// Returns the tally of all requests of a side.
    pub fn total(&self, side: usize) -> Tally {
        let mut total = Tally::default();
        for (_, tallies) in self.sides.get(side).into_iter().flatten().flatten() {
            tallies.iter().flatten().for_each(|tally| total.merge(tally));
        }
        total
    }
}

/// Adds the tallies of a merged pattern to those of the other one. Returns how many tallies there
/// are less.
fn fold(side: &mut Vec<SiteTallies>, merge: Merge) -> usize {
    let Some(from) = side.get_mut(merge.from.index()) else { return 0 };
    let from = std::mem::take(from);
    if side.len() <= merge.into.index() {
        side.resize_with(merge.into.index() + 1, SiteTallies::default);
    }
    let mut fewer = 0;
    for (site, from) in from {
        let into = of_site_mut(&mut side[merge.into.index()], site);
        for (into, from) in into.iter_mut().zip(from) {
            let Some(from) = from else { continue };
            match into {
                Some(into) => {
                    into.merge(&from);
                    fewer += 1;
                }
                None => *into = Some(from),
            }
        }
    }
    fewer
}

/// Returns the tallies of a site.
fn of_site(sites: &SiteTallies, site: u32) -> Option<&Tallies> {
    sites.iter().find(|(known, _)| *known == site).map(|(_, tallies)| tallies)
}

/// Returns the tallies of a site, and adds them if there are none.
fn of_site_mut(sites: &mut SiteTallies, site: u32) -> &mut Tallies {
    let at = sites.iter().position(|(known, _)| *known == site).unwrap_or_else(|| {
        sites.push((site, Tallies::default()));
        sites.len() - 1
    });
    &mut sites[at].1
}

fn method_number(method: &[u8]) -> usize {
    METHODS.iter().position(|known| known.as_bytes() == method).unwrap_or(METHODS.len() - 1)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;

    fn record<'a>(method: &'a str, target: &'a str, place: Option<&'a str>) -> LogRecord<'a> {
        LogRecord {
            method: Cow::Borrowed(method.as_bytes()),
            target: Cow::Borrowed(target.as_bytes()),
            status: 200,
            bytes: Some(1),
            micros: Some(1),
            host: None,
            time: None,
            place: place.map(|place| Cow::Borrowed(place.as_bytes())),
            cache: None,
            is_cut: false,
        }
    }

    /// Returns the rows in order: the word for each, its pattern, and its requests on each side.
    fn counts_of(
        summary: &Summary,
        word: for<'r> fn(&'r PatternRow<'_>) -> &'r str,
    ) -> Vec<String> {
        let line = |row: &PatternRow<'_>| {
            let count = |tally: &Option<&Tally>| tally.map_or(0, |tally| tally.count);
            let counts: Vec<_> = row.tallies.iter().map(count).collect();
            format!("{} {} {counts:?}", word(row), row.pattern)
        };
        let mut rows: Vec<_> = summary.rows().iter().map(line).collect();
        rows.sort();
        rows
    }

    #[test]
    fn both_sides_of_a_comparison_have_the_same_patterns() {
        let mut summary = Summary::new(Vec::new(), 2);
        for user in 0..30 {
            summary.add(0, "", &record("GET", &format!("/user{user}x"), None));
            summary.add(1, "", &record("GET", &format!("/other{user}x"), None));
        }
        summary.add(1, "", &record("BREW", "/7", None));
        let rows = counts_of(&summary, |row| row.method);
        assert_eq!(rows, ["GET /{name} [30, 30]", "other /{id} [0, 1]"]);
        assert_eq!((summary.total(0).count, summary.total(1).count), (30, 31));
    }

    #[test]
    fn names_of_places_are_bounded_and_harmless() {
        let mut summary = Summary::new(Vec::new(), 1);
        for place in ["store", "app:web", "=cmd|x", "\u{1b}[2J", &"a".repeat(65), "store"] {
            summary.add(0, "", &record("GET", "/", Some(place)));
        }
        for number in 0..1000 {
            summary.add(0, "", &record("GET", "/", Some(&format!("place{number}"))));
        }
        assert_eq!(summary.places.len(), MOST_PLACES);
        let total = summary.total(0);
        let named: Vec<_> = total
            .places
            .iter()
            .map(|(place, count)| (summary.place_name(*place), *count))
            .take(3)
            .collect();
        let expected = [("store", 2), ("app:web", 1), ("other", 973)];
        assert_eq!(named, expected.map(|(name, count)| (name.to_owned(), count)));
        assert_eq!(total.hits, 2);
    }

    #[test]
    fn tallies_are_bounded_and_no_request_is_lost() {
        let mut summary = Summary::new(Vec::new(), 2);
        let mut added = 0;
        for number in 0..60_000_usize {
            let target = format!("/a{}x/b{}x/c{}x", number % 37, number / 37 % 39, number / 1443);
            summary.add(number % 2, "", &record(METHODS[number % 11], &target, None));
            added += 1;
        }
        let rows = summary.rows();
        let tallies = rows.iter().flat_map(|row| &row.tallies).flatten().count();
        assert_eq!(tallies, summary.tally_count);
        assert!(tallies <= MOST_TALLIES + 2 * METHODS.len(), "{tallies}");
        assert_eq!(summary.total(0).count + summary.total(1).count, added);
    }

    #[test]
    fn sites_are_told_apart_and_bounded() {
        let configured = vec![ConfiguredPattern::parse("/@{user}").expect("a pattern")];
        let mut summary = Summary::new(configured, 2);
        for (side, site) in [(0, "a.org"), (1, "a.org"), (1, "b.org"), (0, "")] {
            for target in ["/", "/@alice", "*"] {
                summary.add(side, site, &record("GET", target, None));
            }
        }
        let rows = counts_of(&summary, |row| &row.site);
        let expected = [
            " / [1, 0]",
            " /@{user} [1, 0]",
            " {other} [1, 0]",
            "a.org / [1, 1]",
            "a.org /@{user} [1, 1]",
            "a.org {other} [1, 1]",
            "b.org / [0, 1]",
            "b.org /@{user} [0, 1]",
            "b.org {other} [0, 1]",
        ];
        assert_eq!(rows, expected);
        for site in ["=cmd|x", "\u{1b}[2J", &"a".repeat(254)] {
            summary.add(0, site, &record("GET", "/", None));
        }
        for number in 0..1000 {
            summary.add(0, &format!("site{number}"), &record("GET", &format!("/{number}x"), None));
        }
        let rows = summary.rows();
        let sites: BTreeSet<&str> = rows.iter().map(|row| row.site.as_str()).collect();
        // One more for all others, and one for none.
        assert_eq!(sites.len(), MOST_SITES + 2);
        assert_eq!(summary.total(0).count, 1009);
    }

    proptest! {
        #[test]
        fn no_request_is_lost(
            targets in proptest::collection::vec("(/[a-f]{0,3}){1,3}", 0..300),
            sides in proptest::collection::vec(0_usize..2, 300),
        ) {
            let mut summary = Summary::new(Vec::new(), 2);
            for (target, side) in targets.iter().zip(&sides) {
                summary.add(*side, "", &record("GET", target, None));
            }
            let counted = summary.total(0).count + summary.total(1).count;
            prop_assert_eq!(counted, targets.len() as u64);
            let tallies = summary.rows().iter().flat_map(|row| &row.tallies).flatten().count();
            prop_assert_eq!(tallies, summary.tally_count);
        }
    }
}
