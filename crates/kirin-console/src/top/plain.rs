//! The tables as plain text: for `--once`, for pipes and files.

use kirin_observe::live::rates::Rates;
use kirin_observe::live::snapshot::Snapshot;
use kirin_observe::live::table::ViewTable;
use kirin_observe::live::units;
use kirin_observe::live::views::{self, Span};

/// The most rows of a table.
const MAX_ROWS: usize = 20;

/// Returns all tables that are not empty.
pub fn text(snapshot: &Snapshot) -> String {
    let mut text = format!("{}\n", title(snapshot));
    for left_out in snapshot.machines.iter().flat_map(|machines| &machines.left_out) {
        text.push_str(&format!("{left_out}\n"));
    }
    let mut tables = vec![Rates::between(None, snapshot).table()];
    tables.extend(views::all(snapshot, Span::LastMinute));
    for mut table in tables {
        if table.rows.is_empty() {
            continue;
        }
        if let Some(column) = table.order {
            table.sort(column, false);
        }
        let left_out = table.rows.len().saturating_sub(MAX_ROWS);
        table.rows.truncate(MAX_ROWS);
        let span = if table.title == "URLs" { ", last minute, by sum of time" } else { "" };
        text.push_str(&format!("\n{}{span}\n", table.title.to_uppercase()));
        lines(&table, usize::MAX).iter().for_each(|line| {
            text.push_str(line.trim_end());
            text.push('\n');
        });
        if left_out > 0 {
            text.push_str(&format!("and {left_out} more\n"));
        }
    }
    text
}

/// Returns one line about the program, or about the machines if there are several.
pub fn title(snapshot: &Snapshot) -> String {
    let version = snapshot.status["version"].as_str().unwrap_or_default();
    if let Some(machines) = &snapshot.machines {
        let silent = match machines.silent.as_slice() {
            [] => String::new(),
            silent => format!("  no answer: {}", silent.join(", ")),
        };
        let all = machines.answered.len() + machines.silent.len();
        let plural = if all == 1 { "" } else { "s" };
        return format!("kirin {version}  {all} machine{plural}{silent}");
    }
    let up = units::duration(snapshot.uptime_ms / 1000);
    format!("kirin {version}  pid {}  up {up}", snapshot.number(&["pid"]))
}

/// Returns the lines of a table: the headings, if there are any, and the rows.
pub fn lines(table: &ViewTable, width: usize) -> Vec<String> {
    let layout = table.layout(width);
    let line = |cell: &dyn Fn(usize) -> String| {
        let cells = layout
            .iter()
            .map(|(index, width)| aligned(&cell(*index), *width, table.columns[*index].is_number));
        cells.collect::<Vec<_>>().join(" ")
    };
    let mut lines = Vec::new();
    if table.columns.iter().all(|column| !column.name.is_empty()) {
        lines.push(line(&|index| table.columns[index].name.to_owned()));
    }
    lines.extend(table.rows.iter().map(|row| line(&|index| row[index].text.clone())));
    lines
}

/// Returns a text in so many columns, cut if it is longer.
pub fn aligned(text: &str, width: usize, to_the_right: bool) -> String {
    let length = text.chars().count();
    if length > width {
        let kept: String = text.chars().take(width.saturating_sub(1)).collect();
        return format!("{kept}…");
    }
    if to_the_right { format!("{text:>width$}") } else { format!("{text:width$}") }
}

#[cfg(test)]
mod tests {
    use kirin_observe::live::snapshot::SnapshotMachines;

    use super::*;
    use crate::top::sample::snapshot;

    #[test]
    fn all_tables_are_printed() {
        let text = text(&snapshot());
        for line in [
            "kirin 0.1.0  pid 100  up 1h01m",
            "requests/s          12",
            "URLS, last minute, by sum of time",
            " 1.5s    50   30ms   30ms   60ms   90ms 48.8K   0%   0   0 app:web GET /memo/{id}",
            "102 busy  1.5s",
            "Memo::slow lib/Memo.pm:42",
            "10.0.0.1:80",
        ] {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
        assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    }

    #[test]
    fn the_title_names_the_machines_that_do_not_answer() {
        let mut snapshot = snapshot();
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        snapshot.machines = Some(SnapshotMachines {
            answered: names(&["a", "b"]),
            silent: names(&["c", "d"]),
            left_out: names(&["a: without 5 URLs"]),
        });
        let text = text(&snapshot);
        assert!(
            text.starts_with("kirin 0.1.0  4 machines  no answer: c, d\na: without 5 URLs\n"),
            "{text}"
        );
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(aligned("/memo/seven", 6, false), "/memo…");
        assert_eq!(aligned("7", 3, true), "  7");
    }
}
