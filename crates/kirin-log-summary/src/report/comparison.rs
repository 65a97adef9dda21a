//! The table of a comparison: before, after, and the change.

use crate::report::figures;
use crate::report::table::Table;
use crate::summary::Row;
use crate::tally::Tally;

/// A figure of a tally. It is `None` if the log does not have it.
type Figure = fn(&Tally) -> Option<u64>;

/// How a figure is written.
type Show = fn(u64) -> String;

/// A figure that a comparison has three or two columns of.
struct Compared {
    titles: [&'static str; 3],
    figure: Figure,
    human: Show,
    machine: Show,
    /// Whether the change has a column.
    has_change: bool,
}

const SUM: Compared = Compared {
    titles: ["SUM BEFORE", "AFTER", "CHANGE"],
    figure: |tally| (tally.timed > 0).then_some(tally.sum),
    human: figures::duration,
    machine: figures::seconds,
    has_change: true,
};

const COUNT: Compared = Compared {
    titles: ["COUNT BEFORE", "AFTER", "CHANGE"],
    figure: |tally| Some(tally.count),
    human: figures::count,
    machine: |count| count.to_string(),
    has_change: true,
};

const AVERAGE: Compared = Compared {
    titles: ["AVG BEFORE", "AFTER", "CHANGE"],
    figure: Tally::average,
    has_change: true,
    ..SUM
};

const P95: Compared = Compared {
    titles: ["P95 BEFORE", "AFTER", ""],
    figure: |tally| tally.percentile(95),
    has_change: false,
    ..SUM
};

const BYTES: Compared = Compared {
    titles: ["BYTES BEFORE", "AFTER", ""],
    figure: |tally| (tally.sized > 0).then_some(tally.bytes),
    human: figures::bytes,
    machine: |bytes| bytes.to_string(),
    has_change: false,
};

/// The titles for programs.
const MACHINE_TITLES: [&str; 12] = [
    "sum_before",
    "sum_after",
    "sum_change",
    "count_before",
    "count_after",
    "count_change",
    "avg_before",
    "avg_after",
    "avg_change",
    "p95_before",
    "p95_after",
    "bytes_before",
];

/// Returns the table. With `is_machine` it is for programs.
pub(super) fn table(rows: &[Row<'_>], totals: &[Tally; 2], is_machine: bool) -> Table {
    let is_timed = totals.iter().any(|total| total.timed > 0);
    let is_sized = totals.iter().any(|total| total.sized > 0);
    let figures: Vec<&Compared> = [&SUM, &COUNT, &AVERAGE, &P95, &BYTES]
        .into_iter()
        .filter(|figure| match figure.titles[0] {
            _ if is_machine => true,
            "COUNT BEFORE" => true,
            "BYTES BEFORE" => is_sized,
            _ => is_timed,
        })
        .collect();
    let mut titles: Vec<&str> = Vec::new();
    if is_machine {
        titles.extend(MACHINE_TITLES);
        titles.extend(["bytes_after", "method", "pattern"]);
    } else {
        for figure in &figures {
            titles.extend(&figure.titles[..2]);
            if figure.has_change {
                titles.extend([figure.titles[2], "%"]);
            }
        }
        titles.extend(["METHOD", "PATTERN"]);
    }
    let mut table = Table::new(&titles, 2);
    let cells = |before: Option<&Tally>, after: Option<&Tally>, method: &str, pattern: &str| {
        let mut cells: Vec<String> =
            figures.iter().flat_map(|figure| figure.cells(before, after, is_machine)).collect();
        cells.extend([method.to_owned(), pattern.to_owned()]);
        cells
    };
    for row in rows {
        if let [before, after] = row.tallies[..] {
            table.push(cells(before, after, row.method, &row.pattern));
        }
    }
    table.push_total(cells(Some(&totals[0]), Some(&totals[1]), "", "total"));
    table
}

impl Compared {
    fn cells(
        &self,
        before: Option<&Tally>,
        after: Option<&Tally>,
        is_machine: bool,
    ) -> Vec<String> {
        let show = if is_machine { self.machine } else { self.human };
        let (old, new) = (before.and_then(self.figure), after.and_then(self.figure));
        let cell = |figure: Option<u64>| figure.map(show).unwrap_or_default();
        let mut cells = vec![cell(old), cell(new)];
        if !self.has_change {
            return cells;
        }
        let (from, to) = (old.unwrap_or(0), new.unwrap_or(0));
        // An average of no requests is no change of an average.
        let is_comparable = old.is_some() && new.is_some();
        let is_sum = self.titles[0] != AVERAGE.titles[0];
        let has_change = is_comparable || is_sum && (old.is_some() || new.is_some());
        cells.push(if has_change { figures::change(from, to, show) } else { String::new() });
        if !is_machine {
            cells.push(match (before, after) {
                (None, Some(_)) => "new".to_owned(),
                (Some(_), None) => "gone".to_owned(),
                _ if has_change => figures::change_share(from, to),
                _ => String::new(),
            });
        }
        cells
    }
}
