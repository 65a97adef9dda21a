//! The table of a comparison: before, after, and the change.

use crate::report::table::ReportTable;
use crate::report::{figures, site_cell};
use crate::summary::{PatternRow, Summary};
use crate::tally::Tally;

/// A figure of a tally. It is `None` if the log does not have it.
type Figure = fn(&Tally) -> Option<u64>;

/// How a figure is written.
type Show = fn(u64) -> String;

/// A figure that a comparison has columns of.
struct Compared {
    /// Its title for persons.
    title: &'static str,
    /// Its title for programs.
    name: &'static str,
    figure: Figure,
    human: Show,
    machine: Show,
    change: ChangeColumn,
}

/// Which change of a figure has a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeColumn {
    /// That of a sum. A side without the figure counts as 0.
    OfSum,
    /// That of an average. Both sides must have one.
    OfAverage,
    /// None.
    Nothing,
}

const SUM: Compared = Compared {
    title: "SUM",
    name: "sum",
    figure: |tally| (tally.timed > 0).then_some(tally.sum),
    human: figures::duration,
    machine: figures::seconds,
    change: ChangeColumn::OfSum,
};

const COUNT: Compared = Compared {
    title: "COUNT",
    name: "count",
    figure: |tally| Some(tally.count),
    human: figures::count,
    machine: |count| count.to_string(),
    change: ChangeColumn::OfSum,
};

const AVERAGE: Compared = Compared {
    title: "AVG",
    name: "avg",
    figure: Tally::average,
    change: ChangeColumn::OfAverage,
    ..SUM
};

const P95: Compared = Compared {
    title: "P95",
    name: "p95",
    figure: |tally| tally.percentile(95),
    change: ChangeColumn::Nothing,
    ..SUM
};

const BYTES: Compared = Compared {
    title: "BYTES",
    name: "bytes",
    figure: |tally| (tally.sized > 0).then_some(tally.bytes),
    human: figures::bytes,
    machine: |bytes| bytes.to_string(),
    change: ChangeColumn::Nothing,
};

/// Returns the table. With `is_machine` it is for programs: all columns, seconds and bytes without
/// units.
pub(super) fn table(
    summary: &Summary,
    rows: &[PatternRow<'_>],
    totals: &[Tally; 2],
    is_machine: bool,
) -> ReportTable {
    let has_sites = summary.has_sites();
    let has = |figure: Figure| totals.iter().any(|total| figure(total).is_some());
    let figures: Vec<&Compared> = [&SUM, &COUNT, &AVERAGE, &P95, &BYTES]
        .into_iter()
        .filter(|compared| is_machine || has(compared.figure))
        .collect();
    let mut titles: Vec<String> =
        figures.iter().flat_map(|figure| figure.titles(is_machine)).collect();
    let texts = if has_sites { &["SITE", "METHOD", "PATTERN"][..] } else { &["METHOD", "PATTERN"] };
    titles.extend(texts.iter().map(|title| match is_machine {
        true => title.to_lowercase(),
        false => (*title).to_owned(),
    }));
    let mut table = ReportTable::new(&titles, texts.len());
    let cells = |before: Option<&Tally>, after: Option<&Tally>, texts: [String; 3]| {
        let mut cells: Vec<String> =
            figures.iter().flat_map(|figure| figure.cells(before, after, is_machine)).collect();
        cells.extend(texts.into_iter().skip(usize::from(!has_sites)));
        cells
    };
    for row in rows {
        if let [before, after] = row.tallies[..] {
            table.push(cells(
                before,
                after,
                [site_cell(&row.site, is_machine), row.method.to_owned(), row.pattern.clone()],
            ));
        }
    }
    table.push_total(cells(
        Some(&totals[0]),
        Some(&totals[1]),
        ["", "", "total"].map(str::to_owned),
    ));
    table
}

impl Compared {
    fn titles(&self, is_machine: bool) -> Vec<String> {
        let Self { title, name, change, .. } = self;
        let mut titles = match is_machine {
            true => vec![format!("{name}_before"), format!("{name}_after")],
            false => vec![format!("{title} BEFORE"), "AFTER".to_owned()],
        };
        match (change, is_machine) {
            (ChangeColumn::Nothing, _) => {}
            (_, true) => titles.push(format!("{name}_change")),
            (_, false) => titles.extend(["CHANGE".to_owned(), "%".to_owned()]),
        }
        titles
    }

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
        let has_change = match self.change {
            ChangeColumn::OfSum => old.is_some() || new.is_some(),
            ChangeColumn::OfAverage => old.is_some() && new.is_some(),
            ChangeColumn::Nothing => return cells,
        };
        let (from, to) = (old.unwrap_or(0), new.unwrap_or(0));
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
