//! The sum of the live tables of all event loops, for `GET /top`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use kirin_server::PlaceName;
use serde::{Deserialize, Serialize};

use crate::live::counts::{Counts, CountsReport, Times};
use crate::live::observer::LiveLoop;
use crate::live::route_sites::RouteSites;
use crate::live::url_table::{PART_SECONDS, PARTS, Row, UrlTable};

/// The rows that are copied at once. The event loop waits meanwhile.
const ROWS_AT_ONCE: usize = 16;

/// How often the patterns of all loops are compared. A path has at most 12 segments, and nearly all
/// patterns are the same after one step.
const MAX_STEPS: usize = 12;

/// The most rows of a report: those with the largest sums of time.
pub const MAX_REPORTED: usize = 1000;

/// The numbers of all event loops.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LiveReport {
    /// All requests since the start. The other numbers are partly from a sample.
    pub requests: u64,
    /// The length of the time that the recent numbers are about, in seconds.
    pub recent_seconds: f64,
    /// The sums of all rows since the start.
    pub total: CountsReport,
    /// The sums of all rows of the last minute.
    pub recent: CountsReport,
    /// The rows, the largest sum of time first.
    pub urls: Vec<UrlReport>,
}

/// The numbers of a site, a method and a pattern.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UrlReport {
    /// The name of the site. Empty for routes at the top level, and without a route.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub site: String,
    /// The method.
    pub method: String,
    /// The pattern of the paths.
    pub pattern: String,
    /// The places that answered, and how often. The most frequent is first.
    pub places: Vec<(String, u64)>,
    /// The numbers since the start.
    pub total: CountsReport,
    /// The numbers of the last minute.
    pub recent: CountsReport,
}

/// The properties that the requests of a row of the report have in common.
#[derive(PartialEq, Eq, Hash)]
struct UrlKey {
    site: u32,
    method: &'static str,
    pattern: String,
}

/// The sum of the rows of some loops.
#[derive(Default)]
struct UrlSum {
    total: Counts,
    recent: Counts,
    places: Vec<(PlaceName, u64)>,
    /// Whether the pattern was found from paths.
    is_found: bool,
}

impl UrlSum {
    fn add(&mut self, row: &Row, part: u64) {
        self.total.merge(row.total());
        self.recent.merge(&row.recent(part));
        for (place, times) in row.places() {
            self.add_place(place, *times);
        }
    }

    /// Adds the requests of a pattern that is a part of this one.
    fn merge(&mut self, other: Self) {
        self.total.merge(&other.total);
        self.recent.merge(&other.recent);
        self.is_found |= other.is_found;
        for (place, times) in other.places {
            self.add_place(&place, times);
        }
    }

    fn add_place(&mut self, place: &PlaceName, times: u64) {
        match self.places.iter_mut().find(|(known, _)| known == place) {
            Some((_, count)) => *count += times,
            None => self.places.push((place.clone(), times)),
        }
    }

    fn places(mut self) -> Vec<(String, u64)> {
        self.places.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let text = |(place, times): (PlaceName, u64)| (place.to_string(), times);
        self.places.into_iter().map(text).collect()
    }
}

/// Adds up the tables of all event loops. This takes milliseconds if there are many rows, so call
/// it on a thread of its own.
pub fn read(loops: &[Arc<LiveLoop>], now: Instant, times: Times) -> LiveReport {
    let Some(first) = loops.first() else { return LiveReport::default() };
    let uptime = now.saturating_duration_since(first.started());
    let part = uptime.as_secs() / PART_SECONDS;
    let recent_begins = part.saturating_sub(PARTS as u64 - 1) * PART_SECONDS;
    let sites = first.with(|table| Arc::clone(table.sites()));
    let mut sums: HashMap<UrlKey, UrlSum> = HashMap::new();
    for live in loops {
        for keys in live.with(UrlTable::keys).chunks(ROWS_AT_ONCE) {
            live.with(|table| {
                for key in keys {
                    // Rows may be merged meanwhile. Then a request may be missing, or counted
                    // twice, in this report.
                    if let Some((pattern, row)) = table.row(*key) {
                        let url = UrlKey { site: key.site, method: key.method.name(), pattern };
                        let sum = sums.entry(url).or_default();
                        sum.is_found |= table.is_found(*key);
                        sum.add(row, part);
                    }
                }
            });
        }
    }
    let sums = merged(sums, loops);
    let (mut total, mut recent) = (Counts::default(), Counts::default());
    for sum in sums.values() {
        total.merge(&sum.total);
        recent.merge(&sum.recent);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.total.micros()));
    sums.truncate(MAX_REPORTED);
    LiveReport {
        requests: loops.iter().map(|live| live.requests()).sum(),
        recent_seconds: uptime.as_secs_f64() - recent_begins as f64,
        total: total.report(times),
        recent: recent.report(times),
        urls: sums.into_iter().map(|(key, sum)| url(&sites, key, sum, times)).collect(),
    }
}

/// Merges rows that are one on another event loop. One loop may still count `/index.php` for itself
/// when another counts it in `/{name}.php`. Both have a part of its requests then.
fn merged(sums: HashMap<UrlKey, UrlSum>, loops: &[Arc<LiveLoop>]) -> HashMap<UrlKey, UrlSum> {
    if loops.len() < 2 {
        return sums;
    }
    let found = sums.iter().filter(|(_, sum)| sum.is_found);
    let mut patterns: BTreeMap<(u32, String), String> =
        found.map(|(key, _)| ((key.site, key.pattern.clone()), key.pattern.clone())).collect();
    // Each step makes a word of a pattern variable, so this ends.
    for _ in 0..MAX_STEPS {
        let mut has_changed = false;
        for live in loops {
            let mut rest: Vec<_> = patterns.iter_mut().collect();
            for chunk in rest.chunks_mut(ROWS_AT_ONCE) {
                live.with(|table| {
                    for ((site, _), pattern) in chunk {
                        if let Some(other) = table.other_pattern(*site, pattern) {
                            **pattern = other;
                            has_changed = true;
                        }
                    }
                });
            }
        }
        if !has_changed {
            break;
        }
    }
    let mut merged: HashMap<UrlKey, UrlSum> = HashMap::new();
    for (mut key, sum) in sums {
        let place = (key.site, key.pattern);
        key.pattern = match patterns.get(&place) {
            Some(pattern) if sum.is_found => pattern.clone(),
            _ => place.1,
        };
        merged.entry(key).or_default().merge(sum);
    }
    merged
}

fn url(sites: &RouteSites, key: UrlKey, sum: UrlSum, times: Times) -> UrlReport {
    UrlReport {
        site: sites.name(key.site).to_owned(),
        method: key.method.to_owned(),
        pattern: key.pattern,
        total: sum.total.report(times),
        recent: sum.recent.report(times),
        places: sum.places(),
    }
}
