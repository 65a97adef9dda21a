//! Reports for programs in JSON. Durations are in seconds.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::report::Uncounted;
use crate::summary::{PatternRow, Summary};
use crate::tally::Tally;

/// The figures of some requests.
#[derive(Serialize)]
struct Figures {
    count: u64,
    status: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<DurationFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<Bytes>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    places: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hit_ratio: Option<f64>,
    cut: u64,
}

#[derive(Serialize)]
struct DurationFigures {
    sum: f64,
    avg: f64,
    min: f64,
    p50: f64,
    p95: f64,
    p99: f64,
    max: f64,
}

#[derive(Serialize)]
struct Bytes {
    sum: u64,
    avg: u64,
}

#[derive(Serialize)]
struct SummaryRow {
    #[serde(skip_serializing_if = "String::is_empty")]
    site: String,
    method: &'static str,
    pattern: String,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Serialize)]
struct SummaryReport {
    left_out: u64,
    malformed: u64,
    total: Figures,
    rows: Vec<SummaryRow>,
}

#[derive(Serialize)]
struct Side {
    left_out: u64,
    malformed: u64,
    total: Figures,
}

#[derive(Serialize)]
struct ComparedRow {
    #[serde(skip_serializing_if = "String::is_empty")]
    site: String,
    method: &'static str,
    pattern: String,
    before: Option<Figures>,
    after: Option<Figures>,
}

#[derive(Serialize)]
struct ComparisonReport {
    before: Side,
    after: Side,
    rows: Vec<ComparedRow>,
}

/// Returns the report of a summary with one side.
pub(super) fn report(
    summary: &Summary,
    rows: &[PatternRow<'_>],
    total: &Tally,
    uncounted: Uncounted,
) -> String {
    let rows = rows.iter().filter_map(|row| {
        let tally = (*row.tallies.first()?)?;
        let figures = Figures::of(summary, tally);
        let (site, pattern) = (row.site.clone(), row.pattern.clone());
        Some(SummaryRow { site, method: row.method, pattern, figures })
    });
    text(&SummaryReport {
        left_out: uncounted.left_out,
        malformed: uncounted.malformed,
        total: Figures::of(summary, total),
        rows: rows.collect(),
    })
}

/// Returns the comparison of two sides.
pub(super) fn comparison(
    summary: &Summary,
    rows: &[PatternRow<'_>],
    totals: &[Tally; 2],
    uncounted: [Uncounted; 2],
) -> String {
    let side = |at: usize| Side {
        left_out: uncounted[at].left_out,
        malformed: uncounted[at].malformed,
        total: Figures::of(summary, &totals[at]),
    };
    let figures = |row: &PatternRow<'_>, at: usize| {
        let tally: &Tally = row.tallies.get(at).copied().flatten()?;
        Some(Figures::of(summary, tally))
    };
    let rows = rows.iter().map(|row| ComparedRow {
        site: row.site.clone(),
        method: row.method,
        pattern: row.pattern.clone(),
        before: figures(row, 0),
        after: figures(row, 1),
    });
    text(&ComparisonReport { before: side(0), after: side(1), rows: rows.collect() })
}

fn text(report: &impl Serialize) -> String {
    // Maps with text keys and numbers can always be written.
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}

impl Figures {
    fn of(summary: &Summary, tally: &Tally) -> Self {
        let percentile = |percent| seconds(tally.percentile(percent).unwrap_or(0));
        let status = tally.classes.iter().enumerate().skip(1);
        let places = tally.places.iter();
        Self {
            count: tally.count,
            status: status.map(|(class, count)| (format!("{class}xx"), *count)).collect(),
            seconds: tally.average().map(|average| DurationFigures {
                sum: seconds(tally.sum),
                avg: seconds(average),
                min: seconds(tally.min),
                p50: percentile(50),
                p95: percentile(95),
                p99: percentile(99),
                max: seconds(tally.max),
            }),
            bytes: tally.average_bytes().map(|avg| Bytes { sum: tally.bytes, avg }),
            places: places.map(|(place, count)| (summary.place_name(*place), *count)).collect(),
            hit_ratio: tally.hit_ratio(),
            cut: tally.cut,
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}
