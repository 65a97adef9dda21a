//! The numbers by site, method and URL pattern on one event loop, since the start and in the last
//! minute.
//!
//! Strangers choose the paths, so the memory is bounded: [`MAX_PATTERNS`], [`MAX_ROWS`] and
//! [`MAX_PLACES`]. All other requests count in rows of their own, with the pattern `{other}`.

use std::sync::Arc;

use foldhash::HashMap;
use kirin_server::{EndedRequest, PlaceName};
use kirin_url_patterns::{ConfiguredPattern, PatternId, PatternLimits, UrlPatterns};

use crate::live::counts::{Addition, Counts};
use crate::live::method_word::MethodWord;
use crate::live::route_sites::RouteSites;

/// The length of a part of the last minute in seconds.
pub const PART_SECONDS: u64 = 10;

/// The parts of the last minute.
pub const PARTS: usize = 6;

/// The most patterns that are found on one event loop.
const MAX_PATTERNS: usize = 800;

/// The most rows on one event loop, without those of `{other}`.
const MAX_ROWS: usize = 1000;

/// The rows of `{other}` that may name their site. When they are used up, further sites share rows
/// without a site.
const MAX_OTHER_ROWS: usize = 100;

/// The most places of a row.
const MAX_PLACES: usize = 8;

/// Requests without a route have no site.
const NO_ROUTE: (Option<u32>, u32) = (None, RouteSites::NONE);

/// The rows of one event loop.
pub struct UrlTable {
    sites: Arc<RouteSites>,
    /// The route of the last request, and its site. The next one often has the same.
    last_site: (Option<u32>, u32),
    patterns: UrlPatterns,
    rows: HashMap<RowKey, Box<Row>>,
}

/// The properties that the requests of a row have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowKey {
    /// The number of the site.
    pub site: u32,
    /// The pattern of the paths.
    pub pattern: PatternId,
    /// The method.
    pub method: MethodWord,
}

/// The numbers of one site, pattern and method.
#[derive(Default)]
pub struct Row {
    total: Counts,
    /// The parts of the last minute. Each is overwritten after a minute.
    parts: [MinutePart; PARTS],
    /// The number of answers of each place.
    places: Vec<(PlaceName, u64)>,
}

/// Ten seconds.
#[derive(Default)]
struct MinutePart {
    /// Its number since the start of the program.
    number: u64,
    counts: Option<Box<Counts>>,
}

impl UrlTable {
    /// Returns an empty table. The configured patterns have precedence.
    pub fn new(configured: Vec<ConfiguredPattern>, sites: Arc<RouteSites>) -> Self {
        let limits = PatternLimits { patterns: MAX_PATTERNS, ..PatternLimits::default() };
        Self {
            sites,
            last_site: NO_ROUTE,
            patterns: UrlPatterns::new(configured, limits),
            rows: HashMap::default(),
        }
    }

    /// Counts a request that stands for `weight` requests. `part` is the number of the present ten
    /// seconds.
    pub fn add(&mut self, request: &EndedRequest<'_>, weight: u32, part: u64) {
        let rows = &mut self.rows;
        if self.last_site.0 != request.route.number {
            self.last_site = (request.route.number, self.sites.site_of(request.route.number));
        }
        let site = self.last_site.1;
        let pattern = self.patterns.pattern_in(site, request.target.as_bytes(), |merge| {
            for method in MethodWord::all() {
                if let Some(from) = rows.remove(&RowKey { site, pattern: merge.from, method }) {
                    let into = RowKey { site, pattern: merge.into, method };
                    rows.entry(into).or_default().merge(&from);
                }
            }
        });
        let mut key = RowKey { site, pattern, method: MethodWord::of(request.method) };
        if rows.len() >= MAX_ROWS && !rows.contains_key(&key) {
            key.pattern = PatternId::OTHER;
            if rows.len() >= MAX_ROWS + MAX_OTHER_ROWS && !rows.contains_key(&key) {
                key.site = RouteSites::NONE;
            }
        }
        rows.entry(key).or_default().add(request, weight, part);
    }

    /// Returns the keys of all rows.
    pub fn keys(&self) -> Vec<RowKey> {
        self.rows.keys().copied().collect()
    }

    /// Returns a row and the text of its pattern.
    pub fn row(&self, key: RowKey) -> Option<(String, &Row)> {
        Some((self.patterns.name(key.pattern), self.rows.get(&key)?))
    }

    /// Returns whether the pattern of a row was found from paths.
    pub fn is_found(&self, key: RowKey) -> bool {
        self.patterns.is_found(key.pattern)
    }

    /// Returns the text of the pattern in which this table counts paths with the text of a found
    /// pattern of another table, if that is another text.
    pub fn other_pattern(&self, site: u32, text: &str) -> Option<String> {
        let name = self.patterns.name(self.patterns.pattern_for(site, text)?);
        (name != text).then_some(name)
    }

    /// Counts by other sites from now on. A site has the same number in both.
    pub fn set_sites(&mut self, sites: Arc<RouteSites>) {
        self.sites = sites;
        self.last_site = NO_ROUTE;
    }

    /// Returns the sites, by the numbers in the keys of rows.
    pub fn sites(&self) -> &Arc<RouteSites> {
        &self.sites
    }

    /// Returns the most rows that there can be.
    #[cfg(test)]
    pub const fn max_rows() -> usize {
        MAX_ROWS + MAX_OTHER_ROWS + MethodWord::COUNT
    }
}

impl Row {
    fn add(&mut self, request: &EndedRequest<'_>, weight: u32, number: u64) {
        let addition = Addition::new(request, weight);
        self.total.add(&addition);
        let part = self.part_for(number);
        part.counts.get_or_insert_default().add(&addition);
        self.add_place(request.place(), u64::from(weight));
    }

    /// Returns the part with a number, emptied if it was that of an earlier minute.
    fn part_for(&mut self, number: u64) -> &mut MinutePart {
        let part = &mut self.parts[(number % PARTS as u64) as usize];
        if part.number != number {
            part.number = number;
            if let Some(counts) = &mut part.counts {
                **counts = Counts::default();
            }
        }
        part
    }

    fn add_place(&mut self, place: PlaceName, times: u64) {
        if let Some((_, count)) = self.places.iter_mut().find(|(known, _)| *known == place) {
            *count += times;
        } else if self.places.len() < MAX_PLACES {
            self.places.push((place, times));
        }
    }

    /// Adds the numbers of a row whose pattern is a part of this one now.
    fn merge(&mut self, other: &Self) {
        self.total.merge(&other.total);
        for part in &other.parts {
            let Some(counts) = &part.counts else { continue };
            let own = self.parts[(part.number % PARTS as u64) as usize].number;
            if own <= part.number {
                self.part_for(part.number).counts.get_or_insert_default().merge(counts);
            }
        }
        for (place, times) in &other.places {
            self.add_place(place.clone(), *times);
        }
    }

    /// Returns the numbers since the start.
    pub fn total(&self) -> &Counts {
        &self.total
    }

    /// Returns the numbers of the last minute. `part` is the number of the present ten seconds.
    pub fn recent(&self, part: u64) -> Counts {
        let mut recent = Counts::default();
        let is_recent = |other: &&MinutePart| other.number + PARTS as u64 > part;
        for counts in self.parts.iter().filter(is_recent).filter_map(|part| part.counts.as_ref()) {
            recent.merge(counts);
        }
        recent
    }

    /// Returns how often each place answered.
    pub fn places(&self) -> &[(PlaceName, u64)] {
        &self.places
    }
}

#[cfg(test)]
#[path = "url_table_tests.rs"]
mod tests;
