//! The sum of the live tables of all event loops, for `GET /top`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use kirin_server::PlaceName;
use serde::{Deserialize, Serialize};

use crate::live::counts::{Counts, CountsReport};
use crate::live::observer::LiveLoop;
use crate::live::route_sites::RouteSites;
use crate::live::url_table::{PART_SECONDS, PARTS, Row, UrlTable};

/// The rows that are copied at once. The event loop waits meanwhile.
const ROWS_AT_ONCE: usize = 16;

/// The most rows of a report: those with the largest sums of time.
const MAX_REPORTED: usize = 1000;

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

/// What the requests of a row of the report have in common.
#[derive(PartialEq, Eq, Hash)]
struct UrlKey {
    site: u32,
    method: &'static str,
    pattern: String,
}

/// The sum of the rows of some loops.
#[derive(Default)]
struct Sum {
    total: Counts,
    recent: Counts,
    places: Vec<(PlaceName, u64)>,
}

impl Sum {
    fn add(&mut self, row: &Row, part: u64) {
        self.total.merge(row.total());
        self.recent.merge(&row.recent(part));
        for (place, times) in row.places() {
            match self.places.iter_mut().find(|(known, _)| known == place) {
                Some((_, count)) => *count += times,
                None => self.places.push((place.clone(), *times)),
            }
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
pub fn read(loops: &[Arc<LiveLoop>], now: Instant) -> LiveReport {
    let Some(first) = loops.first() else { return LiveReport::default() };
    let uptime = now.saturating_duration_since(first.started());
    let part = uptime.as_secs() / PART_SECONDS;
    let recent_begins = part.saturating_sub(PARTS as u64 - 1) * PART_SECONDS;
    let sites = first.with(|table| Arc::clone(table.sites()));
    let mut sums: HashMap<UrlKey, Sum> = HashMap::new();
    for live in loops {
        for keys in live.with(UrlTable::keys).chunks(ROWS_AT_ONCE) {
            live.with(|table| {
                for key in keys {
                    // Rows may be merged meanwhile. Then a request may be missing, or counted
                    // twice, in this report.
                    if let Some((pattern, row)) = table.row(*key) {
                        let url = UrlKey { site: key.site, method: key.method.name(), pattern };
                        sums.entry(url).or_default().add(row, part);
                    }
                }
            });
        }
    }
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
        total: total.report(),
        recent: recent.report(),
        urls: sums.into_iter().map(|(key, sum)| url(&sites, key, sum)).collect(),
    }
}

fn url(sites: &RouteSites, key: UrlKey, sum: Sum) -> UrlReport {
    UrlReport {
        site: sites.name(key.site).to_owned(),
        method: key.method.to_owned(),
        pattern: key.pattern,
        total: sum.total.report(),
        recent: sum.recent.report(),
        places: sum.places(),
    }
}
