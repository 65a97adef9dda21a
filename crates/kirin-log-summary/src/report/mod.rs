//! Reports of a summary: text, Markdown, CSV, JSON.

mod comparison;
mod figures;
mod json;
mod sums;
mod table;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use crate::summary::{PatternRow, Summary};
use crate::tally::Tally;

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// A table for a terminal.
    Text,
    /// A table in Markdown.
    Markdown,
    /// Comma-separated values (RFC 4180), with durations in seconds.
    Csv,
    /// A JSON object, with durations in seconds.
    Json,
}

/// The figure by which rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// The sum of the durations.
    Sum,
    /// The number of requests.
    Count,
    /// The average duration.
    Average,
    /// The median of the durations.
    P50,
    /// The duration that 95 % do not exceed.
    P95,
    /// The duration that 99 % do not exceed.
    P99,
    /// The longest duration.
    Max,
    /// The sum of the bytes.
    Bytes,
    /// The text of the pattern, ascending.
    Pattern,
}

/// Which rows a report has, and in which order.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// The figure by which rows are sorted, largest first. A comparison sorts by its change.
    pub sort: Sort,
    /// Whether the order is reversed.
    pub is_reversed: bool,
    /// The most rows.
    pub limit: usize,
}

/// The lines of one side that are in no row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncounted {
    /// The requests that the filter left out.
    pub left_out: u64,
    /// The lines that could not be read.
    pub malformed: u64,
}

/// Returns the report of a summary with one side.
pub fn report(
    summary: &Summary,
    uncounted: Uncounted,
    order: Order,
    output: ReportFormat,
) -> String {
    let total = summary.total(0);
    let mut rows = summary.rows();
    let sort = sort_of(order, &[&total]);
    sort_rows(&mut rows, sort, order.is_reversed, |row| figure(row.tallies.first(), sort));
    let all = rows.len();
    rows.truncate(order.limit);
    if output == ReportFormat::Json {
        return json::report(summary, &rows, &total, uncounted);
    }
    let table = sums::table(summary, &rows, &total, output == ReportFormat::Csv);
    table.write(output, all)
}

/// Returns the comparison of the two sides of a summary.
pub fn compare(
    summary: &Summary,
    uncounted: [Uncounted; 2],
    order: Order,
    output: ReportFormat,
) -> String {
    let totals = [summary.total(0), summary.total(1)];
    let mut rows = summary.rows();
    let sort = sort_of(order, &[&totals[0], &totals[1]]);
    sort_rows(&mut rows, sort, order.is_reversed, |row| {
        figure(row.tallies.first(), sort).abs_diff(figure(row.tallies.get(1), sort))
    });
    let all = rows.len();
    rows.truncate(order.limit);
    if output == ReportFormat::Json {
        return json::comparison(summary, &rows, &totals, uncounted);
    }
    let table = comparison::table(summary, &rows, &totals, output == ReportFormat::Csv);
    table.write(output, all)
}

/// Returns by what rows are sorted. Logs without durations are sorted by the number of requests.
fn sort_of(order: Order, totals: &[&Tally]) -> Sort {
    let is_timed = totals.iter().any(|total| total.timed > 0);
    if order.sort == Sort::Sum && !is_timed { Sort::Count } else { order.sort }
}

fn sort_rows(
    rows: &mut [PatternRow<'_>],
    sort: Sort,
    is_reversed: bool,
    figure: impl Fn(&PatternRow<'_>) -> u64,
) {
    if sort == Sort::Pattern {
        rows.sort_by(|a, b| (&a.pattern, a.method, &a.site).cmp(&(&b.pattern, b.method, &b.site)));
    } else {
        rows.sort_by_cached_key(|row| {
            (Reverse(figure(row)), row.pattern.clone(), row.method, row.site.clone())
        });
    }
    if is_reversed {
        rows.reverse();
    }
}

/// Returns how a table names a site. Requests without one have `-` for persons, and nothing for
/// programs.
fn site_cell(site: &str, is_machine: bool) -> String {
    if site.is_empty() && !is_machine { "-".to_owned() } else { site.to_owned() }
}

/// Returns a figure of a tally, or 0 if there is none.
fn figure(tally: Option<&Option<&Tally>>, sort: Sort) -> u64 {
    let Some(Some(tally)) = tally else { return 0 };
    match sort {
        Sort::Sum => tally.sum,
        Sort::Count => tally.count,
        Sort::Average => tally.average().unwrap_or(0),
        Sort::P50 => tally.percentile(50).unwrap_or(0),
        Sort::P95 => tally.percentile(95).unwrap_or(0),
        Sort::P99 => tally.percentile(99).unwrap_or(0),
        Sort::Max => tally.max,
        Sort::Bytes => tally.bytes,
        Sort::Pattern => 0,
    }
}
