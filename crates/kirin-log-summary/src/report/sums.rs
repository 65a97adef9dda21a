//! The table of a summary with one side.

use crate::report::table::ReportTable;
use crate::report::{figures, site_cell};
use crate::summary::{PatternRow, Summary};
use crate::tally::Tally;

/// How a column writes a tally.
type Cell = Box<dyn Fn(&Tally) -> String>;

/// Returns the table. With `is_machine` it is for programs: all columns, seconds and bytes without
/// units.
pub(super) fn table(
    summary: &Summary,
    rows: &[PatternRow<'_>],
    total: &Tally,
    is_machine: bool,
) -> ReportTable {
    let columns = if is_machine { machine_columns() } else { human_columns(total) };
    let has_place = is_machine || total.placed > 0;
    let mut titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    let mut texts = if is_machine { vec!["method", "pattern"] } else { vec!["METHOD", "PATTERN"] };
    if summary.has_sites() {
        texts.insert(0, if is_machine { "site" } else { "SITE" });
    }
    if has_place {
        texts.insert(0, if is_machine { "place" } else { "PLACE" });
    }
    titles.extend(&texts);
    let mut table = ReportTable::new(&titles, texts.len());
    let cells = |tally: &Tally, site: Option<&str>, method: &str, pattern: &str| {
        let mut cells: Vec<String> = columns.iter().map(|(_, cell)| cell(tally)).collect();
        if has_place {
            cells.push(place(summary, tally, is_machine));
        }
        if summary.has_sites() {
            cells.push(site.map(|site| site_cell(site, is_machine)).unwrap_or_default());
        }
        cells.extend([method.to_owned(), pattern.to_owned()]);
        cells
    };
    for row in rows {
        if let Some(Some(tally)) = row.tallies.first() {
            table.push(cells(tally, Some(&row.site), row.method, &row.pattern));
        }
    }
    table.push_total(cells(total, None, "", "total"));
    table
}

/// Returns the place of most of the requests, for persons with its share.
fn place(summary: &Summary, tally: &Tally, is_machine: bool) -> String {
    let Some((place, count)) = tally.places.iter().max_by_key(|(_, count)| *count) else {
        return String::new();
    };
    let name = summary.place_name(*place);
    if is_machine || *count == tally.count {
        return name;
    }
    format!("{name} {}", figures::share(*count, tally.count))
}

/// Returns the columns of the text report that have values.
fn human_columns(total: &Tally) -> Vec<(&'static str, Cell)> {
    let mut columns: Vec<(&'static str, Cell)> =
        vec![("COUNT", Box::new(|tally| figures::count(tally.count)))];
    let titles = ["", "1XX", "2XX", "3XX", "4XX", "5XX"];
    for (class, title) in titles.into_iter().enumerate().skip(1) {
        if class > 1 || total.classes[1] > 0 {
            columns.push((title, Box::new(move |tally| figures::count(tally.classes[class]))));
        }
    }
    if total.timed > 0 {
        let sum = total.sum;
        columns.push(("SUM", Box::new(|tally| timed(tally, Some(tally.sum)))));
        columns.push(("SHARE", Box::new(move |tally| figures::share(tally.sum, sum))));
        columns.push(("AVG", Box::new(|tally| timed(tally, tally.average()))));
        columns.push(("MIN", Box::new(|tally| timed(tally, Some(tally.min)))));
        for (title, percent) in [("P50", 50), ("P95", 95), ("P99", 99)] {
            columns.push((title, Box::new(move |tally| timed(tally, tally.percentile(percent)))));
        }
        columns.push(("MAX", Box::new(|tally| timed(tally, Some(tally.max)))));
    }
    if total.sized > 0 {
        columns.push(("BYTES", Box::new(|tally| figures::bytes(tally.bytes))));
        columns.push((
            "AVG BYTES",
            Box::new(|tally| tally.average_bytes().map(figures::bytes).unwrap_or_default()),
        ));
    }
    if total.cut > 0 {
        columns.push(("CUT", Box::new(|tally| figures::count(tally.cut))));
    }
    if total.placed > 0 {
        columns.push(("HIT", Box::new(|tally| figures::share(tally.hits, tally.placed))));
    }
    columns
}

fn timed(tally: &Tally, micros: Option<u64>) -> String {
    micros.filter(|_| tally.timed > 0).map(figures::duration).unwrap_or_default()
}

/// Returns all columns for programs. A cell of which the log has nothing is empty.
fn machine_columns() -> Vec<(&'static str, Cell)> {
    let seconds = |tally: &Tally, micros: Option<u64>| {
        micros.filter(|_| tally.timed > 0).map(figures::seconds).unwrap_or_default()
    };
    let sized = |tally: &Tally, bytes: Option<u64>| {
        bytes.filter(|_| tally.sized > 0).map(|bytes| bytes.to_string()).unwrap_or_default()
    };
    let mut columns: Vec<(&'static str, Cell)> =
        vec![("count", Box::new(|tally| tally.count.to_string()))];
    for (class, title) in ["", "1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().enumerate().skip(1) {
        columns.push((title, Box::new(move |tally| tally.classes[class].to_string())));
    }
    columns.push(("sum", Box::new(move |tally| seconds(tally, Some(tally.sum)))));
    columns.push(("avg", Box::new(move |tally| seconds(tally, tally.average()))));
    columns.push(("min", Box::new(move |tally| seconds(tally, Some(tally.min)))));
    for (title, percent) in [("p50", 50), ("p95", 95), ("p99", 99)] {
        columns.push((title, Box::new(move |tally| seconds(tally, tally.percentile(percent)))));
    }
    columns.push(("max", Box::new(move |tally| seconds(tally, Some(tally.max)))));
    columns.push(("bytes", Box::new(move |tally| sized(tally, Some(tally.bytes)))));
    columns.push(("avg_bytes", Box::new(move |tally| sized(tally, tally.average_bytes()))));
    columns.push(("cut", Box::new(|tally| tally.cut.to_string())));
    columns.push((
        "hit_ratio",
        Box::new(|tally| tally.hit_ratio().map(|ratio| format!("{ratio:.4}")).unwrap_or_default()),
    ));
    columns
}
